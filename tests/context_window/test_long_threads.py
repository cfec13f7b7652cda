"""A thread of any length stays within the context, and remembers (CX-01)."""

from itertools import pairwise
from typing import Any

import pytest
from tests.context_window.thread_server import Provider, is_summary, look, request_tokens
from tests.context_window.threads import thread
from tests.openai_server import OpenAIServer

from daruma.state.messages import reduce_messages
from daruma.tools.model_requests import ESTIMATE

FACTS = [f"NEEDLE-{n}=value{n}" for n in range(4)]
TOLD = "Remember these: " + ", ".join(FACTS) + ". Look around."


def compactions_between(server: OpenAIServer) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The requests of the agent in pairs of neighbours."""
    return list(pairwise(each for each in server.requests if not is_summary(each)))


@pytest.mark.long
@pytest.mark.parametrize(("way", "tasks"), [("invoke", 11), ("astream", 3)])
def test_four_hundred_messages_within_eight_thousand_tokens(way: str, tasks: int) -> None:
    """Every request is under the budget, legal, holds the goal and the latest turn.

    What was said early, and is in no request any more, is still known at the end: by summaries of
    summaries.
    """
    with thread(Provider(rounds=17), way=way, auxiliary_model="openai:gpt-4o-mini") as it:
        asked = ["Look around.", TOLD, *(f"Look again, number {n}." for n in range(2, tasks))]
        said = [it.ask(text) for text in asked][-1]

        assert len(it.messages) == tasks * 36
        assert max(map(request_tokens, it.server.requests)) <= 8000
        assert all(fact in said for fact in FACTS)
        told = [each["content"] for each in it.sent[-1]["messages"]]
        assert (TOLD in told) == (tasks < 5)  # summarised by then
        assert set(it.summarised_by.split()) <= {"gpt-4o-mini"}
        assert bool(it.summarised_by) == (tasks > 5)
        for number, request in enumerate(it.sent):
            messages = request["messages"]
            assert f"Task: {asked[number // 18]}" in messages[0]["content"]
            assert messages[1]["content"] == asked[0]
            latest = messages[-1]
            assert latest["content"] == asked[number // 18] or latest["role"] == "tool"
        outputs = [m[-1]["content"] for m in (r["messages"] for r in it.sent)]
        whole = {look(at) for at in range(1, 17 * tasks + 1)}
        assert whole <= set(outputs)


def test_between_two_compactions_each_request_begins_with_the_one_before() -> None:
    """Providers cache the beginning of a request; only a compaction changes it."""
    with thread(Provider(rounds=40), budget=5000) as it:
        it.ask(TOLD)

        changed = 0
        for before, now in compactions_between(it.server):
            same = now["messages"][: len(before["messages"])] == before["messages"]
            changed += not same
            assert before["tools"] == now["tools"]
        result = it.state.result
        assert result is not None
        assert 1 <= changed == len(result.context_cost)
        assert len(it.sent) / changed > 5


@pytest.mark.long
def test_what_was_done_and_saved_is_on_record() -> None:
    """In the result, and told when it happens."""
    with thread(
        Provider(rounds=45), way="astream", budget=4000, auxiliary_model="openai:gpt-4o-mini"
    ) as it:
        it.ask(TOLD)

        result = it.state.result
        assert result is not None
        costs = result.to_dict()["context_cost"]
        told = [event["cost"] for event in it.events if event["type"] == "context_compacted"]
        assert costs == told != []
        for cost in costs:
            assert cost["before"] > cost["budget"] == 4000
            assert cost["after"] <= 0.9 * 4000
            assert cost["before"] - cost["after"] == sum(cost["saved"].values())
        summary = next(cost for cost in costs if "summarise" in cost["saved"])
        assert (summary["by"], summary["exact"]) == ("auxiliary", True)
        assert summary["messages"] > 10
        assert result.budgets["compress"] == len(costs)
        spent = [step.usage for step in it.state.steps if step.kind == "summarise"]
        assert {(u.agent, u.task, u.role) for u in spent if u} == {
            ("compressor", "summarization", "auxiliary")
        }
        assert result.usage["auxiliary"]["calls"] == len(spent)


def test_our_count_is_that_of_the_rule() -> None:
    """Where the tokenizer is known, what is recorded is what was sent, and never less."""
    with thread(Provider(rounds=20)) as it:
        it.ask(TOLD)

        counted = [step.counted for step in it.state.steps if step.kind == "think"]
        true = [request_tokens(request) for request in it.sent]
        assert all(mine >= theirs for mine, theirs in zip(counted, true, strict=True))
        assert max(mine / theirs for mine, theirs in zip(counted, true, strict=True)) < 1.15


def test_without_its_tokenizer_a_model_is_sent_less() -> None:
    """The estimate is more than the truth, and the budget holds all the same."""
    with thread(Provider(rounds=25), model="openai:unheard-of", budget=5000) as it:
        it.ask(TOLD)

        result = it.state.result
        assert result is not None
        assert result.context_cost
        assert not any(cost.exact for cost in result.context_cost)
        assert max(map(request_tokens, it.server.requests)) <= 5000


@pytest.mark.long
def test_the_history_keeps_everything() -> None:
    """What is sent is a view of it: nothing is removed."""
    with thread(Provider(rounds=25), budget=3000) as it:
        it.ask(TOLD)

        assert any(step.kind == "compress" for step in it.state.steps)
        outputs = [each.text for each in it.messages if each.type == "tool"]
        assert len(outputs) == 25
        assert all(text.startswith(f"At {n} there is") for n, text in enumerate(outputs, 1))
        assert reduce_messages([], [list(it.messages)]) == it.messages


@pytest.mark.long
def test_without_a_budget_nothing_is_left_out() -> None:
    """And nothing is counted."""
    with thread(Provider(rounds=30), budget=None) as it:
        it.ask(TOLD)

        assert len(it.sent[-1]["messages"]) == len(it.messages)
        assert {step.counted for step in it.state.steps} == {0}


def test_a_prompt_that_is_too_large_alone_is_an_honest_failure() -> None:
    """It names what is too large and what to do, and nobody was asked."""
    with thread(Provider(), budget=1000) as it:
        it.ask("Mend it. " * 600)

        result = it.state.result
        assert result is not None
        assert result.error_struct is not None
        assert result.error_struct.error_code == "bad_request"
        assert "of the 1000 tokens of llm.context_window_tokens: raise it" in result.output
        assert (it.server.requests, result.status) == ([], "failed")
        assert ESTIMATE.of("Mend it. " * 600) > 1000
