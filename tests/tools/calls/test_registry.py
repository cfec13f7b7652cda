"""The tools of a graph have names of their own, and only some of them are shown."""

from typing import Any

import pytest
from langchain_core.tools import tool
from tests.parts import WORKSPACE_TOOLS, a_registry

from daruma.state.errors import DarumaError
from daruma.state.settings import SettingsError, Tools
from daruma.tools.calls import Registry, ToolNameConflictError
from daruma.tools.calls._tool import Toolset


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@tool("shout")
def other_shout(text: str) -> str:
    """Say it loudly as well."""
    return text.upper()


@tool("search")
def own_search(text: str) -> str:
    """Search elsewhere."""
    return text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([shout, other_shout], r"'shout': .*test_registry\.shout and .*test_registry\.other_shout"),
        ([own_search], r"'search': built in and .*test_registry\.own_search"),
    ],
)
def test_two_tools_of_one_name_are_refused(given: list[object], named: str) -> None:
    """TL-05: among the application's own, and between these and the built-in ones."""
    with pytest.raises(ToolNameConflictError, match=f"two tools are named {named}") as refused:
        a_registry(given)  # type: ignore[arg-type]  # a list of both kinds

    assert isinstance(refused.value, DarumaError)


def names(registry: Registry, *, workspace: bool, **given: Any) -> list[str]:
    usable: set[Toolset] = {"workspace"} if workspace else set()
    return [each.name for each in registry.visible(Tools(**given), usable)]


def test_built_in_tools_are_shown_with_a_workspace_only() -> None:
    """The application's own are shown always."""
    registry = a_registry([shout])

    builtin = [each.name for each in WORKSPACE_TOOLS]
    assert names(registry, workspace=True) == [*builtin, "shout"]
    assert names(registry, workspace=False) == ["shout"]


def test_a_profile_decides_what_is_shown() -> None:
    """TL-06: in a workspace and without one."""
    registry = a_registry([shout])

    assert names(registry, workspace=True, profile="read_only") == ["search"]
    assert names(registry, workspace=False, profile="read_only") == []


def test_a_tool_is_known_by_its_name_shown_or_not() -> None:
    """What stands in a thread's history may be hidden from its next task."""
    registry = a_registry([shout])

    assert registry.named("shout") is not None
    assert registry.named("Shout") is None
    assert {"shout", "run_tests"} <= set(registry.names)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name_aliases": {"shout": "search"}}, ToolNameConflictError),
        ({"profile": "nobodys"}, SettingsError),
    ],
)
def test_settings_that_do_not_fit_the_tools_are_refused(
    given: dict[str, Any], error: type[Exception]
) -> None:
    """TL-05 and TL-06: by ``check``, as each run may bring settings of its own."""
    with pytest.raises(error):
        a_registry([shout]).check(Tools(**given))


def test_the_settings_as_they_come_fit() -> None:
    """No tool that ships with Daruma is in another's way."""
    a_registry([shout]).check(Tools())


def test_what_is_shown_is_looked_for_once_for_the_same_settings() -> None:
    """Each step of a run asks for it; other settings, and other needs, show something else."""
    registry, given, nothing = a_registry([shout]), Tools(), frozenset[Any]()
    other = Tools(profile="own", profiles={"own": ("search",)})

    first = registry.shown(given, nothing, nothing, reading=True)
    again = registry.shown(given, nothing, nothing, reading=True)
    without = registry.shown(given, nothing, frozenset({"shout"}), reading=False)
    elsewhere = registry.shown(other, nothing, nothing, reading=False)
    back = registry.shown(given, nothing, nothing, reading=False)

    assert [tool.name for tool in first.tools] == ["shout", "read_output"]
    assert again is first
    assert (without.tools, elsewhere.tools) == ((), ())
    assert [tool.name for tool in back.tools] == ["shout"]
    assert "read_output" in back.hidden
