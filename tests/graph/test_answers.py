"""A model's answer as nodes get it."""

from langchain_core.messages import AIMessage

from daruma.graph.models.failover import answer_of, usage_of
from daruma.state.usage import Failover, Usage


def test_a_provider_that_does_not_count_costs_nothing() -> None:
    """Rather than an error."""
    usage = usage_of(AIMessage("hi"), "reflect", "m")

    assert usage == Usage(role="reflect", model="m")


def test_what_it_took_stands_on_the_message() -> None:
    """TL-17: beside what the provider told, and only if there is something to tell."""
    message = AIMessage("hi", response_metadata={"finish_reason": "stop"})
    usage, failover = Usage(role="main", model="m"), Failover(requested="m", used="n")

    took = answer_of(message, usage, failover).message.response_metadata
    took_nothing = answer_of(message, usage, None).message.response_metadata

    assert took == {"finish_reason": "stop", "failover": failover.to_dict()}
    assert took_nothing == {"finish_reason": "stop"}
