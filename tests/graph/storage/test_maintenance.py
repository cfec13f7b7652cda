"""Checkpoints that are taken away, and what stays made whole (DU-08)."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from tests.damages import KEY
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, fall, phases, say, shout
from typing_extensions import TypedDict

from daruma.graph.build import build_graph
from daruma.graph.history import NothingToReopen
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.storage._ledgers import Place
from daruma.graph.storage._rows import NAME
from daruma.graph.storage._saver import NotThinned, renew
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import DamagedState, ThreadBusy
from daruma.tools.calls import Effect, Outcome

# --- A checkpoint whose row is changed tells the truth of itself, and damage is not covered up.

ROW = """
SELECT parent_checkpoint_id, checkpoint, metadata FROM daruma_checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""
COUNTERS = "counters_since_delta_snapshot"


def told(pg: Postgres) -> tuple[str, str, str]:
    """Run a thread, and name its newest checkpoint."""
    model = ScriptedChatModel(script={"main": [say()]})
    run = Run({"main": []}, graph=build_graph(model, [], settings(), persistence=pg)).ask()
    return "t", "", run.snapshot.config["configurable"]["checkpoint_id"]


def renewed(pg: Postgres, at: tuple[str, str, str]) -> None:
    saver = pg.checkpointer
    run_on_loop(saver.transact(lambda c: renew(c, at, "earlier", ["messages"], saver.sealing)))


def row_at(url: str, at: tuple[str, str, str]) -> Any:
    with psycopg.connect(url) as connection:
        return connection.execute(ROW, at).fetchone()


@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_a_renewed_row_notes_its_parent_its_values_and_no_writes(
    postgres_url: str, key: bytes | None
) -> None:
    """Else a loss would be seen where nothing is lost, or none where something is."""
    with open_postgres(postgres_url, key=key) as pg:
        at = told(pg)
        _, before, counted = row_at(postgres_url, at)
        assert before[NAME]["writes"]
        assert "messages" in counted[COUNTERS]

        renewed(pg, at)

    parent, checkpoint, metadata = row_at(postgres_url, at)
    manifest = checkpoint[NAME]
    assert (parent, manifest["parent"], manifest["writes"]) == ("earlier", "earlier", {})
    assert manifest["blobs"] == sorted([*before[NAME]["blobs"], "messages"])
    assert checkpoint["channel_values"]["messages"] is True
    assert counted[COUNTERS].keys() - metadata[COUNTERS].keys() == {"messages"}
    assert manifest["mark"] != before[NAME]["mark"]


def test_a_damaged_row_is_not_marked_anew(postgres_url: str) -> None:
    """Its damage would be there for ever, and nobody could tell."""
    with open_postgres(postgres_url) as pg:
        at = told(pg)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_checkpoints SET metadata = jsonb_set(metadata, '{step}', '99')"
            )
        before = row_at(postgres_url, at)

        with pytest.raises(DamagedState, match="of thread 't': its row is not what was stored"):
            renewed(pg, at)

        assert row_at(postgres_url, at) == before


# --- A thread that was thinned is what it was, and goes on as it would have (DU-08).

NUMBERS = count()


def rows(url: str, table: str, thread: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT FROM {table} WHERE thread_id = %s", [thread])
        return found.rowcount


def run_on(postgres: Postgres, turns: list[Any], *, thread: str = "t", **sections: Any) -> Run:
    model = ScriptedChatModel(script={"main": turns} if isinstance(turns, list) else turns)
    given = settings(**({"budgets": {"max_steps": 200}} | sections))
    run = Run({"main": []}, graph=build_graph(model, [shout, fall], given, persistence=postgres))
    run.config = {"configurable": {"thread_id": thread}}
    return run


def seen(run: Run) -> dict[str, Any]:
    """All that can be told of where a thread stands."""
    snapshot = run.snapshot
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "tasks": [(task.id, task.name, task.interrupts) for task in snapshot.tasks],
        "interrupts": snapshot.interrupts,
        "at": snapshot.config,
        "step": snapshot.metadata["step"],
    }


TASKS = st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=3)
"""For each task of a thread, how many calls each of its steps makes."""


def turns_of(tasks: list[list[int]]) -> list[Any]:
    number = count()
    turns = []
    for steps in tasks:
        turns += [calls(*[call(text=f"{next(number)}") for _ in range(n)]) for n in steps]
        turns.append(say("Done."))
    return turns


@pytest.mark.sampled(1)
@example_settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tasks=TASKS, waits=st.booleans())
@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_a_thinned_thread_is_what_it_was_and_goes_on_alike(
    postgres_url: str, key: bytes | None, tasks: list[list[int]], waits: bool
) -> None:
    """Whatever ran on it, also while it waits for a person; beside a copy that was not thinned."""
    thread, copy = f"t{next(NUMBERS)}", f"c{next(NUMBERS)}"
    policy = {"tools": {"policy": {"fall": "confirm"}}}
    asked = [calls(call("fall")), say("Asked.")] if waits else [say("Not asked.")]
    with open_postgres(postgres_url, key=key) as postgres:
        saver = postgres.checkpointer
        turns = [*turns_of(tasks), *asked, say("More.")]
        model_runs = [run_on(postgres, turns, thread=each, **policy) for each in (thread, copy)]
        for _ in tasks:
            model_runs[0].ask()
        if waits:
            model_runs[0].ask("The last")
        saver.copy_thread(thread, copy)
        before = seen(model_runs[0])

        for _ in range(2):
            saver.prune([thread])
            assert seen(model_runs[0]) == before

        assert rows(postgres_url, "daruma_checkpoints", thread) == 1
        for run in model_runs:
            if waits:
                run.approve()
            run.ask("Another")
        thinned, whole = (run.messages for run in model_runs)
        assert [m.text for m in thinned] == [m.text for m in whole]
        assert thinned[-1].text == ("More." if waits else "Not asked.")
        assert [step.kind for step in model_runs[0].state.steps] == [
            step.kind for step in model_runs[1].state.steps
        ]


@pytest.mark.long
def test_a_long_thread_keeps_a_fraction(postgres_url: str) -> None:
    """60 steps: more writes than there are between two whole copies; little is left of them."""
    with open_postgres(postgres_url) as postgres:
        run = run_on(postgres, turns_of([[1] * 60])).ask()
        before, many = seen(run), rows(postgres_url, "daruma_writes", "t")

        postgres.checkpointer.prune(["t"])

        assert seen(run) == before
        assert len(run.messages) == 122
        assert many > 100
        assert rows(postgres_url, "daruma_writes", "t") == 0
        assert rows(postgres_url, "daruma_blobs", "t") < 30


def test_a_team_at_work_keeps_what_its_members_need(postgres_url: str, tmp_path: Path) -> None:
    """Both wait for an approval, each in a namespace of its own; both can be answered."""
    script = {
        "plan": [phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})],
        "main@a": [calls(call(text="x")), calls(call("fall", id_="fa")), say("A.")],
        "main@b": [calls(call("fall", id_="fb")), say("B.")],
    }
    given = {"spec_review": {"enabled": False}, "tools": {"policy": {"fall": "confirm"}}}
    with open_postgres(postgres_url) as postgres:
        run = run_on(postgres, script, **given)  # type: ignore[arg-type]
        run.ask(mode="team_collab", workspace=str(tmp_path))
        before = seen(run)
        assert len(run.snapshot.interrupts) == 2

        postgres.checkpointer.prune(["t"])

        assert seen(run) == before
        assert rows(postgres_url, "daruma_checkpoints", "t") == 3
        for question in run.snapshot.interrupts:
            (asked,) = question.value["approvals"]
            reply = {"approval_id": asked["approval_id"], "digest": asked["digest"]}
            decisions = {"decisions": [{**reply, "decision": "approve"}]}
            run.send(Command(resume={question.id: decisions}))
        assert {phase.id: phase.status for phase in run.result.phases} == {
            "a": "completed",
            "b": "completed",
        }

        postgres.checkpointer.prune(["t"])

        assert rows(postgres_url, "daruma_checkpoints", "t") == 1


def test_calls_that_were_passed_are_off_the_record(postgres_url: str) -> None:
    """Not those in doubt, nor of a checkpoint that stays, nor of one that a crash has lost."""
    with open_postgres(postgres_url) as postgres:
        run, saver = run_on(postgres, [say()]).ask(), postgres.checkpointer
        *_, first = run.graph.get_state_history(run.config)
        ids = [each.config["configurable"]["checkpoint_id"] for each in (first, run.snapshot)]
        for checkpoint in (*ids, "lost"):
            journal = saver.journal_at(Place("t", "", checkpoint), "one")
            for call_id in ("doubted", "done"):
                entry = run_on_loop(journal.begin(Effect(call_id, checkpoint, "ask")))
            run_on_loop(journal.end(entry, Outcome("done", "paid")))

        saver.prune(["t"])

        with psycopg.connect(postgres_url) as connection:
            left = connection.execute("SELECT checkpoint_id, call FROM daruma_effects").fetchall()
        assert sorted(left) == sorted(
            [(ids[0], "doubted")]
            + [(each, name) for each in (ids[1], "lost") for name in ("doubted", "done")]
        )


def test_what_was_thinned_away_can_not_be_gone_back_to(postgres_url: str) -> None:
    """It is said in one line, and nothing on the thread has changed."""
    with open_postgres(postgres_url) as postgres:
        run = run_on(
            postgres, [{"raise": "boom"}], fallback_chain={"recovery": {"enabled": False}}
        ).ask()
        assert run.result.status == "failed"
        postgres.checkpointer.prune(["t"])

        with pytest.raises(NothingToReopen, match="not in this thread's history any more"):
            run.graph.reopen(run.config)


def test_a_thread_that_is_being_run_is_left_alone(postgres_url: str) -> None:
    """DU-03: thinning holds the thread, as a run does."""
    with open_postgres(postgres_url) as postgres:
        run_on(postgres, [say()]).ask()
        saver = postgres.checkpointer
        hold = saver.leases.take("t")

        refused: list[Callable[[], None]] = [
            lambda: saver.prune(["t"]),
            lambda: saver.prune(["t"], strategy="delete"),
            lambda: saver.delete_thread("t"),
            lambda: saver.copy_thread("t", "u"),
            lambda: saver.copy_thread("u", "t"),
        ]
        for each in refused:
            with pytest.raises(ThreadBusy, match="thread 't' is being run"):
                each()

        saver.leases.give_back(hold)
        assert rows(postgres_url, "daruma_checkpoints", "t") > 1
        saver.delete_thread("t")
        assert rows(postgres_url, "daruma_checkpoints", "t") == 0
        again = saver.leases.take("t")
        assert again.token > hold.token
        saver.leases.give_back(again)


def test_a_text_is_no_list_of_threads(postgres_url: str) -> None:
    """Its letters would be taken for the names of threads, and these deleted."""
    with open_postgres(postgres_url) as postgres:
        run_on(postgres, [say()]).ask()

        with pytest.raises(TypeError, match="not a text"):
            postgres.checkpointer.prune("t", strategy="delete")

        assert rows(postgres_url, "daruma_checkpoints", "t") > 1


def joined(kept: list[str], writes: list[list[str]]) -> list[str]:
    return [*kept, *(word for write in writes for word in write)]


class Theirs(TypedDict):
    words: Annotated[list[str], DeltaChannel(joined)]


def speak(_: Theirs) -> dict[str, Any]:
    return {"words": ["hi"]}


def test_a_thread_of_another_graph_is_refused(postgres_url: str) -> None:
    """Nobody here knows what its writes add up to: better no space than a lost history."""
    with open_postgres(postgres_url) as postgres:
        builder: Any = StateGraph(Theirs)
        builder.add_node(speak).add_edge(START, "speak")
        graph: Any = builder.compile(postgres.checkpointer)
        graph.invoke({"words": ["a"]}, {"configurable": {"thread_id": "t"}})

        with pytest.raises(NotThinned, match="'words'"):
            postgres.checkpointer.prune(["t"])
