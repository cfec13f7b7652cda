"""Calls of one answer go on at once, and tools that block hold up no other run."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import tool
from tests.parts import memory
from tests.scripted_runs import call, calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import aopen_postgres, open_postgres
from daruma.state.settings import Settings

MANY = 20
"""Calls in one answer: more than Python starts threads for by itself, on a small machine."""

SETTINGS = Settings.model_validate(
    {"tools": {"max_calls_per_turn": 50}, "evolution": {"enabled": False}}
)
GIVEN = {"messages": [("user", "Do it")]}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def graph(function: Any, number: int, effect: str | None = "none", **persistence: Any) -> Any:
    """A machine whose model calls the function so many times in one answer."""
    made = tool(function)
    made.metadata = {"daruma": {"effect": effect}} if effect else None
    turn = calls(*(call(made.name, n=each) for each in range(number)))
    model = ScriptedChatModel(script={"main": [turn, say()]})
    return build_graph(model, [made], SETTINGS, **(persistence or {"checkpointer": memory()}))


class Meeting:
    """A tool whose calls all wait for one another: with one too few at once they never meet."""

    def __init__(self, number: int) -> None:
        self._all = threading.Barrier(number)

    def meet(self, n: int) -> str:
        """Meet the others."""
        self._all.wait(30)
        return str(n)

    async def ameet(self, n: int) -> str:
        """Meet the others."""
        return await asyncio.get_running_loop().run_in_executor(_OWN, self.meet, n)


_OWN = ThreadPoolExecutor(MANY)


def statuses(out: dict[str, Any]) -> set[str]:
    return {each.status for each in out["messages"] if each.type == "tool"}


@pytest.mark.parametrize("effect", ["none", None])
@pytest.mark.parametrize("function", [Meeting.meet, Meeting.ameet])
def test_all_calls_of_an_answer_go_on_at_once_in_a_synchronous_run(
    function: Callable[..., Any], effect: str | None
) -> None:
    """Each has a thread of LangGraph's wait for it: there must be enough of these."""
    meeting = Meeting(MANY)
    meet = getattr(meeting, function.__name__)

    out = graph(meet, MANY, effect).invoke(GIVEN, thread("t"))

    assert statuses(out) == {"success"}


@pytest.mark.parametrize("effect", ["none", None])
async def test_all_calls_of_an_answer_go_on_at_once_in_an_asynchronous_run(
    effect: str | None,
) -> None:
    """Those with an effect too, unless it is one on the same workspace."""
    out = await graph(Meeting(MANY).meet, MANY, effect).ainvoke(GIVEN, thread("t"))

    assert statuses(out) == {"success"}


def test_whoever_asks_for_less_at_once_gets_it() -> None:
    """LangGraph's own ``max_concurrency`` stands, given with the run or with the graph."""
    seen: list[Any] = []

    def work(n: int) -> str:
        """Work."""
        seen.append(ensure_config().get("max_concurrency"))
        return str(n)

    one: RunnableConfig = {"max_concurrency": 1}
    graph(work, 1).invoke(GIVEN, one | thread("t"))
    graph(work, 1).with_config(one).invoke(GIVEN, thread("t"))

    assert seen == [1, 1]


class Blocking:
    """A tool that blocks until it is let go, and knows when all calls of it have begun."""

    def __init__(self, number: int) -> None:
        self.all_begun, self.go = threading.Event(), threading.Event()
        self._number = number
        self._lock = threading.Lock()

    def block(self, n: int) -> str:
        """Block."""
        with self._lock:
            self._number -= 1
            if not self._number:
                self.all_begun.set()
        assert self.go.wait(60)
        return str(n)


def busy() -> Any:
    """A script that asks, calls a tool that blocks, and runs a command."""
    command = calls(call("run_command", command="echo hello"))
    return {"main": [calls("shout"), command, say()]}


ALLOWED = Settings.model_validate(
    {
        "tools": {"policy": {"run_command": "allow"}},
        "evolution": {"enabled": False},
        "rollback": {"snapshots": False},
    }
)


@pytest.mark.parametrize("number", [8, 40])
async def test_blocking_tools_hold_up_no_other_run(
    number: int, postgres_url: str, tmp_path: Path
) -> None:
    """Neither its checkpoints nor its model calls, its own tools and commands."""
    blocking = Blocking(number)
    async with aopen_postgres(postgres_url) as pg:
        held = graph(blocking.block, number, persistence=pg)
        other: Any = build_graph(ScriptedChatModel(script=busy()), [shout], ALLOWED, persistence=pg)
        waiting = asyncio.ensure_future(held.ainvoke(GIVEN, thread("held")))
        await asyncio.get_running_loop().run_in_executor(_OWN, blocking.all_begun.wait)

        out = await other.ainvoke(GIVEN | {"workspace": str(tmp_path)}, thread("other"))
        was_waiting = not waiting.done()
        blocking.go.set()
        ended = await waiting

    assert was_waiting
    assert out["result"].status == ended["result"].status == "completed"
    assert statuses(out) == statuses(ended) == {"success"}


@pytest.mark.parametrize("number", [8, 40])
def test_blocking_tools_hold_up_no_other_synchronous_run(
    number: int, postgres_url: str, tmp_path: Path
) -> None:
    """All of them share one loop in the background."""
    blocking = Blocking(number)
    with open_postgres(postgres_url) as pg, ThreadPoolExecutor(1) as own:
        held = graph(blocking.block, number, persistence=pg)
        other: Any = build_graph(ScriptedChatModel(script=busy()), [shout], ALLOWED, persistence=pg)
        waiting = own.submit(held.invoke, GIVEN, thread("held"))
        blocking.all_begun.wait()

        out = other.invoke(GIVEN | {"workspace": str(tmp_path)}, thread("other"))
        was_waiting = not waiting.done()
        blocking.go.set()

    assert was_waiting
    assert out["result"].status == waiting.result()["result"].status == "completed"
    assert statuses(out) == statuses(waiting.result()) == {"success"}


async def test_many_threads_at_once_all_come_to_their_end(postgres_url: str) -> None:
    """They are many more than there are connections: each waits its turn, none gives up."""
    turn = calls(*(call("shout", text=f"hello {each}") for each in range(2)))
    async with aopen_postgres(postgres_url) as pg:
        machines: list[Any] = [
            build_graph(
                ScriptedChatModel(script={"main": [turn, say()]}), [shout], SETTINGS, persistence=pg
            )
            for _ in range(40)
        ]
        ended = await asyncio.gather(
            *(each.ainvoke(GIVEN, thread(f"t{n}")) for n, each in enumerate(machines))
        )

    assert [out["result"].status for out in ended] == ["completed"] * len(machines)


def test_many_synchronous_runs_at_once_all_come_to_their_end(postgres_url: str) -> None:
    """Each on a thread of its caller's."""
    turn = calls(call("shout"))
    with open_postgres(postgres_url) as pg, ThreadPoolExecutor(25) as own:

        def status(n: int) -> str:
            model = ScriptedChatModel(script={"main": [turn, say()]})
            machine: Any = build_graph(model, [shout], SETTINGS, persistence=pg)
            out = machine.invoke(GIVEN, thread(f"t{n}"))
            return str(out["result"].status)

        ended = list(own.map(status, range(25)))

    assert ended == ["completed"] * 25


HANGING = """
import threading
from daruma import ScriptedChatModel, Settings, build_graph

def hang(n: int) -> str:
    "Hang for ever."
    threading.Event().wait()

turn = {"calls": [{"name": "hang", "args": {"n": n}} for n in range(100)]}
script = {"main": [turn, {"calls": [{"name": "work", "args": {"n": 0}}]}, {"say": "Done."}]}

def work(n: int) -> str:
    "Work."
    return "worked"

settings = Settings.model_validate(
    {"tools": {"timeout": 1, "max_calls_per_turn": 100}, "evolution": {"enabled": False}}
)
graph = build_graph(ScriptedChatModel(script=script), [hang, work], settings)
out = graph.invoke({"messages": [("user", "Do it")]})
told = [each.text for each in out["messages"] if each.type == "tool"]
print(sum("hang did not end in 1 s" in each for each in told), told[-1], out["result"].status)
"""


def test_a_hundred_tools_that_hang_hinder_neither_the_run_nor_the_exit() -> None:
    """TL-21: their time is limited, and nothing waits for their threads."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "100 worked completed\n", "")
