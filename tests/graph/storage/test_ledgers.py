"""Leases, journals, replies and outputs of runs, also in memory, and a run's hold (DU-03)."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot
from tests.parts import a_task, memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import (
    Leases,
    aopen_postgres,
    journal_of,
    ledger_of,
    open_postgres,
    strict_saver,
    workspace_of,
)
from daruma.graph.storage._ledgers import (
    Place,
    ProcessLedger,
    ProcessReplies,
    Replies,
)
from daruma.graph.sync import run
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import Busy, DamagedState, HoldLost, ThreadBusy, WorkspaceBusy
from daruma.state.mode import Mode
from daruma.state.settings import Settings
from daruma.state.text import REFERENCE
from daruma.tools.calls import Effect, Journal, NoJournal, Outcome

# --- One thread is run by one run at a time; the rest are told (DU-03).


@pytest.fixture(params=["process", "postgres"])
def leases(request: pytest.FixtureRequest) -> Iterator[Leases]:
    """Those of a checkpointer that has no place for them, and those in a database."""
    if request.param == "process":
        yield ledger_of(InMemorySaver()).leases
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield ledger_of(pg.checkpointer).leases


def test_a_thread_that_is_held_can_not_be_taken(leases: Leases) -> None:
    """The error says what to do; other threads are free."""
    hold = leases.take("t")

    with pytest.raises(ThreadBusy, match=r"^thread 't' is being run .*wait until"):
        leases.take("t")
    leases.give_back(leases.take("other"))
    leases.give_back(hold)

    leases.give_back(leases.take("t"))


def test_of_many_at_once_one_takes_it(leases: Leases) -> None:
    """From twenty threads."""

    def take(_: int) -> bool:
        try:
            leases.take("t")
        except ThreadBusy:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(take, range(20))) == 1


async def test_the_asynchronous_ways_are_the_same(leases: Leases) -> None:
    """From a loop that is not that of the database."""
    hold = await leases.atake("t")

    taken = await asyncio.gather(leases.atake("t"), leases.atake("t"), return_exceptions=True)
    assert [type(each) for each in taken] == [ThreadBusy] * 2
    await leases.agive_back(hold)

    await leases.agive_back(await leases.atake("t"))


def test_giving_back_what_another_has_by_now_changes_nothing(leases: Leases) -> None:
    """It is the run that holds it, not whoever comes."""
    first = leases.take("t")
    leases.give_back(first)
    leases.take("t")

    leases.give_back(first)

    with pytest.raises(ThreadBusy):
        leases.take("t")


def test_all_graphs_over_one_checkpointer_know_who_runs() -> None:
    """Also through a copy of it."""
    saver = InMemorySaver()

    assert ledger_of(saver).leases is ledger_of(saver).leases


class Booked(InMemorySaver):
    """An application's own, which books what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger: list[str] = []


def test_a_checkpointer_may_have_a_ledger_of_another_kind() -> None:
    """It is left as it is, and threads run all the same."""
    saver = Booked()
    graph = build_graph(ScriptedChatModel(script=[say()]), checkpointer=saver)

    out = graph.invoke({"messages": [("user", "Do it")]}, {"configurable": {"thread_id": "t"}})

    assert out["result"].status == "completed"
    assert saver.ledger == []


# --- The journal of effects: an intent before, an outcome after, found again by what was done
# (DU-06).
#
# The same rules hold in Postgres and in a process.

PAY = Effect("m1:c1", "digest", "ask")
EDIT = Effect("m1:c2", "digest", "restore", "/ws")
HERE = Place("t", "", "2")

At = Callable[..., Journal]


@pytest.fixture(params=["process", "postgres"])
def at(request: pytest.FixtureRequest) -> Iterator[At]:
    """Makes the journal of a run at a place."""
    if request.param == "process":
        journals = ProcessLedger()
        yield lambda run="one", place=HERE: journals.journal_at(place, run)
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        for id_ in ("1", "2", "3"):
            pg.checkpointer.put(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
                empty_checkpoint() | {"id": id_},
                {},
                {},
            )
        yield lambda run="one", place=HERE: pg.checkpointer.journal_at(place, run)


def test_an_outcome_on_record_is_found_by_the_next_run(at: At) -> None:
    """As it was told, and the call is not made again."""
    begun = run(at().begin(PAY))
    assert (begun.cut_short, begun.outcome, begun.attempt) == (False, None, 1)

    image = {"type": "image", "mime_type": "image/png", "base64": "AAAA"}
    paid = Outcome("done", "paid\x00", images=(image,))  # which no column of texts takes
    run(at().end(begun, paid))

    found = run(at("two").begin(PAY))
    assert (found.cut_short, found.outcome, found.key) == (False, paid, begun.key)


def test_an_intent_without_an_outcome_was_cut_short(at: At) -> None:
    """For another run; within the same one it is what it was, as after a lost acknowledgement."""
    begun = run(at().begin(PAY))

    assert run(at().begin(PAY)) == begun
    found = run(at("two").begin(PAY))

    assert found.cut_short
    assert (found.effect, found.key, found.attempt) == (PAY, begun.key, 1)


def test_each_attempt_is_counted_and_has_the_same_key(at: At) -> None:
    """So that a service knows it again, and a person is asked once for each time."""
    first = run(at().begin(PAY))
    again = run(at("two").again(run(at("two").begin(PAY))))
    assert not run(at("two").begin(PAY)).cut_short

    third = run(at("three").begin(PAY))

    assert (again.attempt, third.attempt, third.cut_short) == (2, 2, True)
    assert first.key == again.key == third.key


def test_an_intent_that_was_taken_back_is_none(at: At) -> None:
    """And an outcome can not be taken back."""
    run(at().forget(run(at().begin(PAY))))

    begun = run(at("two").begin(PAY))
    run(at("two").end(begun, Outcome("failed", "no")))
    assert not begun.cut_short


@pytest.mark.parametrize(
    "other",
    [Effect("m1:c9", "digest", "ask"), Effect("m1:c1", "another", "ask")],
)
def test_another_call_and_other_arguments_are_another_effect(at: At, other: Effect) -> None:
    """What was approved and done is that, and nothing else."""
    run(at().begin(PAY))

    found = run(at("two").begin(other))

    assert not found.cut_short
    assert found.key != run(at("two").begin(PAY)).key


def test_a_fork_makes_its_calls_anew(at: At) -> None:
    """It goes on from a checkpoint of its own."""
    run(at().end(run(at().begin(PAY)), Outcome("done", "paid")))

    forked = run(at("two", Place("t", "", "3")).begin(PAY))

    assert (forked.cut_short, forked.outcome) == (False, None)


def test_a_key_is_that_of_one_place_alone(at: At) -> None:
    """A service that knows the key would otherwise not make the call of a fork, or of a member."""
    places = [HERE, Place("t", "", "3"), Place("t", "member:1", "2")]

    keys = {run(at("one", place).begin(PAY)).key for place in places}

    assert len(keys) == len(places)


def test_what_was_cut_short_in_a_workspace_is_found(at: At) -> None:
    """Not what ended, nor what this run does, nor what is elsewhere."""
    begun = run(at().begin(EDIT))
    run(at().begin(PAY))

    assert run(at().cut_short("/ws")) == []
    assert [each.key for each in run(at("two").cut_short("/ws"))] == [begun.key]
    assert run(at("two").cut_short("/other")) == []
    assert run(at("two", Place("t", "", "3")).cut_short("/ws")) == []

    run(at("two").end(begun, Outcome("done", "")))
    assert run(at("three").cut_short("/ws")) == []


def test_what_the_thread_has_left_behind_is_dropped(at: At) -> None:
    """DU-08: the journal does not grow with the thread; what is in doubt stays."""
    early = Place("t", "", "1")
    run(at("one", early).end(run(at("one", early).begin(PAY)), Outcome("done", "paid")))
    run(at("one", early).begin(EDIT))

    run(at("one", Place("t", "", "3")).begin(Effect("m2:c1", "d", "ask")))

    assert run(at("two", early).begin(PAY)).outcome is None
    assert run(at("two", early).begin(EDIT)).cut_short


def test_a_call_whose_checkpoint_was_never_stored_is_found_all_the_same(postgres_url: str) -> None:
    """Under ``durability="async"`` a crash can lose it; the model is asked again, and answers so.

    One whose checkpoint is stored belongs to another branch.
    """
    with open_postgres(postgres_url) as pg:
        put = pg.checkpointer.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
        )
        lost, kept = HERE, Place("t", "", put["configurable"]["checkpoint_id"])
        begun = run(pg.checkpointer.journal_at(lost, "one").begin(PAY))
        run(pg.checkpointer.journal_at(kept, "one").begin(EDIT))

        found = run(pg.checkpointer.journal_at(Place("t", "", "9"), "two").begin(PAY))
        other = run(pg.checkpointer.journal_at(Place("t", "", "9"), "two").begin(EDIT))

        assert (found.cut_short, found.key) == (True, begun.key)
        assert not other.cut_short


def test_where_nothing_is_kept_there_is_no_journal() -> None:
    """A run without a checkpointer can not be taken up."""
    assert isinstance(journal_of({"configurable": {}}, None, "run"), NoJournal)


# --- Accepted replies in Postgres, from any thread, loop and process.


@pytest.fixture(params=["process", "postgres"])
def replies(request: pytest.FixtureRequest) -> Iterator[Replies]:
    """Those of a process, and those in a database."""
    if request.param == "process":
        yield ProcessReplies()
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield ledger_of(pg.checkpointer).replies


def test_of_many_replies_at_once_one_is_accepted(postgres_url: str) -> None:
    """Forty at the same moment, through two pools as from two processes, and in one."""
    process = ProcessReplies()
    with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        for places in (
            [process, process],
            [ledger_of(pg.checkpointer).replies for pg in (one, two)],
        ):

            def reply(n: int, places: Any = places) -> bool:
                return bool(run_on_loop(places[n % 2].accept("t", {"q": {"n": n}})))

            with ThreadPoolExecutor(40) as pool:
                accepted = list(pool.map(reply, range(40)))

            assert accepted.count(True) == 1
            assert run_on_loop(places[0].find("t", ["q"])) == {"q": {"n": accepted.index(True)}}


def test_replies_to_several_questions_are_accepted_together_or_not_at_all(replies: Replies) -> None:
    """Half an answer would start a run; the row that was there goes on to hold what it held."""
    run_on_loop(replies.accept("t", {"b": 1}))

    assert not run_on_loop(replies.accept("t", {"a": 2, "b": 2}))
    assert run_on_loop(replies.find("t", ["a", "b"])) == {"b": 1}


def test_replies_belong_to_their_thread_and_question(replies: Replies) -> None:
    """Another thread may well have a question of the same id."""
    run_on_loop(replies.accept("t", {"q": 1}))

    assert run_on_loop(replies.accept("other", {"q": 2}))
    assert run_on_loop(replies.accept("t", {"other": 3}))
    assert run_on_loop(replies.find("t", ["q", "unknown"])) == {"q": 1}


async def test_odd_replies_are_kept_as_they_are(postgres_url: str) -> None:
    """NUL and lone surrogates, which no text column takes."""
    odd = {"answer": "a\0b\ud800", "n": [1, None, 2.5]}
    async with aopen_postgres(postgres_url) as pg:
        replies = ledger_of(pg.checkpointer).replies

        assert await replies.accept("t", {"q": odd})
        found = (await replies.find("t", ["q"]))["q"]

        assert found["n"] == odd["n"]
        assert found["answer"].startswith("a\0b")


async def test_a_database_of_before_gets_the_table(empty_postgres_url: str) -> None:
    """Opening it makes what is not there, and keeps what is."""
    async with aopen_postgres(empty_postgres_url) as pg, pg.pool.connection() as connection:
        await connection.execute("DROP TABLE daruma_replies, daruma_version")

    async with aopen_postgres(empty_postgres_url) as pg:
        accepted = await asyncio.gather(
            *(ledger_of(pg.checkpointer).replies.accept("t", {"q": n}) for n in range(3))
        )

    assert sorted(accepted) == [False, False, True]


def test_all_graphs_over_one_checkpointer_share_its_replies() -> None:
    """Each graph has a strict copy of the checkpointer it was given."""
    given = InMemorySaver()

    assert ledger_of(strict_saver(given)).replies is ledger_of(strict_saver(given)).replies
    assert ledger_of(InMemorySaver()).replies is not ledger_of(given).replies


# --- Large outputs of whole runs: in the database once, in the history by reference (DU-08).

DIGEST = 8
"""Bytes that are stored with each value, by which it is known to be whole."""

BIG = "".join(f"{n} " for n in range(20_000))


def big() -> str:
    """Say very much."""
    return BIG


def reading(id_: str) -> list[Any]:
    read = call("read_output", id=id_, offset=60_000, length=50)
    return [calls({"name": "big"}), calls(read), say()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", ["postgres", "memory", "none"])
def test_a_run_reads_on_in_what_was_left_out(place: str, postgres_url: str) -> None:
    """The tool that does is shown from then on; without a checkpointer it works within the run."""
    id_ = reference()
    model = RecordingModel(script={"main": reading(id_)})
    given = settings()
    with open_postgres(postgres_url) if place == "postgres" else nullcontext() as postgres:
        saver = InMemorySaver() if place == "memory" else None
        graph: Any = build_graph(model, [big], given, persistence=postgres, checkpointer=saver)
        ended = graph.invoke(
            {"messages": [("user", "Do it")]}, {"configurable": {"thread_id": "t"}}
        )

    results = [message for message in ended["messages"] if message.type == "tool"]
    assert results[0].additional_kwargs == {REFERENCE: id_}
    assert len(results[0].text) <= given.tools.max_result_chars
    assert results[1].text == f"[characters 60000 to 60050 of {len(BIG)}]\n{BIG[60000:60050]}"
    assert results[1].additional_kwargs == {}


def reference() -> str:
    import hashlib

    return hashlib.sha256(BIG.encode()).hexdigest()[:16]


def test_what_is_large_is_in_the_database_once(postgres_url: str) -> None:
    """However often it comes; the checkpoints hold its ends."""
    with open_postgres(postgres_url) as postgres:
        model = RecordingModel(script={"main": [*[calls({"name": "big"})] * 2, say(), say()]})
        run = Run({"main": []}, graph=build_graph(model, [big], settings(), persistence=postgres))
        run.ask()
        with psycopg.connect(postgres_url) as connection:
            kept = connection.execute("SELECT thread_id, length(output) FROM daruma_outputs")
            assert kept.fetchall() == [("t", len(BIG) + DIGEST)]
            found = connection.execute("SELECT max(octet_length(blob)) FROM daruma_writes")
            assert (found.fetchone() or (0,))[0] < 25_000


def test_a_damaged_output_is_named(postgres_url: str) -> None:
    """DU-05: the next reader is told, and is not given another text."""
    with open_postgres(postgres_url) as postgres:
        outputs = postgres.checkpointer.outputs
        run_on_loop(outputs.keep("t", "one", "kept"))
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE daruma_outputs SET output = set_byte(output, 9, 0)")

        with pytest.raises(DamagedState, match="the output one of thread 't': a value is not what"):
            run_on_loop(outputs.read("t", "one"))


async def test_who_has_lost_the_thread_keeps_nothing(postgres_url: str) -> None:
    """DU-03: the fence stands before outputs too."""
    with open_postgres(postgres_url) as postgres:
        saver = postgres.checkpointer
        hold = await saver.leases.atake("t")
        await ledger_of(saver.held(hold)).outputs.keep("t", "one", "1")
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE daruma_leases SET token = token + 1")

        with pytest.raises(HoldLost):
            await ledger_of(saver.held(hold)).outputs.keep("t", "two", "2")

        await saver.leases.agive_back(hold)
        assert await ledger_of(saver).outputs.read("t", "one") == "1"
        assert await ledger_of(saver).outputs.read("t", "two") is None


# --- A run has its thread and its workspace for itself; whoever else comes is told, and loses
# nothing.
#
# DU-03. Two that resume one thread at once would both do its work, and fork it.

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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_run_that_is_abandoned_gives_back_what_it_held(slow: Slow) -> None:
    """A stream that nobody reads to its end."""
    parts = slow.graph.stream(slow.request(), T, stream_mode="updates")
    assert "intake" in next(parts)
    with pytest.raises(Busy):
        slow.graph.invoke(None, T)

    parts.close()

    slow.go.set()
    assert slow.graph.invoke(None, T)["result"].status == "completed"


@pytest.mark.long
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
