"""A declared promotion leads to a tool that is there."""

from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from daruma.state.settings.tools import Tools
from daruma.tools.calls.names import PromotionRefused
from daruma.tools.calls.registry import Registry


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
        Registry(tools).check(Tools())


def test_promotions_may_follow_one_another() -> None:
    """As long as they end."""
    Registry([promoted("a", "b"), promoted("b", "plain"), plain]).check(Tools())
