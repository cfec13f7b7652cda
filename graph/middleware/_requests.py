"""An agent's tools and requests as our rules see them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from daruma.graph.middleware._langchain_agents import ModelRequest, ModelResponse
from daruma.state.events import Event
from daruma.state.settings import Tools
from daruma.tools.calls import (
    Tool,
    VisibleTools,
    check_names,
    foreign_tool,
)
from daruma.tools.calls.policy import profile_shows

# --- Rules written once for callers of both kinds: they say what to ask next, and are told the
# answer.
#
# A rule is a generator. It yields a request, or the seconds to wait; it is given the response, or
# what was raised; what it returns is the response of the middleware.

Rule = Generator[ModelRequest[Any] | float, Any, ModelResponse[Any]]


def carried_out(
    rule: Rule, handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
) -> ModelResponse[Any]:
    """Carry out a rule on a thread that may wait."""
    wanted = _next(rule, None)
    while not isinstance(wanted, ModelResponse):
        if isinstance(wanted, float):
            time.sleep(wanted)
            wanted = _next(rule, None)
            continue
        try:
            given = handler(wanted)
        except Exception as error:  # noqa: BLE001  # the rule says what comes of it
            wanted = _next(rule, error)
        else:
            wanted = _next(rule, given)
    return wanted


async def acarried_out(
    rule: Rule, handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
) -> ModelResponse[Any]:
    """Do the same, asynchronously."""
    wanted = _next(rule, None)
    while not isinstance(wanted, ModelResponse):
        if isinstance(wanted, float):
            await asyncio.sleep(wanted)
            wanted = _next(rule, None)
            continue
        try:
            given = await handler(wanted)
        except Exception as error:  # noqa: BLE001  # the rule says what comes of it
            wanted = _next(rule, error)
        else:
            wanted = _next(rule, given)
    return wanted


def _next(rule: Rule, given: object) -> ModelRequest[Any] | ModelResponse[Any] | float:
    try:
        return rule.throw(given) if isinstance(given, Exception) else rule.send(given)
    except StopIteration as end:
        response: ModelResponse[Any] = end.value
        return response


def answer_in(response: ModelResponse[Any]) -> AIMessage | None:
    """Return a response's one answer; None where it was read already, as structured output is."""
    if len(response.result) != 1 or response.structured_response is not None:
        return None
    (message,) = response.result
    return message if isinstance(message, AIMessage) else None


def tell(request: ModelRequest[Any], event: Event) -> None:
    """Send an event to the run's ``custom`` stream, if it has one."""
    if request.runtime:
        request.runtime.stream_writer(event.to_dict())


# --- An agent's tools as our rules see them: what their calls are read and judged by.

Given = BaseTool | Callable[..., Any] | dict[str, Any]
"""What ``create_agent`` takes for a tool."""


def offer_for(
    given: Iterable[Given], settings: Tools, hidden: Collection[str] = ()
) -> VisibleTools:
    """Return what a model is offered.

    Raises :class:`~daruma.tools.calls.ToolNameConflictError` for names that could mean two.
    """
    tools = tools_of(given)
    check_names(tools, settings.name_aliases, normalize=settings.normalize_names)
    return VisibleTools(tools=tools, hidden=frozenset(hidden), settings=settings)


def tools_of(given: Iterable[Given]) -> tuple[Tool, ...]:
    """Return the tools that can be called by name; a provider's own tools are none."""
    return tuple(tool for each in given if (tool := foreign_tool(each)) is not None)


def shown(given: Iterable[Given], settings: Tools) -> list[Any]:
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
