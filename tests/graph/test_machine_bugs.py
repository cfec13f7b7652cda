"""A bug anywhere ends the task as failed, told and with its traceback; never silently."""

from collections.abc import Callable, Collection, Coroutine
from typing import Any

import pytest
from langchain_core.tools import tool
from tests.parts import memory, settings
from tests.scripted_runs import (
    RecordingModel,
    Run,
    against,
    calls,
    illegal,
    phases,
    say,
    shout,
    unclosed,
)

from daruma.graph.build import builder
from daruma.graph.contexts import Contexts
from daruma.graph.errors import Node
from daruma.graph.run import Machine
from daruma.state.channels import Update
from daruma.state.plan import first_failed
from daruma.state.settings import Settings
from daruma.state.settings.tools import Tools
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.tool import Tool, Toolset

DOWN = {"raise": "the provider is down"}
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
    contexts = Planted(model, given, faulty, registry or Registry([shout]))
    graph = Machine.of(builder(contexts).compile(checkpointer=memory()), given, contexts.check)
    run = Run([], graph=graph)
    request = {"workspace": str(workspace)} | {k: case[k] for k in ("mode",) if k in case}
    return run.ask(**request)


@pytest.fixture(params=CASES)
def faulty(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def run(faulty: str, tmp_path: Any) -> Run:
    """A run in which one node has a bug."""
    return run_with(CASES[faulty], faulty, tmp_path)


def test_a_bug_ends_the_task_as_failed(run: Run) -> None:
    """The fourth fate: the result says so, whichever node it was."""
    assert not run.result.completed
    assert run.result.error_struct is not None
    assert run.result.output.endswith(f": {run.result.error_struct.message}")
    assert illegal(run.messages) == []


def test_a_bug_is_reported_under_the_first_failure(run: Run, faulty: str) -> None:
    """EM-04: a bug in what deals with a failure does not take its place; but for RO-03."""
    late = {"recovery", "consult", "emergency"}
    codes = dict.fromkeys(late, "llm_failure") | {"rollback": "rollback_failed"}

    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == codes.get(faulty, "internal_error")


def test_a_bug_keeps_its_traceback(run: Run, faulty: str) -> None:
    """On the thread, for ``daruma show``."""
    if faulty != "finish":  # its result is made of nothing but the truth about that
        fallen = first_failed(run.state.plan) if run.state.plan else None
        failure = run.state.failure or (fallen and fallen.failure)
        assert failure
        assert f"planted in {faulty}" in failure.detail
        assert "Traceback" in failure.detail


def test_what_is_opened_is_closed(run: Run, faulty: str) -> None:
    """PL-04: a bug is a path like any other."""
    expected = [] if faulty != "intake" else ["0 task_started, 1 closed"]

    assert unclosed(run.events) == expected


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
    run = run_with(case, "clarify", tmp_path, Registry([shout, whisper]))

    assert run.result.status == "failed"
    assert unclosed(run.events) == []


class Broken(Registry):
    """A registry with a bug of its own."""

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        raise ZeroDivisionError(f"visible with {usable} under {settings}")


def test_a_broken_registry_is_a_bug(tmp_path: Any) -> None:
    """Live things may raise anything."""
    run = run_with(TOOL, "none", tmp_path, Broken())

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
    assert run.result.error_struct is not None
    assert run.result.error_struct.original_error in {"ScriptExhausted", "ScriptMismatch"}
    assert "recovery" not in run.nodes


def test_a_model_call_that_breaks_off_is_closed() -> None:
    """PL-04: also when what it raised is nobody's to expect."""
    assert unclosed(Run([], settings=Settings()).ask().events) == []
