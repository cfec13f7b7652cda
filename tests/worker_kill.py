"""Two workers, a queue of threads that each have one effect, and ``kill -9`` for one of them.

``python -m tests.worker_kill [ROUNDS] [THREADS]`` prints, for each round, at which request to its
model a worker was killed, how many threads were completed, and whose effect came twice. A worker is
killed while it asks its model, before its tool and after it: what comes of a tool that is killed
itself is the journal's matter.
"""

import logging
import os
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from psycopg.conninfo import make_conninfo
from pydantic import PrivateAttr
from tests import warm
from typing_extensions import override

from daruma import Settings, aopen_postgres, asubmit, awork, build_graph, open_postgres
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.graph.sync import Cancelled, run, run_interruptible
from daruma.graph.workers import Pace

QUICK = Pace(heartbeat=0.2, stalled=1.0, poll=0.5, first_wait=0.2, rescue="* * * * * *")
SECONDS = 60
NEVER = 0


class Noting(ScriptedChatModel):
    """Has each thread note what it was asked to; at request ``dies_at`` it says so and hangs."""

    dies_at: int = NEVER
    _asked: int = PrivateAttr(default=0)

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._asked += 1
        if self._asked == self.dies_at:
            print("now", flush=True)  # noqa: T201
            threading.Event().wait()
        name = next(each.text for each in messages if isinstance(each, HumanMessage))
        noting = {"calls": [{"name": "note", "args": {"name": name}}]}
        script = {"main": [noting, {"say": "Noted."}]}
        return ScriptedChatModel(script=script).answer(messages, metadata=metadata, tools=tools)


async def worker(url: str, file: str, dies_at: int) -> None:
    """Work the queue off, and print a line for each thread."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def note(name: str) -> str:
        """Note a name."""
        os.write(opened, f"{name}\n".encode())
        return "noted"

    async with aopen_postgres(url) as postgres:
        model = Noting(script=[], dies_at=dies_at)
        graph = build_graph(model, [note], Settings(), persistence=postgres)
        print("ready", flush=True)  # noqa: T201
        await awork(graph, pace=QUICK)


@contextmanager
def working(url: str, file: Path, dies_at: int) -> Iterator[Popen[str]]:
    """Start a worker as a process of its own; one that takes too long is killed."""
    command = ["-m", "tests.worker_kill", "--worker", url, str(file), str(dies_at)]
    with warm.start(command, stdout=PIPE, text=True, cwd=warm.ROOT) as process:
        watchdog = threading.Timer(SECONDS, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def lines(process: Popen[str]) -> Iterator[str]:
    """Yield what a worker says, until it has ended."""
    assert process.stdout
    for line in process.stdout:
        yield line.strip()


@dataclass(frozen=True)
class Round:
    """What a round came to: how the threads ended, and how often each had its effect."""

    told: frozenset[str]
    statuses: Counter[str]
    effects: Counter[str]
    left: int


async def submitted(postgres: Postgres, names: Sequence[str]) -> None:
    """Queue a thread for each name."""
    for name in names:
        await asubmit(postgres, {"messages": [("user", name)], "mode": "react"}, name)


async def left_in(postgres: Postgres) -> int:
    """Count the jobs that carry something out."""
    async with postgres.pool.connection() as connection:
        found = await connection.execute(
            "SELECT count(*) AS n FROM procrastinate_jobs WHERE task_name = 'daruma.carry_out'"
        )
        row = await found.fetchone()
        return row["n"] if row else 0


def killed(url: str, file: Path, threads: int, dies_at: int) -> Round:
    """Queue threads, kill one of two workers at a request, and wait for the other one."""
    names = [f"thread-{number:03}" for number in range(threads)]
    told: set[str] = set()
    with open_postgres(url) as postgres:
        run(submitted(postgres, names))
        with working(url, file, dies_at) as mortal:
            for line in lines(mortal):
                told.add(line)
                if line == "now":  # only now: on a busy machine the other one could do it all
                    break
            with working(url, file, NEVER) as other:
                mortal.kill()
                for line in lines(other):
                    told.add(line)
                    if told >= {f"thread {name!r}: completed, not checked" for name in names}:
                        break
                other.terminate()
                other.wait()
        graph = build_graph(settings=Settings(), persistence=postgres)
        results = [graph.get_state({"configurable": {"thread_id": name}}) for name in names]
        statuses = Counter(each.values["result"].status for each in results)
        effects = Counter(file.read_text().split())
        return Round(frozenset(told), statuses, effects, run(left_in(postgres)))


def database(url: str, number: int) -> str:
    """Make a database for a round."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE round_{number}")
    return make_conninfo(url, dbname=f"round_{number}")


def main(rounds: int, threads: int) -> int:
    """Play rounds on a server of their own, and print what came of each."""
    wrong = 0
    folder = Path(tempfile.mkdtemp(prefix="daruma-kill-"))
    folder.chmod(0o755)
    os.environ["DARUMA_DATA_DIR"] = str(folder / "data")
    with embedded_postgres(folder / "postgres") as url:
        for number in range(rounds):
            names = f"round-{number}"
            dies_at = random.randint(1, threads // 2)  # noqa: S311
            came = killed(database(url, number), folder / names, threads, dies_at)
            twice = [name for name, times in came.effects.items() if times > 1]
            missing = threads - len(came.effects)
            wrong += bool(twice or missing or came.statuses != {"completed": threads})
            print(f"killed at {dies_at}: {dict(came.statuses)}, twice {twice}, missing {missing}")  # noqa: T201
    shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
        with suppress(Cancelled):
            run_interruptible(worker(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        sys.exit(
            main(*(int(given) for given in [*sys.argv[1:], *["5", "50"][len(sys.argv) - 1 :]]))
        )
