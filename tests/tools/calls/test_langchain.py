"""Tools that the application brings: wrapped, declared, and called as LangChain would call them."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Self

import pytest
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    ToolException,
    tool,
)
from langchain_core.tools import Tool as OldestTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.types import Command, interrupt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    create_model,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)
from tests.parts import memory
from typing_extensions import override

from daruma.tools.calls import (
    Canonical,
    OriginalMethods,
    Surroundings,
    ToolRefused,
    foreign_tool,
    run_with_timeout,
    wrap_tool,
)
from daruma.tools.calls._langchain import call_tool, not_supplied, plain_function
from daruma.tools.errors import ToolError

# --- Every kind of tool runs (TL-22, TL-21).


def plain(text: str, times: int = 1) -> str:
    """Repeat it."""
    return text * times


async def later(text: str) -> str:
    """Repeat it later."""
    return text


@tool
def decorated(text: str) -> str:
    """Repeat it as a tool."""
    return text


@tool(response_format="content_and_artifact")
def with_artifact(text: str) -> tuple[str, dict[str, int]]:
    """Repeat it and keep something."""
    return text, {"kept": 1}


class OfAClass(BaseTool):
    """A tool with a class of its own, sync only."""

    name: str = "of_a_class"
    description: str = "Repeat it."

    def _run(self, text: str) -> str:
        return text


class AsyncOfAClass(OfAClass):
    """The same with an async form of its own."""

    async def _arun(self, text: str) -> str:
        return text


def where(text: str) -> str:
    """Say which thread this is."""
    return f"{text} {threading.current_thread().name}"


class WhereOfAClass(OfAClass):
    """Says which thread this is."""

    def _run(self, text: str) -> str:
        return where(text)


async def run(given: Any, **args: Any) -> str:
    return await wrap_tool(given).run(args, Surroundings())


async def test_every_kind_of_tool_runs() -> None:
    """Functions and LangChain tools; what is sync runs on a thread of the tools."""
    given: Any
    for given in (plain, later, decorated, with_artifact, OfAClass(), AsyncOfAClass()):
        assert await run(given, text="hi") == "hi"
    for given in (where, tool(where), WhereOfAClass()):
        assert (await run(given, text="on")).startswith("on daruma-tool-")
    assert await run(OldestTool("simple", lambda text: text, "Repeat it."), __arg1="hi") == "hi"

    async def on_the_loop(text: str) -> str:
        """Say which thread this is."""
        return where(text)

    assert await run(on_the_loop, text="on") == f"on {threading.current_thread().name}"


def test_a_tool_is_shown_with_its_schema() -> None:
    """Name, docstring and parameters in the form that models are given, tightened (TL-07).

    Nothing is known of what it does; it says where it comes from.
    """
    made = wrap_tool(plain)
    shown = made.as_function()["function"]

    assert (shown["name"], shown["description"]) == ("plain", "Repeat it.")
    assert shown["parameters"] == made.parameters
    assert set(made.parameters["properties"]) == {"text", "times"}
    assert (made.parameters["required"], made.parameters["additionalProperties"]) == (
        ["text"],
        False,
    )
    assert "additionalProperties" not in decorated.get_input_jsonschema()
    assert (made.effect, made.builtin) == ("external", False)
    for given, name in ((plain, "plain"), (later, "later"), (OfAClass(), "OfAClass")):
        assert wrap_tool(given).source.endswith(f"test_langchain.{name}")


def giving(result: Any) -> Any:
    """Return a tool with that result; an exception is raised."""

    def give() -> Any:
        """Give it."""
        if isinstance(result, Exception):
            raise result
        return result

    return give


async def test_what_a_tool_comes_to_is_told_in_words() -> None:
    """Text, what becomes text, a message of its own, a part that is neither text nor image."""
    image = {"type": "image", "base64": "", "mime_type": ""}
    for result, said in (
        (7, "7"),
        (None, "null"),
        (["x"], "x"),
        ({"a": 1}, '{"a": 1}'),
        (ToolMessage("mine", tool_call_id="call"), "mine"),
        (
            [{"type": "text", "text": "a cat"}, image],
            "a cat\n[image left out: only text and images are shown]",
        ),
    ):
        assert await run(giving(result)) == said


async def test_what_goes_wrong_is_raised() -> None:
    """A tool's own error as it is; what it says or handles itself, and a Command, in words."""
    handled = StructuredTool.from_function(giving(ToolException("fell")), handle_tool_error=True)
    for given, kind, said in (
        (giving(KeyError("absent")), KeyError, "absent"),
        (giving(ToolException("no such page")), ToolError, "^no such page$"),
        (handled, ToolError, "fell"),
        (giving(Command(goto="elsewhere")), ToolError, "give returned a Command"),
    ):
        with pytest.raises(kind, match=said):
            await run(given)
    with pytest.raises(ValueError, match="times"):
        await run(plain, text="hi", times="often")


def asks(question: str) -> str:
    """Ask a person, from a thread."""
    return f"{question} {interrupt(question)}"


async def asks_async(question: str) -> str:
    """Ask a person, on the loop."""
    return asks(question)


@pytest.mark.parametrize("given", [asks, asks_async])
async def test_a_tool_may_interrupt_the_graph(given: Any) -> None:
    """LangGraph's own question, under a time limit too, and its reply."""
    wrapped = wrap_tool(given)

    async def node(_: dict[str, Any]) -> dict[str, Any]:
        return {"said": await run_with_timeout(5, wrapped, {"question": "Really?"}, Surroundings())}

    graph: Any = StateGraph(dict)
    compiled = graph.add_node("node", node).add_edge(START, "node").compile(checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    waiting = await compiled.ainvoke({"said": ""}, config)
    after = await compiled.ainvoke(Command(resume="Yes."), config)

    assert waiting["__interrupt__"][0].value == "Really?"
    assert after == {"said": "Really? Yes."}


# --- What an application declares of its tools is read strictly.


def declaring(**declared: Any) -> Any:
    """A tool with one argument and that declaration."""

    @tool
    def note(text: str, day: str = "") -> str:
        """Note it."""
        return text + day

    note.metadata = {"daruma": declared, "own": "thing"}
    return note


def test_what_is_declared_counts() -> None:
    """The effect; TL-19: an alias may lead to an argument that only the other tool has; CO-01."""
    aliases = {"date": "day", "at": "due_time"}
    promoted: Any = {"promote_to": "schedule", "promote_when": ["due_time"]}
    asked: Any = {"dates": {"day": "date"}, "ask_for": {"day": "When?"}}

    for effect in ("none", "workspace", "external"):
        made = wrap_tool(declaring(effect=effect))
        assert (made.effect, made.canonical) == (effect, None)
    assert wrap_tool(declaring(argument_aliases=aliases, **promoted)).canonical == Canonical(
        aliases, "schedule", ("due_time",)
    )
    assert wrap_tool(declaring(**asked)).canonical == Canonical(**asked)


def test_a_plain_function_declares_in_the_same_way() -> None:
    """What is written to ``metadata`` of a function is not passed by in silence."""

    def note(text: str) -> str:
        """Note it."""
        return text

    async def look(text: str) -> str:
        """Look it up."""
        return text

    for each in (note, look):
        vars(each)["metadata"] = {"daruma": {"effect": "none", "idempotent": True}}
        assert (wrap_tool(each).effect, wrap_tool(each).idempotent) == ("none", True)
        vars(each)["metadata"] = {"daruma": {"efect": "none"}}
        with pytest.raises(ToolRefused, match="did you mean 'effect'"):
            wrap_tool(each)


SILLY: tuple[tuple[Any, str], ...] = (
    ({"efect": "none"}, "an unknown key 'efect'; did you mean 'effect'"),
    ({"zzz": 1}, "an unknown key 'zzz'; known: effect, idempotent, idempotency_key,"),
    ({"effect": "read"}, r"effect: Input should be 'none', .*given: 'read'"),
    ({"argument_aliases": ["a"]}, "argument_aliases: Input should be a valid dictionary"),
    ({"promote_to": "x"}, "one of promote_to and promote_when"),
    ({"promote_when": ["x"]}, "one of promote_to and promote_when"),
    ({"dates": {"text": "moment"}}, "dates.text: Input should be 'date' or 'time'"),
    ({"dates": {"dya": "date"}}, "dates or ask_for 'dya', which is no argument that the"),
    ({"ask_for": {"dya": "When?"}}, "dates or ask_for 'dya', which is no argument that"),
    ({"ask_for": {"day": "?"}, "idempotency_key": "day"}, "ask_for 'day', which is no arg"),
    ({"argument_aliases": {"text": "day"}}, "'text' as another name of 'day', and it is an"),
    ({"argument_aliases": {"date": "dya"}}, "'date' as another name of 'dya', which is no"),
    ("none", "what: Input should be a valid dictionary"),
)


def test_what_can_not_be_meant_is_refused() -> None:
    """At once, in one line that names the tool; for an agent that runs it itself it is nothing."""
    for declared, said in SILLY:
        silly = declaring()
        silly.metadata = {"daruma": declared}

        with pytest.raises(ToolRefused, match=rf"^the tool 'note' declares in .*{said}") as refused:
            wrap_tool(silly)
        assert "\n" not in str(refused.value)
        foreign = foreign_tool(silly)
        assert foreign is not None
        assert foreign.effect == "external"


# --- Arguments that would not get through to a tool are noticed before a run.


class Text(BaseModel):
    """A schema that does not speak of what is injected."""

    text: str


def wanting(hint: Any) -> Any:
    """A function with an argument that a graph alone can give."""

    def take(text: str, own: Any) -> str:
        """Take it."""
        return f"{text}{own}"

    take.__annotations__["own"] = hint
    return take


def silent(text: str) -> str:
    return text


def test_a_tool_that_could_never_be_called_is_refused() -> None:
    """When the graph is built, not when the model calls it."""
    given: Any
    for given, said in (
        (tool(wanting(Annotated[dict[str, Any], InjectedState])), "wants own injected"),
        (wanting(Annotated[dict[str, Any], InjectedState]), "wants own injected"),
        (tool(wanting(Annotated[Any, InjectedStore()])), "wants own injected"),
        (tool(wanting(Annotated[str, InjectedToolCallId])), "wants own injected"),
        (tool(wanting(ToolRuntime)), "wants own injected"),
        (tool(args_schema=Text)(wanting(ToolRuntime)), "wants own injected"),
        (silent, "docstring"),
        (config_argument, "can not be given the argument config"),
        (made_of_a_schema("config"), "can not be given the argument config"),
        (made_of_a_schema("run_manager"), "can not be given the argument run_manager"),
        (made_of_a_schema("self"), "can not be given the argument self"),
        (args_argument, "can not be given the argument args"),
    ):
        with pytest.raises(ToolRefused, match=said):
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


class Configured(BaseTool):
    """Names that LangChain uses elsewhere."""

    name: str = "configured"
    description: str = "Take it."

    def _run(self, run_id: str, verbose: str = "") -> str:
        return run_id + verbose


async def test_what_has_a_default_or_langchain_supplies_is_called() -> None:
    """The model neither sees nor sets it; any other name gets through."""
    for given, said in ((content, "hi nobody"), (configured, "hi []")):
        made = wrap_tool(given)

        assert list(made.parameters["properties"]) == ["text"]
        assert await made.run({"text": "hi"}, Surroundings()) == said
    assert not_supplied(Old()) == []  # its ``run_manager`` and the like come from LangChain
    assert await run(Configured(), run_id="1", verbose="2") == "12"


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


# --- Methods are a class's own as long as nobody puts others in their place.


class Bell:
    """Something that rings."""

    def ring(self) -> str:
        return "ding"


def wrapped(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def counted(*args: Any) -> str:
        return function(*args) + "!"

    return counted


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


def test_methods_that_were_overridden_or_wrapped_are_not_original() -> None:
    """By a subclass, on an object, before or after, and by what answers for what it wraps."""

    class Louder(Bell):
        def ring(self) -> str:
            return "dong"

    class Instrumented:
        @wrapped
        def ring(self) -> str:
            return "ding"

    own, bell = OriginalMethods(Bell, "ring"), Bell()
    odd: Any = Bell()
    odd.ring = lambda: "dong"

    assert own.of(bell)
    assert own.of(Bell)
    assert not own.of(Louder())
    assert not own.of(odd)
    assert not OriginalMethods(Instrumented, "ring").of(Instrumented())
    assert not OriginalMethods(Bell, "chime").of(bell)  # another version may have it no more
    for wrap in (wrapped, Around):
        later: Any = type("Later", (Bell,), {"ring": lambda _: "ding", "__module__": __name__})
        methods = OriginalMethods(later, "ring")
        assert methods.of(later())
        later.ring = wrap(later.__dict__["ring"])
        assert not methods.of(later())
        assert not methods.of(later)
        assert not OriginalMethods(later, "ring").of(later())


# --- A function called by itself says what LangChain's call of the tool would say.


class Numbers(BaseModel):
    """A rule, and a field that goes by another name."""

    first: int
    third: int = Field(default=4, alias="last")

    @field_validator("first")
    @classmethod
    def doubled(cls, value: int) -> int:
        return 2 * value


class Fields(BaseModel):
    """A default, an alias, and a field that is made if it is not given."""

    first: int
    second: int = 3
    third: list[int] = Field(default_factory=list, alias="last")


class Computing(Fields):
    """Gives more than it takes."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.first


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


Grown: Any = create_model("Grown", __base__=Fields, own=(int, 5))


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


Empty = create_model("Empty", __config__=ConfigDict(extra="forbid"))  # checks nothing
SCHEMAS: tuple[Any, ...] = (
    *(Numbers, Fields, Computing, Writing, Dumping, Refusing, Becoming, Dropping, Empty),
    # Needs what goes by another name.
    create_model("Aliased", first=(int, Field(alias="one"))),
    # What LangChain takes for the starred arguments of a function.
    create_model("Starred", first=(int, 1), args=(list[int], []), kwargs=(dict[str, int], {})),
    # Takes nothing that it does not know; passes it on; is written out by other names.
    type("Strict", (Fields,), {"model_config": ConfigDict(extra="forbid")}),
    type("Open", (Fields,), {"model_config": ConfigDict(extra="allow")}),
    type("Renaming", (Fields,), {"model_config": ConfigDict(serialize_by_alias=True)}),
    # Gives less than it takes; gives a field only if it is worth it.
    create_model("Keeping", __base__=Fields, own=(int, Field(default=5, exclude=True))),
    create_model("Sparing", __base__=Fields, own=(int, Field(5, exclude_if=lambda own: own == 5))),
    # Has a field that LangChain fills in.
    create_model("Filled", __base__=Fields, call=(Annotated[str, InjectedToolCallId], "")),
)


ARGS: tuple[dict[str, Any], ...] = (
    {"first": 1},
    {"first": "2", "last": [9]},
    {"first": 1, "third": [2]},
    {"first": 1, "second": 5, "other": 6, "own": 7},
    {"first": 1, "args": [1], "kwargs": {"a": 1}},
    {"first": 1, "call": "mine"},
    {"first": 1, "config": 2},
    {"one": 1},
    {"first": "x"},
    {},
)


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


def of_async(function: Callable[..., Any], **given: Any) -> StructuredTool:
    """Return an async tool of the same function."""

    async def tell(**args: Any) -> Any:
        return function(**args)

    tell.__annotations__ = function.__annotations__
    schema = given.pop("args_schema", of(function).args_schema)
    return StructuredTool.from_function(
        coroutine=tell, name="tell", description="Tell.", args_schema=schema, **given
    )


BOTH = pytest.mark.parametrize("made", [of, of_async])


async def call(tool: StructuredTool, **args: Any) -> Any:
    return message(await call_tool(tool, plain_function(tool), args))


def message(said: Any) -> Any:
    """Return what a tool said as LangChain has it: of text alone it makes a message."""
    return ToolMessage(said, name="tell", tool_call_id="call") if isinstance(said, str) else said


async def langchains(tool: StructuredTool, **args: Any) -> Any:
    return await tool.ainvoke(ToolCall(type="tool_call", id="call", name=tool.name, args=args))


def where_called() -> str:
    """Say whether LangChain makes this call."""
    return "by itself" if var_child_runnable_config.get() is None else "by LangChain"


async def outcome(made: Callable[[], Any]) -> Any:
    try:
        return await made()
    except (ValidationError, ValueError, AttributeError, TypeError) as error:
        return type(error)


@BOTH
async def test_arguments_are_what_the_schema_makes_of_them(made: Any) -> None:
    """The same as LangChain gives, or the same refusal; what was asked for stays as it was."""
    for schema in SCHEMAS:
        given = made(lambda **numbers: str(numbers), args_schema=schema)
        for args in ARGS:
            asked = dict(args)
            ours = await outcome(lambda: call(given, **asked))  # noqa: B023 - awaited here

            assert ours == await outcome(lambda: langchains(given, **asked)), schema  # noqa: B023
            assert asked == args


RESULTS: tuple[Any, ...] = (
    *("words", "", "\ud800", 7, None, {"a": 1}, ["x"], [], ("a", "b"), object),
    [{"type": "text", "text": "a cat"}],
    ToolMessage("mine", tool_call_id="call"),
)


@BOTH
async def test_a_result_is_what_langchain_makes_of_it(made: Any) -> None:
    """Text, what becomes text, parts of a message and a message; text alone as it is."""
    for result in RESULTS:
        given = made(lambda result=result: result, args_schema=Empty)

        assert await call(given) == await langchains(given)
    words = made(lambda: "words")
    assert await call_tool(words, plain_function(words), {}) == "words"


@BOTH
async def test_langchain_makes_the_call_if_somebody_listens(made: Any) -> None:
    """To the run around it, or to the tool, since it was wrapped; it takes ten times the call."""
    around, own, tool = Listening(), Listening(), made(where_called)
    plain = plain_function(tool)

    async def in_a_run(_: object) -> Any:
        return await call(tool)

    assert (await call(tool)).content == "by itself"
    assert (await langchains(tool)).content == "by LangChain"
    await RunnableLambda(in_a_run).ainvoke({}, {"callbacks": [around]})
    tool.callbacks = [own]
    await call_tool(tool, plain, {})

    assert plain is not None
    assert around.told == own.told == ["tell {}", "by LangChain"]


@BOTH
async def test_a_tool_may_be_changed_since_it_was_wrapped(made: Any) -> None:
    """It is the application's: another function is called, its own errors it handles itself."""

    def fall(number: int) -> str:
        return str(number)

    tool, others = made(where_called), made(lambda: "other")
    plain = plain_function(tool)
    tool.func, tool.coroutine = others.func, others.coroutine
    assert message(await call_tool(tool, plain, {})).content == "other"

    tool = made(fall)
    plain = plain_function(tool)
    tool.handle_validation_error = "not a number"
    answer = await call_tool(tool, plain, {"number": "x"})
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


class Own(StructuredTool):
    """May do anything around its function."""


async def test_what_wants_more_than_arguments_is_called_by_langchain() -> None:
    """It alone knows what to give."""
    for given in (
        of(wants_config),
        of(wants_callbacks),
        of(cannot_be_read, args_schema=Fields),
        Own.from_function(where_called),
    ):
        assert plain_function(given) is None
    assert "metadata" in (await call(of(wants_config))).content


@BOTH
@pytest.mark.parametrize("cls", [BaseTool, StructuredTool])
async def test_what_is_wrapped_around_langchain_s_call_is_called(
    made: Any, cls: type[BaseTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tracers do that know nothing of handlers."""
    tool = made(where_called)
    plain = plain_function(tool)
    inner = BaseTool.arun if made is of_async else BaseTool.run

    @wraps(inner)
    def traced(*args: Any, **given: Any) -> Any:
        return inner(*args, **given)

    monkeypatch.setattr(cls, inner.__name__, traced)

    assert message(await call_tool(tool, plain, {})).content == "by LangChain"
