"""An agent's tools as our rules see them: what their calls are read and judged by."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from daruma.state.settings.tools import Tools
from daruma.tools.calls.application_tool import ToolRefused, declared
from daruma.tools.calls.mcp import is_mcp_tool
from daruma.tools.calls.names import check_aliases, check_names
from daruma.tools.calls.policy.policy import shows
from daruma.tools.calls.tool import Surroundings, Tool
from daruma.tools.calls.visible import Offer

Given = BaseTool | Callable[..., Any] | dict[str, Any]
"""What ``create_agent`` takes for a tool."""


def offer_for(given: Iterable[Given], settings: Tools, hidden: Collection[str] = ()) -> Offer:
    """Return what a model is offered.

    Raises :class:`~daruma.tools.calls.names.ToolNameConflictError` for names that could mean two.
    """
    tools = tools_of(given)
    check_names(tools, normalize=settings.normalize_names)
    check_aliases(tools, settings.name_aliases, normalize=settings.normalize_names)
    return Offer(tools=tools, hidden=frozenset(hidden), settings=settings)


def tools_of(given: Iterable[Given]) -> tuple[Tool, ...]:
    """Return the tools that can be called by name; a provider's own tools are none."""
    return tuple(tool for each in given if (tool := _tool(each)) is not None)


def shown(given: Iterable[Given], settings: Tools) -> list[Any]:
    """Return the tools that a profile shows; a provider's own stay."""
    kept = ((each, _tool(each)) for each in given)
    return [each for each, tool in kept if tool is None or shows(settings, tool)]


def with_name(offer: Offer, name: str) -> Offer:
    """Return an offer that also has what is called by a name of which nothing else is known.

    Other middleware brings tools of its own, and the policy is about these, too.
    """
    if offer.find(name) or name in offer.hidden:
        return offer
    anything = {"type": "object", "additionalProperties": True}
    tool = Tool(name=name, description="", parameters=anything, run=_elsewhere)
    if shows(offer.settings, tool):
        return replace(offer, tools=(*offer.tools, tool))
    return replace(offer, hidden=offer.hidden | {name})


def _tool(given: Given) -> Tool | None:
    if isinstance(given, dict) and not (given.get("function") or given.get("parameters")):
        return None
    function = convert_to_openai_tool(given)["function"]
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    effect: Any = "external"
    if isinstance(given, BaseTool):
        effect = _effect(given, parameters)
    mcp = isinstance(given, BaseTool) and is_mcp_tool(given)
    return Tool(
        name=function["name"],
        description=function.get("description", ""),
        parameters=parameters,
        run=_elsewhere,
        effect=effect,
        origin="mcp" if mcp else "application",
    )


def _effect(tool: BaseTool, parameters: Mapping[str, Any]) -> str:
    try:
        return declared(tool, parameters).effect
    except ToolRefused:  # meant for the machine, which runs it otherwise
        return "external"


async def _elsewhere(args: Mapping[str, Any], at: Surroundings) -> str:
    raise NotImplementedError("the agent runs its tools itself")
