"""Mistakes to plant in the product, as data, and which tests catch each.

They measure the tests: whoever exchanges tests for others plants the mistakes in what those tests
guard, before and after (``python -m tests.planted``). Most were made by lot from the syntax tree,
the others by hand (those that say what they ``break``).

A mistake is whole lines (``before``) that occur once in its ``file``, and what stands there instead
(``after``): if code moves to another file, only ``file`` has to follow.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = Path(__file__).with_name("mistakes.yaml")


@dataclass(frozen=True)
class Mistake:
    """Lines of a file, those that take their place, and the tests that fail then."""

    file: str
    before: str
    after: str
    caught_by: tuple[str, ...] = ()
    """As pytest names them, without parameters: ``tests/state/test_plan.py::test_it``."""
    breaks: str = ""
    """What it takes away, for one that was made by hand."""

    def __str__(self) -> str:
        """Name the file, and the first line that differs."""
        pairs = zip(self.before.splitlines(), [*self.after.splitlines(), ""], strict=False)
        changed = next((old for old, new in pairs if old != new), self.before)
        return f"{self.file}: {' '.join(changed.split())}"

    def planted(self, text: str) -> str | None:
        """Return the file's text with the mistake in it; None if its lines are not there once."""
        found = [match.start() for match in re.finditer(f"(?m)^{re.escape(self.before)}", text)]
        if len(found) != 1:
            return None
        (start,) = found
        return text[:start] + self.after + text[start + len(self.before) :]

    def matches(self, words: Collection[str]) -> bool:
        """Whether any of the words is in what names it or its tests; without words, all do."""
        text = " ".join((self.file, *self.caught_by, self.breaks))
        return not words or any(word in text for word in words)


def read() -> list[Mistake]:
    """Return all mistakes, in the order of their files."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows = yaml.load(DATA.read_text(encoding="utf-8"), loader)  # noqa: S506
    return [Mistake(**row | {"caught_by": tuple(row["caught_by"])}) for row in rows]


def write(mistakes: Collection[Mistake], data: Path = DATA) -> None:
    """Write them back, in the same order whatever was added."""
    ordered = sorted(mistakes, key=lambda each: (each.file, each.before, each.after))
    data.write_text("\n".join("".join(_lines(each)) for each in ordered), encoding="utf-8")


def _lines(mistake: Mistake) -> Iterator[str]:
    yield f"- file: {mistake.file}\n"
    if mistake.breaks:
        yield f"  breaks: {json.dumps(mistake.breaks)}\n"
    for name, text in (("before", mistake.before), ("after", mistake.after)):
        block = "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())
        yield f"  {name}: |2\n{block}" if block else f'  {name}: ""\n'
    yield f"  caught_by:{'' if mistake.caught_by else ' []'}\n"
    yield from (f"  - {test}\n" for test in mistake.caught_by)


@cache
def _functions(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in body if isinstance(node, kinds))


def exists(test: str) -> bool:
    """Whether a test is still in the tree."""
    file, _, name = test.partition("::")
    return name in _functions(ROOT / file)
