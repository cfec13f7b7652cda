"""A profile decides which tools the model is shown."""

from typing import Any

import pytest

from daruma.state.settings.errors import SettingsError
from daruma.state.settings.tools import Tools
from daruma.tools.calls.policy.policy import check_named, check_profile, shows
from daruma.tools.calls.tool import Effect, Tool


async def nothing(*_: Any) -> str:
    return ""


EFFECTS: dict[str, Effect] = {
    "search": "none",
    "search_knowledge": "none",
    "hybrid_search": "external",
    "web_search": "external",
    "get_knowledge_graph_context": "none",
    "web_search_all": "none",
    "pay": "external",
    "run_command": "workspace",
}
TOOLS = [Tool(name, "", {}, nothing, effect=effect) for name, effect in EFFECTS.items()]


def shown(**given: Any) -> list[str]:
    return [tool.name for tool in TOOLS if shows(Tools(**given), tool)]


@pytest.mark.parametrize("profile", [None, "all"])
def test_without_a_profile_all_are_shown(profile: str | None) -> None:
    """TL-06."""
    assert shown(profile=profile) == list(EFFECTS)


def test_read_only_shows_what_changes_nothing() -> None:
    """TL-06: nothing that writes, runs or reaches outside."""
    assert shown(profile="read_only") == [name for name in EFFECTS if EFFECTS[name] == "none"]


def test_the_librarian_has_exactly_its_four() -> None:
    """AS-02."""
    assert shown(profile="librarian_retrieval") == [
        "search_knowledge",
        "hybrid_search",
        "web_search",
        "get_knowledge_graph_context",
    ]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("pay",), ["pay"]),
        (("web_*", "pa?"), ["web_search", "web_search_all", "pay"]),
        (("PAY",), []),
        ((), []),
    ],
)
def test_a_profile_of_ones_own_lists_names_or_patterns(
    patterns: tuple[str, ...], expected: list[str]
) -> None:
    """TL-06."""
    assert shown(profile="mine", profiles={"mine": patterns}) == expected


def test_a_profile_of_ones_own_goes_before_a_built_in_one() -> None:
    """What the user wrote counts."""
    assert shown(profile="read_only", profiles={"read_only": ("pay",)}) == ["pay"]


@pytest.mark.parametrize(
    ("profile", "hint"), [("readonly", "did you mean 'read_only'"), ("mien", "did you mean 'mine'")]
)
def test_a_profile_that_is_not_there_is_an_error(profile: str, hint: str) -> None:
    """It names the nearest and all there are; nothing is shown by accident."""
    settings = Tools(profile=profile, profiles={"mine": ()})
    expected = f"{hint}.*There are: all, read_only, librarian_retrieval, mine$"

    with pytest.raises(SettingsError, match=expected):
        check_profile(settings)
    with pytest.raises(SettingsError):
        shows(settings, TOOLS[0])


def test_a_profile_can_be_asked_for_by_its_name() -> None:
    """An expert's, which is no setting; the error says of none where it stands."""
    settings = Tools(profiles={"mine": ()})

    for name in ("mine", "read_only", None):
        check_named(name, settings)
    with pytest.raises(SettingsError, match=r"^there is no profile 'mien'; did you mean 'mine'"):
        check_named("mien", settings)
