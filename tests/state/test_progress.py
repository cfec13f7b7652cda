"""How a task gets on: rounds of the tool loop, loops, no progress, the alarm (RE-01 to RE-03)."""

import json
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import GREEN, RED, a_call, a_failure, a_phase, a_plan, a_state, a_task, taken

from daruma.state.calls import ToolTask
from daruma.state.failure import Carried, Recovered, Strategy
from daruma.state.progress import (
    Loop,
    Observed,
    Progress,
    Round,
    attempt,
    observe_results,
    progress_of,
    repeating,
    rounds,
    signature_of,
    tools_in,
)
from daruma.state.steps import Step
from daruma.state.verification import Check, Verification

# --- The signature of what a think step asked for.

NOTHING = AIMessage("")


def named(name: str, **changes: Any) -> ToolTask:
    return a_call(**({"name": name, "requested_name": name} | changes))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([named("search")], [named("view")]),
        ([named("search", args={"page": 1})], [named("search", args={"page": 2})]),
        ([named("a"), named("b")], [named("b"), named("a")]),
        ([named("a")], [named("a"), named("a")]),
    ],
)
def test_other_calls_have_another(one: list[ToolTask], other: list[ToolTask]) -> None:
    """The set of an answer's calls, in order, is one action."""
    assert signature_of(NOTHING, one) != signature_of(NOTHING, other)


def test_a_signature_names_its_tools() -> None:
    """Each once, the first three, with nothing in them that hides or can not be stored."""
    calls = [named(name) for name in ("b", "a", "b", "\u202ex\ud800é", "d", "")]

    assert tools_in(signature_of(NOTHING, calls)) == ("b", "a", "?x??")
    assert tools_in(signature_of(NOTHING, [named("")])) == ("unnamed",)
    assert tools_in(signature_of(NOTHING, [named("x" * 10_000)])) == ("x" * 60,)
    assert (tools_in(""), signature_of(NOTHING, [])) == ((), "")


# --- What the calls of the last answer came to.

ID = "t/1:answer:0"


def asked_observed(number: int, id_: str = ID) -> AIMessage:
    calls = [{"name": "shout", "args": {}, "id": f"c{n}"} for n in range(number)]
    return AIMessage("", id=id_, tool_calls=calls)


def result(text: str, n: int = 0, *, ok: bool = True) -> ToolMessage:
    return ToolMessage(
        text, tool_call_id=f"c{n}", id=f"{ID}:c{n}", status="success" if ok else "error"
    )


def seen(*messages: AnyMessage, **values: Any) -> Observed:
    return observe_results(a_state(messages=[HumanMessage("Do it"), *messages], **values))


def test_nothing_is_seen_before_a_call() -> None:
    """Nor after an answer without one, nor of another task."""
    nothing = Observed("", ())

    assert seen() == nothing
    assert seen(asked_observed(1), result("x"), AIMessage("Done.", id="t/1:answer:1")) == nothing
    other = result("x").model_copy(update={"id": "t/0:answer:0:c0"})
    assert seen(asked_observed(1, "t/0:answer:0"), other) == nothing


A, B = result("a", 0), result("b", 1)
ONE, TWO = asked_observed(1), asked_observed(2)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ([TWO, A, B], [TWO, B, A], True),
        ([TWO, A, B], [TWO, result("b", 0), result("a", 1)], False),
        ([ONE, A, HumanMessage("Go on.")], [ONE, A], True),
        ([ONE, result("37 %")], [ONE, result("38 %")], False),
        ([ONE, result("line 3", ok=False)], [ONE, result("line 4", ok=False)], True),
    ],
    ids=["order of results", "of calls", "advice", "a counter", "an error's line"],
)
def test_what_was_seen_is_what_the_calls_came_to(
    one: list[AnyMessage], other: list[AnyMessage], *, alike: bool
) -> None:
    """In the order of the calls; numbers count in results, which tell progress, not in errors."""
    assert (seen(*one).saw == seen(*other).saw) is alike


def test_errors_alone_are_marked_and_told_in_short() -> None:
    """``!`` says that all calls failed; of the errors at most three are kept, each once."""
    errors = [
        result(f"Error: {'x' * 300} {n}"[: 20 + 400 * (n > 0)], n, ok=False) for n in range(5)
    ]

    failed = seen(asked_observed(5), *errors)
    mixed = seen(asked_observed(2), result("fine", 0), result("Error: no", 1, ok=False))

    assert failed.saw.startswith("!")
    assert len(failed.saw) == len("!") + 16 + len("/") + 16
    assert not mixed.saw.startswith("!")
    assert mixed.blockers == ("Error: no",)
    short = [result(f"Error {n}", n, ok=False) for n in range(5)]
    assert seen(asked_observed(5), *short).blockers == ("Error 0", "Error 1", "Error 2")
    assert max(map(len, failed.blockers)) == 200


def test_what_a_person_denied_is_no_failure_of_the_same_kind() -> None:
    """Three calls denied in the same words are three answers, not one error three times."""
    denied = a_call("c0", "rejected", message_id=ID)

    found = seen(asked_observed(1), result("A person denied this call", ok=False), calls=(denied,))

    assert not found.saw.startswith("!")
    assert found.blockers == ("A person denied this call",)


# --- Rounds are read from the step record alone.


def think(signature: str = "", saw: str = "", **changes: Any) -> Step:
    return replace(taken("think")[0], signature=signature, saw=saw, **changes)


@pytest.mark.parametrize(
    ("steps", "asked", "found"),
    [
        ([think("a"), think("b", "1")], think("c", "2"), [Round("a", "1"), Round("b", "2")]),
        ([think("a"), *taken("repair", "verify", "recover")], think("b", "1"), [Round("a", "1")]),
        (
            [think("a"), think("", "1", ok=False), think("a", "1", ok=False)],
            think("b", "!refused"),
            [Round("a", "1")],
        ),
    ],
    ids=["closed by the next", "other kinds", "failed and refused"],
)
def test_a_round_is_closed_by_the_step_after_it(
    steps: list[Step], asked: Step, found: list[Round]
) -> None:
    """Other kinds of steps are none, nor what failed or was refused: that comes to nothing."""
    assert rounds(steps, asked) == found


@pytest.mark.parametrize(
    ("strategy", "carried", "left"),
    [
        *(("escalate", "executed", 3), ("retry", "observed", 3), ("retry", "denied", 3)),
        *(("escalate", "approved", 1), ("retry", "instructed", 1), ("escalate", "answered", 1)),
        *(("retry", "executed", 1), ("alternative-tool", "executed", 3)),
        ("parameter-adjustment", "executed", 3),
    ],
)
def test_a_person_s_word_and_a_retry_begin_an_attempt(
    strategy: Strategy, carried: Carried, left: int
) -> None:
    """After advice a model that goes on the same way is caught at once; a retry is one."""
    recovered = Recovered(code="loop_detected", strategy=strategy, by="model", carried=carried)
    recover = replace(taken("recover")[0], recovery=recovered)

    assert len(attempt([think("a"), recover, think("b")])) == left


# --- How far a task has come, by rule.

MIXED = Verification(
    checks=(
        Check(command="lint", passed=True, exit_code=0),
        Check(command="test", passed=False, exit_code=1),
    )
)
NEW = [think("a#1"), think("b#1", "x"), think("", "y")]


def planned(*statuses: str, **values: Any) -> Progress:
    phases = [a_phase(f"p{n}", status=status) for n, status in enumerate(statuses)]
    current = next((p.id for p in phases if p.status == "running"), phases[-1].id)
    state = a_state(task=a_task("plan_exec"), plan=a_plan(*phases, current=current), **values)
    return progress_of(state)


@pytest.mark.parametrize(
    ("values", "percent"),
    [
        ({}, 0),
        ({"steps": NEW}, 60),
        ({"steps": NEW[:1], "task": a_task(limits={"think": 6})}, 10),
        ({"verification": RED}, 0),
        ({"verification": MIXED}, 45),
        ({"verification": MIXED, "steps": NEW}, 60),
        ({"verification": GREEN}, 100),
    ],
)
def test_the_percentage_of_a_task_without_a_plan(values: dict[str, Any], percent: int) -> None:
    """60 % at most for steps with something new, 90 % at most for checks, 100 % if all pass."""
    assert progress_of(a_state(**values)).percent == percent


@pytest.mark.parametrize(
    ("statuses", "verification", "percent"),
    [
        (("pending", "pending"), None, 0),
        (("completed", "running"), None, 50),
        (("completed", "running"), MIXED, 72),
        (("completed", "failed"), MIXED, 50),
        (("completed", "completed"), GREEN, 100),
        (("running", "pending", "pending", "pending"), GREEN, 25),
    ],
)
def test_the_percentage_of_a_plan(
    statuses: tuple[str, ...], verification: Verification | None, percent: int
) -> None:
    """Completed phases count whole; the one at hand with its share."""
    assert planned(*statuses, verification=verification).percent == percent


def test_the_next_milestone() -> None:
    """What has to come about next: a red check first."""
    assert progress_of(a_state()).next_milestone == "an answer"
    assert progress_of(a_state(task=a_task("plan_exec"))).next_milestone == "a plan"
    assert planned("completed", "running").next_milestone == "the phase 'P1' is completed"
    assert planned("running", verification=MIXED).next_milestone == "test passes"


def test_the_reasoning_says_what_it_was_made_of() -> None:
    """Phases, steps and the last verification."""
    assert planned("completed", "running", verification=MIXED).reasoning == (
        "1 of 2 phases are completed; 0 of 0 steps brought something new; "
        "the last verification: lint: passed, test: failed (exit 1)"
    )


def test_three_steps_without_news_are_stuck_and_told_with_their_errors() -> None:
    """RE-01: the last of them is read from the history."""
    message = AIMessage("", id="t/1:answer:2", tool_calls=[{"name": "a", "args": {}, "id": "c"}])
    error = ToolMessage("it is gone", tool_call_id="c", id="t/1:answer:2:c", status="error")
    saw = progress_of(a_state(messages=[message, error]))
    steps = [think(f"a#{n}", "!x" if n else "") for n in range(3)]
    steps.append(think("a#3", "!x", ok=False))

    stuck = progress_of(a_state(messages=[message, error], steps=steps))

    assert (saw.is_stuck, saw.blockers) == (False, ("it is gone",))
    assert (stuck.is_stuck, stuck.blockers) == (True, ("it is gone",))


def test_a_loop_is_its_own_blocker() -> None:
    """RE-03: and it is stuck by definition."""
    found = progress_of(a_state(failure=a_failure("loop_detected", message="a, 2 times")))

    assert (found.is_stuck, found.blockers) == (True, ("a, 2 times",))


def test_an_estimate_is_plain_values() -> None:
    """RE-01's five, as JSON."""
    plain = progress_of(a_state()).to_dict()

    assert json.loads(json.dumps(plain)) == plain
    assert list(plain) == ["percent", "reasoning", "next_milestone", "blockers", "is_stuck"]


# --- Loops: found in the step record, soon, and never where something is new.


def record(*done: str) -> tuple[list[Step], str]:
    """The steps that asked for ``A1``: calls A with outcome 1; and what the last came to."""
    saw = ""
    steps = []
    for each in done:
        steps.append(think(f"{each[0]}#", saw))
        saw = each[1:]
    return steps, saw


def loop(done: str, asked: str, threshold: int = 2) -> Loop | None:
    steps, saw = record(*done.split())
    return repeating(steps, think(f"{asked}#", saw), threshold=threshold)


@pytest.mark.parametrize(
    ("done", "asked", "cycle", "times"),
    [
        ("A1 A1", "A", "A", 2),
        ("A1 A1 A1", "A", "A", 3),
        ("A1 B2 A1 B2", "A", "AB", 2),
        ("X1 B2 A1 B2 A1", "B", "BA", 2),
        ("A1 B2 C3 A1 B2 C3", "A", "ABC", 2),
        ("A1 B2 C3 D4 A1 B2 C3 D4", "A", "ABCD", 2),
        ("A1 A1 A1 A1", "A", "A", 4),
        ("A1 A1 B2 A1 A1 B2", "A", "AAB", 2),
        ("A!1 A!1", "A", "A", 2),
    ],
)
def test_a_cycle_is_found_with_its_length(done: str, asked: str, cycle: str, times: int) -> None:
    """RE-02: the shortest one, and how often it was gone through."""
    found = loop(done, asked)

    assert found is not None
    assert ("".join(each.calls[0] for each in found.cycle), found.times) == (cycle, times)


@pytest.mark.parametrize(
    ("done", "asked"),
    [
        ("", "A"),
        ("A1", "A"),
        ("A1 A2", "A"),
        ("A1 A1 A2", "A"),
        ("A1 B1", "A"),
        ("A1 A1", "B"),
        ("A1 B2 A1 B2", "B"),
        ("A1 B2 A1 B3", "A"),
        ("A1 B2 A1 C2", "A"),
        ("A1 A1 B2", "A"),
        ("A A", "A"),
        ("A1 B2 C3 D4 E5 A1 B2 C3 D4 E5", "A"),
    ],
)
def test_what_is_no_cycle_is_not_found(done: str, asked: str) -> None:
    """Other results, other calls, results that are not known, and cycles that are too long."""
    assert loop(done, asked) is None


def test_an_answer_without_calls_and_a_reflection_end_a_cycle() -> None:
    """RE-02: what comes after them is checked, or the second attempt."""
    steps = [think("A#"), think("", "1"), think("A#"), think("", "1")]
    looping, saw = record("A1", "A1")

    assert repeating(steps, think("A#"), threshold=2) is None
    assert repeating([*looping, *taken("reflect")], think("A#", saw), threshold=2) is None


def test_after_a_refusal_any_call_of_the_cycle_goes_on_with_it() -> None:
    """And once something else was run, a loop has to be a new one."""
    steps, saw = record("A1", "B2", "A1", "B2")
    stopped = [*steps, think("A#", saw, ok=False), *taken("recover")]
    other = [*stopped, think("C#", "!no")]

    assert repeating(stopped, think("A#", "!no"), threshold=2) is not None
    assert repeating(stopped, think("B#", "!no"), threshold=2) is not None
    assert repeating(stopped, think("C#", "!no"), threshold=2) is None
    assert repeating(other, think("A#", "3"), threshold=2) is None


NAMES = st.sampled_from("ABCD")
PAIRS = st.lists(st.tuples(NAMES, st.integers(0, 99).map(str)), max_size=12, unique=True)


@given(PAIRS, NAMES, st.integers(2, 3))
def test_different_rounds_are_never_a_loop(
    pairs: list[tuple[str, str]], asked: str, threshold: int
) -> None:
    """Whatever is asked for next."""
    steps, saw = record(*(calls + outcome for calls, outcome in pairs))

    assert repeating(steps, think(f"{asked}#", saw), threshold=threshold) is None


@pytest.mark.long
@given(PAIRS, st.lists(st.sampled_from("EFGH"), min_size=1, max_size=4), st.integers(2, 3))
def test_a_pure_cycle_is_found_once_it_is_full(
    before: list[tuple[str, str]], cycle: list[str], threshold: int
) -> None:
    """After as many rounds as the threshold says, whatever was done before."""
    done = [calls + outcome for calls, outcome in before]
    done += [f"{calls}0" for calls in cycle * threshold]
    steps, saw = record(*done)

    assert repeating(steps, think(f"{cycle[0]}#", saw), threshold=threshold) is not None


@pytest.mark.long
@given(st.data())
def test_noise_in_other_kinds_of_steps_changes_nothing(data: Any) -> None:
    """Repairs, verifications and failed model calls may lie anywhere between."""
    steps, saw = record("A1", "B2", "A1", "B2")
    between = [*taken("repair", "verify", "plan"), think("", ok=False)]
    mixed: list[Step] = []
    after = [*(step.saw for step in steps[1:]), saw]
    for step, seen in zip(steps, after, strict=True):
        others = data.draw(st.lists(st.sampled_from(between), max_size=3))
        shown = (think("", seen, ok=False) if o.kind == "think" else o for o in others)
        mixed += [step, *islice(shown, 3)]

    found = repeating(mixed, think("A#", saw), threshold=2)

    assert found == repeating(steps, think("A#", saw), threshold=2)
    assert found is not None
