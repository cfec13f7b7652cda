"""A name that means one tool without doubt is understood; any other one is not guessed at."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.calls.names import BUILTIN_ALIASES, ResolvedName, name_key, resolve_name

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
