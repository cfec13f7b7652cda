"""A request is brought under its budget by as little as it takes, or it is said that it is not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_task
from tests.scripted_runs import illegal
from tests.tools.context_window.asked_models import (
    SAYS,
    Models,
    compact,
    context_of,
    driven,
    state_of,
)
from tests.tools.context_window.histories import HISTORIES, rounds, working

from daruma.state.steps import Compaction, Crowded
from daruma.tools.model_requests import ESTIMATE, sendable
from daruma.tools.window import compact_history
from daruma.tools.window._view import SUMMARY_ID, view


def weight(messages: list[AnyMessage], compaction: Compaction, fixed: int = 300) -> int:
    return fixed + ESTIMATE.of_messages(sendable(view(messages, compaction)))


def talking(count: int) -> list[AnyMessage]:
    """A conversation without tools, of short turns: only a summary makes it less."""
    first = HumanMessage("Do it", id="first")
    return [first, *(HumanMessage("a few words of it " * 4, id=f"m{n}") for n in range(count))]


def test_what_was_recalled_goes_first() -> None:
    """CX-01: and nothing else, where that is enough."""
    done = compact(working(3), Models(), memory=1400)

    assert (done.cost.saved, done.compaction.memory) == ({"memory": 1400}, "t/1")
    assert done.compaction.pruned_through == ""


def test_then_old_turns() -> None:
    """Long texts to their ends."""
    history = [*talking(1), *(HumanMessage("word " * 400, id=f"l{n}") for n in range(6))]

    done = compact(history, Models(), budget=3000)

    assert [*done.cost.saved] == ["shrink"]


def test_then_a_summary() -> None:
    """Of what is older than the latest part, with the first request and the task's own kept."""
    history = talking(120)

    done = compact(history, Models(auxiliary="well"))

    shown = view(history, done.compaction)
    assert [*done.cost.saved] == ["summarise"]
    assert (done.cost.by, done.compaction.kept) == ("auxiliary", ("first",))
    assert [each.id for each in shown[:2]] == ["first", SUMMARY_ID]
    assert "They talked." in shown[1].text
    assert done.cost.messages == len(history) - len(shown) + 1
    assert shown[-1] == history[-1]


def test_at_last_the_middle_of_what_is_left_is_cut() -> None:
    """A last round that is larger than all there is."""
    history = [HumanMessage("Do it", id="first"), *rounds(1, "I look.", ["word " * 9000], True)]

    done = compact(history, Models())

    assert [*done.cost.saved] == ["cut"]
    assert done.cost.after <= 0.9 * 2000
    assert "shortened ..." in view(history, done.compaction)[-1].text


@pytest.mark.parametrize(
    ("fixed", "tools", "said"),
    [
        (2500, 3, "the prompt and 3 tools take 2500 of the 2000 tokens of llm.context_window_to"),
        (2500, 0, "the prompt take"),
        (1700, 3, "the prompt and 3 tools, and the latest messages cut short take "),
    ],
)
def test_what_can_not_be_brought_under_it_is_a_failure(fixed: int, tools: int, said: str) -> None:
    """Told with its size and what to do; never a loop."""
    history = [HumanMessage("Do it", id="first"), *rounds(1, "I look.", ["word " * 300] * 9, True)]

    done = compact(history, Models(), fixed=fixed, tools=tools)

    assert done.failure is not None
    assert done.failure.message.startswith(said)
    assert (done.failure.code, done.failure.node) == ("bad_request", "main")


def test_a_provider_that_counts_more_is_believed() -> None:
    """Twice as much, at most, of what we count."""
    history = working(20)

    done = compact(history, Models(), budget=4000, factor=2.0)

    assert done.cost.after == 2 * weight(history, done.compaction) <= 0.9 * 4000


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(HISTORIES, st.integers(1000, 6000), st.sampled_from([*SAYS]), st.sampled_from([*SAYS]))
def test_any_history_fits_or_is_an_honest_failure(
    history: list[AnyMessage], budget: int, auxiliary: str, main: str
) -> None:
    """And what is sent is valid, begins with the request and ends with the latest message."""
    models = Models(main, auxiliary)
    if weight(history, Compaction()) <= budget:
        return

    done = compact(history, models, budget=budget)

    shown = view(history, done.compaction)
    assert done.cost.after == weight(history, done.compaction)
    assert (done.cost.after <= budget) == (done.failure is None)
    assert illegal(sendable(shown)) == []
    assert view(shown, done.compaction) == shown
    assert "first" in [each.id for each in shown]
    assert shown[-1].id == history[-1].id
    assert all(ESTIMATE.of_messages(asked) <= budget for _, asked in models.asked)


@settings(max_examples=25, deadline=None)
@given(HISTORIES, HISTORIES, st.sampled_from([*SAYS]))
def test_it_can_be_done_again_and_again(
    history: list[AnyMessage], more: list[AnyMessage], auxiliary: str
) -> None:
    """What came since is added, and the next compaction builds on the last."""
    first = compact(history, Models(auxiliary=auxiliary), budget=2000)
    new = [each.model_copy(update={"id": f"n{n}"}) for n, each in enumerate(more)]
    longer = [*history, *new]

    again = compact(longer, Models(auxiliary=auxiliary), before=first.compaction, budget=2000)

    assert (weight(longer, again.compaction) <= 2000) == (again.failure is None)
    assert again.compaction.summarised >= first.compaction.summarised
    assert illegal(sendable(view(longer, again.compaction))) == []


def test_a_compaction_that_can_save_nothing_changes_nothing() -> None:
    """But that it was asked for."""
    before = Compaction(asked_by="plan")

    done = compact([HumanMessage("Do it", id="first")], Models(), fixed=1900, before=before)

    assert done.compaction == replace(before, asked_by="main")
    assert done.failure is None


def test_what_was_pruned_stays_so_behind_a_summary() -> None:
    """The latest part may reach into it: as whole outputs it would be more than before."""
    talk = [each.model_copy(update={"id": f"said {each.id}"}) for each in talking(60)[1:]]
    old = [*talking(0), *talk, *working(12, size=3000)[1:]]
    history = [*old, *rounds(99, "So.", ["that"], False)]
    before = Compaction(pruned_through=str(old[-1].id))

    done = compact(history, Models(), before=before)

    shown = view(history, done.compaction)
    outputs = [each for each in shown if isinstance(each, ToolMessage)]
    assert [*done.cost.saved] == ["summarise"]
    assert len(outputs) > 3
    assert all("left out" in each.text for each in outputs[:-1])


def test_a_cut_does_not_outlive_what_made_it_needful() -> None:
    """Else all that comes later, the summary too, would be held that short for ever."""
    history = talking(120)
    before = Compaction(cut=120, cut_through=str(history[-2].id))
    long = HumanMessage("All of it. " * 30, id="first")

    done = compact([long, *history[1:]], Models(auxiliary="talks"), budget=3000, before=before)

    shown = view([long, *history[1:]], done.compaction)
    assert [*done.cost.saved] == ["summarise"]
    assert (shown[0], len(shown[1].text) > 1000) == (long, True)


def test_the_summariser_knows_the_goal_and_the_tasks_own_request_is_kept() -> None:
    """What was asked for last stays verbatim, though much was said since."""
    models, history = Models(), talking(120)
    task = a_task(goal="Find NEEDLE", request="m40")
    crowded = Crowded(node="main", budget=2000, fixed=300)

    done = driven(
        compact_history(replace(state_of(history), task=task), crowded, context_of(models))
    )

    assert done.compaction.kept == ("first", "m40")
    assert "<goal>\nFind NEEDLE\n</goal>" in models.asked[0][1][1].text


def test_the_summarisers_requests_fit_by_the_providers_count_too() -> None:
    """It counts as its requests do."""
    models = Models()

    compact(talking(400), models, factor=2.0)

    assert all(2 * ESTIMATE.of_messages(asked) <= 2000 for _, asked in models.asked)


def test_nobody_made_a_summary_that_was_not_taken() -> None:
    """One that saves nothing changes nothing, though it was paid for."""
    history = [*talking(1), *rounds(1, "I look.", ["word " * 9000], True)]

    done = compact(history, Models(auxiliary="talks"))

    assert (done.cost.by, done.cost.messages, bool(done.calls)) == ("", 0, True)


@pytest.mark.parametrize("exact", [True, False])
def test_a_cost_says_whether_it_was_counted_or_estimated(exact: bool) -> None:
    """By the tokenizer of the model, or by ours."""
    context = replace(context_of(Models()), tokens=replace(ESTIMATE, exact=exact))
    crowded = Crowded(node="main", budget=4000, fixed=300)

    done = driven(compact_history(state_of(working(20)), crowded, context))

    assert done.cost.exact == exact
