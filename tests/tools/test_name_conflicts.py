"""Names that could be read as two different tools are refused, and both are named."""

from typing import Any

import pytest

from daruma.tools.calls.names import ToolNameConflictError, check_aliases, check_names
from daruma.tools.calls.tool import Tool


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
