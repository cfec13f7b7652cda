"""What a start does not wait for: in a fresh interpreter, slow libraries are not imported yet."""

import os
import sys
from pathlib import Path
from subprocess import run

import pytest

MODELS = {"openai", "langchain_openai", "tiktoken", "genai_prices"}
RARE = {"jsonschema", "json_repair", "pydantic_settings", "yaml", "procrastinate", "prompt_toolkit"}
MACHINE = {"langgraph", "langchain_core", "langsmith", "psycopg", "pydantic"}
LANGUAGES = {"daruma.tools.dates"}

STARTS = {
    "import daruma": (MACHINE | MODELS | RARE | {"typer", "rich"}, "import daruma"),
    "the settings": (MODELS | RARE | {"langgraph"}, "from daruma import Settings"),
    "a graph": (
        MODELS | RARE | LANGUAGES | {"typer"},
        "from daruma import Settings, build_graph, open_postgres; build_graph(settings=Settings())",
    ),
    "--help": (MACHINE - {"pydantic"} | MODELS | RARE, "command('--help')"),
    "show --help": (MACHINE - {"pydantic"} | MODELS | RARE, "command('show', '--help')"),
    "threads": (MODELS | RARE | LANGUAGES, "command('threads')"),
    "show": (MODELS | RARE | LANGUAGES, "command('show', 'none')"),
}
"""For each start what it does without, and how it is made."""

PRELUDE = """
def command(*args):
    import sys
    from daruma.__main__ import main
    sys.argv = ["daruma", *args]
    try:
        main()
    except SystemExit:
        pass
"""
TELL = "import sys; print('imported', *sorted(sys.modules))"


def imported(code: str, env: dict[str, str], folder: Path) -> set[str]:
    """Return the names of all modules that a fresh interpreter has imported after some code."""
    done = run(
        [sys.executable, "-W", "error::ImportWarning", "-c", f"{PRELUDE}\n{code}\n{TELL}"],
        env=env,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("start", STARTS)
def test_a_start_does_not_wait_for_what_it_does_without(
    start: str, postgres_url: str, tmp_path: Path
) -> None:
    """A model's client, prices and rare repairs are imported when they are used, not before."""
    without, code = STARTS[start]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DARUMA_")}

    found = imported(code, kept | {"DARUMA_POSTGRES_URL": postgres_url}, tmp_path)

    assert "daruma" in found
    assert without & found == set()


CHECKING = """
import asyncio, sys
from typing import Any, Literal

class Seen:
    def find_spec(self, name, path=None, target=None):
        if name == "jsonschema":
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                print("beside a loop")
            else:
                print("on a loop")

sys.meta_path.insert(0, Seen())
from daruma import ScriptedChatModel, Settings, build_graph

def paint(colour: Literal["red", "green"]) -> str:
    "Paint it."
    return colour

def turns():
    paints = {"name": "paint", "args": {"colour": "red"}}
    return ScriptedChatModel(script=[{"calls": [paints]}, {"say": "Painted."}])
"""
THROUGH_THE_MACHINE = """
graph = build_graph(turns(), [paint], Settings())
asked: Any = {"messages": [("user", "Paint it.")], "mode": "react"}
out = asyncio.run(graph.ainvoke(asked))
print(out["result"].output)
"""
THROUGH_THE_MIDDLEWARE = """
from langchain.agents import create_agent
from daruma.graph.middleware import Gate, RepairLadder
agent = create_agent(turns(), [paint], middleware=[{middleware}])
out = asyncio.run(agent.ainvoke({{"messages": [("user", "Paint it.")]}}))
print(out["messages"][-1].text)
"""
WAYS = {
    "machine": THROUGH_THE_MACHINE,
    "ladder": THROUGH_THE_MIDDLEWARE.format(middleware="RepairLadder()"),
    "gate": THROUGH_THE_MIDDLEWARE.format(middleware="Gate([paint], Settings().tools)"),
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_checks_are_not_imported_on_an_event_loop(way: str, tmp_path: Path) -> None:
    """It reads files; LangGraph's server refuses that under Python 3.13, and the task failed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DARUMA_")}
    done = run(
        [sys.executable, "-c", CHECKING + WAYS[way]],
        env=kept,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.stdout.split("\n")[:2] == ["beside a loop", "Painted."], done.stderr


@pytest.mark.long
def test_what_can_be_asked_for_is_listed_before_it_is_imported() -> None:
    """``dir`` and ``import *`` know every public name, and collecting garbage is on afterwards."""
    code = "import daruma, gc; assert {*daruma.__all__} <= {*dir(daruma)}; from daruma import *"
    code += "; assert gc.isenabled() and Settings is daruma.Settings"

    done = run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_garbage_that_was_not_collected_before_an_import_is_not_collected_after_it() -> None:
    """Who switched collecting off finds it off after a public name was imported."""
    code = "import gc; gc.disable(); from daruma import TaskResult; assert not gc.isenabled()"

    done = run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


MISSING = """
import sys
sys.modules["procrastinate"] = None  # as where the extra is not installed
from daruma import *
assert callable(build_graph)
for late in (work, awork, submit, asubmit):
    try:
        late(None, None)
    except Exception as error:
        assert isinstance(error, ImportError), error
        print(type(error).__name__, error)
"""


@pytest.mark.long
def test_all_names_can_be_had_without_an_extra(tmp_path: Path) -> None:
    """A name whose extra is missing says so in one line, when it is used."""
    done = run(
        [sys.executable, "-W", "error", "-c", MISSING],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )

    told = "EngineMissing workers need procrastinate: pip install 'daruma-agent[worker]'"
    assert done.stdout.splitlines() == [told] * 4
