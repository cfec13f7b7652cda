"""Each rule has a place where it is decided and a test that names it, and the page tells them."""

import pytest
from tests.spec.rules import HELD_BY_TESTS_ALONE, NOT_YET, PAGE, RULES, decided_in, held_by, render


def test_every_rule_is_decided_somewhere_and_held_by_a_test() -> None:
    """What is still to be built is named as such, and nowhere else."""
    decided, held = decided_in(), held_by()

    assert sorted(set(RULES) - NOT_YET - HELD_BY_TESTS_ALONE - set(decided)) == []
    assert sorted(set(RULES) - NOT_YET - set(held)) == []
    assert sorted(NOT_YET & set(decided)) == []


def test_no_rule_is_named_that_there_is_not() -> None:
    """In the product and in the tests."""
    assert sorted((set(decided_in()) | set(held_by())) - set(RULES)) == []


def test_the_page_is_as_the_code_has_it() -> None:
    """Else: ``python -m tests.spec.rules``."""
    if PAGE.read_text(encoding="utf-8") != render():
        pytest.fail("docs/rules.md is out of date: run python -m tests.spec.rules")
