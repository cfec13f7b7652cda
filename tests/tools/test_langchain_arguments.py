"""Arguments that would not get through to a tool are noticed before a run."""

from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from pydantic import BaseModel

from daruma.tools.calls.application_tool import ToolRefused, from_application
from daruma.tools.calls.langchain import not_supplied
from daruma.tools.calls.tool import Surroundings


class Text(BaseModel):
    """A schema that does not speak of what is injected."""

    text: str


@tool
def wants_state(text: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Take it."""
    return f"{text}{state}"


@tool
def wants_store(text: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Take it."""
    return f"{text}{store}"


@tool
def wants_id(text: str, own: Annotated[str, InjectedToolCallId]) -> str:
    """Take it."""
    return text + own


@tool
async def wants_runtime(text: str, runtime: ToolRuntime) -> str:
    """Take it."""
    return f"{text}{runtime}"


@tool(args_schema=Text)
def wants_unseen(text: str, runtime: ToolRuntime) -> str:
    """Take it."""
    return f"{text}{runtime}"


def function(text: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Take it."""
    return f"{text}{state}"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (wants_state, "state"),
        (wants_store, "store"),
        (wants_id, "own"),
        (wants_runtime, "runtime"),
        (wants_unseen, "runtime"),
        (function, "state"),
    ],
)
def test_a_tool_that_could_never_be_called_is_refused(given: Any, name: str) -> None:
    """When the graph is built, not when the model calls it."""
    with pytest.raises(ToolRefused, match=f"wants {name} injected"):
        from_application(given)


@tool
def content(text: str, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
    """Take it."""
    return f"{text} {user}"


@tool
def configured(text: str, config: RunnableConfig) -> str:
    """Take it."""
    return f"{text} {sorted(config)[:0]}"


class Old(BaseTool):
    """A class of its own."""

    name: str = "old"
    description: str = "Take it."
    args_schema: Any = Text

    def _run(self, text: str, **_: Any) -> str:
        return text


@pytest.mark.parametrize(("given", "said"), [(content, "hi nobody"), (configured, "hi []")])
async def test_what_has_a_default_or_langchain_supplies_is_called(given: Any, said: str) -> None:
    """The model neither sees nor sets it."""
    made = from_application(given)

    assert list(made.parameters["properties"]) == ["text"]
    assert await made.run({"text": "hi"}, Surroundings()) == said


def test_a_tool_of_a_class_wants_nothing() -> None:
    """Its ``run_manager`` and the like come from LangChain."""
    assert not_supplied(Old()) == []


def config_argument(config: str) -> str:
    """Take it."""
    return config


def args_argument(args: str) -> str:
    """Take it."""
    return args


def take(**given: Any) -> str:
    """Take it."""
    return str(given)


def made_of_a_schema(name: str) -> BaseTool:
    """A tool whose schema is no Pydantic model, with one argument."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}}
    return StructuredTool(name="made", description="Take it.", args_schema=schema, func=take)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (config_argument, "config"),
        (made_of_a_schema("config"), "config"),
        (made_of_a_schema("run_manager"), "run_manager"),
        (made_of_a_schema("self"), "self"),
        (args_argument, "args"),
    ],
)
def test_an_argument_that_langchain_would_not_hand_on_is_refused(given: Any, name: str) -> None:
    """A call would be made without what the model gave."""
    with pytest.raises(ToolRefused, match=f"can not be given the argument {name}"):
        from_application(given)


class Configured(BaseTool):
    """Names that LangChain uses elsewhere."""

    name: str = "configured"
    description: str = "Take it."

    def _run(self, run_id: str, verbose: str = "") -> str:
        return run_id + verbose


async def test_any_other_name_gets_through() -> None:
    """What was given is what arrives."""
    made = from_application(Configured())

    assert await made.run({"run_id": "1", "verbose": "2"}, Surroundings()) == "12"
