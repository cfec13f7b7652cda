"""Live things of one run: they hang on its config, and end with it."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from tests.parts import a_context, a_task, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, phases, say, shout
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.scope import FirstLook, RunScope
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.savepoint import Drifted
from daruma.state.settings import Settings
from daruma.tools.context import Context

# --- The scope of a run is found in its config, and nowhere else.


def test_a_scope_is_found_in_the_config_that_it_hangs_on() -> None:
    """What else the config holds stays, and the config that was given stays as it was."""
    given = RunnableConfig(configurable={"thread_id": "t"}, tags=["x"])
    scope = RunScope()

    config = scope.attach(given)

    assert RunScope.of(config) is scope
    assert (config["configurable"]["thread_id"], config["tags"]) == ("t", ["x"])
    assert given == {"configurable": {"thread_id": "t"}, "tags": ["x"]}


def test_outside_of_a_run_each_node_has_one_of_its_own() -> None:
    """Also where something else stands in its place."""
    config: Any = {"configurable": dict.fromkeys(RunScope().attach(None)["configurable"], "else")}

    assert RunScope.of({}) is not RunScope.of({})
    assert RunScope.of(config).member is None


class Asked(InMemorySaver):
    """A saver that counts how often it is looked through for a place of its own."""

    looks = 0

    @override
    def __getattribute__(self, name: str) -> Any:
        if name == "journal_at":
            type(self).looks += 1
        return super().__getattribute__(name)


def looks_of(steps: int) -> int:
    """How often a saver was looked through in a run of so many steps."""
    Asked.looks = 0
    script = [*(calls(call("shout", text=str(n))) for n in range(steps)), say()]
    graph = build_graph(RecordingModel(script=script), [shout], Settings(), checkpointer=Asked())
    graph.invoke(
        {"messages": "hi", "mode": "react"},
        {"configurable": {"thread_id": "t"}},
        context=settings(),
    )
    return Asked.looks


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="looks at classes, which can not count")
def test_a_saver_is_looked_through_for_a_run_and_not_for_each_node() -> None:
    """Whether it is of a kind is asked of each of its attributes."""
    assert looks_of(8) == looks_of(2) > 0


# --- A run that goes on looks at its workspace once, before anything is done in it.


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def state(ws: Path) -> State:
    """A thread that has looked at its workspace, in which somebody then made a file."""
    state = State(task=a_task(workspace=str(ws)))
    snapshots = a_context().snapshots(str(ws))
    assert snapshots is not None
    snapshots.take("savepoint 1", by="others")
    (ws / "theirs").touch()
    return state


async def test_only_the_first_node_looks(state: State) -> None:
    """What comes later is the work's own; intake looks for itself, and nobody after it does.

    What is known is on record, and not found again.
    """
    look, after_intake, context = FirstLook(), FirstLook(), a_context()
    found = Drifted(task_id="t/1", paths=("theirs",))

    assert await look.at("main", state, context) == found
    assert await look.at("main", state, context) is None
    assert await after_intake.at("intake", state, context) is None
    assert await after_intake.at("main", state, context) is None
    assert await FirstLook().at("main", replace(state, drifted=found), context) is None


async def test_siblings_wait_for_the_look(state: State) -> None:
    """Their work would be taken for what others changed."""
    look, order = FirstLook(), list[str]()

    def heard(event: Event) -> None:
        order.append(event.type)

    async def sibling(name: str, context: Context) -> None:
        await look.at("tool", state, context)
        order.append(name)

    context = replace(a_context(), emit=heard)
    await asyncio.gather(*(sibling(name, context) for name in ("one", "two", "three")))

    assert order == ["workspace_drifted", "one", "two", "three"]


def test_a_run_that_only_asks_again_forgets_nothing(ws: Path) -> None:
    """RO-07: what its look found is told to the model and the reader once the task goes on."""
    script = {"plan": [phases("a")], "main": [{"expect": ["theirs"], **say()}]}
    given = settings(verification={"enabled": False})
    run = Run(script, settings=given).ask(mode="plan_exec", workspace=str(ws))
    (ws / "theirs").touch()
    run.send(None)
    run.reply({"decision": "confirm"})

    assert run.state.drifted == Drifted(task_id="t/1", paths=("theirs",))
    assert any("theirs" in note for note in run.result.notes)
