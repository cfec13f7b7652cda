"""What earlier tasks stored is recalled by later ones, in whole runs of the machine."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, PutOp, Result
from langgraph.store.memory import InMemoryStore
from tests.graph.test_machine_halts import Walker, World
from tests.parts import a_registry, memory, settings
from tests.scripted_runs import (
    RecordingModel,
    Run,
    against,
    call,
    calls,
    fall,
    illegal,
    phases,
    say,
    shout,
    unclosed,
)
from typing_extensions import override

from daruma.graph.build import build_graph, builder
from daruma.graph.errors import Node
from daruma.graph.run import Machine
from daruma.graph.scope import (
    Contexts,
)
from daruma.graph.storage import open_postgres
from daruma.state.budget import count_steps
from daruma.state.channels import Update
from daruma.state.mode import Mode
from daruma.state.plan import first_failed
from daruma.state.settings import Settings, Tools
from daruma.tools.calls import Registry, Tool
from daruma.tools.calls._tool import Toolset
from daruma.tools.memory import new_memory

FACT = "The billing tests need DB_URL."
STORE = calls(call("memory_store", text=FACT))
GOAL = "Fix the billing tests"


class Silent(InMemoryStore):
    """A store whose searches fail."""

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        raise ConnectionError("the store is away")


def machine(
    script: Any,
    store: BaseStore | None,
    *,
    saver: BaseCheckpointSaver[Any] | None = None,
    **sections: Any,
) -> Run:
    """A thread of a machine over a store."""
    model = RecordingModel(script=script)
    given = settings(spec_review={"enabled": False}, **sections)
    saver = saver or memory()
    run = Run({}, graph=build_graph(model, [shout, fall], given, checkpointer=saver, store=store))
    run.model = model
    return run


def holding(*texts: str, owner: str = "default", role: str = "") -> InMemoryStore:
    """A store that an earlier task has left."""
    store = InMemoryStore()
    for text in texts:
        kept = new_memory(text, role=role)
        namespace = ("daruma", "memory", owner, role or "common")
        store.put(namespace, kept.id, {"text": kept.text, "at": 0.0, "role": role})
    return store


def blocks(request: Sequence[BaseMessage]) -> list[str]:
    return [str(m.text) for m in request if str(m.text).startswith("<relevant_context>")]


@pytest.mark.parametrize("mode", ["direct_chat", "react", "plan_exec", "team_collab"])
def test_every_request_of_a_task_begins_with_what_was_recalled(mode: str) -> None:
    """CX-05: one block, the same each time, behind the prompt and before the conversation."""
    script = {
        "plan": [phases({"id": "a", "expert": "developer"})],
        "main": [say()] if mode == "direct_chat" else [calls("shout"), calls("shout"), say()],
    }
    run = machine(script, holding(FACT, "The logo is blue.")).ask(GOAL, mode=mode)

    assert run.result.status == "completed"
    heads = [request[1] for request in run.model.requests]
    assert len({str(head.text) for head in heads}) == 1
    assert FACT in str(heads[0].text)
    assert "logo" not in str(heads[0].text)
    assert all(len(blocks(request)) == 1 for request in run.model.requests)
    assert [illegal(request) for request in run.model.requests] == [[]] * len(heads)
    ids = [event["ids"] for event in run.happened("memory_recalled")]
    assert ids == [(new_memory(FACT).id,)] * (2 if mode == "team_collab" else 1)


def test_a_later_task_of_the_thread_recalls_anew() -> None:
    """What fitted the task before is not left standing."""
    run = machine({"main": [say(), say()]}, holding(FACT)).ask(GOAL).ask("Draw the logo")

    assert [len(blocks(request)) for request in run.model.requests] == [1, 0]
    assert run.state.recalled is not None
    assert run.state.recalled.task_id == "t/2"


def test_an_expert_is_told_what_is_for_its_role() -> None:
    """CO-04: by its phase, from the memories of the task's workspace, not of its own worktree."""
    script = {
        "plan": [
            phases(
                {"id": "a", "expert": "developer", "title": "Draw the billing icon"},
                {"id": "b", "expert": "tester", "title": "Try the billing tests"},
            )
        ],
        "main@a": [say()],
        "main@b": [say()],
    }
    store = holding("billing tests run by hand only", role="tester")
    run = machine(script, store).ask("Mend it", mode="team_collab")

    told = {len(blocks(request)): request for request in run.model.requests[1:]}
    assert set(told) == {0, 1}
    assert "Try the billing tests" in str(told[1][-1].text)
    assert [event["member"] for event in run.happened("memory_recalled")] == ["b"]


def test_members_share_the_memories_of_the_tasks_workspace(tmp_path: Path) -> None:
    """Their worktrees are other folders, and nobody else would find what they store."""
    store = InMemoryStore()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a")
    script = {"plan": [phases({"id": "a", "expert": "developer"})], "main": [STORE, say()]}
    run = machine(script, store).ask("Mend", mode="team_collab", workspace=str(tmp_path / "ws"))

    assert run.result.status == "completed"
    (item,) = store.search(("daruma", "memory"))
    assert item.namespace == ("daruma", "memory", str(tmp_path / "ws"), "common")
    assert (item.value["expert"], item.value["task"]) == ("developer", "t/1")


def test_a_store_that_fails_leaves_a_note() -> None:
    """The task goes on without its memories."""
    run = machine({"main": [say()]}, Silent()).ask(GOAL)

    note = "no memories were recalled: the store is away"
    assert (run.result.status, run.result.notes) == ("completed", (note,))
    assert [event["note"] for event in run.happened("memory_recalled")] == [note]


def test_what_was_recalled_stays_over_a_stop() -> None:
    """DU-01: forgotten meanwhile, it still stands in the requests of the task, as it did before."""
    store, saver = holding(FACT), memory()
    script = {"main": [calls("shout"), say()]}
    stopped = machine(script, store, saver=saver)
    stopped.send({"messages": [HumanMessage(GOAL)]}, interrupt_before=["tool"])
    store.delete(("daruma", "memory", "default", "common"), new_memory(FACT).id)

    again = machine(script, store, saver=saver).send(None)

    assert again.result.status == "completed"
    before, after = (blocks(run.model.requests[-1]) for run in (stopped, again))
    assert before == after
    assert len(after) == 1


def test_storing_that_was_cut_short_is_made_again_and_stores_one() -> None:
    """DU-06: nobody is asked about it."""

    class Deadly(InMemoryStore):
        """A store that ends the run right after it has kept something, once."""

        died = False

        @override
        async def abatch(self, ops: Any) -> list[Result]:
            ops = list(ops)
            results = await super().abatch(ops)
            if isinstance(ops[0], PutOp) and not self.died:
                self.died = True
                raise asyncio.CancelledError
            return results

    store, saver, script = Deadly(), memory(), {"main": [STORE, say()]}
    killed = machine(script, store, saver=saver)
    with pytest.raises(asyncio.CancelledError):
        killed.ask("Look around")

    again = machine(script, store, saver=saver).send(None)

    assert again.result.status == "completed"
    assert [event["how"] for event in again.happened("call_settled")] == ["again"]
    assert [item.value["text"] for item in store.search(("daruma", "memory"))] == [FACT]


@pytest.mark.long
def test_it_is_kept_in_postgres(postgres_url: str) -> None:
    """CX-05: another process finds it by its words, with the store's own scores."""
    script = {"main": [STORE, calls(call("memory_store", text="The logo is blue.")), say()]}
    looking = {"messages": [HumanMessage("Look around")]}
    with open_postgres(postgres_url) as pg:
        first: Any = build_graph(RecordingModel(script=script), settings=settings(), persistence=pg)
        first.invoke(looking, {"configurable": {"thread_id": "a"}})
    model = RecordingModel(script={"main": [calls(call("memory_search", query="logo")), say()]})
    with open_postgres(postgres_url) as pg:
        second: Any = build_graph(model, settings=settings(), persistence=pg)
        out = second.invoke({"messages": [("user", GOAL)]}, {"configurable": {"thread_id": "b"}})

    assert [FACT in block and "logo" not in block for block in blocks(model.requests[0])] == [True]
    assert "The logo is blue." in out["messages"][2].text
    assert FACT not in out["messages"][2].text


def test_without_a_store_nothing_is_different() -> None:
    """Nothing is recalled, and the tools are not there."""
    script = {"main": [calls(call("memory_store", text="a")), say()]}
    run = machine(script, None, tools={"name_repair_attempts": 0}).ask(GOAL)

    assert not any(blocks(request) for request in run.model.requests)
    assert run.state.recalled is None
    assert "there is no tool 'memory_store'" in run.messages[2].text


def test_skills_are_told_of_only_where_there_are_any(tmp_path: Path) -> None:
    """CX-05: in one line, which stays the same when a skill is added meanwhile."""
    (tmp_path / "pdf").mkdir()
    script = {"main": [calls({"name": "skills.load", "args": {"name": "pdf"}}), say()]}
    skills = {"folders": [str(tmp_path)]}
    without = machine({"main": [say()]}, None, skills=skills).ask()
    (tmp_path / "pdf" / "SKILL.md").write_text("Use the form.")
    there = machine(script, None, skills=skills).ask()

    assert "skills" not in str(without.model.requests[0][0].text)
    heads = [str(request[0].text) for request in there.model.requests]
    assert heads[0] == heads[1]
    assert "see what skills_list shows" in heads[0]
    assert there.messages[2].text == "Use the form."


def test_the_tail_of_a_path_is_answered_with_the_whole_one(tmp_path: Path) -> None:
    """CX-06: the model goes on with what it was told."""
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "a.py").write_text("import a\n")

    def view(path: str) -> dict[str, Any]:
        return call("str_replace_editor", command="view", path=path)

    script = {
        "main": [
            calls(view("a.py"), call("search", pattern="import")),
            calls(view("pkg/a.py")),
            calls(view("src/pkg/a.py")),
            say(),
        ]
    }
    run = machine(script, None).ask("Look", workspace=str(tmp_path))

    said = [m.text for m in run.messages if m.type == "tool"]
    assert said[0].endswith("no such file or directory: list the directory to see what is there")
    assert said[2] == (
        "Error: pkg/a.py: no such file or directory; it was shown as src/pkg/a.py: use it whole"
    )
    assert "import a" in said[3]


# --- A bug anywhere ends the task as failed, told and with its traceback; never silently.

DOWN = {"raise": "the provider is down"}
GIVES_UP = [against("give-up")]
UNFIT = {"say": "x", "expect": ["never said"]}
PLANNED = {"plan": [phases({"id": "a", "rollback_command": "true"})], "main": [say(), say()]}
PLANNED |= {"reflect": [say("Oh.")]}
PLAN: dict[str, Any] = {"script": PLANNED, "mode": "plan_exec"}
TOOL: dict[str, Any] = {"script": [calls("shout"), say()]}
RED = {"verification": {"commands": ["false"]}, "spec_review": {"enabled": False}}
CASES: dict[str, dict[str, Any]] = {
    "intake": TOOL,
    "plan": PLAN,
    "spec_review": PLAN | {"review": True},
    "begin": PLAN,
    "main": TOOL,
    "gate": TOOL | {"policy": "confirm"},
    "verify": PLAN,
    "reflect": PLAN,
    "recovery": {"script": [DOWN]},
    "consult": {"script": {"main": [DOWN], "recovery": [against("escalate")]}},
    "settle": PLAN,
    "rollback": PLAN,
    "emergency": {"script": {"main": [DOWN], "recovery": [against("give-up")]}},
    "finish": TOOL,
}
"""For each node a run that comes to it."""


class Planted(Contexts):
    """Contexts in which one node has a bug."""

    def __init__(self, model: RecordingModel, given: Settings, faulty: str, registry: Registry):
        super().__init__(model, registry, given)
        self.faulty = faulty

    def bound(self, node: Node) -> Callable[..., Coroutine[Any, Any, Update]]:
        async def planted(_: Any) -> Update:
            raise ZeroDivisionError(f"planted in {node.__name__}")

        return planted if node.__name__ == self.faulty else super().bound(node)


def run_with(
    case: dict[str, Any], faulty: str, workspace: Any, registry: Registry | None = None
) -> Run:
    review = {"spec_review": {"enabled": case.get("review", False)}}
    policy = {"tools": {"policy": {"shout": case.get("policy", "allow")}}}
    given = settings(**RED | review | policy)
    model = RecordingModel(script=case["script"])
    contexts = Planted(model, given, faulty, registry or a_registry([shout]))
    graph = Machine.of(builder(contexts).compile(checkpointer=memory()), given, contexts.check)
    run = Run([], graph=graph)
    request = {"workspace": str(workspace)} | {k: case[k] for k in ("mode",) if k in case}
    return run.ask(**request)


@pytest.mark.parametrize("faulty", CASES)
def test_a_bug_in_any_node_ends_the_task_as_failed(faulty: str, tmp_path: Path) -> None:
    """EM-04, PL-04: under the first failure, with its traceback for ``daruma show``.

    A bug in what deals with a failure does not take its place; but for RO-03, where what a rollback
    left waits for a person.
    """
    run = run_with(CASES[faulty], faulty, tmp_path)
    codes = dict.fromkeys(("recovery", "consult", "emergency"), "llm_failure")
    codes |= {"rollback": "rollback_failed", "settle": "script_mismatch"}  # what led there
    left = {"intake": ["0 task_started, 1 closed"], "rollback": ["1 question, 0 closed"]}

    error = run.result.error_struct
    assert error is not None
    assert not run.result.completed
    assert error.error_code == codes.get(faulty, "internal_error")
    assert run.result.output.endswith(f": {error.message}")
    assert illegal(run.messages) == []
    assert unclosed(run.events) == left.get(faulty, [])
    if faulty != "finish":  # its result is made of nothing but the truth about that
        fallen = first_failed(run.state.plan) if run.state.plan else None
        failure = run.state.failure or (fallen and fallen.failure)
        assert failure
        assert f"planted in {faulty}" in failure.detail
        assert "Traceback" in failure.detail


def test_a_phase_with_a_bug_has_failed(tmp_path: Any) -> None:
    """PL-05: it is not left running, and those that depend on it fall."""
    plan = {"plan": [phases("a", {"id": "b", "depends_on": ["p1"]})], "main": [say()]}
    run = run_with(PLAN | {"script": plan}, "verify", tmp_path)

    assert [phase.status for phase in run.result.phases] == ["failed", "failed"]


def test_a_bug_in_a_phase_is_a_failure_of_that_phase_only(tmp_path: Any) -> None:
    """RO-02, PL-05: it is rolled back, and phases that do not depend on it have their turn."""
    plan = {
        "plan": [phases({"id": "a", "rollback_command": "touch rolled"}, "b")],
        "main": [say(), say()],
    }
    run = run_with(PLAN | {"script": plan}, "verify", tmp_path)

    assert (tmp_path / "rolled").exists()
    assert [phase.failure is not None for phase in run.result.phases] == [True, True]
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "internal_error"


def test_a_bug_in_a_tool_task_is_a_result(tmp_path: Any) -> None:
    """TL-03: its siblings and the loop go on."""
    case = TOOL | {"script": [calls("shout", "shout"), say()]}
    run = run_with(case, "tool", tmp_path)

    assert run.result.status == "completed"
    assert [m.status for m in run.messages if m.type == "tool"] == ["error", "error"]
    assert illegal(run.messages) == []
    assert unclosed(run.events) == []


@tool
def whisper(text: str) -> str:
    """Say it quietly."""
    return text.lower()


whisper.metadata = {"daruma": {"ask_for": {"text": "What should I whisper?"}}}


def test_a_bug_in_asking_for_what_is_missing_ends_the_phase(tmp_path: Any) -> None:
    """And closes what was opened (PL-04)."""
    lacks = {"calls": [{"name": "whisper", "args": {}}]}
    case = {"script": PLANNED | {"main": [lacks]}, "mode": "plan_exec"}
    run = run_with(case, "clarify", tmp_path, a_registry([shout, whisper]))

    assert run.result.status == "failed"
    assert unclosed(run.events) == []


class Broken(Registry):
    """A registry with a bug of its own."""

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        raise ZeroDivisionError(f"visible with {usable} under {settings}")


def test_a_broken_registry_is_a_bug(tmp_path: Any) -> None:
    """Live things may raise anything."""
    run = run_with(TOOL, "none", tmp_path, Broken((), ()))

    assert run.result.status == "failed"
    assert run.result.error_struct is not None
    assert run.result.error_struct.original_error == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("script", "mode"),
    [
        ([], "react"),
        ([calls("shout")], "react"),
        ([{"say": "x", "expect": ["never said"]}], "react"),
        ({"plan": []}, "plan_exec"),
        ({"plan": [phases("a")], "main": [say()], "reflect": []}, "plan_exec"),
    ],
)
def test_a_script_that_does_not_fit_is_never_overlooked(
    script: Any, mode: str, tmp_path: Any
) -> None:
    """Neither recovered from nor taken for a model that is down."""
    run = Run(script, settings=settings(**RED), tools=[shout])
    run.ask(mode=mode, workspace=str(tmp_path))

    assert run.result.status == "failed"
    error = run.result.error_struct
    assert error is not None
    assert error.original_error in {"ScriptExhausted", "ScriptMismatch"}
    assert (error.error_code, error.retryable) == ("script_mismatch", False)
    assert error.suggestions[0].startswith("Mend the script")
    assert "recovery" not in run.nodes


@pytest.mark.parametrize(
    ("script", "mode"),
    [
        ({"main": [DOWN, UNFIT], "recovery": [say("?")]}, "react"),
        ({"main": [DOWN], "recovery": [say("?")]}, "react"),
        ({"main": [DOWN, say()], "recovery": []}, "react"),
        ({"plan": [phases("a"), UNFIT], "main": [say("")] * 3, "recovery": GIVES_UP}, "plan_exec"),
        (
            {"plan": [phases("a", "b")], "main": [DOWN], "recovery": GIVES_UP * 2},
            "plan_exec",
        ),
        (
            {
                "plan": [phases("a", "b")] * 2,
                "main@p1": [DOWN],
                "main@p2": [],
                "recovery": GIVES_UP,
            },
            "team_collab",
        ),
    ],
)
def test_a_script_that_does_not_fit_is_not_hidden_by_what_failed_before(
    script: Any, mode: str, tmp_path: Path
) -> None:
    """EM-04: nor by a phase that had failed, nor where the rest is planned anew."""
    run = Run(script, settings=settings(spec_review={"enabled": False}))
    run.ask(mode=mode, workspace=str(tmp_path))

    error = run.result.error_struct
    assert run.result.status == "failed"
    assert error
    assert (error.error_code, error.retryable) == ("script_mismatch", False)
    assert error.suggestions[0].startswith("Mend the script")
    assert unclosed(run.events) == []


def test_a_model_call_that_breaks_off_is_closed() -> None:
    """PL-04: also when what it raised is nobody's to expect."""
    assert unclosed(Run([], settings=Settings()).ask().events) == []


# --- Loops in whole runs: ended before they run again, and nothing that goes on is ended.

UNAIDED = {
    "fallback_chain": {"recovery": {"max_retries": 0}},
    "budgets": {"preset": "frugal"},
}
MANY = {"budgets": {"max_steps": 20}}


def polled() -> Callable[..., str]:
    """A tool whose answer changes each time."""
    numbers = count()

    def progress(job: str) -> str:
        """Tell how far a job is."""
        return f"{job}: {next(numbers)} of 15"

    return progress


@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_a_model_that_loops_is_stopped_and_one_that_polls_is_not(mode: Mode) -> None:
    """RE-02: identical calls with identical results end before their quota, and no other ones."""
    walked = {
        said: Walker(World(mode=mode, main=said), settings(**UNAIDED)).walk()
        for said in ("loops", "polls", "works")
    }

    thinks = {said: sum(s.kind == "think" for s in w.steps) for said, w in walked.items()}
    quota, stopped = {"react": (10, 3), "plan_exec": (7, 4)}[mode]
    assert thinks == {"loops": stopped, "polls": quota, "works": quota}
    looped = [said for said, w in walked.items() if w.error and "loop" in w.error.error_code]
    assert looped == ["loops"]


def test_a_loop_ends_the_task_with_its_code() -> None:
    """EM-02: the calls ran twice, the third answer is answered and not run."""
    ran: list[str] = []

    def look(text: str) -> str:
        """Look something up."""
        ran.append(text)
        return "nothing"

    turns = [calls(call("look", text=text)) for text in ("Foo bar", "foo  bar", "foo, bar")]
    run = Run(turns, settings=settings(**UNAIDED), tools=[look]).ask()

    assert ran == ["Foo bar", "foo  bar"]
    assert run.result.status == "failed"
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "loop_detected"
    assert "look, 2 times with the same results" in run.result.output
    assert illegal(run.messages) == []
    assert unclosed(run.events) == []
    assert [m.text[:8] for m in run.messages if m.type == "tool"][-1] == "Not run:"


@pytest.mark.parametrize(
    "turns",
    [
        [calls(call(text=f"word {n}")) for n in range(15)],
        [calls(call("progress", job="build"))] * 15,
    ],
)
def test_fifteen_calls_that_go_on_are_none(turns: list[Any]) -> None:
    """MEASURED: different calls, and a poll whose answer changes."""
    run = Run([*turns, say()], settings=settings(**MANY), tools=[shout, polled()]).ask()

    assert run.result.status == "completed"
    assert run.result.budgets["think"] == 16


def test_a_fork_of_a_loop_is_judged_by_its_own_history() -> None:
    """BU-03: taken up again one round before its end, it is stopped at the same place."""
    run = Run([calls("shout")] * 3, settings=settings(**UNAIDED), tools=[shout]).ask()
    history = list(run.graph.get_state_history(run.config))
    (after_one,) = [
        s for s in history if s.next == ("main",) and count_steps(s.values["steps"], "think") == 1
    ]
    ended = run.result
    run.nodes.clear()

    for part in run.graph.stream(None, after_one.config, stream_mode="updates"):
        run.nodes.extend(part)

    assert run.nodes[:4] == ["main", "tool", "main", "settle"]
    assert run.result.error_struct == ended.error_struct
    assert run.result.budgets == ended.budgets


def test_a_recovery_of_a_loop_that_comes_again_did_not_work() -> None:
    """RE-08: the calls after it went well, as they had before."""
    script = {"main": [calls("shout")] * 9, "recovery": [against("parameter-adjustment")]}
    run = Run(script, settings=settings(budgets={"max_steps": 9}), tools=[shout]).ask()

    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "loop_detected"
    assert [each.worked for each in run.result.recoveries] == [False]


ALLOWED = {"tools": {"policy": {"run_command": "allow"}}}


def viewed(name: str) -> dict[str, Any]:
    return call("str_replace_editor", command="view", path=name)


def ran(line: str) -> dict[str, Any]:
    return call("run_command", command=line)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("made", "stopped"),
    [
        ([viewed(f"lost/{name}.txt") for name in "abcdefghijkl"], True),
        ([viewed(f"{name}.txt") for name in "abcdefghijkl"], False),
        ([ran(f"cat lost-{name}") for name in "abcdefghijkl"], True),
        ([ran(f"true {name}") for name in "abcdefghijkl"], True),
        ([ran(f"touch new-{name}") for name in "abcdefghijkl"], False),
        ([ran(f"cat {name}.txt") for name in "abcdefghijkl"], False),
    ],
    ids=["absent", "there", "cat absent", "nothing done", "something done", "cat there"],
)
def test_what_fails_alike_or_does_nothing_is_stuck(
    made: list[dict[str, Any]], stopped: bool, tmp_path: Path
) -> None:
    """RE-01a: whatever it is called with; what is there, or changes, is progress."""
    for name in "abcdefghijkl":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    script = [*map(calls, made), say()]
    given = settings(**UNAIDED | MANY | ALLOWED)
    run = Run(script, settings=given).ask(workspace=str(tmp_path))

    error = run.result.error_struct
    assert (error.error_code if error else None) == ("loop_detected" if stopped else None)
    thinks = run.result.budgets["think"]
    assert thinks == 5 if stopped else thinks == 13
