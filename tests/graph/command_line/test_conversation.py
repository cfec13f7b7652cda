"""A command tells its answer before anything is learned of it."""

import json
from typing import Any

import pytest
from langchain_core.tools import tool
from tests.daruma_command import Daruma
from tests.learned_tasks import CONFIG, REACT, Learned
from tests.parts import settings
from tests.scripted_runs import RecordingModel, call, calls
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.command_line._session import Conversation, Session
from daruma.graph.command_line._thread_view import Stop
from daruma.graph.storage import open_postgres
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


# --- A turn that ended with a question is told as one, and goes on with the next ``daruma run``.


@tool
def whisper(text: str, day: str) -> str:
    """Say it quietly."""
    return text + day


whisper.metadata = {"daruma": {"ask_for": {"day": "On which day?"}, "dates": {"day": "date"}}}


@pytest.fixture
def parked(daruma: Daruma) -> Daruma:
    """The command, with a question open on thread ``t``."""
    with open_postgres(daruma.url) as postgres:
        model = RecordingModel(script={"main": [calls(call("whisper"))]})
        graph: Any = build_graph(model, [whisper], settings(), persistence=postgres)
        config = {"configurable": {"thread_id": "t"}}
        graph.invoke({"messages": [("user", "Whisper")]}, config)
    return daruma


def test_an_open_question_is_listed_and_shown(parked: Daruma) -> None:
    """FA-04: with what it is for, and how to answer."""
    listed, shown = parked("threads").out, parked("show", "t")

    assert listed.split("\t")[1] == "parked"
    assert listed.rstrip().endswith("Whisper (asks: On which day?)")
    assert "whisper: day" in shown.out
    assert 'daruma run --thread t "..."' in shown.out
    clarification = parked("show", "t", "--json").json["result"]["clarification"]
    assert clarification["missing_fields"] == ["day"]


def test_the_next_run_goes_on_with_it(parked: Daruma) -> None:
    """Exit code 3 as long as the call is not made; the question is the model's own now."""
    model = parked.script(main=[{"say": "unused"}, {"say": "Which Monday?"}])

    said = parked("run", "--thread", "t", "--model", model, "next Monday")
    again = parked("resume", "t", "--json")

    assert said.code == again.code == 3
    assert "going on with whisper" in said.out
    assert "Which Monday?" in said.out
    assert again.json["clarification"]["partial_args"]["text"] == "hello"
    assert again.json["clarification"]["partial_args"]["day"]
