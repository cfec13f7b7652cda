"""The tools of a graph have names of their own, and only some of them are shown."""

import pytest
from langchain_core.tools import tool

from daruma.state.errors import DarumaError
from daruma.tools.builtin_tools import BUILTIN_TOOLS
from daruma.tools.registry import Registry, ToolNameConflictError


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
    ("given", "name"), [([shout, other_shout], "shout"), ([own_search], "search")]
)
def test_two_tools_of_one_name_are_refused(given: list[object], name: str) -> None:
    """TL-05: among the application's own, and between these and the built-in ones."""
    with pytest.raises(ToolNameConflictError, match=f"two tools are named '{name}'") as refused:
        Registry(given)  # type: ignore[arg-type]  # a list of both kinds

    assert isinstance(refused.value, DarumaError)


def test_built_in_tools_are_shown_with_a_workspace_only() -> None:
    """The application's own are shown always."""
    registry = Registry([shout])

    builtin = [each.name for each in BUILTIN_TOOLS]
    assert [each.name for each in registry.visible(workspace=True)] == [*builtin, "shout"]
    assert [each.name for each in registry.visible(workspace=False)] == ["shout"]


def test_only_what_is_shown_is_found() -> None:
    """TL-06."""
    registry = Registry([shout])

    assert registry.find("search", workspace=False) is None
    assert registry.find("search", workspace=True) is not None
    assert registry.find("Shout", workspace=True) is None
