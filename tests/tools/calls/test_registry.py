"""The tools of a graph: their names, which are shown, which stand in for which, and reading on."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool as langchain_tool
from tests.parts import WORKSPACE_TOOLS, a_registry, settings

from daruma.state.errors import DarumaError
from daruma.state.settings import SettingsError, Tools
from daruma.tools.calls import (
    Canonical,
    Outputs,
    ProcessOutputs,
    Registry,
    Surroundings,
    Tool,
    ToolNameConflictError,
)
from daruma.tools.calls._registry import MANY, MOST, READ_OUTPUT, rank_stand_ins
from daruma.tools.calls._tool import Effect
from daruma.tools.errors import ToolError


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@langchain_tool("search")
def own_search(text: str) -> str:
    """Search elsewhere."""
    return text


def test_a_tool_of_the_name_of_a_built_in_one_is_refused() -> None:
    """TL-05: of the workspace's; another one that ships gives way."""
    said = r"two tools are named 'search': built in and .*test_registry\.own_search"
    with pytest.raises(ToolNameConflictError, match=said) as refused:
        a_registry([own_search])
    assert isinstance(refused.value, DarumaError)


def names(registry: Registry, *, workspace: bool, **given: Any) -> list[str]:
    return [
        each.name for each in registry.visible(Tools(**given), {"workspace"} if workspace else ())
    ]


def test_what_is_shown() -> None:
    """TL-06: built-in tools in a workspace only, and of all tools those of the profile.

    A tool is known by its name, shown or not: what stands in a thread's history may be hidden.
    TL-05: settings that do not fit are refused, as each run may bring its own.
    """
    registry = a_registry([shout])
    builtin = [each.name for each in WORKSPACE_TOOLS]

    assert names(registry, workspace=True) == [*builtin, "shout"]
    assert names(registry, workspace=False) == ["shout"]
    assert names(registry, workspace=True, profile="read_only") == ["search"]
    assert names(registry, workspace=False, profile="read_only") == []
    assert registry.named("shout") is not None
    assert registry.named("Shout") is None
    assert {"shout", "run_tests"} <= set(registry.names)
    registry.check(Tools())
    with pytest.raises(ToolNameConflictError):
        registry.check(Tools(name_aliases={"shout": "search"}))
    with pytest.raises(SettingsError):
        registry.check(Tools(profile="nobodys"))


def test_what_is_shown_is_looked_for_once_for_the_same_settings() -> None:
    """Each step of a run asks for it; other settings, and other needs, show something else."""
    registry, given = a_registry([shout]), settings()
    other = settings(tools={"profile": "own", "profiles": {"own": ["search"]}})

    def shown(of: Any, *without: str, reading: bool = False) -> Any:
        needs: dict[str, Any] = {"workspace": False, "store": False, "reading": reading}
        return registry.shown(of, frozenset(without), **needs)

    first, again = shown(given, reading=True), shown(given, reading=True)
    without, elsewhere, back = shown(given, "shout"), shown(other), shown(given)

    assert [each.name for each in first.tools] == ["shout", "read_output"]
    assert again is first
    assert (without.tools, elsewhere.tools) == ((), ())
    assert [each.name for each in back.tools] == ["shout"]
    assert "read_output" in back.hidden


# --- Stand-ins are found from the definitions of tools as people write them (RE-08a).

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
LIKEST: Any = (
    (
        RESEARCH,
        {
            "web_search": "brave_search",
            "brave_search": "web_search",
            "wikipedia_lookup": "search_wikipedia",
            "fetch_url": "browser_get_page",
            "browser_get_page": "fetch_url",
            "calculator": None,
        },
    ),
    (
        OFFICE,
        {
            "send_email": "gmail_send_message",
            "gmail_send_message": "send_email",
            "delete_email": None,
            "create_issue": None,
            "get_issue": "jira_search_issues",
        },
    ),
    (
        FILES,
        {
            "read_file": "cat_file",
            "cat_file": "read_file",
            "write_file": "save_file",
            "upload_file": "save_file",
            "query_database": "sql_query",
        },
    ),
)


def best(tools: tuple[Tool, ...]) -> Mapping[str, str | None]:
    return {name: next(iter(names), None) for name, names in rank_stand_ins(tools).items()}


def test_the_best_stand_in_is_the_likest() -> None:
    """One that does the same to the same; none rather than one that does something else or more."""
    for tools, wanted in LIKEST:
        assert wanted.items() <= best(tools).items()
        check_strength(tools)
    check_strength(RESEARCH + OFFICE + FILES)


def check_strength(tools: Any) -> None:
    """Check that a read is not replaced by a write, nor a write by a message to the world."""
    effects = {each.name: STRENGTH[each.effect] for each in tools}
    found = rank_stand_ins(tools)

    assert [*found] == [each.name for each in tools]
    for name, names in found.items():
        assert name not in names
        assert len(names) == len(set(names))
        assert all(effects[other] <= effects[name] for other in names)


ANY_TOOLS = st.lists(
    st.builds(
        tool,
        st.text("abcs_T", min_size=1, max_size=6),
        st.text(max_size=40),
        st.sampled_from(["none", "workspace", "external"]),
    ),
    max_size=8,
    unique_by=lambda each: each.name,
)


@given(ANY_TOOLS)
def test_any_tools_have_stand_ins_that_are_there(tools: list[Tool]) -> None:
    """Never itself, never twice, always weaker or equal."""
    check_strength(tools)


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
    found = rank_stand_ins((plain, sly, shop))

    assert (found["search_book"], found["find_book"]) == ((), ("search_book",))


def test_of_two_that_are_equally_like_it_the_one_with_the_same_arguments_goes_first() -> None:
    """Names of every style and words of any script are read."""
    failed = tool("get_weather", "Get the weather.", city=S)
    far = tool("fetch_weather", "Get the weather.", stations="array")
    near = tool("load_weather", "Get the weather.", place=S)
    styles = [tool(name, "", query=S) for name in ("webSearch", "WebSearchTool", "web-search-v2")]
    scripts = [
        tool(f"t{n}", text, query=S) for n, text in enumerate(("搜索 网页", "网页 搜索", "发送"))
    ]

    assert rank_stand_ins((failed, far, near))["get_weather"] == ("load_weather", "fetch_weather")
    found = rank_stand_ins([*styles, tool("sendFax", "", number=S)])["webSearch"]
    assert set(found) == {"WebSearchTool", "web-search-v2"}
    assert rank_stand_ins(scripts)["t0"][:1] == ("t1",)


def test_only_shown_stand_ins_are_named_and_at_most_three() -> None:
    """TL-06: what the profile hides can not be called."""

    def search_with(engine: str) -> Any:
        found = langchain_tool(f"{engine}_search", description=f"Search the web with {engine}.")
        return found(lambda query: query)

    registry = a_registry([search_with(each) for each in ("web", "brave", "bing", "duck", "kagi")])

    assert len(registry.stand_ins("web_search", registry.names)) == MOST
    assert registry.stand_ins("web_search", {"brave_search"}) == ("brave_search",)
    assert registry.stand_ins("absent", registry.names) == ()


# --- The model reads on in what was left out of a long output.

TEXT = "".join(f"line {n}\n" for n in range(2000)) + "the Error is here\n"


async def read(text: str = TEXT, **args: Any) -> str:
    outputs = Outputs(ProcessOutputs())
    id_ = await outputs.keep(text)
    return await READ_OUTPUT.run({"id": id_} | args, Surroundings(outputs=outputs))


async def test_a_part_says_where_it_is() -> None:
    """From an offset, as long as is asked, no further than the end; lines are found in any case."""
    size = len(TEXT)
    offset, line = (await read(find="error")).split(": ", 1)

    assert await read(offset=7, length=6) == f"[characters 7 to 13 of {size}]\nline 1"
    assert await read(offset=size - 6) == f"[characters {size - 6} to {size} of {size}]\n here\n"
    assert line == "the Error is here"
    assert (await read(offset=int(offset))).splitlines()[1] == line


async def test_many_lines_are_cut_and_say_where_to_go_on() -> None:
    """Each is shown once."""
    first = (await read(find="line")).splitlines()
    offset = int(first[-1].removeprefix("[more from offset ").removesuffix(" on]"))
    second = (await read(find="line", offset=offset)).splitlines()

    assert len(first) == len(second) == MANY + 1
    assert first[0].endswith(": line 0")
    assert second[0].endswith(f": line {MANY}")
    assert await read(find="nowhere") == "no line from offset 0 on holds that"


async def test_what_can_not_be_read_is_said() -> None:
    """In words that a model can act on."""
    args: Any
    for args, said in (
        ({"id": "0123456789abcdef"}, "there is no output '0123456789abcdef' of this thread"),
        ({"offset": 10**6}, r"has \d+ characters: nothing at 1000000"),
        ({"length": 0}, "length"),
        ({"where": 1}, "where: Extra inputs are not permitted"),
    ):
        with pytest.raises(ToolError, match=said):
            await read(**args)
