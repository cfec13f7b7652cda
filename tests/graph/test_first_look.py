"""A run that goes on looks at its workspace once, before anything is done in it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import a_context, a_task, settings
from tests.scripted_runs import Run, phases, say

from daruma.graph.scope import FirstLook
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.savepoint import Drifted
from daruma.tools.context import Context


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
    """What comes later is the work's own."""
    look, context = FirstLook(), a_context()

    assert await look.at("main", state, context) == Drifted(task_id="t/1", paths=("theirs",))
    assert await look.at("main", state, context) is None


async def test_intake_looks_for_itself(state: State) -> None:
    """And nobody after it does."""
    look, context = FirstLook(), a_context()

    assert await look.at("intake", state, context) is None
    assert await look.at("main", state, context) is None


async def test_what_is_known_is_not_found_again(state: State) -> None:
    """It is on record."""
    known = Drifted(task_id="t/1", paths=("theirs",))

    assert await FirstLook().at("main", replace(state, drifted=known), a_context()) is None


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
