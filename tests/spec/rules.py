"""What Daruma keeps, rule by rule: where each is decided, and which tests hold it.

``python -m tests.spec.rules`` writes ``docs/rules.md`` anew: from ``rules.yaml``, the docstrings of
the product, and those of the tests.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "rules.md"

PRODUCT: Final = ("graph", "nodes", "tools", "state")

CHAPTERS: Final = {
    "MO": "Task and modes",
    "TL": "The loop and its tools",
    "CX": "Context",
    "RE": "Progress, loops, recovery",
    "EM": "Emergency",
    "VE": "Verification",
    "BU": "Budgets",
    "PL": "Plan, review, phases, team",
    "RO": "Rollback",
    "ED": "The editor",
    "SA": "The sandbox",
    "EV": "Learning",
    "CO": "Continuity",
    "AS": "The assistant's tools",
    "DU": "Durability",
    "FA": "Faces",
    "SE": "Security",
}

RULES: Final[Mapping[str, str]] = yaml.safe_load(
    Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")
)
"""A sentence for each rule."""

NOT_YET: Final = frozenset[str]()
"""Rules of what is still to be built: no place decides them."""

HELD_BY_TESTS_ALONE: Final = frozenset({"EV-06", "FA-03"})
"""What no function decides: that something is shown, or kept whole."""

MOST_PLACES: Final = 4
MOST_TESTS: Final = 3

_RULE: Final = re.compile(r"\b(?:" + "|".join(CHAPTERS) + r")-\d\d[a-z]?\b")


@cache
def decided_in() -> dict[str, list[str]]:
    """Return where each rule is named in the product: functions first, then modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in _sources(*PRODUCT):
        for name, text in _documented(ast.parse(file.read_text(encoding="utf-8"))):
            for rule in sorted(set(_RULE.findall(text))):
                found[rule].append(f"{file.relative_to(ROOT)} {name}".strip())
    for rule, comments in _in_comments().items():
        found[rule] = found.get(rule) or comments
    return {rule: sorted(each, key=lambda place: " " not in place) for rule, each in found.items()}


def _in_comments() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for file in _sources(*PRODUCT):
        for rule in sorted(set(_RULE.findall(file.read_text(encoding="utf-8")))):
            found[rule].append(str(file.relative_to(ROOT)))
    return found


@cache
def held_by() -> dict[str, list[str]]:
    """Return the test files that name each rule, those that name it most often first."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file in _sources("tests"):
        if file.parent != Path(__file__).parent or file.name != Path(__file__).name:
            for rule in _RULE.findall(file.read_text(encoding="utf-8")):
                found[rule][str(file.relative_to(ROOT))] += 1
    return {
        rule: sorted(count, key=lambda name: (-count[name], name)) for rule, count in found.items()
    }


def _sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _documented(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of a module (without a name), and of all in it."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        name, node = waiting.pop(0)
        before = ""
        for each in getattr(node, "body", []):
            own = _name_of(each)
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                yield _joined(name, before), str(each.value.value)
            elif isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append((_joined(name, own), each))
            before = own


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target)
    return getattr(node, "name", "")


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


# --- The page.

HEAD: Final = """# Rules

What Daruma keeps, by number. Code and tests name a rule by it (`TL-13`): the docstring where it is
decided, and the tests that hold it. Written by `python -m tests.spec.rules`.
"""


def render() -> str:
    """Return the page: a table a chapter, a line a rule."""
    decided, held = decided_in(), held_by()
    parts = [HEAD]
    for chapter, title in CHAPTERS.items():
        lines = [
            f"## {title} ({chapter})\n",
            "| rule | says | decided in | held by |",
            "|---|---|---|---|",
        ]
        for rule, sentence in RULES.items():
            if rule.startswith(f"{chapter}-"):
                where = _links(decided.get(rule, []), MOST_PLACES)
                where = "*not yet*" if rule in NOT_YET else where
                tested = _links(held.get(rule, []), MOST_TESTS)
                lines.append(f"| {rule} | {sentence} | {where} | {tested} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _links(found: list[str], most: int) -> str:
    more = f"; {len(found) - most} more" if len(found) > most else ""
    return "; ".join(map(_link, found[:most])) + more


def _link(place: str) -> str:
    file, _, name = place.partition(" ")
    return f"[{file}](../{file})" + (f" `{name}`" if name else "")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
