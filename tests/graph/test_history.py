"""Setting a thread back: where it failed, and its files at any savepoint (TL-23, RO-07)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.memory import InMemoryStore
from langgraph.types import StateSnapshot
from tests.parts import a_failure, a_phase, a_plan, a_savepoint, a_task, memory, settings
from tests.scripted_runs import Run, call, calls, illegal, say

from daruma.graph.build import build_graph
from daruma.graph.history import (
    NothingToReopen,
    Place,
    UndoRefused,
    fork_of,
    place_of,
    restore_files,
    savepoints_of,
    snapshots_of,
)
from daruma.graph.models import ScriptedChatModel
from daruma.state.errors import WorkspaceBusy
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.tools.files import workspace_locked

# --- What failed can be tried again from where it stood; what did not fail is not done twice.

REQUIRED = {"decision": "confirm", "required": True}


@pytest.fixture
def heard() -> list[str]:
    """What the tool was really called with."""
    return []


def start(heard: list[str], script: Any, rule: Any = "allow") -> Run:
    def shout(text: str) -> str:
        """Say it loudly."""
        heard.append(text)
        if text == "fall" and heard.count("fall") == 1:
            raise ValueError("fell over")
        return text.upper()

    given = settings(
        tools={"policy": {"shout": rule}}, fallback_chain={"recovery": {"max_retries": 0}}
    )
    return Run(script, settings=given, tools=[shout]).ask()


def reopened(run: Run, call_id: str | None = None) -> Run:
    run.graph.reopen(run.config, call=call_id)
    return run.send(None)


def status(run: Run) -> str:
    return run.result.status


def check(run: Run) -> None:
    assert illegal(run.messages) == []
    assert [problem for request in run.model.requests for problem in illegal(request)] == []


def test_what_was_approved_beside_a_denied_call_runs_once(heard: list[str]) -> None:
    """TL-15: nothing is skipped over, and an approval that was given is not asked for again."""
    script = [calls(call(id_="one", text="1"), call(id_="two", text="2")), say()]
    run = start(heard, script, REQUIRED).decide(one="approve", two="deny").send(None)

    assert [a["approval_id"] for a in run.question.value["approvals"]] == ["two"]
    run.decide(two="approve")
    assert sorted(heard) == ["1", "2"]
    check(run)


def test_a_rejected_approval_is_asked_for_again(heard: list[str]) -> None:
    """TL-23: also an optional one, after which the loop had gone on."""
    run = start(heard, [calls(call(id_="pay", text="1")), say()], "confirm").decide(pay="deny")
    assert run.result.status == "completed"

    reopened(run, "pay")
    assert [m for m in run.messages if m.type == "tool"] == []
    run.decide(pay="approve")

    assert heard == ["1"]
    check(run)


def test_a_call_whose_answers_were_all_void_is_asked_for_again(tmp_path: Path) -> None:
    """TL-23: it never had a yes that counts, so it does not run without one."""
    script = [calls(call("run_command", id_="go", command="printf x >> made")), say(), say()]
    run = Run(script).ask(workspace=str(tmp_path))
    for n in range(3):
        (tmp_path / "log.txt").write_text(str(n))
        run.decide(go="approve")
    assert run.result.status == "completed"

    reopened(run, "go").decide(go="approve")

    assert (tmp_path / "made").read_text() == "x"


def test_what_callers_noted_on_a_thread_goes_along() -> None:
    """The command line keeps the thread's model there."""
    given = settings(tools={"policy": {"_shout": REQUIRED}})
    script = [calls(call("_shout", id_="pay", text="1")), say()]
    run = Run(script, settings=given, tools=[_shout])
    run.config["metadata"] = {"noted": "yes"}
    run.ask().decide(pay="deny")
    del run.config["metadata"]

    run.send(None)

    assert run.snapshot.interrupts
    assert run.snapshot.metadata["noted"] == "yes"


def test_a_thread_that_waits_is_not_set_back(heard: list[str]) -> None:
    """What is open would silently be dropped."""
    script = [calls(call(id_="pay", text="1")), calls(call(id_="later", text="2")), say()]
    run = start(heard, script, "confirm").decide(pay="deny")

    with pytest.raises(NothingToReopen, match="waits for an answer"):
        run.graph.reopen(run.config, call="pay")
    assert run.question.value["approvals"][0]["approval_id"] == "later"


def test_what_has_not_failed_is_not_reopened(heard: list[str]) -> None:
    """One clear line, and the thread as it was."""
    run = start(heard, [calls(call(id_="one", text="1")), say()])
    before = run.snapshot

    with pytest.raises(NothingToReopen, match="has not failed"):
        run.graph.reopen(run.config)
    with pytest.raises(NothingToReopen, match="no call 'one'"):
        run.graph.reopen(run.config, call="one")
    with pytest.raises(NothingToReopen, match="no call 'other'"):
        run.graph.reopen(run.config, call="other")
    with pytest.raises(NothingToReopen, match="no such thread"):
        run.graph.reopen({"configurable": {"thread_id": "another"}})
    assert run.snapshot == before


def test_a_call_that_never_ran_is_not_run() -> None:
    """Its arguments did not fit; its model was told, and has to make another."""
    script = [calls(call(id_="one", wrong="1")), say("I give up."), say("I give up.")]
    run = Run(
        {"main": script, "repair": [say("{}")]},
        settings=settings(tools={"call_repair_attempts": 0}),
        tools=[_shout],
    ).ask()

    with pytest.raises(NothingToReopen):
        run.graph.reopen(run.config, call="one")


def _shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


async def test_a_thread_can_be_reopened_asynchronously(heard: list[str]) -> None:
    """MO-09: and ``ainvoke(None)`` reopens a blocked one."""
    run = start(heard, [calls(call(id_="pay", text="1")), say()], REQUIRED).decide(pay="deny")

    out = await run.graph.ainvoke(None, run.snapshot.config)
    assert out["__interrupt__"][0].value["approvals"][0]["approval_id"] == "pay"
    run.decide(pay="deny")
    await run.graph.areopen(run.config, call="pay")
    out = await run.graph.ainvoke(None, run.config)

    assert out["__interrupt__"][0].value["approvals"][0]["approval_id"] == "pay"
    assert heard == []


def test_a_graph_that_is_bound_to_its_thread_reopens_it(heard: list[str]) -> None:
    """``with_config``: what is asked again is asked without another word about the thread."""
    run = start(heard, [calls(call(id_="pay", text="1")), say()], REQUIRED)
    run.decide(pay="deny")

    out = run.graph.with_config(run.config).invoke(None)

    assert [each.value["type"] for each in out["__interrupt__"]] == ["approval_request"]


def test_a_call_of_an_earlier_task_is_not_reopened(heard: list[str]) -> None:
    """TL-23: what came after it would be lost."""
    run = start(heard, [calls(call(id_="one", text="fall")), say(), say()]).ask("More")

    with pytest.raises(NothingToReopen, match="no call 'one' of the newest task"):
        run.graph.reopen(run.config, call="one")

    assert heard == ["fall"]


def test_a_failed_call_of_a_run_that_was_stopped_runs_again(heard: list[str]) -> None:
    """TL-23: the newest point of the thread is the one right behind the call."""
    run = start(heard, [say(), calls(call(id_="two", text="fall")), say()])
    run.send({"messages": [HumanMessage("More")]}, interrupt_after=["tool"])
    assert run.snapshot.next == ("main",)

    reopened(run, "two")

    assert heard == ["fall", "fall"]


BROKEN = a_failure(node="verify")
OTHER = a_failure(node="reflect")
FAILED = TaskResult(task_id="t/1", status="failed", output="", budgets={}, usage={}, timings={})
FALLEN = replace(
    a_plan(a_phase("a", status="failed", outcome="failed", failure=BROKEN)), first_failed="a"
)


@pytest.mark.parametrize(
    ("ended", "node"),
    [
        ({}, "main"),
        ({"failure": BROKEN}, "verify"),
        ({"failure": OTHER, "origin": BROKEN}, "verify"),
        ({"failure": OTHER, "origin": OTHER, "plan": FALLEN}, "verify"),
    ],
)
def test_a_failed_task_goes_on_where_it_failed_first(ended: dict[str, Any], node: str) -> None:
    """EM-04: not where what came of it failed, and at the newest point of that."""
    given = {"task": a_task(), "result": FAILED, **ended}
    earlier = [(n, (name,)) for n, name in enumerate(("reflect", "main", "verify", "main"))]
    history = [past("end", (), given), *(past(str(n), next_, given) for n, next_ in earlier)]

    fork = fork_of(history)

    found = next(n for n, next_ in earlier if next_ == (node,))
    assert fork.config["configurable"]["checkpoint_id"] == str(found)
    assert fork.values is None


def past(id_: str, next_: tuple[str, ...], values: dict[str, Any]) -> StateSnapshot:
    config = RunnableConfig(configurable={"thread_id": "t", "checkpoint_id": id_})
    return StateSnapshot(values, next_, config, None, None, None, (), ())


def test_a_task_that_asks_the_user_is_not_tried_again() -> None:
    """It has not failed: what it waits for is the next message."""
    milk = call("create_reminder", title="Milk")
    graph = build_graph(
        ScriptedChatModel(script={"main": [calls(milk)]}),
        settings=settings(tools={"toolsets": ["assistant"]}),
        checkpointer=memory(),
        store=InMemoryStore(),
    )
    run = Run([], graph=graph).ask()

    with pytest.raises(NothingToReopen, match="asked the user: answer it with the next message"):
        reopened(run)
    assert status(run) == "parked"


# --- Which state an undo goes back to, and what is said where it can not be had.

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def past_undoing(**values: Any) -> StateSnapshot:
    """A thread that is there, with these values."""
    return StateSnapshot(
        values=values, next=(), config=CONFIG, metadata=None, created_at="2026-01-02T12:00:00",
        parent_config=None, tasks=(), interrupts=(),
    )  # fmt: skip


def on(ws: Path, *savepoints: Savepoint, task: str = "t/1", **changes: Any) -> StateSnapshot:
    """A thread whose newest task works in ``ws``, with these savepoints of it."""
    kept = [replace(each, workspace=str(ws), **changes) for each in savepoints]
    return past_undoing(task=a_task(id=task, workspace=str(ws)), savepoints=kept)


def taken(ws: Path, thread: str = "t") -> str:
    return snapshots_of(str(ws), thread).take("here", by="work").snapshot.id


def refusal(asked: StateSnapshot, to: str | None = None, *, travelled: bool = False) -> str:
    with pytest.raises(UndoRefused) as refused:
        place_of(asked, to, travelled=travelled)
    return str(refused.value)


def test_which_state_is_meant(ws: Path) -> None:
    """RO-07: where nothing is named, the start of the task at hand, not the newest savepoint.

    At a checkpoint it is its newest savepoint; of one that was taken again, the last; an undo is
    undone by the snapshot from before it, which no savepoint names.
    """
    first, second, phase, again = (taken(ws) for _ in range(4))
    tasks = [a_savepoint("1", snapshot=first), a_savepoint("2", snapshot=second)]
    asked = on(ws, *tasks, a_savepoint("2/p1", snapshot=phase), task="t/2")
    twice = on(ws, a_savepoint("1", snapshot=first), a_savepoint("1", snapshot=again))

    start = place_of(asked, None)

    assert (start.snapshot, start.savepoint and start.savepoint.id) == (second, "2")
    assert place_of(asked, None, travelled=True).snapshot == phase
    assert place_of(twice, "1").snapshot == again
    assert savepoints_of(twice) == (twice.values["savepoints"][1],)
    assert place_of(on(ws), first) == Place("t", str(ws), first)


REFUSED: dict[str, tuple[Callable[[Path], StateSnapshot], str | None, str]] = {
    "no thread": (
        lambda _: past_undoing()._replace(created_at=None),
        None,
        "there is no thread 't'",
    ),
    "no workspace": (
        lambda _: past_undoing(task=a_task()),
        None,
        "has no workspace: name a savepoint",
    ),
    "no task": (lambda _: past_undoing(), None, "has no workspace"),
    "never taken": (on, None, "when task t/1 began; this thread has none"),
    "unknown": (
        lambda ws: on(ws, a_savepoint("1"), a_savepoint("1/p1")),
        "1/p2",
        "'1/p2' is on this machine; did you mean '1/p1'? there are: 1, 1/p1",
    ),
    "no snapshot": (
        lambda ws: on(ws, a_savepoint("1", snapshot=None, note="the disk was full")),
        None,
        "savepoint '1' can not be gone back to: the disk was full",
    ),
    "elsewhere": (
        lambda ws: on(ws, a_savepoint("1", snapshot="7f")),
        None,
        "snapshot 7f of savepoint '1' is not on this machine",
    ),
    "pruned": (
        lambda ws: on(ws, a_savepoint("1", snapshot="7f")) if taken(ws) else past_undoing(),
        None,
        "deleted after rollback.keep_days",
    ),
    "another thread's": (
        lambda ws: on(ws, a_savepoint("1", snapshot=taken(ws, "other"))),
        None,
        "is not on this machine",
    ),
    "folder gone": (
        lambda ws: on(ws / "gone", a_savepoint("1")),
        None,
        "is not there: make the folder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_had_is_refused_in_one_line(ws: Path, name: str) -> None:
    """With what is wrong, and what there is instead."""
    asked, to, said = REFUSED[name]

    refused = refusal(asked(ws), to)

    assert said in refused
    assert "\n" not in refused


def test_looking_for_what_is_not_there_makes_nothing(ws: Path) -> None:
    """A question about another machine's snapshots leaves no empty store behind."""
    refusal(on(ws, a_savepoint("1", snapshot="7f")))

    assert not (ws.parent / "data").exists()


def test_a_checkpoint_before_all_savepoints_says_so(ws: Path) -> None:
    """Rather than take one that came later, or of another folder."""
    asked = on(ws, a_savepoint("1"))
    asked.values["savepoints"][0] = a_savepoint("1", workspace="/other")

    assert "no savepoint had been taken by that checkpoint" in refusal(asked, travelled=True)


def test_a_workspace_of_an_earlier_task_is_not_changed_under_another_run(ws: Path) -> None:
    """What counts is the folder that is put back, not the one of the newest task."""
    earlier = replace(a_savepoint("1", snapshot=taken(ws)), workspace=str(ws))
    asked = past_undoing(task=a_task(id="t/2", workspace="/elsewhere"), savepoints=[earlier])

    with workspace_locked(str(ws)), pytest.raises(WorkspaceBusy):
        restore_files(asked, "1", "refuse")
