"""A call that a crash met is told of in one line, and what it had left can be brought back."""

from io import StringIO
from typing import Any, get_args

import pytest
from rich.console import Console

from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.output import Paper
from daruma.graph.command_line.progress import Progress
from daruma.state.events import CallSettled
from daruma.tools.calls.journal import Settles
from daruma.tools.calls.once import WAYS


def settled(how: str, undo: str | None = None) -> dict[str, Any]:
    return CallSettled(call_id="c1", tool="pay", how=how, undo=undo).to_dict()


@pytest.mark.parametrize("how", ["reused", *WAYS, *sorted({*get_args(Settles)} - {"ask"})])
def test_every_way_has_its_words(how: str) -> None:
    """None is shown by its code."""
    (line,) = lines_of(settled(how))

    assert line.text.startswith("pay was ")
    assert line.text != f"pay {how}"


def test_what_was_put_back_can_be_had_again() -> None:
    """By the command that brings it, as it can be pasted."""
    file = StringIO()
    paper = Paper(Console(file=file, width=80, highlight=False))

    with Progress(paper) as progress:
        progress.begin("brave-otter-7k2f", "a model")
        progress.see("custom", settled("restore", "7f"))

    assert "what was there is kept: daruma undo brave-otter-7k2f --to 7f\n" in file.getvalue()
