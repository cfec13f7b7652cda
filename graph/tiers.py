"""The tiers behind a failure, where settings switch them off (EM-05).

With the whole chain off, a failure leaves the machine at once, from the node it happened in. With
emergency off it is recovered from as ever, and the run then ends with the exception.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.errors import GraphBubbleUp

from daruma.graph.raising import Leaving, Raised, cancelled_from_within, original
from daruma.nodes.emergency import first_failure
from daruma.state.channels import State, Update
from daruma.state.errors import CutOff
from daruma.state.failure import Code, ModelFailed, failure_of
from daruma.tools.context import Answer, Ask, Context

Node = Callable[[Any, Context], Coroutine[Any, Any, Update]]

_ENDINGS: frozenset[Code] = frozenset(
    {"bad_request", "plan_refused", "approval_denied", "rollback_failed", "budget_exceeded"}
)
"""What a task ends with by its own rules: a result under any settings."""


async def run_node(node: Node, state: Any, context: Context, raised: Raised) -> Update:
    """Run a node. What is cancelled from within it leaves the machine, as a cancellation (EM-02).

    So does that the run is cut off from what it is written down in (DU-04).

    Raises :class:`~daruma.graph.raising.Leaving`, and what the node raises.
    """
    chain = context.settings.fallback_chain
    update = await _run(node, state, context)
    if chain.has_emergency:
        return update
    failure = update.get("failure")
    if failure and not chain.enabled and failure.code not in _ENDINGS:
        raise Leaving(raised.behind(failure))
    if update.get("result"):
        end_with_first(state, raised)
    return update


async def _run(node: Node, state: Any, context: Context) -> Update:
    try:
        return await node(state, context)
    except asyncio.CancelledError as error:
        if cancelled_from_within():
            raise Leaving(error) from None
        raise
    except GraphBubbleUp:
        raise
    except Exception as error:
        if context.settings.fallback_chain.enabled and not isinstance(error, CutOff):
            raise
        raise Leaving(original(error)) from None


def end_with_first(state: State, raised: Raised) -> None:
    """Let a failed task end with the exception behind its first failure, if there was one."""
    failure = first_failure(state) if state.error else None
    if failure and failure.was_raised:
        raised.end = raised.behind(failure)


@dataclass(frozen=True)
class Noting:
    """An :class:`~daruma.tools.context.Ask` that notes the exceptions behind its failures."""

    ask: Ask
    raised: Raised

    async def __call__(self, node: str, messages: Sequence[BaseMessage], **options: Any) -> Answer:
        """Ask. Raises :class:`~daruma.state.failure.ModelFailed`."""
        try:
            return await self.ask(node, messages, **options)
        except ModelFailed as error:
            self.raised.note(failure_of(error, node), error)
            raise
