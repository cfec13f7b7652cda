"""Tools of the application become tools of ours, whatever they are made of."""

import threading
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException, tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from tests.parts import memory

from daruma.tools.calls import Canonical, Surroundings, ToolRefused, run_within, wrap_tool
from daruma.tools.errors import ToolError


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


simple = Tool("simple", lambda text: text, "Repeat it.")


async def run(given: Any, **args: Any) -> str:
    return await wrap_tool(given).run(args, Surroundings())


@pytest.mark.parametrize(
    "given", [plain, later, decorated, with_artifact, OfAClass(), AsyncOfAClass()]
)
async def test_every_kind_of_tool_runs(given: Any) -> None:
    """TL-22 and TL-21: functions and LangChain tools, sync and async."""
    assert await run(given, text="hi") == "hi"


def test_a_tool_is_shown_with_its_schema() -> None:
    """Name, docstring and parameters in the form that models are given."""
    shown = wrap_tool(plain).as_function()

    assert shown["type"] == "function"
    assert (shown["function"]["name"], shown["function"]["description"]) == ("plain", "Repeat it.")
    assert set(shown["function"]["parameters"]["properties"]) == {"text", "times"}
    assert shown["function"]["parameters"]["required"] == ["text"]


def test_an_applications_tool_is_taken_to_reach_outside() -> None:
    """Nothing is known of what it does."""
    made = wrap_tool(plain)

    assert (made.effect, made.builtin) == ("external", False)


@pytest.mark.parametrize("result", [7, {"a": 1}, None, ["x"]])
async def test_a_result_that_is_no_text_becomes_one(result: Any) -> None:
    """The model is told in words."""

    def give() -> Any:
        """Give it."""
        return result

    assert isinstance(await run(give), str)


async def test_wrong_arguments_are_refused_before_the_tool_runs() -> None:
    """The schema is checked by LangChain; the error names what is wrong."""
    with pytest.raises(ValueError, match="times"):
        await run(plain, text="hi", times="often")


async def test_a_tools_own_error_is_raised() -> None:
    """The tool node tells the model."""

    def fall() -> str:
        """Fall over."""
        raise KeyError("absent")

    with pytest.raises(KeyError, match="absent"):
        await run(fall)


async def test_an_error_that_a_tool_handles_itself_is_an_error_still() -> None:
    """TL-03: LangChain's ``handle_tool_error`` turns it into text with status ``error``."""

    def fall() -> str:
        """Fall over."""
        raise ToolException("fell over")

    handled = StructuredTool.from_function(fall, handle_tool_error=True)

    with pytest.raises(Exception, match="fell over"):
        await run(handled)


def test_a_function_without_a_docstring_is_refused() -> None:
    """A model could not know what it is for."""

    def silent(text: str) -> str:
        return text

    with pytest.raises(ToolRefused, match="docstring"):
        wrap_tool(silent)


def where(text: str) -> str:
    """Say which thread this is."""
    return f"{text} {threading.current_thread().name}"


async def where_async(text: str) -> str:
    """Say which thread this is."""
    return f"{text} {threading.current_thread().name}"


class WhereOfAClass(OfAClass):
    """Says which thread this is."""

    def _run(self, text: str) -> str:
        return where(text)


@pytest.mark.parametrize("given", [where, tool(where), WhereOfAClass()])
async def test_a_sync_tool_runs_on_a_thread_of_the_tools(given: Any) -> None:
    """TL-21: not on the loop, nor on the pool that others share."""
    assert (await run(given, text="on")).startswith("on daruma-tool-")


async def test_an_async_tool_runs_on_the_loop() -> None:
    """TL-21."""
    assert await run(where_async, text="on") == f"on {threading.current_thread().name}"


async def test_a_tool_of_the_oldest_kind_runs() -> None:
    """LangChain's ``Tool``: one argument, by position."""
    assert await run(simple, __arg1="hi") == "hi"


async def test_what_a_tool_says_it_can_not_do_is_told_in_its_words() -> None:
    """LangChain's ``ToolException`` is for the model."""

    def fall() -> str:
        """Fall over."""
        raise ToolException("no such page")

    with pytest.raises(ToolError, match=r"^no such page$"):
        await run(fall)


async def test_parts_that_are_no_text_are_named() -> None:
    """The model is not left to think that nothing came back."""

    def look() -> Any:
        """Look."""
        return [{"type": "text", "text": "a cat"}, {"type": "image", "base64": "", "mime_type": ""}]

    assert await run(look) == "a cat\n[image left out: only text and images are shown]"


async def test_a_command_that_is_returned_is_not_overlooked() -> None:
    """Nothing here carries it out."""

    def steer() -> Any:
        """Steer."""
        return Command(goto="elsewhere")

    with pytest.raises(ToolError, match="steer returned a Command"):
        await run(steer)


def asks(question: str) -> str:
    """Ask a person, from a thread."""
    return f"{question} {interrupt(question)}"


async def asks_async(question: str) -> str:
    """Ask a person, on the loop."""
    return f"{question} {interrupt(question)}"


@pytest.mark.parametrize("given", [asks, asks_async])
async def test_a_tool_may_interrupt_the_graph(given: Any) -> None:
    """LangGraph's own question, under a time limit too, and its reply."""
    wrapped = wrap_tool(given)

    async def node(_: dict[str, Any]) -> dict[str, Any]:
        return {"said": await run_within(5, wrapped, {"question": "Really?"}, Surroundings())}

    graph: Any = StateGraph(dict)
    compiled = graph.add_node("node", node).add_edge(START, "node").compile(checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    waiting = await compiled.ainvoke({"said": ""}, config)
    after = await compiled.ainvoke(Command(resume="Yes."), config)

    assert waiting["__interrupt__"][0].value == "Really?"
    assert after == {"said": "Really? Yes."}


async def test_a_message_that_a_tool_makes_itself_is_its_result() -> None:
    """As in LangChain."""

    def answer() -> Any:
        """Answer."""
        return ToolMessage("mine", tool_call_id="call")

    assert await run(answer) == "mine"


def test_a_tool_says_where_it_comes_from() -> None:
    """For the people who have to rename it."""
    assert wrap_tool(plain).source.endswith("test_application_tool.plain")
    assert wrap_tool(later).source.endswith("test_application_tool.later")
    assert wrap_tool(OfAClass()).source.endswith("test_application_tool.OfAClass")


def test_what_is_checked_is_what_is_shown() -> None:
    """TL-07: tightened; the application's tool stays as it was."""
    made = wrap_tool(decorated)

    assert made.parameters["additionalProperties"] is False
    assert made.as_function()["function"]["parameters"] == made.parameters
    assert "additionalProperties" not in decorated.get_input_jsonschema()


# --- What an application declares of its tools is read strictly.


def declaring(**declared: Any) -> Any:
    """A tool with one argument and that declaration."""

    @tool
    def note(text: str, day: str = "") -> str:
        """Note it."""
        return text + day

    note.metadata = {"daruma": declared, "own": "thing"}
    return note


@pytest.mark.parametrize("effect", ["none", "workspace", "external"])
def test_the_effect_is_declared(effect: str) -> None:
    """What running it changes."""
    assert wrap_tool(declaring(effect=effect)).effect == effect


def test_aliases_and_a_promotion_are_declared() -> None:
    """TL-19. An alias may lead to an argument that only the other tool has."""
    declared = {
        "argument_aliases": {"date": "day", "at": "due_time"},
        "promote_to": "schedule",
        "promote_when": ["due_time"],
    }

    assert wrap_tool(declaring(**declared)).canonical == Canonical(
        {"date": "day", "at": "due_time"}, "schedule", ("due_time",)
    )
    assert wrap_tool(declaring(effect="none")).canonical is None


def test_dates_and_questions_are_declared() -> None:
    """CO-01: what is read as a day or a time, and what the user is asked for."""
    declared = {"dates": {"day": "date"}, "ask_for": {"day": "When?"}}

    assert wrap_tool(declaring(**declared)).canonical == Canonical(
        dates={"day": "date"}, ask_for={"day": "When?"}
    )


@pytest.mark.parametrize(
    ("declared", "said"),
    [
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
    ],
)
def test_what_can_not_be_meant_is_refused(declared: dict[str, Any], said: str) -> None:
    """At once, in one line that names the tool."""
    with pytest.raises(ToolRefused, match=rf"^the tool 'note' declares in .*{said}") as refused:
        wrap_tool(declaring(**declared))

    assert "\n" not in str(refused.value)


def test_a_declaration_that_is_no_dictionary_is_refused() -> None:
    """Likewise."""
    silly = declaring()
    silly.metadata = {"daruma": "none"}

    with pytest.raises(ToolRefused, match="note"):
        wrap_tool(silly)
