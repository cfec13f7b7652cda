"""Jobs beside runs: bounded, and gone with the process that has them."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from daruma.graph.learning_jobs import Job, Jobs, LeftUndone, adrain_place, busy


def a_job(place: object = None, waits_for: threading.Event | None = None) -> Job:
    """A job that notes its end; one that waits holds the thread that all of them have."""

    async def work() -> None:
        if waits_for:
            waits_for.wait()

    return Job(work=work, told=lambda _: None, at_once=2, place=place)


async def test_closing_a_place_waits_for_what_needs_it_and_nothing_else() -> None:
    """The jobs of another database are its own concern."""
    jobs, here, elsewhere = Jobs(), object(), object()
    other = Job(_never, lambda _: None, 2, elsewhere)
    assert jobs.take(other, 2)
    needed = a_job(here)
    assert jobs.take(needed, 2)

    await adrain_place(here)
    pending = [jobs in busy(), other.over.done(), needed.over.done()]
    await adrain_place(elsewhere, 0.0)

    assert pending == [True, False, True]
    assert (jobs in busy(), other.over.done()) == (False, True)


async def _never() -> None:
    await asyncio.Event().wait()


def test_what_was_given_up_is_told_so_once() -> None:
    """Also where it holds its thread: nobody waits for that, and its own end is no second one."""
    release, told = threading.Event(), list[BaseException | None]()
    began = threading.Event()

    async def work() -> None:
        began.set()
        release.wait()

    jobs, job = Jobs(), Job(work, told.append, 2)
    assert jobs.take(job, 2)
    assert began.wait(20)

    assert not jobs.drain(0.0)
    release.set()
    job.gone.result(20)

    assert [type(each) for each in told] == [LeftUndone]


FORKED = """
import asyncio, os, threading
from daruma.graph.learning_jobs import Job, Jobs
release = threading.Event()
async def held():
    release.wait()
async def quick():
    pass
jobs = Jobs()
jobs.take(Job(held, lambda _: None, 1), 2)
child = os.fork()
if child == 0:
    taken = jobs.take(Job(quick, lambda _: None, 1), 1)
    done = jobs.drain(20)
    print("child", taken, done, flush=True)
    os._exit(0)
os.waitpid(child, 0)
release.set()
print("parent", jobs.drain(20), flush=True)
async def work():
    await asyncio.sleep(0.05)
    print("learned", flush=True)
jobs.take(Job(work, lambda error: print("told", error), 1), 2)
"""
QUIET = """
import threading
from langgraph.store.memory import InMemoryStore
from daruma.graph.build import build_graph
from daruma.graph.learning_jobs import Job, Jobs
from daruma.graph.models import ScriptedChatModel
from daruma.state.settings import Settings
for mode, enabled, store in (
    ("react", False, InMemoryStore()), ("react", True, None), ("direct_chat", True, InMemoryStore())
):
    settings = Settings.model_validate({"evolution": {"enabled": enabled}})
    model = ScriptedChatModel(script=[{"say": "Done."}])
    graph = build_graph(model, (), settings, store=store)
    graph.invoke({"messages": [("user", "Do it")], "mode": mode})
names = {t.name.partition("_")[0] for t in threading.enumerate() if t.name.startswith("daruma")}
print(sorted(names))
began = threading.Event()
async def work():
    began.set()
    threading.Event().wait()
jobs = Jobs()
jobs.take(Job(work, lambda error: print("told", error), 1), 2)
began.wait()
jobs.drain(0.0)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (FORKED, ["child True True", "parent True", "learned", "told None"]),
        (QUIET, ["['daruma', 'daruma-work']", "told it took too long"]),
    ],
)
def test_a_process_ends_with_its_jobs(body: str, lines: list[str]) -> None:
    """Waiting for what can be done, past what can not; a fork has jobs of its own.

    Switched off, without a store, and for mere chat there are only the threads that runs have.
    """
    ran = subprocess.run(
        [sys.executable, "-c", body],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )

    assert (ran.returncode, ran.stdout.splitlines()) == (0, lines), ran.stderr


def test_a_job_may_come_while_the_list_is_looked_at() -> None:
    """A stream that nobody closed may be collected then, and ends its run on that thread."""
    jobs, taken = Jobs(), list[bool]()

    class Collecting(int):
        """A limit: Python collects what is unused while it is compared."""

        def __le__(self, other: int) -> bool:
            if not taken:
                taken.append(jobs.take(a_job(), 2))
            return super().__le__(other)

    def take() -> None:
        taken.append(jobs.take(a_job(), Collecting(2)))

    taking = threading.Thread(target=take, daemon=True)
    taking.start()
    taking.join(10)

    assert taken == [True, True]
    assert jobs.drain(20.0)


async def test_who_is_called_off_while_waiting_leaves_nothing_pending() -> None:
    """A second Ctrl-C ends what the first one waits for."""
    jobs = Jobs()
    assert jobs.take(Job(_never, lambda _: None, 2), 2)
    waiting = asyncio.create_task(jobs.adrain(60.0))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.wait([waiting])

    assert (waiting.cancelled(), jobs in busy()) == (True, False)


def test_no_more_are_done_at_once_than_is_allowed() -> None:
    """EV-02: the others wait for their turn."""
    hold, inside, most = threading.Event(), list[int](), list[int]()

    async def first() -> None:
        hold.wait()  # so that all have come before any goes on

    async def work() -> None:
        inside.append(1)
        most.append(len(inside))
        for _ in range(5):
            await asyncio.sleep(0)
        inside.pop()

    jobs = Jobs()
    for each in (first, work, work, work, work):
        assert jobs.take(Job(each, lambda _: None, 2), 5)
    hold.set()

    assert jobs.drain(20.0)
    assert max(most) == 2
