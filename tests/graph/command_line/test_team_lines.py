"""What the members of a team do is told with the phase that they do it for."""

import pytest

from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.output import Line
from daruma.graph.command_line.panel import GoingOn
from daruma.state.events import (
    Event,
    MemberCompleted,
    MemberStarted,
    MergeCompleted,
    ModelCallCompleted,
    ModelCallStarted,
    Reflected,
)


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            MemberStarted(phase_id="p1", expert="tester", workspace="/w/p1"),
            [Line("head", "tester takes up p1", "/w/p1")],
        ),
        (MemberStarted(phase_id="p1", expert="tester", workspace=None),
         [Line("head", "tester takes up p1")]),
        (
            MemberCompleted(phase_id="p1", expert="tester", outcome="completed"),
            [Line("ok", "tester has ended p1: completed")],
        ),
        (
            MemberCompleted(phase_id="p1", expert="tester", outcome="failed"),
            [Line("bad", "tester has ended p1: failed")],
        ),
        (MergeCompleted(phase_id="p1", paths=("a",)), [Line("ok", "p1 is merged", "1 file")]),
        (
            MergeCompleted(phase_id="p1", paths=(), conflicts=("a", "b")),
            [
                Line("bad", "p1 is not merged: 2 files met other work"),
                Line("note", "a"),
                Line("note", "b"),
            ],
        ),
    ],
)  # fmt: skip
def test_each_step_of_a_team_has_its_lines(event: Event, lines: list[Line]) -> None:
    """PL-06: who works on what, and whether it came together."""
    assert lines_of(event.to_dict()) == lines


def test_what_a_member_does_names_its_phase() -> None:
    """Members work at the same time: their lines would mix otherwise."""
    lines = lines_of(Reflected(text="I see.", member="p2").to_dict())

    assert [line.text for line in lines] == ["p2: Reflection", "p2: I see."]


def test_members_who_do_the_same_are_told_apart() -> None:
    """The end of one member's model call does not end that of another."""
    going_on = GoingOn()
    for member in ("p1", "p2"):
        started = ModelCallStarted(node="main", model="m", member=member)
        going_on.open(started.to_dict(), f"{member} asks")

    going_on.close(ModelCallCompleted(node="main", model="m", seconds=1, member="p2").to_dict())

    assert [each.title for each in going_on.activities] == ["p1 asks"]
