"""Which tools a model is shown, and which of them it means by a name."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, tool
from tests.parts import TOOLSET_TOOLS, a_context, a_registry, a_task, settings

from daruma.state.settings import Tools
from daruma.tools.calls import Canonical, Tool, ToolNameConflictError, VisibleTools, check_names
from daruma.tools.calls._tool import (
    BUILTIN_ALIASES,
    Effect,
    PromotionRefused,
    ResolvedName,
    name_key,
    resolve_name,
)
from daruma.tools.context import Context, local_time, visible_tools

VISIBLE = ("read_file", "memory_search", "memory_store", "v1_2", "list_todos")
ALIASES = {"cat": "read_file", "Todo List": "list_todos", "gone": "hidden"}


def resolved(requested: str, *, normalize: bool = True) -> ResolvedName:
    return resolve_name(requested, VISIBLE, aliases=ALIASES, normalize=normalize)


KNOWN = {
    "exact": {"read_file": ["read_file"]},
    "alias": {
        "read_file": ["cat", "Cat", "functions.cat"],
        "memory_search": ["memory.search", "functions.memory.search"],
        "memory_store": ["memory.store"],
        "list_todos": ["todo_list"],
    },
    "normalized": {
        "read_file": [
            *("readFile", "ReadFile", "READ_FILE", "read-file", "read.file", " read file\n"),
            *("readfile", "functions.read_file", "functions:read_file", "tools.readFile"),
            *("default_api.read_file", "multi_tool_use.functions.read_file"),
        ],
        "memory_search": ["memorySearch"],
        "v1_2": ["V1.2"],
    },
    "unknown": {
        "": [
            *("read_files", "v12", "gone", "Gone", "memory.forget", "read/file", "mcp.read_file"),
            *("functions.", "functions", "...", "_", "\ud800", "v1\N{ONE DOT LEADER}2"),
            "re\N{CYRILLIC SMALL LETTER A}d_file",
            "\N{FULLWIDTH LATIN SMALL LETTER R}ead_file",
            "read_file\N{ZERO WIDTH SPACE}",
        ]
    },
    "missing": {"": ["", " ", "\n\t", "\N{ZERO WIDTH SPACE}"]},
}


def test_a_name_that_means_one_tool_is_understood() -> None:
    """TL-04 and TL-06: exact, then alias, then normalised.

    An alias of a hidden tool, a look-alike, a name that is merely near mean none.
    """
    wanted = {
        requested: ResolvedName(name or requested, how)  # type: ignore[arg-type]  # a table's key
        for how, names in KNOWN.items()
        for name, spellings in names.items()
        for requested in spellings
    }

    assert {requested: resolved(requested) for requested in wanted} == wanted


def test_without_normalisation_every_letter_counts() -> None:
    """TL-04: also in an alias."""
    wanted = {"read_file": "exact", "cat": "alias", "memory.search": "alias"} | dict.fromkeys(
        ["Cat", "Memory.Search", "readFile", "functions.read_file", " read_file"], "unknown"
    )

    assert {each: resolved(each, normalize=False).how for each in wanted} == wanted


TWO: tuple[tuple[str, list[str], dict[str, str], str | None], ...] = (
    ("readFile", ["read_file", "ReadFile"], {}, None),
    ("FOO", ["a", "b"], {"foo": "a", "Foo": "b"}, None),
    ("FOO", ["a", "b"], {"foo": "a", "Foo": "a"}, "a"),
    ("SHOUT", ["shout", "b"], {"Shout": "b"}, None),
    ("SHOUT", ["shout"], {"Shout": "hidden"}, None),
    ("memory.search", ["memory_search", "own"], {"memory.search": "own"}, "own"),
    ("memory.search", ["memory_search", "own"], {"Memory.Search": "own"}, None),
    ("memory.search", ["memory_search"], {"memory.search": "hidden"}, None),
    ("memory.search", ["memorySearch"], {}, "memorySearch"),
    ("memory.search", ["memory_search"], {"memory.search": "memory.search"}, "memory_search"),
    ("functions.read", ["functions_read", "read"], {}, "functions_read"),
    ("O\N{KELVIN SIGN}", ["ok"], {}, None),
    ("functions.read", ["functionsRead", "functions_read", "read"], {}, None),
)


def test_of_two_tools_that_could_be_meant_none_is_taken() -> None:
    """TL-04: the user's alias goes before a built-in one, the whole name before its end."""
    for requested, visible, aliases, name in TWO:
        found = resolve_name(requested, visible, aliases=aliases, normalize=True)

        assert found.name == (name or requested), requested
        assert (found.how == "unknown") is (name is None)


WORDS = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), min_size=1, max_size=4)
REGISTRIES = st.lists(WORDS, min_size=1, max_size=8, unique_by="".join)
WRITE: dict[str, Callable[[list[str]], str]] = {
    "snake": "_".join,
    "hyphens": "-".join,
    "dots": ".".join,
    "spaces": " ".join,
    "pascal": lambda words: "".join(word.capitalize() for word in words),
    "camel": lambda words: words[0] + "".join(word.capitalize() for word in words[1:]),
    "shouted": lambda words: "_".join(words).upper(),
}
STYLES = st.sampled_from(sorted(WRITE))
PREFIXES = st.sampled_from(["", "functions.", "functions:", "tools.", "default_api.", "Tools:"])


@given(st.data(), REGISTRIES, PREFIXES)
def test_every_spelling_of_a_tool_resolves_to_it(
    data: st.DataObject, registry: list[list[str]], prefix: str
) -> None:
    """TL-04: in whatever way the tools are named, as long as no two of them have one key."""
    names = [WRITE[data.draw(STYLES)](words) for words in registry]
    at = data.draw(st.integers(0, len(registry) - 1))
    spelt = prefix + WRITE[data.draw(STYLES)](registry[at])

    found = resolve_name(spelt, names, aliases={}, normalize=True)

    whole = {name_key(name) for name in names} - {name_key(names[at])}
    assert found.name == names[at] or name_key(spelt) in whole


TEXTS = st.text() | st.from_regex(r"(functions[.:])*[a-zA-Z_. -]{0,6}", fullmatch=True)


@given(TEXTS, st.lists(TEXTS, max_size=4), st.dictionaries(TEXTS, TEXTS, max_size=4), st.booleans())
def test_nothing_resolves_to_a_tool_that_is_not_visible(
    requested: str, visible: list[str], aliases: dict[str, str], normalize: bool
) -> None:
    """TL-06: whatever the text, the tools and the aliases; and nothing is ever raised."""
    found = resolve_name(requested, visible, aliases=aliases, normalize=normalize)

    known = found.how in ("exact", "alias", "normalized")
    assert (found.name in visible) if known else (found.name == requested)


def test_the_built_in_aliases_are_those_of_the_specification() -> None:
    """TL-04."""
    assert {alias: name for alias, name in BUILTIN_ALIASES.items() if alias.count(".") == 1} == {
        f"{space}.{verb}": f"{space}_{verb}"
        for space, verbs in {
            "memory": ("search", "store", "forget"),
            "skills": ("list", "load", "read_file"),
        }.items()
        for verb in verbs
    }


# --- Names that could be read as two different tools are refused, and both are named (TL-05).


async def nothing(*_: Any) -> str:
    return ""


def tools(*names: str) -> list[Tool]:
    """Tools of these names, each from a place of its own."""
    return [Tool(name, "", {}, nothing, source=f"place {n}") for n, name in enumerate(names)]


def test_two_names_that_are_read_as_one_are_refused() -> None:
    """With normalisation on; two tools of one name whatever the settings.

    Digits apart are not digits together, and what has no key has its name.
    """
    for normalize in (True, False):
        with pytest.raises(ToolNameConflictError, match="'a': place 0 and place 2"):
            check_names(tools("a", "b", "a"), {}, normalize=normalize)
    for one, other in (("read_file", "readFile"), ("ab", "a.b"), ("v_1", "v1"), ("x-y", "X_Y")):
        said = rf"'{one}' \(place 1\) and '{other}' \(place 2\) have names that are read as one"

        check_names(tools("c", one, other), {}, normalize=False)
        with pytest.raises(ToolNameConflictError, match=said):
            check_names(tools("c", one, other), {}, normalize=True)
    apart = tools("v1_2", "v12", "_", "-", "\N{CYRILLIC SMALL LETTER A}", "a")
    check_names(apart, {}, normalize=True)


def test_an_alias_that_hides_a_tool_is_refused() -> None:
    """One written like a tool's name that leads elsewhere; with normalisation, by key."""
    for alias, name, normalizing in (
        ("shout", "whisper", (True, False)),
        ("shout", "gone", (True, False)),
        ("Shout", "whisper", (True,)),
        ("Shout", "shout", ()),
        ("shout", "shout", ()),
        ("SHOUT", "SHOUT", ()),
        ("call", "shout", ()),
        ("call", "gone", ()),
    ):
        for normalize in (True, False):
            said = ""
            try:
                check_names(tools("whisper", "shout"), {alias: name}, normalize=normalize)
            except ToolNameConflictError as error:
                said = str(error)

            assert bool(said) is (normalize in normalizing), alias
            assert not said or all(part in said for part in (f"'{name}'", "'shout' (place 1)"))


# --- A declared promotion leads to a tool that is there (TL-19).


def promoted(name: str, target: str) -> BaseTool:
    """A tool of that name that is promoted to another one."""
    made: BaseTool = tool(name, description="Do it.")(lambda text: text)
    made.metadata = {"daruma": {"promote_to": target, "promote_when": ["at"]}}
    return made


def test_a_promotion_that_leads_nowhere_is_refused() -> None:
    """When the graph is built; they may follow one another, as long as they end."""
    for passed, said in (
        ([promoted("a", "b")], "'a' is promoted to 'b', and there is no such tool"),
        ([promoted("a", "a")], "in a circle: a → a;"),
        ([promoted("a", "b"), promoted("b", "a")], "in a circle: a → b → a;"),
    ):
        with pytest.raises(PromotionRefused, match=said):
            a_registry(passed).check(Tools())
    a_registry([promoted("a", "b"), promoted("b", "shout"), shout]).check(Tools())


# --- Local time is that of a zone by its name, or of the machine.

WINTER = 1796040000.0


def test_local_time_is_that_of_a_zone_or_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset of today would move a date of the other half of the year by an hour."""
    assert local_time(WINTER, "Asia/Tokyo").isoformat() == "2026-11-30T21:00:00+09:00"
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = local_time(WINTER, None)
        summer = datetime(2026, 7, 1, 9, 0, tzinfo=now.tzinfo)

        assert now == datetime.fromtimestamp(WINTER, UTC)
        assert now.isoformat() == "2026-11-30T13:00:00+01:00"
        assert summer.isoformat() == "2026-07-01T09:00:00+02:00"
        assert (now.tzname(), now.dst()) == ("CET", None)
    finally:
        monkeypatch.undo()
        time.tzset()


# --- What a task's model is offered, and with what care its calls are repaired.

BUILTIN = {"str_replace_editor", "search", "run_command", "run_tests"}
SETS = {tool.name for tool in TOOLSET_TOOLS}
"""Shown where there is a store, or skills, or where they are asked for."""


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def test_the_built_in_tools_are_offered_in_a_workspace() -> None:
    """TL-06: they are there, and not shown, without one, as are the sets that nobody asked for."""
    offer = visible_tools(a_task(workspace="/w"), a_context(tools=[shout]))
    without = visible_tools(a_task(), a_context(tools=[shout]))

    assert set(offer.names) == BUILTIN | {"shout", "todo", "read_output"}
    assert offer.hidden == SETS - {"todo"}
    assert without.names == ("shout", "read_output")
    assert without.hidden == BUILTIN | SETS
    assert without.find("search") is None


def test_reading_on_is_offered_where_there_is_something_to_read() -> None:
    """Beside tools that bring results, whatever the profile; recovery may hide it too."""
    context = a_context(tools=[shout], given=settings(tools={"profile": "all"}))
    narrow = settings(tools={"profile": "own", "profiles": {"own": ["shout"]}})
    alone = settings(tools={"profile": "librarian_retrieval"})

    assert visible_tools(a_task(), context, reading=False).names == ("shout",)
    assert visible_tools(a_task(), a_context(tools=[shout], given=narrow)).names[1:] == (
        "read_output",
    )
    assert visible_tools(a_task(), a_context(tools=[shout], given=alone)).names == ()
    assert visible_tools(a_task(), context, {"read_output"}).names == ("shout",)


def test_direct_chat_is_offered_nothing() -> None:
    """MO-01: one answer, no tools; the settings are the run's all the same."""
    given = settings(tools={"normalize_names": False})
    for task in (None, a_task("direct_chat", workspace="/w")):
        offer = visible_tools(task, a_context(tools=[shout], given=given))

        assert offer == VisibleTools(settings=given.tools)


def a_tool(name: str, effect: Effect, promote_to: str | None = None) -> Tool:
    canonical = Canonical({}, promote_to, ("amount",)) if promote_to else None
    return Tool(name, "", {}, nothing, effect=effect, canonical=canonical)


def test_a_call_is_repaired_with_the_care_of_what_it_may_become() -> None:
    """TL-10 and TL-19: as far as it is shown."""
    look, ask = a_tool("look", "none", "ask"), a_tool("ask", "none", "pay")
    pay = a_tool("pay", "external")
    for shown, effect in (
        ([a_tool("look", "none")], "none"),
        ([look], "none"),
        ([a_tool("look", "none", "pay"), pay], "external"),
        ([look, a_tool("ask", "none")], "none"),
        ([look, ask, pay], "external"),
        ([a_tool("look", "workspace", "pay"), a_tool("pay", "none")], "workspace"),
    ):
        careful = VisibleTools(tuple(shown)).cautious(shown[0])

        assert (careful.name, careful.effect) == ("look", effect)


def test_the_time_is_told_where_a_tool_takes_dates() -> None:
    """The zone's rules are looked up for nobody else."""
    dated = replace(a_tool("book", "none"), canonical=Canonical(dates={"day": "date"}))
    plain = a_tool("look", "none")

    assert visible_tools(a_task(), showing(plain)).now is None
    assert visible_tools(a_task(), showing(plain, dated)).now is not None


def showing(*tools: Tool) -> Context:
    """Return a context whose registry has these tools beside its own."""
    context = a_context()
    registry = a_registry()
    registry._tools = {tool.name: tool for tool in tools}
    return replace(context, tools=registry)
