"""Tools of the application become tools of ours, whatever they are made of."""

from typing import Any

import pytest
from langchain_core.tools import StructuredTool, ToolException, tool

from daruma.tools.application_tool import from_application
from daruma.tools.tool import Surroundings


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


async def run(given: Any, **args: Any) -> str:
    return await from_application(given).run(args, Surroundings())


@pytest.mark.parametrize("given", [plain, later, decorated, with_artifact])
async def test_every_kind_of_tool_runs(given: Any) -> None:
    """TL-22 and TL-21: functions and LangChain tools, sync and async."""
    assert await run(given, text="hi") == "hi"


def test_a_tool_is_shown_with_its_schema() -> None:
    """Name, docstring and parameters in the form that models are given."""
    shown = from_application(plain).as_function()

    assert shown["type"] == "function"
    assert (shown["function"]["name"], shown["function"]["description"]) == ("plain", "Repeat it.")
    assert set(shown["function"]["parameters"]["properties"]) == {"text", "times"}
    assert shown["function"]["parameters"]["required"] == ["text"]


def test_an_applications_tool_is_taken_to_reach_outside() -> None:
    """Nothing is known of what it does."""
    made = from_application(plain)

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

    with pytest.raises(ValueError, match="docstring"):
        from_application(silent)
