"""A call that a crash met is told of in one line, and what it had left can be brought back."""

from typing import get_args

import pytest

from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.paper import Line
from daruma.state.events import CallSettled
from daruma.tools.journal import Settles
from daruma.tools.once import WAYS


def settled(how: str, undo: str | None = None) -> list[Line]:
    return lines_of(CallSettled(call_id="c1", tool="pay", how=how, undo=undo).to_dict())


@pytest.mark.parametrize("how", ["reused", *WAYS, *(set(get_args(Settles)) - {"ask"})])
def test_every_way_has_its_words(how: str) -> None:
    """None is shown by its code."""
    (line,) = settled(how)

    assert line.text.startswith("pay was ")
    assert line.text != f"pay {how}"


def test_what_was_put_back_can_be_had_again() -> None:
    """By the command that brings it."""
    assert settled("restore", "7f")[1] == Line(
        "note", "what was there is kept: daruma undo THREAD --to 7f"
    )
