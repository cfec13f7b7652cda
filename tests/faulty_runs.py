"""One scripted task, run over a database that fails: what is left of it, for comparison."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Self

import psycopg
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command
from pydantic import PrivateAttr
from tests.fault_proxy import Fate, FaultProxy, once
from typing_extensions import override

from daruma import Settings, build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, Server, open_postgres
from daruma.graph.storage._embedded import Programs, embedded_postgres
from daruma.state.interrupts import ReplyRefused

SCRIPT: dict[str, Any] = {
    "main": [
        {
            "calls": [
                {"name": "note", "args": {"text": "one"}, "id": "a"},
                {"name": "note", "args": {"text": "two"}, "id": "b"},
            ]
        },
        {"calls": [{"name": "pay", "args": {"text": "five"}, "id": "c"}]},
        {"calls": [{"name": "note", "args": {"text": "three"}, "id": "d"}]},
        {"say": "It is done."},
    ]
}


NOTED = ["five", "one", "three", "two"]
"""What is written down, once each, in files of that name."""

During = Callable[[str], None]
"""What happens while a tool, or a model, is at work; it is told the text noted, or ``model N``."""


def nothing(_: str) -> None:
    """Nothing happens."""


class Watched(ScriptedChatModel):
    """A scripted model that something happens during the calls of."""

    _during: list[During] = PrivateAttr(default_factory=list)  # a bare function would be a method
    _calls: int = PrivateAttr(default=0)

    @classmethod
    def by(cls, during: During) -> Self:
        """Make one."""
        model = cls(script=SCRIPT)
        model._during.append(during)
        return model

    @override
    def answer(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        self._calls += 1
        self._during[0](f"model {self._calls}")
        return super().answer(messages, **options)


def graph_of(pg: Postgres, folder: Path, during: During = nothing) -> Any:
    """Build the graph; its tools write into files, and ``pay`` has to be approved."""

    def note(text: str) -> str:
        """Write it down."""
        with (folder / f"{text}.txt").open("a") as file:
            file.write(text + "\n")
        during(text)
        return f"noted {text}"

    def pay(text: str) -> str:
        """Pay an amount."""
        return note(text)

    settings = Settings.model_validate(
        {"sandbox": {"require": "none"}, "tools": {"policy": {"pay": "confirm"}}}
    )
    return build_graph(Watched.by(during), [note, pay], settings, persistence=pg)


def config_of(folder: Path) -> dict[str, Any]:
    """The thread is named for the folder."""
    return {"configurable": {"thread_id": f"{folder.parent.name}-{folder.name}"}}


def run_to_the_end(graph: Any, folder: Path) -> Any:
    """Start the task, or go on with it from wherever it stands; return its last state."""
    config = config_of(folder)
    while True:
        state = graph.get_state(config)
        if state.created_at is None:
            graph.invoke({"messages": [("user", "Note it")]}, config)
        elif state.interrupts:
            (question,) = state.interrupts
            keys = ("approval_id", "digest")
            asked = [{key: each[key] for key in keys} for each in question.value["approvals"]]
            reply = {"decisions": [each | {"decision": "approve"} for each in asked]}
            try:
                graph.invoke(Command(resume={question.id: reply}), config)
            except ReplyRefused:  # it was accepted, and the run then cut off
                graph.invoke(None, config)
        elif state.tasks:
            graph.invoke(None, config)
        else:
            return state


def seen(state: Any, folder: Path) -> dict[str, Any]:
    """Everything that has to be equal, whatever happened on the way."""
    result = state.values["result"]
    return {
        "status": result.status,
        "budgets": result.budgets,
        "usage": result.usage,
        "steps": [step.kind for step in state.values["steps"]],
        "messages": [[message.type, message.text] for message in state.values["messages"]],
        "files": {path.name: path.read_text() for path in sorted(folder.iterdir())},
    }


def untouched(url: str, folder: Path) -> dict[str, Any]:
    """Run it over a database that is well."""
    folder.mkdir()
    with open_postgres(url) as pg:
        found = seen(run_to_the_end(graph_of(pg, folder), folder), folder)
    assert found["status"] == "completed"
    assert [text.split() for text in found["files"].values()] == [[n] for n in NOTED]
    return found


def under(
    proxy: FaultProxy, folder: Path, fate: Callable[[int], Fate], during: During = nothing
) -> dict[str, Any]:
    """Run it through a proxy, with that fate from the first message after the opening."""
    folder.mkdir()
    with open_postgres(proxy.url) as pg:
        pg.threads()
        proxy.count_from_here(fate)
        try:
            return seen(run_to_the_end(graph_of(pg, folder, during), folder), folder)
        finally:
            proxy.mend()


def swept(proxy: FaultProxy, home: Path, points: range, kind: Fate) -> list[int]:
    """Fail one message in each run; return the points after which something was different."""
    meant = untouched(proxy.server, home / "untouched")
    different = []
    for point in points:
        folder = home / f"{kind[4:7].strip()}-{point:04}"
        found = under(proxy, folder, once(point, kind))
        if found != meant:
            different.append(point)
    return different


def at_random(seed: int, share: float) -> Callable[[int], Fate]:
    """Cut that share of the messages, before or after they were forwarded."""

    def fate(number: int) -> Fate:
        luck = random.Random(f"{seed}:{number}").random() / share  # noqa: S311 - it is a seed
        return "cut before" if luck < 0.5 else "cut after" if luck < 1 else "pass"

    return fate


def terminate_others(server: str) -> int:
    """End all other connections to a database, as its administrator can; return how many."""
    with psycopg.connect(server, application_name="administrator") as connection:
        return connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
            " current_database() AND application_name <> 'administrator'"
        ).rowcount


class Outages:
    """A server of one's own, that can be stopped at once, as a crash would, and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starting: Thread | None = None
        self.took = 0.0

    def stop(self) -> None:
        """Stop it without any farewell to its clients."""
        data = str(self._folder / "data")
        Programs(self._folder).run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)

    def start(self) -> None:
        """Start it again."""
        Server(self._folder).start()

    def stop_for(self, seconds: float) -> None:
        """Stop it, and have it started again after some time, which goes on meanwhile."""
        self.stop()
        began = monotonic()

        def start() -> None:
            Event().wait(seconds)  # the outage itself
            self.start()
            self.took = monotonic() - began

        self._starting = Thread(target=start)
        self._starting.start()

    def over(self) -> None:
        """Wait for the start that was begun."""
        if self._starting:
            self._starting.join()


@contextmanager
def own_server(folder: Path) -> Iterator[tuple[str, Outages]]:
    """Have a server that nobody else uses."""
    folder.mkdir()
    folder.chmod(0o755)  # as root, Postgres runs as an account that has to get in
    outages = Outages(folder)
    with embedded_postgres(folder) as server:
        yield server, outages
        outages.over()


def when(text: str, act: Callable[[], object]) -> During:
    """Let something happen the first time that a tool, or the model, is at that."""
    done = Event()

    def during(at: str) -> None:
        if at == text and not done.is_set():
            done.set()
            act()

    return during
