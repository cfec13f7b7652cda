"""Any search tool becomes ``web_search``."""

from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool

from daruma.tools.calls.application_tool import ToolRefused, from_application
from daruma.tools.calls.tool import Surroundings
from daruma.tools.knowledge.knowledge_tools import FROM_WEB, render_web_results, web_search


@tool
def tavily(query: str, max_results: int = 3, topic: str = "general") -> dict[str, Any]:
    """Search as Tavily does."""
    result = {"title": "T", "url": "https://t", "content": f"{query} {max_results} {topic}"}
    return {"query": query, "results": [result] * 9}


@tool
def duck(query: str) -> str:
    """Search as DuckDuckGo does."""
    return f"snippet: about {query}, title: D, link: https://d"


@tool
async def odd(phrase: str) -> list[dict[str, str]]:
    """Search with a name of its own, asynchronously."""
    return [{"snippet": phrase, "link": "https://o"}]


def serp(text: str) -> str:
    """Search as an old-fashioned tool of one text does."""
    return f"plain {text}"


OLD = Tool(name="serp", func=serp, description="Search.")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (tavily, "[1] T — https://t\ncats 2 general\n\n[2] T — https://t\ncats 2 general"),
        (duck, "snippet: about cats, title: D, link: https://d"),
        (odd, "[1] https://o\ncats"),
        (serp, "plain cats"),
        (OLD, "plain cats"),
    ],
)
async def test_a_query_reaches_the_tool_and_its_results_come_back(given: Any, answer: str) -> None:
    """Whatever it calls the query, and however it tells its results."""
    wrapped = from_application(web_search(given))

    result = await wrapped.run({"query": "cats", "max_results": 2}, Surroundings())

    assert (wrapped.name, wrapped.effect) == ("web_search", "none")
    assert set(wrapped.parameters["properties"]) == {"query", "max_results"}
    assert result == f"{FROM_WEB}\n\n{answer}"


def two(first: str, second: str) -> str:
    """Compare."""
    return first + second


def number(n: int) -> str:
    """Count."""
    return str(n)


@pytest.mark.parametrize("given", [two, number, StructuredTool.from_function(two, name="t")])
def test_a_tool_that_searches_for_nothing_is_refused(given: Any) -> None:
    """With what it has; when it is wrapped, not when it is called."""
    with pytest.raises(ToolRefused, match="it needs one text to look for, such as query"):
        web_search(given)


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ("", ["nothing found"]),
        ("[]", [FROM_WEB, "", "[]"]),
        ('{"a": 1}', [FROM_WEB, "", "[1] result", '{"a": 1}']),
        ('{"items": [{"name": "N"}]}', [FROM_WEB, "", "[1] N"]),
        ("[1, 2]", [FROM_WEB, "", "[1, 2]"]),
    ],
)
def test_results_of_any_form_are_told(result: str, lines: list[str]) -> None:
    """What is no record is shown as it is."""
    assert render_web_results(result, 5).split("\n") == lines


def test_a_long_result_is_cut() -> None:
    """One page does not fill the context."""
    assert len(render_web_results(f'[{{"content": "{"x" * 50_000}"}}]', 1)) < 2200
    assert isinstance(web_search(duck), BaseTool)
