"""Rules written once for callers of both kinds: they say what to ask next, and are told the answer.

A rule is a generator. It yields a request, or the seconds to wait; it is given the response, or
what was raised; what it returns is the response of the middleware.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from langchain_core.messages import AIMessage

from daruma.graph.middleware.langchain_agents import ModelRequest, ModelResponse
from daruma.state.events import Event

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
