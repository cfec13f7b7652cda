"""A model's answer as nodes get it."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata

from daruma.graph.models.calls import Request
from daruma.graph.models.failover import Pursuit, answer_of, usage_of
from daruma.state.usage import Failover, Usage


@pytest.mark.parametrize(
    "told", [None, UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)]
)
def test_what_a_provider_does_not_count_is_counted_here(told: UsageMetadata | None) -> None:
    """BU-05: what was sent, and what was answered; and it is marked."""
    small, large = Request([HumanMessage("hi " * 10)]), Request([HumanMessage("hi " * 1000)])
    answer = AIMessage("word " * 100, usage_metadata=told)
    usages = [usage_of(answer, pursuit(each)) for each in (small, large)]

    assert all(each.estimated for each in usages)
    assert 10 <= usages[0].input_tokens < 100
    assert 1000 <= usages[1].input_tokens < 2000
    assert 100 <= usages[0].output_tokens < 200


def test_what_a_provider_counts_is_taken_as_it_is() -> None:
    """MO-07: for whoever was asked."""
    told = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10)
    usage = usage_of(AIMessage("hi", usage_metadata=told), pursuit(Request([])))

    assert usage == Usage(role="reflect", model="m", input_tokens=7, output_tokens=3)


def pursuit(request: Request) -> Pursuit:
    return Pursuit("reflect", 0, "reflect", ("m",), request, began=0)


def test_what_it_took_stands_on_the_message() -> None:
    """TL-17: beside what the provider told, and only if there is something to tell."""
    message = AIMessage("hi", response_metadata={"finish_reason": "stop"})
    usage, failover = Usage(role="main", model="m"), Failover(requested="m", used="n")

    took = answer_of(message, usage, failover).message.response_metadata
    took_nothing = answer_of(message, usage, None).message.response_metadata

    assert took == {"finish_reason": "stop", "failover": failover.to_dict()}
    assert took_nothing == {"finish_reason": "stop"}
