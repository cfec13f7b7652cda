"""A model's answer as nodes get it: with what it cost and what it took."""

from typing import Final

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from daruma.state.usage import Failover, Role, Usage
from daruma.tools.context import Answer


def answer_of(message: AIMessage, usage: Usage, failover: Failover | None) -> Answer:
    """Return the answer; what it took stands on its message too."""
    message = message if failover is None else with_failover(message, failover)
    return Answer(message=message, usage=usage, failover=failover)


def with_failover(message: AIMessage, failover: Failover) -> AIMessage:
    """Return an answer that says what it took."""
    told = message.response_metadata | {"failover": failover.to_dict()}
    return message.model_copy(update={"response_metadata": told})


AGENTS: Final = {"compress": ("compressor", "summarization")}
"""Who asks in a node, and for what, where that is not the agent and its own work (CX-04)."""


def usage_of(message: AIMessage, role: Role, model: str, node: str = "") -> Usage:
    """Read what a call cost out of its answer; nothing where the provider does not say."""
    agent, task = AGENTS.get(node, ("", ""))
    counted = message.usage_metadata
    return Usage(
        role=role,
        model=model,
        input_tokens=counted["input_tokens"] if counted else 0,
        output_tokens=counted["output_tokens"] if counted else 0,
        agent=agent,
        task=task,
        cached_tokens=_cached(counted),
    )


def _cached(counted: UsageMetadata | None) -> int:
    details = counted.get("input_token_details") if counted else None
    return (details or {}).get("cache_read") or 0
