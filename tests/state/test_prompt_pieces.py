"""Pieces of prompts stand where they are meant to, for those they are meant for."""

import pytest
from tests.parts import a_state, a_task, settings

from daruma.state.context import PiecePlace as Place
from daruma.state.context import pieces, said_before

PROMPTS = settings(
    prompts={
        "z": {"text": "For all.\n"},
        "a": {"text": "For testers.", "role": "tester"},
        "b": {"text": "Last."},
        "p": {"text": "Plan small.", "place": "plan"},
        "t": {"text": "Mind the time.", "place": "task"},
    }
).prompts


@pytest.mark.parametrize(
    ("place", "expert", "told"),
    [
        ("system", None, ("For all.", "Last.")),
        ("system", "tester", ("For all.", "For testers.", "Last.")),
        ("system", "writer", ("For all.", "Last.")),
        ("plan", None, ("Plan small.",)),
        ("task", "tester", ("Mind the time.",)),
    ],
)
def test_each_has_its_place_and_role(place: Place, expert: str | None, told: tuple[str]) -> None:
    """CX-05: in the order of the settings."""
    assert pieces(a_state(task=a_task(expert=expert)), PROMPTS, place) == told


def test_those_for_the_task_stand_before_the_conversation() -> None:
    """Each as a message of its own."""
    assert [message.text for message in said_before(a_state(), PROMPTS)] == ["Mind the time."]
    assert said_before(a_state(task=None), {}) == []
