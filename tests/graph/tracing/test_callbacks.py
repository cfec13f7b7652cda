"""What LangChain's tracers are told of a run: any callback handler sees it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from tests.parts import a_call, a_phase, a_plan, a_state, a_task, settings, taken
from tests.scripted_runs import Run, call, calls, fall, phases, say, shout
from typing_extensions import override

from daruma.graph.tracing import trace_metadata
from daruma.graph.tracing._switch import About
from daruma.state.calls import Dispatch
from daruma.state.plan import Assignment

QUICK = settings(sandbox={"require": "none"}, spec_review={"enabled": False})
SHOWN = ("langgraph_node", "daruma_node", "daruma_task_id", "daruma_mode", "daruma_phase")


@dataclass(eq=False)
class Told:
    """One run that a handler was told of."""

    kind: str
    name: str
    metadata: dict[str, Any]
    id: Any
    parent: Any


@dataclass(eq=False)
class Tracer(BaseCallbackHandler):
    """Keeps what it is told."""

    runs: list[Told] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)

    def _keep(self, kind: str, name: str, given: dict[str, Any]) -> None:
        metadata = dict(given.get("metadata") or {})
        self.runs.append(Told(kind, name, metadata, given["run_id"], given["parent_run_id"]))

    @override
    def on_chain_start(self, *_: Any, **given: Any) -> None:
        self._keep("chain", given.get("name") or "", given)

    @override
    def on_chat_model_start(self, *_: Any, **given: Any) -> None:
        self._keep("model", "model", given)

    @override
    def on_tool_start(self, serialized: Any, *_: Any, **given: Any) -> None:
        self._keep("tool", serialized["name"], given)

    @override
    def on_tool_end(self, *_: Any, **given: Any) -> None:
        self.ended.append(given["run_id"])

    @override
    def on_tool_error(self, *_: Any, **given: Any) -> None:
        self.ended.append(given["run_id"])

    def of(self, kind: str, name: str) -> list[Told]:
        return [run for run in self.runs if (run.kind, run.name) == (kind, name)]

    def nodes(self) -> list[Told]:
        return [r for r in self.runs if r.kind == "chain" and r.name == r.metadata.get(SHOWN[0])]


def traced(run: Run, tracer: BaseCallbackHandler, **request: Any) -> Run:
    run.config = {**run.config, "callbacks": [tracer]}
    return run.ask(**request)


def test_nodes_requests_and_tools_say_what_they_are_part_of() -> None:
    """FA-07: task, node, phase, mode and budget, on each run of a task that plans."""
    tracer = Tracer()
    script = {"plan": [phases("Look")], "main": [calls("shout"), say()]}

    run = traced(Run(script, tools=[shout], settings=QUICK), tracer, mode="plan_exec")

    for node in tracer.nodes():
        assert node.metadata["daruma_node"] == node.metadata["langgraph_node"] == node.name
    (phase,) = run.result.phases
    first, second = tracer.of("chain", "main")
    assert first.metadata["daruma_phase"] == phase.id
    assert first.metadata["daruma_task_id"] == "t/1"
    assert first.metadata["daruma_budget"] == {
        "think": "0/50",
        "verify": "0/4",
        "reflect": "0/2",
    }
    assert second.metadata["daruma_budget"]["think"] == "1/50"
    requests = [run for run in tracer.runs if run.kind == "model"]
    assert [r.metadata["daruma_node"] for r in requests] == ["plan", "main", "main"]
    assert requests[1].metadata["daruma_phase"] == phase.id


def test_each_call_of_a_tool_is_one_run_that_ends(tmp_path: Path) -> None:
    """The application's own, a built-in one, and one that fails: each below its node."""
    tracer = Tracer()
    built_in = call("str_replace_editor", command="view", path="gone.txt")
    script = [calls("shout", call("fall", text="x"), built_in), say()]

    traced(Run(script, tools=[shout, fall], settings=QUICK), tracer, workspace=str(tmp_path))

    tools = [run for run in tracer.runs if run.kind == "tool"]
    assert sorted(run.name for run in tools) == ["fall", "shout", "str_replace_editor"]
    assert sorted(tracer.ended, key=str) == sorted((run.id for run in tools), key=str)
    assert {run.metadata["daruma_node"] for run in tools} == {"tool"}
    assert {run.parent for run in tools} == {node.id for node in tracer.of("chain", "tool")}


def test_a_members_runs_name_the_member() -> None:
    """Within the machine of a member, and on its requests."""
    tracer = Tracer()
    plan = phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    script = {"plan": [plan], "main@a": [say()], "main@b": [say()]}

    traced(Run(script, settings=QUICK), tracer, mode="team_collab")

    inner = tracer.of("chain", "main")
    assert sorted(run.metadata["daruma_member"] for run in inner) == ["a", "b"]
    assert all(r.metadata["daruma_phase"] == r.metadata["daruma_member"] for r in inner)


@pytest.mark.parametrize("own", [None, [], [Tracer()], CallbackManager([])])
async def test_handlers_that_are_bound_to_the_graph_see_the_same(own: Any) -> None:
    """With and without the run's own beside them, and in every way of calling."""
    tracer, run = Tracer(), Run([say(), say(), say()], settings=QUICK)
    bound = run.graph.with_config(callbacks=[tracer])
    config = {**run.config, "callbacks": own}
    request = {"messages": [("user", "Do it")]}

    await asyncio.to_thread(bound.invoke, request, config)
    await asyncio.to_thread(lambda: list(bound.stream(request, config)))
    await bound.ainvoke(request, config)

    told = [node.metadata["daruma_node"] for node in tracer.nodes()]
    assert told == ["intake", "main", "finish"] * 3


# --- What is said of where a run stands.

PLANNED = a_state(
    task=a_task("plan_exec"),
    plan=a_plan(a_phase("a"), a_phase("b"), current="b"),
    steps=[*taken("think", "think", phase="a"), *taken("think", "verify", phase="b")],
)


def test_a_node_of_a_phase_tells_of_that_phase() -> None:
    """Its budget is what the phase has spent, not the task."""
    told = trace_metadata("main", PLANNED)

    assert told.metadata == {
        "daruma_node": "main",
        "daruma_task_id": "t/1",
        "daruma_mode": "plan_exec",
        "daruma_phase": "b",
        "daruma_member": "",
        "daruma_budget": {"think": "1/3", "verify": "1/2", "reflect": "0/1"},
    }
    assert told.attributes["daruma.budget.think.spent"] == 1
    assert "daruma.member" not in told.attributes


def test_intake_and_strangers_tell_of_no_task() -> None:
    """The one is given the task before, the others none."""
    assert (
        trace_metadata("intake", PLANNED) == trace_metadata("intake", {"x": 1}) == About("intake")
    )


def test_calls_and_members_tell_whose_they_are() -> None:
    """What is sent out has no budget of its own, but task, phase and member."""
    call = Dispatch(task=a_task(), call=a_call(), phase_id="b")
    phase = Assignment(task=a_task(), phase=a_phase("a"), plan_id="p", number=1, of=1)

    assert trace_metadata("tool", call, "m") == About("tool", "t/1", "react", "b", "m")
    assert trace_metadata("member", phase) == About("member", "t/1", "react", "a", "a")
