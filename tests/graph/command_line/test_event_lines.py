"""What each event says on paper."""

from io import StringIO
from typing import Any, get_args

import pytest
from rich.console import Console
from tests.parts import a_task

from daruma.graph.command_line._moment_lines import lines_of
from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._progress import GoingOn, Progress, bar, in_words, spent_of
from daruma.graph.command_line._questions import how_to_answer
from daruma.graph.command_line._replies import _answer
from daruma.state.events import (
    AnswerAudited,
    BudgetSettled,
    BudgetSpent,
    CallSettled,
    ContextCompacted,
    Event,
    LessonsGiven,
    MemberCompleted,
    MemberStarted,
    MemoryRecalled,
    MergeCompleted,
    ModelAttemptFailed,
    ModelCallCompleted,
    ModelCallStarted,
    PhaseCompleted,
    PhaseFailed,
    RecoveryChosen,
    RecoveryCompleted,
    RecoveryStarted,
    Reflected,
    ToolCompleted,
    ToolStarted,
    VerificationCompleted,
)
from daruma.state.failure import Carried
from daruma.state.spending import AGAIN
from daruma.state.steps import Audit, ContextCost, Step
from daruma.state.task import Amounts
from daruma.state.usage import Attempt, Failover, Usage
from daruma.tools.calls._journal import WAYS
from daruma.tools.calls._results import Settles

# --- Budgets of tokens, money and time on paper.

WHERE: Any = {"node": "main", "scope": "task", "measure": "usd"}


def test_limited_measures_stand_beside_the_steps() -> None:
    """Those that have a limit, with their grants; and the bar of one that is overdrawn is full."""
    task = a_task(limits={"spend": Amounts(tokens=1000, seconds=60.0)})
    usage = Usage(role="main", model="m", input_tokens=1200)
    step = Step(kind="think", task_id="t/1", usage=usage, seconds=6.0)

    found = spent_of({"task": task, "steps": [step]})

    assert "tokens 1,200 of 1,000, seconds 6.0 s of 60.0 s" in in_words(found)
    assert "tokens ########## " in bar(found, ascii_only=True).plain
    assert "seconds #......... " in bar(found, ascii_only=True).plain


def test_an_amount_can_be_typed() -> None:
    """Of the measure that is spent; of others it is asked again."""
    said = iter(["usd 5", "tokens 500"])

    assert _answer([AGAIN, "stop"], lambda _: next(said), ["tokens"]) == "tokens 500"
    assert _answer([AGAIN, "stop"], lambda _: "go", ["tokens"]) == AGAIN


def test_the_command_that_grants_can_be_pasted() -> None:
    """Beside those for the options."""
    value = {"type": "question", "id": "q", "options": [AGAIN, "stop"], "amounts": ["tokens"]}
    question: Any = type("Open", (), {"value": value})()

    assert how_to_answer("t", [question])[-1] == "daruma answer t --text 'tokens NUMBER'"


# --- A call that a crash met is told of in one line, and what it had left can be brought back.


def settled(how: str, undo: str | None = None) -> dict[str, Any]:
    return CallSettled(call_id="c1", tool="pay", how=how, undo=undo).to_dict()


@pytest.mark.parametrize("how", ["reused", *WAYS, *sorted({*get_args(Settles)} - {"ask"})])
def test_every_way_has_its_words(how: str) -> None:
    """None is shown by its code."""
    (line,) = lines_of(settled(how))

    assert line.text.startswith("pay was ")
    assert line.text != f"pay {how}"


def test_what_was_put_back_can_be_had_again() -> None:
    """By the command that brings it, as it can be pasted."""
    file = StringIO()
    paper = Paper(Console(file=file, width=80, highlight=False))

    with Progress(paper) as progress:
        progress.begin("brave-otter-7k2f", "a model")
        progress.see("custom", settled("restore", "7f"))

    assert "what was there is kept: daruma undo brave-otter-7k2f --to 7f\n" in file.getvalue()


# --- Setbacks are told while they happen: what failed, what is done about it, what became of
# that.

FAILED = ModelAttemptFailed(
    node="main", model="a", attempt=2, error="slow down", then="again", status=429, wait=2.0
)
LAST = ModelAttemptFailed(node="main", model="a", attempt=3, error="reset", then="gave up")


def compacted(**changes: Any) -> Event:
    cost = ContextCost(node="main", budget=8000, before=8204, after=5630, **changes)
    return ContextCompacted(node="main", cost=cost.to_dict())


EXACTLY = "context: 8,204 tokens, now 5,630 of 8,000"
ABOUT = "context: about 8,204 tokens, now 5,630 of 8,000"
STEPS: Any = WHERE | {"measure": "steps"}
LINES: list[tuple[Event, list[Line]]] = [
    (
        BudgetSpent(**WHERE, spent=0.26, limit=0.25),
        [Line("bad", "the task's budget is spent", "$0.26 of $0.25")],
    ),
    (
        BudgetSettled(**WHERE, more=0.25),
        [Line("ok", "the task's budget was spent: $0.25 more granted")],
    ),
    (
        BudgetSettled(**WHERE, stopped=True),
        [Line("note", "the task's budget was spent: the work stops")],
    ),
    (
        BudgetSpent(**STEPS, spent=2, limit=2),
        [Line("bad", "the task's steps are used up", "2 steps of 2 steps")],
    ),
    (
        BudgetSettled(**STEPS, more=50),
        [Line("ok", "the task's steps were used up: as many are granted once more")],
    ),
    (
        compacted(saved={"memory": 400, "prune": 3000}, exact=True),
        [Line("ok", EXACTLY, "recalled memory dropped (400), old outputs left out (3,000)")],
    ),
    (
        compacted(saved={"summarise": 2000}, messages=57, by="rules"),
        [Line("ok", ABOUT, "old messages summarised (2,000); 57 messages summarised by rules")],
    ),
    (compacted(saved={}), [Line("ok", ABOUT, "nothing could be left out")]),
    (FAILED, [Line("bad", "a, request 2 (429): slow down", "again in 2.0 s")]),
    (LAST, [Line("bad", "a, request 3: reset", "gave up")]),
    (
        RecoveryStarted(
            code="loop_detected",
            message="search, 3 times with the same result",
            progress={"percent": 25, "reasoning": "1 of 4 phases"},
        ),
        [
            Line(
                "bad",
                "loop_detected: search, 3 times with the same result",
                "25 % done: 1 of 4 phases",
            )
        ],
    ),
    (
        RecoveryChosen(
            strategy="alternative-tool",
            reasoning="It is down.",
            confidence=0.85,
            by="model",
            tool_name="brave_search",
            parameters={"query": "x"},
        ),
        [
            Line("note", "alternative-tool: brave_search x", "confidence 0.85, chosen by model"),
            Line("words", "It is down."),
        ],
    ),
    (
        RecoveryCompleted(strategy="retry", carried="denied"),
        [Line("bad", "retry: denied")],
    ),
    (
        RecoveryStarted(code="timeout", message="slow"),
        [Line("bad", "timeout: slow")],
    ),
    (
        MemberStarted(phase_id="p1", expert="tester", workspace="/w/p1"),
        [Line("head", "tester takes up p1", "/w/p1")],
    ),
    (
        MemberStarted(phase_id="p1", expert="tester", workspace=None),
        [Line("head", "tester takes up p1")],
    ),
    (
        MemberCompleted(phase_id="p1", expert="tester", outcome="completed"),
        [Line("ok", "tester has ended p1: completed")],
    ),
    (
        MemberCompleted(phase_id="p1", expert="tester", outcome="failed"),
        [Line("bad", "tester has ended p1: failed")],
    ),
    (MergeCompleted(phase_id="p1", paths=("a",)), [Line("ok", "p1 is merged", "1 file")]),
    (
        PhaseCompleted(phase_id="p1", title="Look", number=1, of=2),
        [Line("ok", "Phase 1 of 2 completed: Look")],
    ),
    (
        PhaseFailed(phase_id="p1", title="Look", number=1, of=2, outcome="failed", reason="boom"),
        [Line("bad", "Phase 1 of 2 failed: Look"), Line("same", "boom")],
    ),
    (
        MergeCompleted(phase_id="p1", paths=(), conflicts=("a", "b")),
        [
            Line("bad", "p1 is not merged: 2 files met other work"),
            Line("note", "a"),
            Line("note", "b"),
        ],
    ),
    (MemoryRecalled(ids=("a",)), [Line("note", "recalled 1 memory")]),
    (MemoryRecalled(ids=("a", "b")), [Line("note", "recalled 2 memories")]),
    (MemoryRecalled(ids=("a",), note="slow"), [Line("note", "slow")]),
    (
        LessonsGiven(pitfalls=("a", "b"), variants=("v",)),
        [Line("note", "told of 2 historical pitfalls and 1 learned instruction")],
    ),
    (LessonsGiven(variants=("v",)), [Line("note", "told of 1 learned instruction")]),
    (LessonsGiven(variants=("v",), note="slow"), [Line("note", "slow")]),
    (VerificationCompleted(passed=True, summary="x: none"), [Line("ok", "verified")]),
    (VerificationCompleted(passed=None, summary="x: none"), [Line("note", "not checked: x: none")]),
    (VerificationCompleted(passed=False, summary="x: none"), [Line("bad", "not verified")]),
    (
        Reflected(text="I see.", member="p2"),
        [Line("words", "p2: I see.")],
    ),
]


@pytest.mark.parametrize(("event", "lines"), LINES)
def test_each_thing_has_its_line(event: Event, lines: list[Line]) -> None:
    """RE-03a, CX-01, RE-09, PL-06, MO-10, FA-04: what a person has to know of it, and no more."""
    assert lines_of(event.to_dict()) == lines


@pytest.mark.parametrize("carried", get_args(Carried))
def test_every_outcome_of_a_recovery_has_words(carried: str) -> None:
    """None of them is told as a bare code, and only what was done is a success."""
    (line,) = lines_of(RecoveryCompleted(strategy="retry", carried=carried).to_dict())

    assert line.text not in ("retry", "retry: ")
    assert (line.mark == "ok") is (carried in ("executed", "approved", "instructed", "answered"))


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ("b", "b answered after a: 503 (2 times), b: 503"),
        ("", "no model answered after a: 503 (2 times), b: 503"),
    ],
)
def test_a_failover_is_summed_up(used: str, said: str) -> None:
    """TL-17: what it took to get an answer."""
    attempts = tuple(Attempt(model=m, error="503", then="again") for m in ("a", "a", "b"))
    failover = Failover(requested="a", used=used, attempts=attempts)
    audit = AnswerAudited(audit=Audit(message_id="m", failover=failover).to_dict())

    assert lines_of(audit.to_dict()) == [Line("note", said)]


# --- What the members of a team do is told with the phase that they do it for.


def test_what_a_member_s_call_did_names_its_phase_once() -> None:
    """In the panel while it runs, and in the line that stays."""
    file, about = StringIO(), {"call_id": "c", "tool": "search", "member": "p2"}
    with Progress(Paper(Console(file=file, width=100))) as progress:
        progress.see("custom", ToolStarted(summary="x", **about).to_dict())
        progress.see("custom", ToolCompleted(ok=True, seconds=0.0, **about).to_dict())

    assert file.getvalue().count("p2: search") == 1
    assert "p2: p2" not in file.getvalue()


def test_members_who_do_the_same_are_told_apart() -> None:
    """The end of one member's model call does not end that of another."""
    going_on = GoingOn()
    for member in ("p1", "p2"):
        started = ModelCallStarted(node="main", model="m", member=member)
        going_on.open(started.to_dict(), "asks")

    going_on.close(ModelCallCompleted(node="main", model="m", seconds=1, member="p2").to_dict())

    assert [each.title for each in going_on.activities] == ["p1: asks"]
