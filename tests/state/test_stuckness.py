"""No progress: nothing new, although it is no plain loop."""

import pytest
from tests.parts import taken
from tests.state.test_loops import record
from tests.state.test_rounds import think

from daruma.state.progress import Round, is_slow, is_stuck, news, without_progress
from daruma.state.steps import Step


def past(done: str) -> list[Round]:
    return [Round(each[0], each[1:]) for each in done.split()]


def shown(steps: list[Step], saw: str, asked: str, *blockers: str) -> str:
    return without_progress(steps, think(f"{asked}#x", saw, blockers=blockers))


@pytest.mark.parametrize(
    ("done", "new"),
    [
        ("A1 B2 C3", "yyy"),
        ("A1 A2 A3", "yyy"),
        ("A1 B1 C1", "yyy"),
        ("A1 A1 B2 A1", "ynyn"),
        ("A!1 B!1 C!2", "nny"),
        ("A!1 B2 C!1", "nyn"),
        ("", ""),
    ],
)
def test_a_round_is_news_unless_it_was_seen_or_fails_as_another(done: str, new: str) -> None:
    """RE-01: new calls with a known result are news, unless that is an error."""
    assert news(past(done)) == [each == "y" for each in new]


@pytest.mark.parametrize(
    ("done", "stuck"),
    [
        ("A1 B2 A1 B2", False),
        ("A1 B2 A1 B2 A1", True),
        ("A!1 B!1", False),
        ("A!1 B!1 C!1", True),
        ("A!1 B!1 C!1 D4", False),
        ("A!1 B!2 C!3", False),
    ],
)
def test_three_steps_without_news_are_stuck(done: str, stuck: bool) -> None:
    """RE-01."""
    assert is_stuck(past(done)) is stuck


@pytest.mark.parametrize(
    ("news_of", "blockers", "slow"),
    [
        ("ynnnnnnn", ("no",), True),
        ("ynnnnnnn", (), False),
        ("ynnnnnn", ("no",), False),
        ("yynnnnnn", ("no",), False),
        ("yynnnnnnn", ("no",), True),
    ],
)
def test_little_that_is_new_in_many_steps_is_slow(
    news_of: str, blockers: tuple[str, ...], slow: bool
) -> None:
    """RE-03: at least 8 steps, less than a quarter of them with anything new, and a blocker."""
    assert is_slow([each == "y" for each in news_of], blockers) is slow


def test_more_of_what_was_done_is_stuck_and_something_new_is_not() -> None:
    """A, B and A again told nothing; whoever then asks for C may have understood."""
    steps, saw = record("A1", "B2", "C3", "A1", "B2", "A1")
    known = [think(step.signature + "x", step.saw) for step in steps]

    assert shown(known, saw, "C") == "no progress over the last 3 steps"
    assert shown(known, saw, "D") == ""


def test_another_try_of_what_keeps_failing_is_stuck_and_another_tool_is_not() -> None:
    """RE-01: the same failure again, though the arguments differ."""
    steps = [think(f"edit#{n}", "" if n == 1 else "!e") for n in (1, 2, 3)]

    assert without_progress(steps, think("edit#4", "!e")) == "no progress over the last 3 steps"
    assert without_progress(steps, think("view#1", "!e")) == ""


def test_after_a_recovery_another_try_is_let_through_once() -> None:
    """It may be the right one; if it fails as before, the next is not run."""
    stuck = [think(f"edit#{n}", "" if n == 1 else "!e") for n in (1, 2, 3)]
    recovered = [*stuck, think("edit#4", "!e", ok=False), *taken("recover")]
    tried = [*recovered, think("edit#5", "!refused")]

    assert without_progress(recovered, think("edit#5", "!refused")) == ""
    assert without_progress(recovered, think("edit#3", "!refused")) != ""
    assert without_progress(tried, think("edit#6", "!e")) == "no progress over the last 3 steps"
    assert without_progress(tried, think("edit#6", "fine")) == ""


def test_slow_work_is_counted_anew_after_a_recovery() -> None:
    """Otherwise nothing that is tried could help any more."""
    tools = "ABCDEFGH"
    steps = [think(f"{tool}#{n}", "!e") for n, tool in enumerate(tools)]

    assert shown(steps, "!e", "X", "no").startswith("little progress over the last 8 steps")
    assert shown([*steps, *taken("recover")], "!e", "X", "no") == ""


def test_what_was_news_before_a_recovery_does_not_make_up_for_what_came_after() -> None:
    """Eight steps with news, and then eight without any."""
    good = [think(f"view#{n}", f"{n}") for n in range(8)]
    bad = [think(f"{tool}#x", "!e" if n else "") for n, tool in enumerate("ABCDEFGH")]

    assert shown([*good, *taken("recover"), *bad], "!e", "X", "no").startswith("little progress")
