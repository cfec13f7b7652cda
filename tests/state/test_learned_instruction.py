"""What was learned stands in a prompt as one short list of what records say."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daruma.state.context import HEAD, LONGEST, MOST, learned_instruction
from daruma.state.lessons import Instruction, Lessons


def lessons(*texts: str, **changes: Any) -> Lessons:
    where: dict[str, Any] = {"actor": "main", "place": "system"} | changes
    given_ = tuple(Instruction(variant=str(n), text=text, **where) for n, text in enumerate(texts))
    return Lessons(task_id="t/1", instructions=given_)


def test_each_is_one_line_under_a_head_that_says_what_it_is() -> None:
    """They are suggestions: the task and the user come first."""
    found = learned_instruction(lessons("Read it first.", "Then edit."), "main", "system")

    assert found == f"{HEAD}\n- Read it first.\n- Then edit."


def test_a_prompt_is_untouched_where_there_is_nothing_for_it() -> None:
    """Neither without lessons, nor in the control arm, nor for another actor or place."""
    assert learned_instruction(None, "main", "system") == ""
    assert learned_instruction(lessons(""), "main", "system") == ""
    assert learned_instruction(lessons("Read it."), "plan", "system") == ""
    assert learned_instruction(lessons("Read it."), "main", "plan") == ""


def test_an_actor_reads_its_own() -> None:
    """EV-04: the planner's and an expert's are theirs."""
    assert learned_instruction(lessons("Plan less.", actor="plan", place="plan"), "plan", "plan")
    assert learned_instruction(lessons("Test.", actor="tester"), "tester", "system")


@given(st.lists(st.text(max_size=1000), max_size=9))
def test_whatever_stands_there_can_neither_close_nor_open_anything(texts: list[str]) -> None:
    """Bounded, one line each, and no markup: even where a store was tampered with."""
    lines = learned_instruction(lessons(*texts), "main", "system").split("\n")[2:]

    assert len(lines) <= MOST
    for line in lines:
        assert line.startswith("- ")
        assert line.isprintable()
        assert not set(line) & set("<>\"'")
        assert len(line) <= 2 + 6 * LONGEST
