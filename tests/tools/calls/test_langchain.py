"""Calling a LangChain tool: with the arguments it takes, as LangChain does or by itself."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Self

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    field_serializer,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from daruma.tools.calls import ClassFunctions, Surroundings, ToolRefused, wrap_tool
from daruma.tools.calls._langchain import given_arguments, not_supplied

# --- Functions are a class's own as long as nobody puts others in their place.


class Bell:
    """Something that rings."""

    def ring(self) -> str:
        return "ding"


def test_they_are_an_object_s_and_its_class_s() -> None:
    own = ClassFunctions(Bell, "ring")

    assert own.of(Bell())
    assert own.of(Bell)


def test_a_class_that_overrides_one_has_them_not() -> None:
    class Louder(Bell):
        def ring(self) -> str:
            return "dong"

    assert not ClassFunctions(Bell, "ring").of(Louder())


def test_an_object_with_one_of_its_own_has_them_not() -> None:
    bell: Any = Bell()
    bell.ring = lambda: "dong"

    assert not ClassFunctions(Bell, "ring").of(bell)


def wrapped(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def counted(*args: Any) -> str:
        return function(*args) + "!"

    return counted


class Instrumented:
    """Something that rings, and is listened to from the moment it was made."""

    @wrapped
    def ring(self) -> str:
        return "ding"


def test_what_was_wrapped_before_is_not_its_own() -> None:
    """Who instruments a process may come first."""
    assert not ClassFunctions(Instrumented, "ring").of(Instrumented())


def test_what_is_wrapped_later_is_not_its_own_any_more() -> None:
    """Or last."""

    class Later(Bell):
        def ring(self) -> str:
            return "ding"

    own, bell = ClassFunctions(Later, "ring"), Later()
    was = own.of(bell)
    Later.ring = wrapped(Later.ring)  # type: ignore[method-assign]

    assert was
    assert not own.of(bell)


class Around:
    """A function wrapped as ``wrapt`` does it: what it wraps answers for it."""

    def __init__(self, inner: Any) -> None:
        self.__wrapped__ = inner

    def __get__(self, instance: object, owner: type) -> "Around":
        return Around(self.__wrapped__.__get__(instance, owner))

    def __call__(self, *args: Any) -> str:
        return str(self.__wrapped__(*args)) + "!"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def test_what_answers_like_the_function_it_wraps_is_not_its_own() -> None:
    class Later(Bell):
        def ring(self) -> str:
            return "ding"

    own = ClassFunctions(Later, "ring")
    setattr(Later, "ring", Around(Later.ring))  # noqa: B010  # no method, as a checker sees it

    assert Later().ring() == "ding!"
    assert not own.of(Later())
    assert not own.of(Later)
    assert not ClassFunctions(Later, "ring").of(Later())


def test_what_is_not_there_is_nobody_s() -> None:
    """Another version may have it no more."""
    assert not ClassFunctions(Bell, "chime").of(Bell())


# --- A tool's function is given what LangChain would give it, of whatever schema.


class Fields(BaseModel):
    """A default, an alias, and a field that is made if it is not given."""

    first: int
    second: int = 3
    third: list[int] = Field(default_factory=list, alias="last")


class Aliased(BaseModel):
    """Needs what goes by another name."""

    first: int = Field(alias="one")


class Starred(BaseModel):
    """What LangChain takes for the starred arguments of a function."""

    first: int = 1
    args: list[int] = []
    kwargs: dict[str, int] = {}


class Strict(Fields):
    """Takes nothing that it does not know."""

    model_config = ConfigDict(extra="forbid")


class Open(Fields):
    """Passes on what it does not know."""

    model_config = ConfigDict(extra="allow")


class Computing(Fields):
    """Gives more than it takes."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.first


class Keeping(Fields):
    """Gives less than it takes."""

    own: int = Field(default=5, exclude=True)


class Writing(Fields):
    """Writes itself out in its own way."""

    @model_serializer
    def written(self) -> dict[str, Any]:
        return {"second": 0}


class Dumping(Fields):
    """Writes itself out in another way."""

    @override
    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"first": 0}


class Refusing(Fields):
    """Can not be written out."""

    @field_serializer("first")
    def refused(self, _: int) -> int:
        raise ValueError("no")


class Renaming(Fields):
    """Is written out by other names."""

    model_config = ConfigDict(serialize_by_alias=True)


class Sparing(Fields):
    """Gives a field only if it is worth it."""

    own: int = Field(default=5, exclude_if=lambda value: value == 5)


class Filled(Fields):
    """Has a field that LangChain fills in."""

    call: Annotated[str, InjectedToolCallId] = ""


class Grown(Fields):
    """Has more fields than what it is made of."""

    own: int = 5


class Becoming(Fields):
    """Turns into another kind."""

    @model_validator(mode="wrap")
    @classmethod
    def grown(cls, _given: Any, _check: Any) -> Any:
        return Grown(first=1, own=2)


class Dropping(Fields):
    """Drops a field that goes without saying."""

    @model_validator(mode="after")
    def drop(self) -> Self:
        if "second" not in self.model_fields_set:
            del self.second
        return self


class Empty(BaseModel):
    """Checks nothing."""

    model_config = ConfigDict(extra="forbid")


def fill_in(first: int, call: Annotated[str, InjectedToolCallId]) -> str:
    """Want what the schema does not say."""
    return f"{first} {call}"


def work(**given: Any) -> str:
    """Do it."""
    return str(given)


def outcome(give: Callable[[], Any]) -> Any:
    try:
        return give()
    except (ValidationError, ValueError, AttributeError) as error:
        return type(error)


SCHEMAS = (
    Fields,
    Aliased,
    Starred,
    Strict,
    Open,
    Computing,
    Keeping,
    Writing,
    Dumping,
    Refusing,
    Renaming,
    Sparing,
    Filled,
    Becoming,
    Dropping,
    Empty,
)
ARGS: tuple[dict[str, Any], ...] = (
    {"first": 1},
    {"first": "2", "last": [9]},
    {"first": 1, "third": [2]},
    {"first": 1, "second": 5, "other": 6, "own": 7},
    {"first": 1, "args": [1], "kwargs": {"a": 1}},
    {"first": 1, "call": "mine"},
    {"one": 1},
    {"first": "x"},
    {},
)


@pytest.mark.parametrize("args", ARGS, ids=str)
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("function", [work, fill_in])
def test_it_is_what_langchain_gives(
    function: Any, schema: type[BaseModel], args: dict[str, Any]
) -> None:
    """The same arguments in the same order, or the same refusal; what was asked for stays."""
    tool = StructuredTool(name="t", description="t", func=function, args_schema=schema)
    asked = dict(args)

    ours = outcome(lambda: list(given_arguments(tool, asked, "call").items()))

    assert ours == outcome(lambda: list(tool._to_args_and_kwargs(dict(args), "call")[1].items()))
    assert asked == args


def test_a_schema_is_looked_through_once() -> None:
    """And its model is not written out."""
    written: list[Any] = []

    class Listed(Fields):
        """Tells how its fields are asked for."""

        def __getattribute__(self, name: str) -> Any:
            written.append(name)
            return super().__getattribute__(name)

    tool = StructuredTool(name="t", description="t", func=work, args_schema=Listed)
    given = given_arguments(tool, {"first": 1}, "call")

    assert given == {"first": 1, "second": 3, "third": []}
    assert "model_dump" not in written


# --- Arguments that would not get through to a tool are noticed before a run.


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
        wrap_tool(given)


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
    made = wrap_tool(given)

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
        wrap_tool(given)


class Configured(BaseTool):
    """Names that LangChain uses elsewhere."""

    name: str = "configured"
    description: str = "Take it."

    def _run(self, run_id: str, verbose: str = "") -> str:
        return run_id + verbose


async def test_any_other_name_gets_through() -> None:
    """What was given is what arrives."""
    made = wrap_tool(Configured())

    assert await made.run({"run_id": "1", "verbose": "2"}, Surroundings()) == "12"
