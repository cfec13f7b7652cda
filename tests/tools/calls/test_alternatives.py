"""Stand-ins are found from the definitions of tools as people write them."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_registry

from daruma.tools.calls import Canonical, Surroundings, Tool
from daruma.tools.calls._alternatives import MOST, ranked, stand_ins
from daruma.tools.calls._tool import Effect

STRENGTH = {"none": 0, "workspace": 1, "external": 2}


async def nothing(_: Mapping[str, Any], __: Surroundings) -> str:
    return ""


def tool(name: str, description: str, effect: Effect = "none", **parameters: str) -> Tool:
    """A tool whose parameters are all required and have the types that are given."""
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in parameters.items()},
        "required": list(parameters),
    }
    return Tool(name=name, description=description, parameters=schema, run=nothing, effect=effect)


S = "string"
RESEARCH = (
    tool("web_search", "Search the web and return the best results with snippets.", query=S),
    tool("brave_search", "Searches the web with the Brave engine.", query=S, count="integer"),
    tool("wikipedia_lookup", "Look up a topic in Wikipedia and return its summary.", topic=S),
    tool("search_wikipedia", "Full text search over Wikipedia articles.", query=S),
    tool("fetch_url", "Fetch a web page and return its text.", url=S),
    tool("browser_get_page", "Open a URL in a browser and return the page's text.", url=S),
    tool("calculator", "Evaluate an arithmetic expression.", expression=S),
    tool("get_current_time", "The current time in a time zone.", timezone=S),
)
OFFICE = (
    tool("send_email", "Send an email message to a person.", "external", to=S, subject=S, body=S),
    tool("gmail_send_message", "Send a mail message via Gmail.", "external", to=S, body=S),
    tool("read_email", "Read the email messages of a mailbox.", mailbox=S),
    tool("delete_email", "Delete an email message.", "external", message_id=S),
    tool("create_issue", "Create an issue in the tracker.", "external", title=S, body=S),
    tool("update_issue", "Update an issue in the tracker.", "external", id=S, body=S),
    tool("delete_issue", "Delete an issue in the tracker.", "external", id=S),
    tool("get_issue", "Get an issue of the tracker.", id=S),
    tool("jira_search_issues", "Search issues in the tracker by a query.", query=S),
)
FILES = (
    tool("read_file", "Read a file from the workspace.", path=S),
    tool("cat_file", "Show the contents of a file in the workspace.", path=S),
    tool("write_file", "Write text to a file in the workspace.", "workspace", path=S, text=S),
    tool("save_file", "Save a file to the workspace.", "workspace", path=S, content=S),
    tool("upload_file", "Upload a file of the workspace to the bucket.", "external", path=S),
    tool("list_directory", "List the files in a directory of the workspace.", path=S),
    tool("query_database", "Run a read-only SQL query against the orders database.", sql=S),
    tool("sql_query", "Query the analytics database with SQL and return rows.", sql=S),
)


@pytest.mark.parametrize(
    ("tools", "failed", "best"),
    [
        (RESEARCH, "web_search", "brave_search"),
        (RESEARCH, "brave_search", "web_search"),
        (RESEARCH, "wikipedia_lookup", "search_wikipedia"),
        (RESEARCH, "fetch_url", "browser_get_page"),
        (RESEARCH, "browser_get_page", "fetch_url"),
        (RESEARCH, "calculator", None),
        (OFFICE, "send_email", "gmail_send_message"),
        (OFFICE, "gmail_send_message", "send_email"),
        (OFFICE, "delete_email", None),
        (OFFICE, "create_issue", None),
        (OFFICE, "get_issue", "jira_search_issues"),
        (FILES, "read_file", "cat_file"),
        (FILES, "cat_file", "read_file"),
        (FILES, "write_file", "save_file"),
        (FILES, "upload_file", "save_file"),
        (FILES, "query_database", "sql_query"),
    ],
)
def test_the_best_stand_in_is_the_likest(tools: Any, failed: str, best: str | None) -> None:
    """RE-08a: one that does the same to the same; none rather than one that does something else."""
    found = stand_ins(tools)[failed]

    assert (found[0] if found else None) == best


@pytest.mark.parametrize("tools", [RESEARCH, OFFICE, FILES, RESEARCH + OFFICE + FILES])
def test_no_stand_in_does_more_than_the_tool_itself(tools: tuple[Tool, ...]) -> None:
    """RE-08a: a read is not replaced by a write, nor a write by a message to the world."""
    effects = {each.name: STRENGTH[each.effect] for each in tools}

    for name, names in ranked(tools).items():
        assert all(effects[other] <= effects[name] for other in names)


def test_a_stand_in_that_is_promoted_counts_as_what_it_becomes() -> None:
    """TL-19: a search that turns into a purchase is no search."""
    shop = tool("buy_book", "Buy a book in the shop.", "external", query=S)
    plain = tool("search_book", "Search for a book in the shop.", query=S)
    sly = Tool(
        name="find_book",
        description="Find a book in the shop.",
        parameters=plain.parameters,
        run=nothing,
        effect="none",
        canonical=Canonical({}, "buy_book", ("query",)),
    )

    assert stand_ins((plain, sly, shop))["search_book"] == ()
    assert stand_ins((plain, sly, shop))["find_book"] == ("search_book",)


def test_one_that_could_be_called_with_the_same_arguments_goes_first() -> None:
    """RE-08a: of two that are equally like it."""
    failed = tool("get_weather", "Get the weather.", city=S)
    far = tool("fetch_weather", "Get the weather.", stations="array")
    near = tool("load_weather", "Get the weather.", place=S)

    assert stand_ins((failed, far, near))["get_weather"] == ("load_weather", "fetch_weather")


def test_names_of_every_style_are_read() -> None:
    """As they come from other frameworks and servers."""
    tools = (
        tool("webSearch", "", query=S),
        tool("WebSearchTool", "", query=S),
        tool("web-search-v2", "", query=S),
        tool("sendFax", "", number=S),
    )

    assert set(stand_ins(tools)["webSearch"]) == {"WebSearchTool", "web-search-v2"}


def test_descriptions_in_other_scripts_count_too() -> None:
    """A word is a word."""
    tools = (
        tool("t1", "搜索 网页", query=S),
        tool("t2", "网页 搜索", query=S),
        tool("t3", "发送 邮件", query=S),
    )

    assert stand_ins(tools)["t1"][:1] == ("t2",)


def test_a_graphs_own_tools_are_compared_once_and_only_shown_ones_are_named() -> None:
    """RE-08a and TL-06: what the profile hides can not be called."""

    def web_search(query: str) -> str:
        """Search the web."""
        return query

    def brave_search(query: str) -> str:
        """Search the web with Brave."""
        return query

    def bing_search(query: str) -> str:
        """Search the web with Bing."""
        return query

    registry = a_registry([web_search, brave_search, bing_search])

    assert set(registry.stand_ins("web_search", registry.names)) >= {"brave_search", "bing_search"}
    assert registry.stand_ins("web_search", {"brave_search"}) == ("brave_search",)
    assert registry.stand_ins("absent", registry.names) == ()


TOOLS = st.lists(
    st.builds(
        tool,
        st.text("abcs_T", min_size=1, max_size=6),
        st.text(max_size=40),
        st.sampled_from(["none", "workspace", "external"]),
    ),
    max_size=8,
    unique_by=lambda each: each.name,
)


@given(TOOLS)
def test_any_tools_have_stand_ins_that_are_there(tools: list[Tool]) -> None:
    """Never itself, never twice, never more than three, always weaker or equal."""
    found = stand_ins(tools)

    assert list(found) == [each.name for each in tools]
    by_name = {each.name: each for each in tools}
    for name, names in found.items():
        assert name not in names
        assert len(names) == len(set(names)) <= MOST
        assert all(STRENGTH[by_name[o].effect] <= STRENGTH[by_name[name].effect] for o in names)
