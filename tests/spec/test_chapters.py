"""The chapters speak of every rule, and know nothing of Daruma but its public face."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.spec.rules import CHAPTERS, NOT_YET, ROOT, RULES

HERE: Final = Path(__file__).parent

NOT_THROUGH_THE_FACE: Final[Mapping[str, str]] = {}
"""Rules that no chapter holds, and why it can not."""

TO_COME: Final = ("PL", "RO", "ED", "SA", "EV", "CO", "AS", "DU", "FA", "SE")
"""Chapters that are not written yet."""

BEHIND_THE_FACE: Final = re.compile(r"\bdaruma\.(?:graph|nodes|tools|state)\b")


def chapters() -> list[Path]:
    """The files of the chapters, and what they share."""
    own = {Path(__file__).name, "rules.py", "test_rules.py"}
    return [file for file in sorted(HERE.glob("*.py")) if file.name not in own]


def test_a_chapter_knows_only_the_public_face() -> None:
    """Nor does what it borrows of other tests: every module behind the face may move."""
    found = {file: BEHIND_THE_FACE.findall(file.read_text("utf-8")) for file in _with_borrowed()}

    assert {str(file.relative_to(ROOT)) for file, names in found.items() if names} == set()


def _with_borrowed() -> set[Path]:
    waiting, found = chapters(), set[Path]()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_borrowed(file))
    return found


def _borrowed(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            yield ROOT / f"{str(node.module).replace('.', '/')}.py"


def test_every_rule_has_a_test_in_its_chapter() -> None:
    """Its docstring begins with the rule's number; a rule that can not be tried here says why."""
    owed = {rule for rule in set(RULES) - set(NOT_THROUGH_THE_FACE) if not rule.startswith(TO_COME)}

    assert sorted(owed - set(held_in_chapters())) == []
    assert sorted(set(held_in_chapters()) & set(NOT_THROUGH_THE_FACE)) == []
    assert sorted(set(held_in_chapters()) - set(RULES)) == []


def test_a_rule_to_come_is_expected_to_fail_and_no_other_is_without_its_name() -> None:
    """What is expected to fail names its rule; a rule that is to be built has no other tests."""
    for rule, tests in held_in_chapters().items():
        for test in tests:
            expected = [each for each in test.decorator_list if "xfail" in ast.unparse(each)]
            assert all(rule in ast.unparse(each) for each in expected), test.name
            assert expected or rule not in NOT_YET, test.name


def held_in_chapters() -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the tests of the chapters by the rule that their docstring begins with."""
    number = re.compile(rf"((?:{'|'.join(CHAPTERS)})-\d\d[a-z]?): ")
    found = defaultdict(list)
    for file in chapters():
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if named := number.match(ast.get_docstring(node) or ""):
                    found[named[1]].append(node)
                elif node.name.startswith("test_"):
                    raise AssertionError(f"{file.name}: {node.name} names no rule")
    return dict(found)
