"""A command tells its answer before anything is learned of it."""

import json
from typing import Any

import pytest
from tests.learned_tasks import CONFIG, REACT, Learned
from typing_extensions import override

from daruma.graph.command_line.conversation import Conversation
from daruma.graph.command_line.session import Session, Stop
from daruma.graph.sync import Cancelled


class Ended(Session):
    """A session whose task has ended; what is learned of it ends as it is told."""

    learning: BaseException | None = None

    @override
    async def advance(self, start: Any, watcher: Any, automatic: Any, tell: Any) -> Stop:
        result = Learned().graph.invoke(REACT, CONFIG)["result"]
        stop = Stop(self.thread, result, ())
        tell(stop)
        if self.learning:
            raise self.learning
        return stop


@pytest.mark.parametrize("learning", [None, Cancelled(2), KeyboardInterrupt()])
def test_an_answer_is_told_once_whatever_becomes_of_learning(
    learning: BaseException | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """EV-01: Ctrl-C while a command waits for that takes nothing back."""
    session = Ended("t")
    session.learning = learning

    code = Conversation(json=True).hold(session, lambda _: None)

    said = capsys.readouterr()
    assert (code, [json.loads(line)["status"] for line in said.out.splitlines()]) == (
        0,
        ["completed"],
    )
    assert "Cancelled" not in said.err
