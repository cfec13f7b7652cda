"""A model's answer as nodes get it: with what it cost and what it took."""

from langchain_core.messages import AIMessage

from daruma.state.failover import Failover
from daruma.state.usage import Role, Usage
from daruma.tools.context import Answer


def answer_of(message: AIMessage, usage: Usage, failover: Failover | None) -> Answer:
    """Return the answer; what it took stands on its message too."""
    if failover is not None:
        told = message.response_metadata | {"failover": failover.to_dict()}
        message = message.model_copy(update={"response_metadata": told})
    return Answer(message=message, usage=usage, failover=failover)


def usage_of(message: AIMessage, role: Role, model: str) -> Usage:
    """Read what a call cost out of its answer; nothing where the provider does not say."""
    counted = message.usage_metadata
    return Usage(
        role=role,
        model=model,
        input_tokens=counted["input_tokens"] if counted else 0,
        output_tokens=counted["output_tokens"] if counted else 0,
    )
