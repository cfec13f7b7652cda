"""Whole threads: copied with all that belongs to them, deleted, and set back before a run."""

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.damages import KEY
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, aopen_postgres, open_postgres
from daruma.graph.storage._database import GOING_WITH_A_THREAD
from daruma.graph.storage._ledgers import Place
from daruma.graph.storage._saver import TABLES, ThreadTaken
from daruma.graph.sync import run as run_on_loop
from daruma.graph.workers import asubmit
from daruma.state.errors import DamagedState, HoldLost
from daruma.tools.calls import Effect, Outcome


def rows(url: str, thread: str) -> dict[str, int]:
    """How many rows there are of a thread, in each table that knows threads."""
    with psycopg.connect(url) as connection:
        known = connection.execute(
            "SELECT table_name FROM information_schema.columns"
            " WHERE column_name = 'thread_id' AND table_schema = 'public'"
        ).fetchall()
        return {
            table: connection.execute(
                sql.SQL("SELECT FROM {} WHERE thread_id = %s").format(sql.Identifier(table)),
                [thread],
            ).rowcount
            for (table,) in known
        }


def run_on(postgres: Postgres, turns: list[Any], *, thread: str = "t") -> Run:
    given = settings(tools={"policy": {"shout": "confirm"}}, budgets={"max_steps": 100})
    model = ScriptedChatModel(script={"main": turns})
    run = Run({"main": []}, graph=build_graph(model, [shout], given, persistence=postgres))
    run.config = {"configurable": {"thread_id": thread}}
    return run


def history_of(run: Run) -> list[Any]:
    return list(run.graph.get_state_history(run.config))


ASKED = [calls(call(text="a")), say("One."), calls(call(text="b")), say("Two.")]


def test_a_deleted_thread_leaves_nothing_but_its_lease(postgres_url: str) -> None:
    """DU-08: in every table that knows threads; another thread keeps all of its own."""
    with open_postgres(postgres_url) as postgres:
        for thread in ("t", "u"):
            run = run_on(postgres, ASKED, thread=thread).ask().approve().ask()
            run.graph.steer(run.config, "Mind the gap")
        kept = rows(postgres_url, "u")

        postgres.checkpointer.delete_thread("t")

        left = rows(postgres_url, "t")
        assert set(left) == {*TABLES, *GOING_WITH_A_THREAD, "daruma_leases"}
        assert {table for table, number in left.items() if number} == {"daruma_leases"}
        assert rows(postgres_url, "u") == kept
        assert kept["daruma_steering"] == 1


@pytest.mark.long
@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
async def test_a_copy_can_be_answered_as_the_original(postgres_url: str, key: bytes | None) -> None:
    """With its open question; the original still waits. Made again, the copy is not changed."""
    with open_postgres(postgres_url, key=key) as postgres:
        run = run_on(postgres, ASKED)
        await asyncio.to_thread(run.ask)

        await postgres.checkpointer.acopy_thread("t", "copy")
        await postgres.checkpointer.acopy_thread("t", "copy")
        await postgres.checkpointer.acopy_thread("t", "t")

        copied = run_on(postgres, ASKED, thread="copy")
        await asyncio.to_thread(copied.approve)
        assert copied.result.output == "One."
        assert run.snapshot.interrupts
        assert rows(postgres_url, "t") == {**rows(postgres_url, "t"), "daruma_replies": 0}


@pytest.mark.long
@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_all_that_a_thread_has_is_copied(postgres_url: str, key: bytes | None) -> None:
    """Its whole history, its replies, what is in its journal, and its large outputs."""
    with open_postgres(postgres_url, key=key) as postgres:
        run = run_on(postgres, ASKED).ask().approve()
        saver = postgres.checkpointer
        run_on_loop(saver.outputs.keep("t", "one", "large"))
        here = Place("t", "", "1")
        paid = Effect("m:c", "digest", "ask", "/ws")
        journal = saver.journal_at(here, "one")
        run_on_loop(journal.end(run_on_loop(journal.begin(paid)), Outcome("done", "paid")))
        doubted = run_on_loop(journal.begin(Effect("m:d", "digest", "ask", "/ws")))
        history = history_of(run)
        ids = [each.id for past in history for each in past.interrupts]

        saver.copy_thread("t", "copy")

        copied = run_on(postgres, ASKED, thread="copy")
        assert [each.values for each in history_of(copied)] == [each.values for each in history]
        assert ids
        assert (
            run_on_loop(saver.replies.find("copy", ids))
            == run_on_loop(saver.replies.find("t", ids))
            != {}
        )
        assert run_on_loop(saver.outputs.read("copy", "one")) == "large"
        journal = saver.journal_at(here._replace(thread_id="copy"), "two")
        assert [each.key for each in run_on_loop(journal.cut_short("/ws"))] == [doubted.key]
        found = run_on_loop(journal.begin(paid))
        assert (found.outcome, found.effect) == (Outcome("done", "paid"), paid)
        counted = {"daruma_leases": 1}
        assert rows(postgres_url, "copy") | counted == rows(postgres_url, "t") | counted


def test_a_damaged_value_is_not_sealed_anew(postgres_url: str) -> None:
    """In a sealed database a copy has to read what it copies; nothing of it is there after that."""
    with open_postgres(postgres_url, key=KEY) as postgres:
        run_on(postgres, TALK).ask()
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_checkpoints SET metadata = jsonb_set(metadata, '{step}', '99')"
            )

        with pytest.raises(DamagedState, match="of thread 't': its row is not what was stored"):
            postgres.checkpointer.copy_thread("t", "copy")

        assert rows(postgres_url, "copy")["daruma_checkpoints"] == 0


@pytest.mark.long
def test_a_thread_with_a_history_is_no_place_for_a_copy(postgres_url: str) -> None:
    """Two histories in one thread would be none."""
    with open_postgres(postgres_url) as postgres:
        for thread in ("t", "u"):
            run_on(postgres, [say()], thread=thread).ask()
        before = rows(postgres_url, "u")

        with pytest.raises(ThreadTaken, match="'u' has a history of its own"):
            postgres.checkpointer.copy_thread("t", "u")

        assert rows(postgres_url, "u") == before


def as_run(run: Run, run_id: str) -> Run:
    run.config = {**run.config, "metadata": {"run_id": run_id}}
    return run


TALK = [say(f"Answer {n}.") for n in range(8)]


def texts(run: Run) -> list[str]:
    return [message.text for message in run.messages]


@pytest.mark.long
@pytest.mark.parametrize(("key", "last"), [(None, False), (None, True), (KEY, False), (KEY, True)])
def test_a_run_can_be_taken_back(postgres_url: str, key: bytes | None, last: bool) -> None:
    """What LangGraph's server does to a run that is replaced: the newest one, or one further back.

    The newest is as if it had never been asked; of one further back the words stay, as the later
    one answered to them.
    """
    with open_postgres(postgres_url, key=key) as postgres:
        run = run_on(postgres, TALK)
        for name in ("one", "two", "three"):
            as_run(run, name).ask(name)
        before = texts(run)

        postgres.checkpointer.delete_for_runs(["three" if last else "two"])

        assert texts(run) == (before[:4] if last else before)
        assert run.snapshot.next == ()
        history = list(run.graph.get_state_history(run.config))
        ids = {each.metadata["run_id"] for each in history}
        assert ids == {"one", "two" if last else "three"}
        as_run(run, "four").ask("four")
        assert texts(run)[:-1] == [*(before[:4] if last else before), "four"]


def test_a_run_taken_back_while_it_waits_leaves_the_question_before_it(postgres_url: str) -> None:
    """The reply that began it is as if it had not come; what was asked can be answered again."""
    with open_postgres(postgres_url) as postgres:
        run = as_run(run_on(postgres, ASKED), "asking").ask()
        question, before = run.question, run.snapshot
        as_run(run, "answering").approve().ask("More")
        assert rows(postgres_url, "t")["daruma_replies"] == 1

        postgres.checkpointer.delete_for_runs(["answering"])

        assert run.question == question
        assert (run.snapshot.values, run.snapshot.next) == (before.values, before.next)
        assert rows(postgres_url, "t")["daruma_replies"] == 0
        as_run(run, "again").approve()
        assert run.result.status == "completed"


def test_calls_of_a_run_that_is_taken_back_are_off_the_record(postgres_url: str) -> None:
    """Those of another run stay on it."""
    with open_postgres(postgres_url) as postgres:
        run, saver = run_on(postgres, TALK), postgres.checkpointer
        kept, gone = [
            as_run(run, name).ask(name).snapshot.config["configurable"] for name in ("one", "two")
        ]
        for named in (kept, gone):
            place = Place("t", "", named["checkpoint_id"])
            journal = saver.journal_at(place, "one")
            begun = run_on_loop(journal.begin(Effect("m:c", place[2], "ask")))
            if named is gone:
                run_on_loop(journal.end(begun, Outcome("done", "")))

        saver.delete_for_runs(["two"])

        with psycopg.connect(postgres_url) as connection:
            left = connection.execute("SELECT checkpoint_id FROM daruma_effects").fetchall()
        assert left == [(kept["checkpoint_id"],)]


async def test_a_deleted_thread_is_not_run_any_more(postgres_url: str) -> None:
    """What was queued for it goes along; the jobs of other threads wait as before."""
    async with aopen_postgres(postgres_url) as postgres:
        for thread in ("t", "u"):
            await asubmit(postgres, {"messages": [("user", "Do it")]}, thread)

        await postgres.checkpointer.adelete_thread("t")

        with psycopg.connect(postgres_url) as connection:
            left = connection.execute("SELECT lock FROM procrastinate_jobs").fetchall()
        assert left == [("u",)]


def test_an_unknown_run_is_no_error(postgres_url: str) -> None:
    """It may have been taken back already."""
    with open_postgres(postgres_url) as postgres:
        run = as_run(run_on(postgres, TALK), "one").ask()
        before = rows(postgres_url, "t")

        postgres.checkpointer.delete_for_runs(["none"])

        assert rows(postgres_url, "t") == before
        assert run.result.status == "completed"


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_taken_back_answers_for_no_later_call(postgres_url: str, ended: bool) -> None:
    """A model may name its calls alike; what was begun and did not end stays in doubt (DU-06)."""
    worked = []

    def work(text: str) -> str:
        """Work."""
        worked.append(text)
        if not ended:
            raise HoldLost("t")
        return text

    with open_postgres(postgres_url) as postgres:
        for run_id in ("one", "two"):
            script = {"main": [calls(call("work", "c1", text="a")), say()]}
            graph = build_graph(
                ScriptedChatModel(script=script), [work], settings(), persistence=postgres
            )
            given: Any = {"messages": [("user", "Work")], "mode": "react"}
            config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}}
            with suppress(HoldLost):
                graph.invoke(given, config)
            if run_id == "one":
                postgres.checkpointer.delete_for_runs(["one"])

        asked = [each.value["type"] for each in graph.get_state(config).interrupts]
        assert (worked, asked) == ((["a", "a"], []) if ended else (["a"], ["question"]))
