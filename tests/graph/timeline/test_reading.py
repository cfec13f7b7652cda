"""FA-13: a thread that is read without the engine stands as the engine says."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import settings
from tests.scripted_runs import RecordingModel, Run, call, calls, phases, say, shout

from daruma.graph.build import build_graph
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.timeline import read_snapshot, read_timeline
from daruma.state.channels import State

REVIEWED = {"plan": [phases({"id": "p1"})], "main": [say("Seen.")]}
ASKING = [
    calls(call(id_="a", text="hi"), call("run_command", "b", command="touch x")),
    say("Well."),
]
EDIT = {"command": "create", "path": "a.txt", "file_text": "A\n"}
TEAM = {
    "plan": [phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})],
    "main@a": [calls(call("run_command", "c", command="touch x")), say("A.")],
    "main@b": [calls(call("str_replace_editor", **EDIT)), say("B.")],
}


def waits_in_a_team(run: Run, ws: str) -> None:
    """One member asks for a call, the other has come to its end."""
    run.ask(mode="team_collab", workspace=ws).reply({"decision": "confirm"})


CASES: dict[str, tuple[dict[str, Any], Callable[[Run, str], Any]]] = {
    "two tasks": ({"main": [say("One."), say("Two.")]}, lambda run, _: run.ask("A").ask("B")),
    "a review": (REVIEWED, lambda run, _: run.ask(mode="plan_exec")),
    "a review that was answered": (
        REVIEWED,
        lambda run, _: run.ask(mode="plan_exec").reply({"decision": "confirm"}),
    ),
    "an approval beside a call": ({"main": ASKING}, lambda run, ws: run.ask(workspace=ws)),
    "what was approved": ({"main": ASKING}, lambda run, ws: run.ask(workspace=ws).approve()),
    "a member that asks": (TEAM, waits_in_a_team),
    "a failure": ({"main": [{"raise": "timeout"}] * 20}, lambda run, _: run.ask()),
    "an edited history": (
        {"main": [say("One.")]},
        lambda run, _: run.ask().graph.update_state(
            run.config, {"messages": [HumanMessage("More", id="m")]}
        ),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_it_is_read_as_the_engine_reads_it(case: str, postgres_url: str, tmp_path: Path) -> None:
    """The state, what is asked, and all that happened."""
    script, go = CASES[case]
    given = settings(evolution={"enabled": False})
    with open_postgres(postgres_url) as postgres:
        run = Run(
            script,
            graph=build_graph(RecordingModel(script=script), [shout], given, postgres),
        )
        go(run, str(tmp_path))
        told, found = asyncio.run(read(postgres))
        known = run.snapshot

        assert State(**found.values) == State(**known.values)
        assert [vars(each) for each in found.interrupts] == [
            asdict(each) for each in known.interrupts
        ]
        assert (found.created_at, found.metadata) == (known.created_at, known.metadata)
        assert told == run.graph.timeline(run.config)


async def read(postgres: Postgres) -> Any:
    found = await read_snapshot(postgres.checkpointer, "t")
    assert found
    return await read_timeline(postgres.checkpointer, found), found


@pytest.mark.parametrize(
    ("read", "unread"),
    [
        ("_threads _output", "state.interrupts state.settings._sections tools.text._secrets"),
        ("_thread_view", "tools.calls._tool tools.checks"),
    ],
)
def test_who_looks_imports_nothing_that_works(read: str, unread: str) -> None:
    """FA-13: no tool and no event; to list threads neither questions nor settings."""
    code = "import sys, importlib\n*read, unread = sys.argv[1:]\n"
    code += "for each in read: importlib.import_module(each)\n"
    code += "print([each for each in unread.split() if f'daruma.{each}' in sys.modules])"
    modules = [f"daruma.graph.command_line.{each}" for each in read.split()]
    modules += ["daruma.graph.standing", "daruma.graph.storage._postgres"]
    never = f"state.events tools.sandbox tools.snapshots tools.team {unread}"
    command = [sys.executable, "-c", code, *modules, never]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    assert done.stdout == "[]\n"


async def test_a_thread_that_is_not_there_is_none(postgres_url: str) -> None:
    """Who asked says so in words."""
    with open_postgres(postgres_url) as postgres:
        assert await read_snapshot(postgres.checkpointer, "nobody") is None
