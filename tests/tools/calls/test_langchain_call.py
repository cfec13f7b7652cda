"""A tool's function called by itself says what LangChain's call of the tool would say."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, field_validator

from daruma.tools.calls._langchain import called, plain_function

RESULTS: tuple[Any, ...] = (
    "words",
    "",
    "\ud800",
    7,
    None,
    {"a": 1},
    ["x"],
    [],
    ("a", "b"),
    [{"type": "text", "text": "a cat"}],
    object,
    ToolMessage("mine", tool_call_id="call"),
)


class Numbers(BaseModel):
    """A schema with a default, an alias and a rule, which lets other arguments through."""

    model_config = ConfigDict(extra="allow")

    first: int
    second: int = 3
    third: int = Field(default=4, alias="last")

    @field_validator("first")
    @classmethod
    def doubled(cls, value: int) -> int:
        return 2 * value


class Listening(BaseCallbackHandler):
    """Notes what it is told of tools."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **_: Any) -> None:
        self.told.append(f"{serialized['name']} {input_str}")

    def on_tool_end(self, output: Any, **_: Any) -> None:
        self.told.append(output.content)


def of(function: Callable[..., Any], **given: Any) -> StructuredTool:
    """Return a tool that blocks."""
    return StructuredTool.from_function(function, name="tell", description="Tell.", **given)


def later(function: Callable[..., Any], **given: Any) -> StructuredTool:
    """Return an async tool of the same function."""

    async def tell(**args: Any) -> Any:
        return function(**args)

    tell.__annotations__ = function.__annotations__
    schema = given.pop("args_schema", of(function).args_schema)
    return StructuredTool.from_function(
        coroutine=tell, name="tell", description="Tell.", args_schema=schema, **given
    )


BOTH = pytest.mark.parametrize("made", [of, later])


async def call(tool: StructuredTool, **args: Any) -> Any:
    return message(await called(tool, plain_function(tool), args))


def message(said: Any) -> Any:
    """Return what a tool said as LangChain has it: of text alone it makes a message."""
    return ToolMessage(said, name="tell", tool_call_id="call") if isinstance(said, str) else said


async def langchains(tool: StructuredTool, **args: Any) -> Any:
    return await tool.ainvoke(ToolCall(type="tool_call", id="call", name=tool.name, args=args))


def where() -> str:
    """Say whether LangChain makes this call."""
    return "by itself" if var_child_runnable_config.get() is None else "by LangChain"


@BOTH
async def test_what_nobody_listens_to_is_called_by_itself(made: Any) -> None:
    """What LangChain reads at each call is ten times the call."""
    assert (await call(made(where))).content == "by itself"
    assert (await langchains(made(where))).content == "by LangChain"


@BOTH
@pytest.mark.parametrize("result", RESULTS, ids=repr)
async def test_a_result_is_what_langchain_makes_of_it(made: Any, result: Any) -> None:
    """Text, what becomes text, parts of a message and a message."""
    tool = made(lambda: result)

    assert await call(tool) == await langchains(tool)


@BOTH
async def test_text_is_handed_on_as_it_is(made: Any) -> None:
    """Nobody reads the message that LangChain would make of it."""
    tool = made(lambda: "words")

    assert await called(tool, plain_function(tool), {}) == "words"


@BOTH
@pytest.mark.parametrize(
    "args",
    [{"first": 1}, {"first": "2", "last": 9}, {"first": 1, "second": 5}, {"first": 1, "config": 2}],
)
async def test_arguments_are_what_the_schema_makes_of_them(made: Any, args: Any) -> None:
    """Defaults, aliases and rules; what LangChain keeps for itself is not passed on either."""
    tool = made(lambda **numbers: dict(numbers), args_schema=Numbers)

    assert await call(tool, **args) == await langchains(tool, **args)
    assert "12" in (await call(tool, first=6)).content


@BOTH
async def test_a_call_does_not_change_the_arguments_that_are_on_record(made: Any) -> None:
    """They are the state's."""

    class Called(BaseModel):
        """A schema with an argument that LangChain puts in."""

        text: str
        own: Annotated[str, InjectedToolCallId] = ""

    tool, args = made(lambda text, own: f"{text} {own}", args_schema=Called), {"text": "a"}
    answer = message(await called(tool, plain_function(tool), args))

    assert (answer.content, args) == ("a call", {"text": "a"})


@BOTH
async def test_who_listens_to_the_run_around_it_is_told(made: Any) -> None:
    """LangChain makes the call then."""
    listening, tool = Listening(), made(where)

    async def run(_: object) -> Any:
        return await call(tool)

    await RunnableLambda(run).ainvoke({}, {"callbacks": [listening]})

    assert listening.told == ["tell {}", "by LangChain"]


@BOTH
async def test_who_listens_to_the_tool_is_told(made: Any) -> None:
    """Since it was wrapped, too."""
    listening, tool = Listening(), made(where)
    plain = plain_function(tool)
    tool.callbacks = [listening]
    await called(tool, plain, {})

    assert plain is not None
    assert listening.told == ["tell {}", "by LangChain"]


@BOTH
async def test_a_function_that_was_replaced_is_not_called(made: Any) -> None:
    """The tool is the application's; it may change it."""
    tool, others = made(where), made(lambda: "other")
    plain = plain_function(tool)
    tool.func, tool.coroutine = others.func, others.coroutine

    assert message(await called(tool, plain, {})).content == "other"


@BOTH
async def test_a_tool_handles_its_own_errors(made: Any) -> None:
    """From when it is told to."""

    def fall(number: int) -> str:
        return str(number)

    tool = made(fall)
    plain = plain_function(tool)
    tool.handle_validation_error = "not a number"
    answer = await called(tool, plain, {"number": "x"})

    assert (answer.content, answer.status) == ("not a number", "error")


def wants_config(config: RunnableConfig) -> str:
    """Say what is in it."""
    return ", ".join(sorted(config))


def wants_callbacks(callbacks: Callbacks) -> str:
    """Say what they are."""
    return type(callbacks).__name__


def cannot_be_read(text: "Absent" = "") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Have a hint that means nothing."""
    return str(text)


@pytest.mark.parametrize("function", [wants_config, wants_callbacks, cannot_be_read])
def test_what_wants_more_than_arguments_is_called_by_langchain(function: Any) -> None:
    """It alone knows what to give."""
    schema = Numbers if function is cannot_be_read else None
    tool = of(function, args_schema=schema)

    assert plain_function(tool) is None


async def test_what_wants_the_config_is_given_it() -> None:
    """As ever."""
    assert "metadata" in (await call(of(wants_config))).content


def test_a_tool_of_a_class_of_its_own_is_called_by_langchain() -> None:
    """It may do anything around its function."""

    class Own(StructuredTool):
        """One of them."""

    assert plain_function(Own.from_function(where)) is None


@BOTH
@pytest.mark.parametrize("of", [BaseTool, StructuredTool])
async def test_what_is_wrapped_around_langchain_s_call_is_called(
    made: Any, of: type[BaseTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tracers do that know nothing of handlers."""
    tool = made(where)
    plain = plain_function(tool)
    inner = BaseTool.arun if made is later else BaseTool.run

    @wraps(inner)
    def traced(*args: Any, **given: Any) -> Any:
        return inner(*args, **given)

    monkeypatch.setattr(of, inner.__name__, traced)

    assert message(await called(tool, plain, {})).content == "by LangChain"
