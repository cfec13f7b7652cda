"""A name that means one tool without doubt is understood; any other one is not guessed at."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, tool
from tests.parts import a_registry

from daruma.state.settings import Tools
from daruma.tools.calls import Tool, ToolNameConflictError, check_aliases, check_names
from daruma.tools.calls._names import (
    BUILTIN_ALIASES,
    PromotionRefused,
    ResolvedName,
    name_key,
    resolve_name,
)

VISIBLE = ("read_file", "memory_search", "memory_store", "v1_2", "list_todos")
ALIASES = {"cat": "read_file", "Todo List": "list_todos", "gone": "hidden"}


def resolved(requested: str, *, normalize: bool = True) -> ResolvedName:
    return resolve_name(requested, VISIBLE, aliases=ALIASES, normalize=normalize)


@pytest.mark.parametrize(
    ("requested", "name", "how"),
    [
        ("read_file", "read_file", "exact"),
        ("cat", "read_file", "alias"),
        ("memory.search", "memory_search", "alias"),
        ("memory.store", "memory_store", "alias"),
        ("Cat", "read_file", "alias"),
        ("todo_list", "list_todos", "alias"),
        ("functions.cat", "read_file", "alias"),
        ("functions.memory.search", "memory_search", "alias"),
        ("readFile", "read_file", "normalized"),
        ("ReadFile", "read_file", "normalized"),
        ("READ_FILE", "read_file", "normalized"),
        ("read-file", "read_file", "normalized"),
        ("read.file", "read_file", "normalized"),
        (" read file\n", "read_file", "normalized"),
        ("readfile", "read_file", "normalized"),
        ("memorySearch", "memory_search", "normalized"),
        ("functions.read_file", "read_file", "normalized"),
        ("functions:read_file", "read_file", "normalized"),
        ("tools.readFile", "read_file", "normalized"),
        ("default_api.read_file", "read_file", "normalized"),
        ("multi_tool_use.functions.read_file", "read_file", "normalized"),
        ("V1.2", "v1_2", "normalized"),
    ],
)
def test_a_name_that_means_one_tool_is_understood(requested: str, name: str, how: str) -> None:
    """TL-04: exact, then alias, then normalised."""
    found = resolved(requested)

    assert (found.name, found.how) == (name, how)


@pytest.mark.parametrize(
    "requested",
    [
        "read_files",
        "v12",
        "gone",
        "Gone",
        "memory.forget",
        "re\N{CYRILLIC SMALL LETTER A}d_file",
        "\N{FULLWIDTH LATIN SMALL LETTER R}ead_file",
        "read_file\N{ZERO WIDTH SPACE}",
        "v1\N{ONE DOT LEADER}2",
        "read/file",
        "mcp.read_file",
        "functions.",
        "functions",
        "...",
        "_",
        "\ud800",
    ],
)
def test_a_name_that_means_no_visible_tool_is_unknown(requested: str) -> None:
    """TL-04 and TL-06: an alias of a hidden tool, a look-alike, a name that is merely near."""
    assert resolved(requested) == ResolvedName(requested, "unknown")


@pytest.mark.parametrize("requested", ["", " ", "\n\t", "\N{ZERO WIDTH SPACE}"])
def test_a_blank_name_is_missing(requested: str) -> None:
    """TL-04."""
    assert resolved(requested) == ResolvedName(requested, "missing")


@pytest.mark.parametrize(
    ("requested", "how"),
    [
        ("read_file", "exact"),
        ("cat", "alias"),
        ("memory.search", "alias"),
        ("Cat", "unknown"),
        ("Memory.Search", "unknown"),
        ("readFile", "unknown"),
        ("functions.read_file", "unknown"),
        (" read_file", "unknown"),
    ],
)
def test_without_normalisation_every_letter_counts(requested: str, how: str) -> None:
    """TL-04: also in an alias."""
    assert resolved(requested, normalize=False).how == how


@pytest.mark.parametrize(
    ("requested", "visible", "aliases", "name"),
    [
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
    ],
)
def test_of_two_tools_that_could_be_meant_none_is_taken(
    requested: str, visible: list[str], aliases: dict[str, str], name: str | None
) -> None:
    """TL-04: the user's alias goes before a built-in one, the whole name before its end."""
    found = resolve_name(requested, visible, aliases=aliases, normalize=True)

    assert found.name == (name or requested)
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


@given(st.text())
def test_a_key_has_no_case_and_no_separators(name: str) -> None:
    """But between digits; a name outside ASCII is left as it is."""
    key = name_key(name)

    assert name_key(key) == key
    assert key == name or re.fullmatch(r"[^A-Z\s.-]*", key, re.ASCII)


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


# --- Names that could be read as two different tools are refused, and both are named.


async def nothing(*_: Any) -> str:
    return ""


def tools(*names: str) -> list[Tool]:
    """Tools of these names, each from a place of its own."""
    return [Tool(name, "", {}, nothing, source=f"place {n}") for n, name in enumerate(names)]


@pytest.mark.parametrize("normalize", [True, False])
def test_two_tools_of_one_name_are_refused(normalize: bool) -> None:
    """TL-05: whatever the settings."""
    with pytest.raises(ToolNameConflictError, match="'a': place 0 and place 2"):
        check_names(tools("a", "b", "a"), normalize=normalize)


@pytest.mark.parametrize(
    "pair",
    [("read_file", "readFile"), ("read_file", "READ-FILE"), ("ab", "a.b"), ("v_1", "v1")],
)
def test_two_names_that_are_read_as_one_are_refused(pair: tuple[str, str]) -> None:
    """TL-05: with normalisation on only."""
    said = rf"'{pair[0]}' \(place 1\) and '{pair[1]}' \(place 2\) have names that are read as one"

    check_names(tools("c", *pair), normalize=False)
    with pytest.raises(ToolNameConflictError, match=said):
        check_names(tools("c", *pair), normalize=True)


def test_names_that_differ_in_more_than_spelling_are_fine() -> None:
    """Digits apart are not digits together, and what has no key has its name."""
    check_names(tools("v1_2", "v12", "_", "-", "\N{CYRILLIC SMALL LETTER A}", "a"), normalize=True)


@pytest.mark.parametrize(
    ("alias", "name", "refused_with", "refused_without"),
    [
        ("shout", "whisper", True, True),
        ("shout", "gone", True, True),
        ("Shout", "whisper", True, False),
        ("Shout", "shout", False, False),
        ("shout", "shout", False, False),
        ("SHOUT", "SHOUT", False, False),
        ("call", "shout", False, False),
        ("call", "gone", False, False),
    ],
)
def test_an_alias_that_hides_a_tool_is_refused(
    alias: str, name: str, refused_with: bool, refused_without: bool
) -> None:
    """TL-05: one written like a tool's name that leads elsewhere; with normalisation, by key."""
    for normalize, refused in ((True, refused_with), (False, refused_without)):
        try:
            check_aliases(tools("whisper", "shout"), {alias: name}, normalize=normalize)
        except ToolNameConflictError as error:
            said = str(error)
        else:
            said = ""

        assert bool(said) is refused
        assert not refused or all(part in said for part in (f"'{name}'", "'shout' (place 1)"))


# --- A declared promotion leads to a tool that is there.


def promoted(name: str, target: str) -> BaseTool:
    """A tool of that name that is promoted to another one."""

    @tool(name)
    def made(text: str) -> str:
        """Do it."""
        return text

    declared: dict[str, Any] = {"promote_to": target, "promote_when": ["at"]}
    made.metadata = {"daruma": declared}
    return made


def plain(text: str) -> str:
    """Do it."""
    return text


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([promoted("a", "b")], "'a' is promoted to 'b', and there is no such tool"),
        ([promoted("a", "a")], "in a circle: a → a;"),
        ([promoted("a", "b"), promoted("b", "a")], "in a circle: a → b → a;"),
    ],
)
def test_a_promotion_that_leads_nowhere_is_refused(tools: list[BaseTool], said: str) -> None:
    """TL-19: when the graph is built."""
    with pytest.raises(PromotionRefused, match=said):
        a_registry(tools).check(Tools())


def test_promotions_may_follow_one_another() -> None:
    """As long as they end."""
    a_registry([promoted("a", "b"), promoted("b", "plain"), plain]).check(Tools())
