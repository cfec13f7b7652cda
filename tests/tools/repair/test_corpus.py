"""What the rules rung makes of 1,500 broken calls, beside the JSON repair library alone."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from json_repair import repair_json
from tests.pages import published
from tests.tools.repair.corpus.cases import Case, cases
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._repair import repair_args, repair_text
from daruma.tools.calls._schema import misfit, properties

CASES = cases()
KINDS = list(dict.fromkeys(case.kind for case in CASES))
LIMIT = 262_144
REPAIRED = {
    "single quotes": 37,
    "python literals": 5,
    "comments": 72,
    "code fences": 104,
    "trailing commas": 50,
    "doubled encoding": 93,
    "raw newlines": 9,
    "missing brackets": 11,
    "extra brackets": 76,
    "prose": 104,
    "duplicates": 52,
    "lone backslashes": 1,
    "wrappers": 26,
    "missing commas": 28,
    "unquoted keys": 25,
    "wrong types": 39,
    "renamed keys": 72,
    "respelled values": 24,
    "nulls": 9,
    "mixed": 157,
    "odd but certain": 16,
}
"""How many of each class are repaired; the classes that are not here must all be refused."""


def repaired(case: Case) -> Repaired | Refused:
    """Return what the rules rung makes of a case."""
    tool = TOOLS[case.tool]
    if isinstance(case.given, str):
        return repair_text(case.given, tool, max_bytes=LIMIT)
    return repair_args(case.given, tool)


def verdict(args: dict[str, Any] | None, case: Case) -> str:
    """Compare by text, so that 1, 1.0 and true are three."""
    if args is None:
        return "refused"
    alike = json.dumps(args, sort_keys=True) == json.dumps(case.meant, sort_keys=True)
    return "exact" if alike else "WRONG"


def by_rules(case: Case) -> str:
    """Return the rules rung's verdict."""
    found = repaired(case)
    return verdict(found.args if isinstance(found, Repaired) else None, case)


def by_library(case: Case) -> str:
    """Return what would happen with the library alone, and a schema check behind it."""
    text = case.given if isinstance(case.given, str) else json.dumps(case.given)
    try:
        value: Any = repair_json(text, return_objects=True)
    except (RecursionError, ValueError):  # of deep nesting and of very long numbers
        value = None
    schema = TOOLS[case.tool].parameters
    fits = isinstance(value, dict) and misfit(value, schema, schema) is None
    return verdict(value if fits else None, case)


def counted(judge: Callable[[Case], str], kind: str) -> Counter[str]:
    """Count the verdicts on the cases of a class."""
    return Counter(judge(case) for case in CASES if case.kind == kind)


def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    """A corpus that shrinks or repeats itself proves less than its number says.

    References and optional values, as Pydantic writes them, are in its schemas.
    """
    schemas = str(TOOLS["query_orders"].parameters) + str(TOOLS["create_event"].parameters)
    said = {(case.tool, json.dumps(case.given)) for case in CASES}

    assert len(CASES) >= 1_400
    assert len(said) >= len(CASES) - 80
    assert "$ref" in schemas
    assert "anyOf" in schemas


@pytest.mark.long
def test_nothing_runs_that_was_not_meant() -> None:
    """TL-10: every repaired call is, letter by letter, the call that was meant."""
    for kind in KINDS:
        wrong = [
            (case, repaired(case))
            for case in CASES
            if case.kind == kind and by_rules(case) == "WRONG"
        ]

        assert wrong == []


def test_no_class_falls_behind() -> None:
    """As many calls of each class are repaired as were when this was written."""
    for kind in KINDS:
        assert counted(by_rules, kind)["exact"] >= REPAIRED.get(kind, 0)


def test_what_was_cut_off_never_writes() -> None:
    """TL-12: a payload that ends early runs with no tool that changes anything.

    One that lacks nothing but brackets of objects, with all arguments there, did not end early.
    """
    cut = [c for c in CASES if c.kind in ("cut off", "missing brackets", "cut payloads")]

    ran = [c for c in cut if TOOLS[c.tool].effect != "none" and by_rules(c) != "refused"]

    assert len(cut) > 200
    assert [c for c in ran if c.kind != "missing brackets" or by_rules(c) != "exact"] == []
    assert all(properties(TOOLS[c.tool].parameters).keys() == (c.meant or {}).keys() for c in ran)


@pytest.mark.long
def test_every_refusal_is_one_line_that_says_something() -> None:
    """The model reads the reason and has nothing else to go by."""
    refusals = [found for case in CASES if isinstance(found := repaired(case), Refused)]

    assert [r for r in refusals if not 10 < len(r.reason) < 500 or "\n" in r.reason] == []


@pytest.mark.long
def test_every_rung_that_was_used_is_named() -> None:
    """TL-10: the audit says what was done; a text that was broken was not simply read."""
    silent = [c for c in CASES if isinstance(found := repaired(c), Repaired) and not found.rungs]

    assert silent == []


@pytest.mark.long
def test_the_table_is_what_the_readme_shows() -> None:
    """Print it anew with ``python -m pytest tests/tools/repair -k table -m long -s``.

    The library's own figures change with its version, and are not compared.
    """
    judged = {kind: (counted(by_rules, kind), counted(by_library, kind)) for kind in KINDS}
    lines = [row(kind, rules, alone, rungs_of(kind)) for kind, (rules, alone) in judged.items()]
    rules, alone = (sum((p[n] for p in judged.values()), Counter[str]()) for n in (0, 1))
    table = [HEAD, *lines, row("**all**", rules, alone, "")]
    print("", *table, "", sep="\n")  # noqa: T201  # it is the point

    pages = published()

    assert rules["WRONG"] == 0
    ours = ["|".join(line.split("|")[:6]) for line in table[1:]]
    assert [start for start in ours if start not in pages] == []
    assert f"{len(CASES):,} broken calls: {rules['exact']:,} repaired exactly by rules" in pages


HEAD = """\
| class | calls | rules: exact | refused | wrong | json_repair alone: exact | refused | wrong | by |
|---|---|---|---|---|---|---|---|---|"""


def rungs_of(kind: str) -> str:
    """Return the three rungs that repaired most of a class."""
    found = [repaired(case) for case in CASES if case.kind == kind]
    used = Counter(rung for each in found if isinstance(each, Repaired) for rung in each.rungs)
    return ", ".join(f"{rung} {count}" for rung, count in used.most_common(3))


def row(kind: str, rules: Counter[str], alone: Counter[str], by: str) -> str:
    """Return one line of the table."""
    figures = [judged[name] for judged in (rules, alone) for name in ("exact", "refused", "WRONG")]
    return f"| {kind} | {rules.total()} | " + " | ".join(map(str, figures)) + f" | {by} |"
