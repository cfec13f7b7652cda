"""A provider that finds a request too long is asked once more, with a good deal less."""

from pathlib import Path

import pytest
from tests.context_window.thread_server import Provider, is_summary, request_tokens
from tests.context_window.threads import Thread, thread
from tests.fault_matrix.runs import WAYS

NAMELESS = "Your input exceeds the context window of this model."


def talk(count: int) -> list[tuple[str, str]]:
    return [
        ("ai" if n % 2 else "user", f"NEEDLE-{n}=v{n} " + "and so on " * 30) for n in range(count)
    ]


def sizes(it: Thread) -> list[int]:
    return [request_tokens(request) for request in it.sent]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [Provider.words, NAMELESS])
def test_a_request_that_is_too_long_comes_again_smaller(way: str, words: str) -> None:
    """Without any budget in the settings, whether the provider names its limit or not."""
    provider = Provider(rounds=0, window=2500, words=words)
    with thread(provider, way=way, budget=None) as it:
        said = it.ask("What do you know?", talk(40), mode="direct_chat")

        refused, accepted = sizes(it)
        assert refused > 2500 >= accepted
        assert "NEEDLE-0=v0" in said
        result = it.state.result
        assert result is not None
        (cost,) = result.context_cost
        assert (result.status, cost.refused) == ("completed", True)
        (step,) = [each for each in it.state.steps if each.kind == "compress"]
        assert step.audit is not None
        assert step.audit.failover is not None
        assert step.audit.failover.attempts[0].status == 400


def test_what_was_learnt_holds_for_the_task() -> None:
    """One refusal teaches it: no further request of the task is refused."""
    with thread(Provider(rounds=30, window=4000), budget=None) as it:
        it.ask("Look around.")

        assert [size > 4000 for size in sizes(it)].count(True) == 1
        result = it.state.result
        assert result is not None
        assert result.context_cost[0].refused
        assert not any(cost.refused for cost in result.context_cost[1:])


@pytest.mark.parametrize("mode", ["direct_chat", "react", "plan_exec"])
def test_a_second_refusal_is_an_honest_failure(mode: str) -> None:
    """In the provider's own words; nothing is asked again and again."""
    with thread(Provider(rounds=0, window=10), budget=None, tools=()) as it:
        said = it.ask("What do you know?", talk(10), mode=mode)

        result = it.state.result
        assert result is not None
        assert result.status == "failed"
        assert "maximum context length is 10 tokens" in said or "of the" in said
        assert len(it.sent) <= 2


@pytest.mark.parametrize("mode", ["plan_exec", "react"])
def test_plans_are_brought_under_the_budget_too(mode: str) -> None:
    """Whoever makes the request: it fits, and the plan follows."""
    with thread(Provider(rounds=0), budget=2000, tools=()) as it:
        it.ask("Plan it.", talk(40), mode=mode)

        assert max(map(request_tokens, it.server.requests)) <= 2000
        assert it.sent
        nodes = {step.context_cost.node for step in it.state.steps if step.context_cost}
        assert ("plan" in nodes) == (mode == "plan_exec")


@pytest.mark.long
def test_a_reflection_is_within_the_budget_too(tmp_path: Path) -> None:
    """It holds what the checks said, which is the latest."""
    red = {"enabled": True, "commands": ["false"]}
    with thread(Provider(rounds=0), budget=2000, verification=red) as it:
        it.ask("Mend it.", talk(26), mode="react", workspace=str(tmp_path))

        assert max(map(request_tokens, it.server.requests)) <= 2000
        assert {"verify", "reflect", "compress"} <= {step.kind for step in it.state.steps}


@pytest.mark.long
def test_summaries_are_no_part_of_the_answer() -> None:
    """Nobody who watches the answer is shown one."""
    with thread(Provider(rounds=0), way="astream", budget=2000) as it:
        it.ask("What do you know?", talk(40), mode="direct_chat")

        (asked,) = [request for request in it.server.requests if is_summary(request)][:1]
        assert not asked["stream"]
        assert all(request["stream"] for request in it.sent)
