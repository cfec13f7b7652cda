"""A run has its thread and its workspace for itself; whoever else comes is told, and loses nothing.

DU-03. Two that resume one thread at once would both do its work, and fork it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot
from tests.parts import a_task, memory
from tests.scripted_runs import call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.ledgers import workspace_of
from daruma.graph.storage.postgres import open_postgres
from daruma.state.errors import Busy, ThreadBusy, WorkspaceBusy
from daruma.state.mode import Mode
from daruma.state.settings import Settings

T: Any = {"configurable": {"thread_id": "t"}}
OTHER: Any = {"configurable": {"thread_id": "other"}}


class Slow:
    """A graph whose tool waits until it is let go."""

    def __init__(self, saver: Any, workspace: Path) -> None:
        self.begun, self.go, self.worked = Event(), Event(), 0
        self.workspace = str(workspace)

        def work(text: str) -> str:
            """Work."""
            self.worked += 1
            self.begun.set()
            self.go.wait(30)
            return text

        script = {"main": [calls(call("work")), say()]}
        chat = {"main": [say("Hello.")]}
        self.graph: Any = build_graph(
            ScriptedChatModel(script=script), [work], Settings(), checkpointer=saver
        )
        self.chat: Any = build_graph(
            ScriptedChatModel(script=chat), [], Settings(), checkpointer=saver
        )

    def request(self, **more: Any) -> dict[str, Any]:
        return {"messages": [("user", "Do it")], "workspace": self.workspace, **more}

    @contextmanager
    def working(self) -> Iterator[None]:
        """Have a run on the thread `t` in the middle of its tool."""
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.graph.invoke, self.request(), T)
            assert self.begun.wait(30)
            try:
                yield
            finally:
                self.go.set()
                assert run.result()["result"].status == "completed"


@pytest.fixture(params=["memory", "postgres"])
def slow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slow]:
    if request.param == "memory":
        yield Slow(memory(), tmp_path)
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield Slow(pg.checkpointer, tmp_path)


def test_a_second_run_of_a_thread_is_told_who_has_it(slow: Slow) -> None:
    """Going on, a new request, an edit of its state, an undo: the first one goes on untouched."""
    with slow.working():
        for act in (
            lambda: slow.graph.invoke(None, T),
            lambda: slow.graph.invoke(slow.request(), T),
            lambda: [*slow.graph.stream(None, T)],
            lambda: slow.graph.update_state(T, None, as_node="main"),
            lambda: slow.graph.undo(T),
            lambda: slow.graph.reopen(T),
        ):
            with pytest.raises(ThreadBusy, match="thread 't' is being run"):
                act()
        assert slow.graph.get_state(T).next == ("tool",)

    assert slow.worked == 1
    assert slow.graph.get_state(T).next == ()


async def test_the_asynchronous_ways_are_told_too(slow: Slow) -> None:
    """In the words of the same error."""
    with slow.working():
        with pytest.raises(ThreadBusy):
            await slow.graph.ainvoke(None, T)
        with pytest.raises(ThreadBusy):
            await slow.graph.aupdate_state(T, None, as_node="main")
        with pytest.raises(ThreadBusy):
            await slow.graph.aundo(T)
        with pytest.raises(ThreadBusy):
            await slow.graph.areopen(T)
        with pytest.raises(WorkspaceBusy):
            await slow.graph.ainvoke(slow.request(), OTHER)


def test_a_second_thread_in_one_workspace_is_told(slow: Slow) -> None:
    """Also in a folder of it; but one that only chats changes nothing."""
    inside = Path(slow.workspace, "inside")
    inside.mkdir()
    with slow.working():
        with pytest.raises(WorkspaceBusy, match="wait until that has stopped, or use a copy"):
            slow.graph.invoke(slow.request(), OTHER)
        with pytest.raises(WorkspaceBusy):
            slow.graph.invoke(slow.request(workspace=str(inside)), OTHER)
        said = slow.chat.invoke(slow.request(mode="direct_chat"), OTHER)

    assert said["result"].status == "completed"
    assert slow.graph.invoke(slow.request(), T | {"configurable": {"thread_id": "third"}})


def test_a_run_that_is_abandoned_gives_back_what_it_held(slow: Slow) -> None:
    """A stream that nobody reads to its end."""
    parts = slow.graph.stream(slow.request(), T, stream_mode="updates")
    assert "intake" in next(parts)
    with pytest.raises(Busy):
        slow.graph.invoke(None, T)

    parts.close()

    slow.go.set()
    assert slow.graph.invoke(None, T)["result"].status == "completed"


def test_two_graphs_over_one_checkpointer_know_of_each_other(tmp_path: Path) -> None:
    """Each reads it through a copy of its own."""
    saver = InMemorySaver()
    slow, other = Slow(saver, tmp_path), Slow(saver, tmp_path)

    with slow.working(), pytest.raises(ThreadBusy):
        other.graph.invoke(None, T)


def test_a_refused_request_holds_nothing(slow: Slow) -> None:
    """The next one is taken as if nothing had been."""
    with pytest.raises(Exception, match="no thread"):
        slow.graph.invoke(None, T)
    slow.go.set()

    assert slow.graph.invoke(slow.request(), T)["result"].status == "completed"


@pytest.mark.parametrize(
    ("given", "workspace"),
    [
        ({"messages": ["Do it"], "workspace": "/ws"}, "/ws"),
        ({"messages": ["@chat hello"], "workspace": "/ws"}, None),
        ({"messages": ["Do it"], "mode": "direct_chat", "workspace": "/ws"}, None),
        ({"messages": ["@chat hello"], "mode": "react", "workspace": "/ws"}, "/ws"),
        ({"messages": ["Do it"]}, None),
        (None, None),
    ],
)
def test_the_workspace_is_that_of_the_task_to_come(given: Any, workspace: str | None) -> None:
    """A chat has none."""
    from langchain_core.messages import HumanMessage

    if given:
        given = given | {"messages": [HumanMessage(text) for text in given["messages"]]}
    assert workspace_of(given, None) == workspace


@pytest.mark.parametrize(
    ("mode", "given", "workspace"),
    [
        ("react", None, "/known"),
        ("direct_chat", None, None),
        ("react", {"mode": "react"}, "/known"),
        ("react", {"mode": "react", "workspace": "/new"}, "/new"),
        ("direct_chat", {"mode": "react"}, "/known"),
        ("react", {"mode": "direct_chat"}, None),
    ],
)
def test_a_thread_keeps_its_workspace_until_it_is_given_another(
    mode: Mode, given: Any, workspace: str | None
) -> None:
    """Going on with a task works where that does; going on with a chat works nowhere."""
    task = a_task(mode, workspace="/known")
    snapshot = StateSnapshot(
        values={"task": task}, next=(), config=T, metadata=None, created_at=None,
        parent_config=None, tasks=(), interrupts=(),
    )  # fmt: skip

    assert workspace_of(given, snapshot) == workspace
