"""What newcomers get wrong in Python: an error for people, one line, with what belongs there."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from daruma.graph.build import build_graph
from daruma.graph.storage import aopen_postgres, open_postgres
from daruma.state.errors import DarumaError
from daruma.state.settings import Settings

build: Any = build_graph


def silent(number: int) -> int:
    return number


def told(number: int) -> int:
    """Return it."""
    return number


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "a class of models": ({"model": ChatOpenAI}, "the class ChatOpenAI, not a model: make one"),
    "a dict of a model": ({"model": {}}, "model has to be a chat model or a name, not dict"),
    "one tool": ({"tools": told}, "a list of functions and LangChain tools, not the function told"),
    "a name": ({"tools": "told"}, "tools has to be a list of functions and LangChain tools"),
    "no tools": ({"tools": None}, "not NoneType"),
    "settings as tools": ({"tools": Settings()}, "not Settings"),
    "a result": ({"tools": [5]}, "5 is no tool: pass functions with docstrings"),
    "lists in it": ({"tools": [[told]]}, "is no tool"),
    "a class of tools": ({"tools": [Path]}, "is no tool"),
    "no docstring": ({"tools": [silent]}, "the function 'silent' has no docstring: say there what"),
    "no name": ({"tools": [lambda number: number]}, "has no name to call it by: write it as a"),
    "twice": ({"tools": [told, told]}, "two tools are named 'told'"),
    "a space": ({"tools": [tool("my tool")(told)]}, "named 'my tool': name it 'my_tool'"),
    "a typo": ({"settings": {"budgts": {}}}, "unknown setting 'budgts'; did you mean 'budgets'?"),
    "deep": ({"settings": {"budgets": {"thimk": 1}}}, "'budgets.thimk'; did you mean 'think'?"),
    "a file": (
        {"settings": "daruma.yaml"},
        "Settings(...) or a dict, not text; Settings.load(PATH",
    ),
    "a class": (
        {"settings": Settings},
        "settings has to be Settings(...) or a dict, not the class",
    ),
    "no with": ({"persistence": open_postgres()}, "`with open_postgres() as postgres:` yields"),
    "no async with": ({"persistence": aopen_postgres()}, "a database that is not open yet"),
    "a URL": ({"persistence": "postgresql://x"}, "open_postgres() as postgres:` yields, not text"),
    "a saver": ({"persistence": InMemorySaver()}, "pass that as checkpointer="),
    "no saver": ({"checkpointer": open_postgres()}, "checkpointer has to be one of LangGraph's"),
    "its class": ({"checkpointer": InMemorySaver}, "not the class InMemorySaver"),
    "a dict to store": ({"store": {}}, "store has to be one of LangGraph's, not dict"),
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    """The name of a scripted model."""
    (tmp_path / "script.json").write_text(json.dumps({"main": [{"say": "Done."}]}))
    return f"scripted:{tmp_path / 'script.json'}"


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_none_is_one_line(name: str, script: str) -> None:
    """FA-01: it says what belongs there."""
    given, said = PARTS[name]

    with pytest.raises(DarumaError) as refused:
        build(**{"model": script, "settings": Settings(), **given})

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
