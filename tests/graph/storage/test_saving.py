"""What a run stores takes few transactions, and each of them asserts the fence (DU-03)."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import empty_checkpoint
from psycopg import DatabaseError
from psycopg.errors import DiskFull

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import (
    Database,
    Hold,
    Postgres,
    PostgresSaver,
    aopen_postgres,
    athread_held,
    open_postgres,
    thread_held,
)
from daruma.graph.storage._ledgers import Place
from daruma.graph.storage._saving import STORING_APART, PendingWrites, lost_by
from daruma.state.errors import HoldLost
from daruma.state.settings import Settings
from daruma.tools.calls import Effect, JournalEntry, Outcome

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
GONE = Hold("t", 99, "gone")
NEVER_SAVING = 3600.0
TAKEN = "UPDATE daruma_leases SET token = token + 1"
PAY = Effect("call", "digest", "ask", "")


class Counted(Database):
    """A database that counts its transactions, and says when writes were stored apart."""

    transactions = 0
    apart: asyncio.Event

    async def statement(self, statement: str, values: Any) -> Any:
        self.__dict__["transactions"] = self.transactions + 1
        done = await super().statement(statement, values)
        task = asyncio.current_task()
        if task and task.get_name() == STORING_APART:
            self.apart.set()
        return done

    async def transact(self, work: Any) -> Any:
        self.__dict__["transactions"] = self.transactions + 1
        return await super().transact(work)


@asynccontextmanager
async def counted(url: str) -> AsyncIterator[tuple[Postgres, Counted]]:
    async with aopen_postgres(url) as pg:
        database: Any = pg.checkpointer.database
        database.__dict__["apart"] = asyncio.Event()
        object.__setattr__(database, "__class__", Counted)
        yield pg, database


async def transactions(url: str, steps: int, *, effect: str) -> int:
    """Return how many transactions a run of so many steps makes."""

    @tool
    async def tell(number: int) -> str:
        """Say something about a number."""
        return f"{number} is followed by {number + 1}"

    tell.metadata = {"daruma": {"effect": effect}}
    usage = {"input": 1, "output": 1}
    calls = [[{"name": "tell", "args": {"number": n}}] for n in range(steps)]
    script = [*({"calls": each, "usage": usage} for each in calls), {"say": "ok", "usage": usage}]
    own = {"budgets": {"max_steps": steps + 1}, "evolution": {"enabled": False}}
    async with counted(url) as (pg, database):
        pg.checkpointer.apart = NEVER_SAVING  # on a busy machine, a checkpoint may follow later
        model = ScriptedChatModel(script={"main": script})
        graph: Any = build_graph(model, [tell], Settings.model_validate(own), persistence=pg)
        out = await graph.ainvoke(
            {"messages": [("user", "go")]}, {"configurable": {"thread_id": f"{effect}{steps}"}}
        )
        assert out["result"].status == "completed"
        return database.transactions


@pytest.mark.parametrize(("effect", "most"), [("none", 2), ("external", 4)])
async def test_a_step_is_stored_in_few_transactions(
    postgres_url: str, effect: str, most: int
) -> None:
    """Two supersteps: one each. What takes effect is written down before it, and after it."""
    few = await transactions(postgres_url, 3, effect=effect)
    many = await transactions(postgres_url, 9, effect=effect)

    assert many - few == 6 * most


async def test_a_tool_that_is_done_stays_done_while_another_runs(postgres_url: str) -> None:
    """TL-02: its result is stored by itself; here the other one waits for just that."""
    ended = []

    @tool
    async def quick() -> str:
        """Be done at once."""
        ended.append("quick")
        return "done"

    async with counted(postgres_url) as (pg, database):

        @tool
        async def slow() -> str:
            """Wait until the other's result is stored."""
            async with asyncio.timeout(30):
                await database.apart.wait()
            ended.append("slow")
            return "done"

        calls = [{"name": "quick", "args": {}}, {"name": "slow", "args": {}}]
        model = ScriptedChatModel(script={"main": [{"calls": calls}, {"say": "ok"}]})
        graph: Any = build_graph(model, [quick, slow], Settings(), persistence=pg)
        await graph.ainvoke({"messages": [("user", "go")]}, CONFIG)

    assert ended == ["quick", "slow"]


async def counted_writes(postgres_url: str) -> Any:
    """Return what the newest checkpoint says of its parent's writes."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        found = await other.execute(
            "SELECT checkpoint #> '{daruma,writes}' FROM daruma_checkpoints"
            " ORDER BY checkpoint_id DESC"
        )
        row = await found.fetchone()
        return row and row[0]


@pytest.mark.parametrize("first", [PostgresSaver.asettled, PostgresSaver.aget_tuple])
async def test_a_checkpoint_counts_the_writes_that_are_stored_with_it_and_before(
    postgres_url: str, first: Callable[..., Awaitable[Any]]
) -> None:
    """DU-05: by them, a loss is told. A retry of one whose answer was lost changes nothing."""
    given = (CONFIG,) if first is PostgresSaver.aget_tuple else ()
    async with aopen_postgres(postgres_url) as pg, athread_held(pg.checkpointer, "t") as held:
        parent = await held.aput(CONFIG, empty_checkpoint() | {"id": "1"}, {}, {})
        await held.aput_writes(parent, [("words", 1), ("other", 1)], "early")
        await first(held, *given)
        await held.aput_writes(parent, [("words", 2), ("words", 3)], "late")
        child = empty_checkpoint() | {"id": "2", "channel_versions": {"words": "1"}}

        await held.aput(parent, child, {}, {})
        await held.aput_writes(parent, [("words", 2), ("words", 3)], "late")
        await held.aput(parent, child, {}, {})

    assert await counted_writes(postgres_url) == {"words": 3}


async def test_what_is_there_stays_as_a_checkpoint_is_stored_again(postgres_url: str) -> None:
    """But for its own row: an answer that was lost, or a fork to the same place, changes no other.

    Only then is it stored in two tries.
    """
    child = empty_checkpoint() | {"id": "2", "channel_versions": {"words": "1"}}
    first = child | {"channel_values": {"words": ["first"]}}
    again = child | {"channel_values": {"words": ["again"]}}
    async with counted(postgres_url) as (pg, database):
        async with athread_held(pg.checkpointer, "t") as held:
            parent = await held.aput(CONFIG, empty_checkpoint() | {"id": "1"}, {}, {})
            at = database.transactions
            await held.aput_writes(parent, [("other", "first")], "task")
            await held.aput(parent, first, {"step": 1}, {"words": "1"})
            once = database.transactions - at
            await held.aput_writes(parent, [("other", "again")], "task")
            await held.aput(parent, again, {"step": 2}, {"words": "1"})
            twice = database.transactions - at
        found = await pg.checkpointer.aget_tuple(CONFIG)
        before = await pg.checkpointer.aget_tuple(parent)

    assert (once, twice) == (1, 3)
    assert found
    assert before
    assert found.metadata["step"] == 2
    assert found.checkpoint["channel_values"] == {"words": ["first"]}
    assert before.pending_writes == [("task", "other", "first")]


async def test_a_run_reads_what_it_has_written(postgres_url: str) -> None:
    """Pending or not."""
    async with aopen_postgres(postgres_url) as pg, athread_held(pg.checkpointer, "t") as held:
        put = await held.aput(CONFIG, empty_checkpoint(), {}, {})

        await held.aput_writes(put, [("words", 1)], "task")

        found = await held.aget_tuple(CONFIG)
        assert found.pending_writes == [("task", "words", 1)]


async def test_what_is_edited_by_hand_may_be_more_than_was_written(postgres_url: str) -> None:
    """It may take the place of a task that has written already: what stood there first stays."""
    async with aopen_postgres(postgres_url) as pg:
        saver = pg.checkpointer
        put = await saver.aput(CONFIG, empty_checkpoint(), {}, {})

        await saver.aput_writes(put, [("words", 1)], "task")
        await saver.aput_writes(put, [("words", 2), ("plan", 2)], "task")

        found = await saver.aget_tuple(CONFIG)

    assert found
    assert found.pending_writes == [("task", "words", 1), ("task", "plan", 2)]


async def last_write(pg: Postgres, error: Exception | None = None) -> None:
    """Run until a write that nothing follows, of one who has lost the thread by then."""
    async with athread_held(pg.checkpointer, "t") as held:
        put = await held.aput(CONFIG, empty_checkpoint(), {}, {})
        async with pg.pool.connection() as other:
            await other.execute(TAKEN)
        await held.aput_writes(put, [("words", 1)], "task")
        if error:
            raise error


def last_write_waiting(pg: Postgres, url: str) -> None:
    """Do the same on a thread."""
    with thread_held(pg.checkpointer, "t") as held, psycopg.connect(url) as other:
        put = held.put(CONFIG, empty_checkpoint(), {}, {})
        other.execute(TAKEN)
        other.commit()
        held.put_writes(put, [("words", 1)], "task")


async def test_a_run_that_could_not_store_its_last_writes_ends_with_that(postgres_url: str) -> None:
    """Nothing follows them that could tell."""
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(HoldLost):
            await last_write(pg)


def test_a_run_that_waits_for_its_writes_ends_with_their_loss_too(postgres_url: str) -> None:
    """The same for a caller on a thread."""
    with open_postgres(postgres_url) as pg, pytest.raises(HoldLost):
        last_write_waiting(pg, postgres_url)


async def test_the_error_of_a_run_comes_before_that_of_its_writes(postgres_url: str) -> None:
    """It is the one that was first."""
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(LookupError):
            await last_write(pg, LookupError())


HERE = Place("t", "", "1")
SOMETHING = JournalEntry(PAY, key="key")

Write = Callable[[PostgresSaver], Awaitable[Any]]

FENCED: dict[str, Write] = {
    "checkpoint": lambda held: held.aput(CONFIG, empty_checkpoint(), {}, {}),
    "error": lambda held: held.aput_writes(
        {"configurable": HERE._asdict()}, [("__error__", "no")], "task"
    ),
    "begin": lambda held: held.journal_at(HERE, "run").begin(PAY),
    "again": lambda held: held.journal_at(HERE, "run").again(SOMETHING),
    "end": lambda held: held.journal_at(HERE, "run").end(SOMETHING, Outcome("done", "paid")),
    "forget": lambda held: held.journal_at(HERE, "run").forget(SOMETHING),
    "output": lambda held: held.outputs.keep("t", "id", "text"),
}


@pytest.mark.parametrize("write", FENCED.values(), ids=FENCED)
async def test_each_statement_asserts_the_fence(postgres_url: str, write: Write) -> None:
    """Also where there is nothing that it would change."""
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(HoldLost):
            await write(pg.checkpointer.held(GONE))


async def test_an_effect_that_a_lost_checkpoint_began_is_fenced_as_well(postgres_url: str) -> None:
    """It is adopted, not begun: the fence stands before both."""
    async with aopen_postgres(postgres_url) as pg:
        await pg.checkpointer.journal_at(HERE, "before").begin(PAY)

        with pytest.raises(HoldLost):
            await pg.checkpointer.held(GONE).journal_at(HERE, "run").begin(PAY)


# --- Only what the fence says is told as a lost hold (DU-03).

HOLD = Hold("t", 1, "run")


class Refused(DatabaseError):
    """What the fence raises."""

    sqlstate = "DR001"


@pytest.mark.parametrize(
    ("hold", "raised", "told"),
    [(HOLD, Refused, HoldLost), (HOLD, DiskFull, DiskFull), (None, Refused, Refused)],
)
def test_a_hold_is_lost_where_the_fence_says_so(
    hold: Hold | None, raised: type[DatabaseError], told: type[Exception]
) -> None:
    """Any other error of the database is what it is."""
    with pytest.raises(told), lost_by(hold):
        raise raised("no")


# --- What tasks wrote is stored with the checkpoint that follows, or by itself: it is never lost.


class Stored:
    """A place that keeps rows, in the order in which it was given them."""

    def __init__(self, refuses: BaseException | None = None) -> None:
        self.rows: list[list[Any]] = []
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.refuses = refuses

    async def __call__(self, rows: Sequence[Any]) -> None:
        self.reached.set()
        await self.open.wait()
        if self.refuses:
            raise self.refuses
        self.rows.append(list(rows))


async def test_writes_wait_for_the_checkpoint_that_follows() -> None:
    """One transaction does for both."""
    apart, with_it = Stored(), Stored()
    pending = PendingWrites(apart, NEVER_SAVING)

    await pending.add([(1,), (2,)])
    await pending.add([(3,)])
    await pending.stored_with(with_it)
    await pending.settled()

    assert (apart.rows, with_it.rows) == ([], [[(1,), (2,), (3,)]])


async def test_writes_that_nothing_follows_are_stored_by_themselves() -> None:
    """TL-02: a tool that is done stays done, however long the others of its superstep run."""
    apart = Stored()
    pending = PendingWrites(apart, 0)

    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()
    await pending.settled()

    assert apart.rows == [[(1,)]]


async def test_a_checkpoint_that_is_late_takes_the_writes_along_all_the_same() -> None:
    """In a busy process the time is over before those who are ready have had their turn."""
    apart, with_it = Stored(), Stored()
    pending = PendingWrites(apart, 0)

    await pending.add([(1,)])
    for _ in range(12):
        await asyncio.sleep(0)
    await pending.stored_with(with_it)

    assert (apart.rows, with_it.rows) == ([], [[(1,)]])


async def test_a_checkpoint_waits_for_writes_that_are_on_their_way() -> None:
    """Stored before them, it would have lost them if they never arrived."""
    apart, with_it = Stored(), Stored()
    apart.open.clear()
    pending = PendingWrites(apart, 0)
    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()

    saving = asyncio.create_task(pending.stored_with(with_it))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    early = with_it.reached.is_set()
    apart.open.set()
    await saving

    assert (early, apart.rows, with_it.rows) == (False, [[(1,)]], [[]])


async def test_writes_that_could_not_be_stored_are_told_of_wherever_the_run_goes_next() -> None:
    """At the next write, the next checkpoint and the end; nothing is stored after them."""
    apart, with_it = Stored(HoldLost("t")), Stored()
    pending = PendingWrites(apart, NEVER_SAVING)
    await pending.add([(1,)])

    for going_on in (pending.settled(), pending.add([(2,)]), pending.stored_with(with_it)):
        with pytest.raises(HoldLost):
            await going_on

    assert with_it.rows == []


async def test_a_checkpoint_that_was_cancelled_leaves_the_writes_pending() -> None:
    """Its transaction may not have taken place; the end of the run stores them."""
    apart, with_it = Stored(), Stored()
    with_it.open.clear()
    pending = PendingWrites(apart, NEVER_SAVING)
    await pending.add([(1,)])
    saving = asyncio.create_task(pending.stored_with(with_it))
    async with asyncio.timeout(10):
        await with_it.reached.wait()

    saving.cancel()
    await asyncio.wait([saving])
    await pending.settled()

    assert apart.rows == [[(1,)]]


async def test_a_checkpoint_that_was_refused_takes_its_writes_along() -> None:
    """Its run is told so; at its end nobody waits for the same database once more."""
    apart = Stored()
    pending = PendingWrites(apart, NEVER_SAVING)
    await pending.add([(1,)])

    with pytest.raises(HoldLost):
        await pending.stored_with(Stored(HoldLost("t")))
    await pending.settled()

    assert apart.rows == []


@pytest.mark.long
async def test_a_run_that_was_abandoned_leaves_no_complaint_behind() -> None:
    """Nobody comes for what kept its last writes from being stored."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    apart = Stored(HoldLost("t"))
    pending = PendingWrites(apart, 0)
    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()
    await asyncio.sleep(0)

    del apart, pending
    gc.collect()

    assert complaints == []
