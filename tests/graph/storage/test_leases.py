"""Leases in Postgres: tokens that fence, signs of life, and what becomes of the dead (DU-03)."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from tests import warm

from daruma.graph.storage import (
    Database,
    Hold,
    Postgres,
    ProcessLife,
    aopen_postgres,
    athread_held,
    open_postgres,
    thread_held,
)
from daruma.graph.storage._leases import (
    _KEEP,
    _LEFT,
    SIGNS_OF_LIFE,
    PostgresLeases,
    _named,
    known_life,
    own_life,
)
from daruma.state.errors import HoldLost, ThreadBusy

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
HOLDER = """
import sys
from daruma import open_postgres
with open_postgres(sys.argv[1]) as pg:
    hold = pg.checkpointer.leases.take("t")
    print(hold.token, flush=True)
    sys.stdin.readline()
"""


def start_holder(url: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    holder = warm.start(["-c", HOLDER, url], stdin=pipe, stdout=pipe, text=True)
    assert holder.stdout
    assert int(holder.stdout.readline()) == 1
    return holder


async def take_over(pg: Postgres) -> Hold:
    """Take a thread whose lease is over at once."""
    async with pg.pool.connection() as connection:
        await connection.execute("UPDATE daruma_leases SET expires_at = '-infinity'")
    return await PostgresLeases(pg.checkpointer.database).atake("t")


async def test_the_thread_of_a_killed_process_is_free_at_once(postgres_url: str) -> None:
    """On the same host nobody waits for the end of its lease."""
    holder = start_holder(postgres_url)
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(ThreadBusy, match=f"process {holder.pid} on "):
            await pg.checkpointer.leases.atake("t")
        holder.kill()
        holder.communicate()

        hold = await pg.checkpointer.leases.atake("t")

        assert hold.token == 2


async def test_the_thread_of_a_frozen_process_is_not_taken_before_its_lease_is_over(
    postgres_url: str,
) -> None:
    """It lives; and when it wakes up too late, it can not write."""
    holder = start_holder(postgres_url)
    async with aopen_postgres(postgres_url) as pg:
        os.kill(holder.pid, signal.SIGSTOP)
        with pytest.raises(ThreadBusy):
            await pg.checkpointer.leases.atake("t")

        hold = await take_over(pg)

        os.kill(holder.pid, signal.SIGCONT)
        holder.communicate("\n")
        assert hold.token == 2
        with pytest.raises(ThreadBusy):
            await pg.checkpointer.leases.atake("t")  # that it left gave nothing back


async def test_every_write_of_one_that_lost_its_thread_is_refused(postgres_url: str) -> None:
    """Checkpoints, their pending writes; nothing of them is stored."""
    async with aopen_postgres(postgres_url) as pg:
        hold = await pg.checkpointer.leases.atake("t")
        held = pg.checkpointer.held(hold)
        put = await held.aput(CONFIG, empty_checkpoint(), {}, {})
        await take_over(pg)

        with pytest.raises(HoldLost, match=r"'t' was taken over .*nothing more is written"):
            await held.aput(put, empty_checkpoint(), {}, {})
        await held.aput_writes(put, [("words", 1)], "task")
        with pytest.raises(HoldLost):
            await held.asettled()

        found = await pg.checkpointer.aget_tuple(CONFIG)
        assert found
        assert found.config == put
        assert found.pending_writes == []


async def test_nobody_takes_a_thread_while_a_write_of_its_holder_is_on_its_way(
    postgres_url: str,
) -> None:
    """The row of the lease is locked until the write is committed."""
    async with aopen_postgres(postgres_url) as pg:
        hold = await pg.checkpointer.leases.atake("t")
        async with pg.pool.connection() as writing, writing.transaction():
            await writing.execute("SELECT daruma_fence('t', %s)", [hold.token])
            taking = asyncio.create_task(take_over(pg))
            done, _ = await asyncio.wait([taking], timeout=0.3)
            assert not done

        assert (await taking).token == 2


async def test_a_lease_is_kept_for_as_long_as_its_holder_lives(postgres_url: str) -> None:
    """Signs of life come three times as often as they have to."""
    async with aopen_postgres(postgres_url) as pg:
        short = PostgresLeases(pg.checkpointer.database, seconds=0.6)
        hold = await short.atake("t")
        async with pg.pool.connection() as connection:
            row = await (await connection.execute(EXPIRES)).fetchone()
            while await (await connection.execute(EXPIRES)).fetchone() == row:
                await connection.execute("SELECT pg_sleep(0.02)")  # until the next sign of life

        await short.agive_back(hold)

        again = await short.atake("t")
        await short.close()
        assert again.token == 2


EXPIRES = "SELECT expires_at FROM daruma_leases"


async def test_a_lease_that_was_taken_and_not_heard_of_is_taken_again(postgres_url: str) -> None:
    """The acknowledgement was lost, or the caller cancelled."""
    async with aopen_postgres(postgres_url) as pg:
        leases = pg.checkpointer.own_leases
        own = "the run whose acknowledgement was lost"
        await leases._try("t", own, "")
        again = await leases._try("t", own, "")
        assert isinstance(again, Hold)

        _LEFT.add(own)

        assert (await leases.atake("t")).token == again.token + 1


class TellsWhenDone:
    """A database that says when a statement is done, and who waited for it was told."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.loop = database.loop
        self.done = threading.Event()

    async def statement(self, statement: str, values: Mapping[str, Any]) -> Any:
        done = await self._database.statement(statement, values)
        self._after(3, self.done.set)
        return done

    def _after(self, turns: int, act: Callable[[], None]) -> None:
        """Do it when the loop has gone round so many times."""
        again = act if not turns else partial(self._after, turns - 1, act)
        self.loop.call_soon(again)


async def test_a_lease_whose_taker_is_cancelled_as_it_is_taken_is_left(postgres_url: str) -> None:
    """On another loop than the database's it may be had by then, and nobody would give it back."""
    async with aopen_postgres(postgres_url) as pg:
        database: Any = TellsWhenDone(pg.checkpointer.database)
        leases = PostgresLeases(database)

        async def cancelled() -> None:
            taking = asyncio.create_task(leases.atake("t"))
            await asyncio.sleep(0)
            assert database.done.wait(10)
            taking.cancel()
            await asyncio.wait([taking])
            assert taking.cancelled()

        await asyncio.to_thread(asyncio.run, cancelled())

        assert not any(task.get_name() == SIGNS_OF_LIFE for task in asyncio.all_tasks())
        assert (await pg.checkpointer.leases.atake("t")).token == 2


async def test_an_old_lease_neither_keeps_nor_ends_a_newer_one(postgres_url: str) -> None:
    """Who lost a thread and does not know shows signs of life, and gives back: both in vain."""
    async with aopen_postgres(postgres_url) as pg:
        short = PostgresLeases(pg.checkpointer.database, seconds=0.3)
        old = await short.atake("t")
        (keeping,) = (each for each in asyncio.all_tasks() if each.get_name() == SIGNS_OF_LIFE)
        new = await take_over(pg)

        await asyncio.wait_for(keeping, 10)  # its next sign of life is its last
        await short.agive_back(old)

        with pytest.raises(ThreadBusy):
            await short.atake("t")
        held = pg.checkpointer.held(new)
        assert await held.aput(CONFIG, empty_checkpoint(), {}, {})


WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"


async def test_a_sign_of_life_on_its_way_ends_before_its_lease_is_given_back(
    postgres_url: str,
) -> None:
    """Cut off, it cost the connection, and the server might have carried it out afterwards."""
    async with aopen_postgres(postgres_url) as pg:
        short = PostgresLeases(pg.checkpointer.database, seconds=0.3)
        hold = await short.atake("t")
        async with pg.pool.connection() as locking, locking.transaction():
            await locking.execute("SELECT FROM daruma_leases FOR UPDATE")
            while not await on_its_way(pg):
                pass
            giving = asyncio.create_task(short.agive_back(hold))
            done, _ = await asyncio.wait([giving], timeout=0.3)
            assert not done

        await giving

        assert "returns_bad" not in pg.pool.get_stats()
        assert (await pg.checkpointer.leases.atake("t")).token == 2


async def on_its_way(pg: Postgres) -> bool:
    """Whether a sign of life waits for somebody's lock."""
    async with pg.pool.connection() as looking:
        found = await looking.execute(WAITING, [f"%{_KEEP.split('(')[0].strip()}%"])
        return await found.fetchone() is not None


class Hanging:
    """A database that answers no sign of life, as over a connection that was lost unheard."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.loop = database.loop
        self.asked = asyncio.Event()

    async def statement(self, statement: str, values: Mapping[str, Any]) -> Any:
        if statement == _KEEP:
            self.asked.set()
            await asyncio.Event().wait()
        return await self._database.statement(statement, values)


@pytest.mark.long
async def test_a_sign_of_life_that_hangs_does_not_keep_a_lease_from_being_given_back(
    postgres_url: str,
) -> None:
    """Other processes would have to wait for its end: the connection of the end may be sound."""
    async with aopen_postgres(postgres_url) as pg:
        hanging: Any = Hanging(pg.checkpointer.database)
        short = PostgresLeases(hanging, seconds=0.3)
        hold = await short.atake("t")
        await hanging.asked.wait()
        await short.agive_back(hold)

        assert hold.run not in _LEFT
        assert not any(task.get_name() == SIGNS_OF_LIFE for task in asyncio.all_tasks())


async def test_a_sign_of_life_that_comes_too_late_takes_nothing_back(postgres_url: str) -> None:
    """As of a run whose connection was lost: the server may be slower with it than with the end."""
    async with aopen_postgres(postgres_url) as pg:
        leases = pg.checkpointer.leases
        hold = await leases.atake("t")
        await leases.agive_back(hold)

        late = await pg.checkpointer.database.statement(_KEEP, {**_named(hold), "seconds": 30})

        assert not late
        assert (await leases.atake("t")).token == 2


async def test_a_lease_that_could_not_be_given_back_is_left(postgres_url: str) -> None:
    """The next run of this process takes it; one that was given back is not remembered."""
    async with aopen_postgres(postgres_url) as pg:
        leases = pg.checkpointer.leases
        given = await leases.atake("given back")
        await leases.agive_back(given)
        hold = await leases.atake("t")
        async with pg.pool.connection() as locking, locking.transaction():
            await locking.execute("SELECT FROM daruma_leases FOR UPDATE")
            giving = asyncio.create_task(leases.agive_back(hold))
            await asyncio.sleep(0)
            giving.cancel()
            await asyncio.wait([giving])

        assert given.run not in _LEFT
        assert (await leases.atake("t")).token == 2


@pytest.mark.long
def test_a_child_that_was_forked_has_a_life_of_its_own(tmp_path: Path) -> None:
    """So that its death is told from that of its parent."""
    code = (
        "import os; from daruma.graph.storage._leases import own_life as own; mine = own().file\n"
        "pid = os.fork()\n"
        "if not pid: print(own().file != mine, own().is_over, flush=True); os._exit(0)\n"
        "os.waitpid(pid, 0)"
    )

    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "DARUMA_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.split() == ["True", "False"]


def test_the_thread_of_a_run_whose_loop_was_closed_is_free(postgres_url: str) -> None:
    """Nobody is left to await what gives it back, and its process may live for long."""

    async def holding() -> AsyncGenerator[None, None]:
        async with athread_held(pg.checkpointer, "t"):
            yield

    with open_postgres(postgres_url) as pg:
        abandoned, loop = holding(), asyncio.new_event_loop()
        loop.run_until_complete(anext(abandoned))
        loop.close()

        del abandoned

        with thread_held(pg.checkpointer, "t"):
            pass


LEFT_OPEN = """
import sys
from daruma.graph.storage import thread_held
from daruma.graph.storage import open_postgres
def holding():
    with thread_held(pg.checkpointer, "t"):
        yield
with open_postgres(sys.argv[1]) as pg:
    left = holding()
    next(left)
"""


@pytest.mark.long
def test_a_thread_that_is_still_held_at_the_exit_is_left_without_a_word(postgres_url: str) -> None:
    """As by a stream that nobody closed: the loop of its database is gone, and so is its life."""
    command = [sys.executable, "-W", "error", "-c", LEFT_OPEN, postgres_url]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert (ended.stdout, ended.stderr) == ("", "")
    with open_postgres(postgres_url) as pg, thread_held(pg.checkpointer, "t"):
        pass


FORK = """
import os, sys
from daruma import open_postgres
def child():
    try:
        pg.checkpointer.leases.take("t")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    with open_postgres(sys.argv[1]) as own:
        print(len(own.threads()), flush=True)
with open_postgres(sys.argv[1]) as pg:
    if os.fork() == 0:
        child()
        os._exit(0)
    os.wait()
    print(pg.checkpointer.leases.take("t").token, flush=True)
"""


@pytest.mark.long
def test_a_fork_is_told_to_open_the_database_itself(postgres_url: str) -> None:
    """It would wait for ever for a loop that turns in its parent; what it opens itself works."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, postgres_url]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    refused, threads, token = said.stdout.splitlines()

    assert refused.startswith("LeftBehind: what process ")
    assert (threads, token) == ("0", "1")


# --- Whether a process lives is known from the kernel, and where it is not known nobody is dead.


def test_this_process_lives() -> None:
    """And stays the same one."""
    assert not own_life().is_over
    assert own_life() == own_life()
    assert known_life() is own_life()


def test_a_file_that_nobody_holds_is_that_of_the_dead(tmp_path: Path) -> None:
    """The kernel drops a lock with its process."""
    file = tmp_path / "life"
    file.touch()

    assert replace(own_life(), file=str(file)).is_over


@pytest.mark.parametrize(("boot", "name"), [("another", "life"), ("", "life"), (None, "gone")])
def test_what_can_not_be_told_from_here_is_not_dead(
    tmp_path: Path, boot: str | None, name: str
) -> None:
    """Another machine, another start of it, a file that is not seen: then its lease decides."""
    (tmp_path / "life").touch()
    own = own_life()

    life = replace(own, file=str(tmp_path / name), boot=own.boot if boot is None else boot)

    assert not life.is_over


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": 1}', '{"a": 1}'])
def test_what_is_no_life_is_none(text: str) -> None:
    """A holder that another version wrote."""
    assert ProcessLife.of(text) is None
    assert ProcessLife.of(own_life().text) == own_life()
