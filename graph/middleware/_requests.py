"""An agent's tools and requests as our rules see them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from daruma.state.events import Event
from daruma.state.settings import Tools
from daruma.tools.calls import Tool, VisibleTools, check_names, foreign_tool
from daruma.tools.calls.policy import profile_shows

# --- What a model answers, and who is told of it.


def answer_in(response: ModelResponse[Any]) -> AIMessage | None:
    """Return a response's one answer; None where it was read already, as structured output is."""
    if len(response.result) != 1 or response.structured_response is not None:
        return None
    (message,) = response.result
    return message if isinstance(message, AIMessage) else None


def send_event(request: ModelRequest[Any], event: Event) -> None:
    """Send an event to the run's ``custom`` stream, if it has one."""
    if request.runtime:
        request.runtime.stream_writer(event.to_dict())


# --- An agent's tools as our rules see them: what their calls are read and judged by.

Given = BaseTool | Callable[..., Any] | dict[str, Any]
"""What ``create_agent`` takes for a tool."""


def offer_for(given: Iterable[Given], settings: Tools) -> VisibleTools:
    """Return what a model is offered.

    Raises :class:`~daruma.tools.calls.ToolNameConflictError` for names that could mean two.
    """
    tools = tools_of(given)
    check_names(tools, settings.name_aliases, normalize=settings.normalize_names)
    return VisibleTools(tools=tools, hidden=frozenset(), settings=settings)


def tools_of(given: Iterable[Given]) -> tuple[Tool, ...]:
    """Return the tools that can be called by name; a provider's own tools are none."""
    return tuple(tool for each in given if (tool := foreign_tool(each)) is not None)


def select_visible(given: Iterable[Given], settings: Tools) -> list[Any]:
    """Return the tools that a profile shows; a provider's own stay."""
    kept = ((each, foreign_tool(each)) for each in given)
    return [each for each, tool in kept if tool is None or profile_shows(settings, tool)]


def with_name(offer: VisibleTools, name: str) -> VisibleTools:
    """Return an offer that also has what is called by a name of which nothing else is known.

    Other middleware brings tools of its own, and the policy is about these, too.
    """
    if offer.find(name) or name in offer.hidden:
        return offer
    anything = {"type": "object", "additionalProperties": True}
    tool = foreign_tool({"name": name, "description": "", "parameters": anything})
    if tool and profile_shows(offer.settings, tool):
        return replace(offer, tools=(*offer.tools, tool))
    return replace(offer, hidden=offer.hidden | {name})
