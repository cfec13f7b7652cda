"""Promotions have to lead somewhere: checked when the graph is built (TL-19). Pure."""

from collections.abc import Mapping

from daruma.state.errors import DarumaError
from daruma.tools.tool import Tool


class PromotionRefused(DarumaError):
    """Raised when a tool is promoted to one that is not there, or round in a circle."""


def check_promotions(tools: Mapping[str, Tool]) -> None:
    """Raise :class:`PromotionRefused` for a declared promotion that can not be carried out."""
    for name in tools:
        path = [name]
        while (target := _target(tools[path[-1]])) is not None:
            if target not in tools:
                raise PromotionRefused(
                    f"the tool {path[-1]!r} is promoted to {target!r}, and there is no such tool: "
                    "pass it in too, or correct promote_to"
                )
            if target in path:
                circle = " → ".join([*path, target])
                raise PromotionRefused(f"tools are promoted in a circle: {circle}; break it")
            path.append(target)


def _target(tool: Tool) -> str | None:
    return tool.canonical.promote_to if tool.canonical else None
