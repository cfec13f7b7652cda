"""A budget that is spent: the question, and what each answer puts on record."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from tests.parts import a_context, a_failure, a_phase, a_plan, a_state, a_task, taken

from daruma.nodes.pause import apply_decision, asks_person, question_of
from daruma.state.channels import State
from daruma.state.spending import AGAIN, STOP, amount_in
from daruma.state.steps import Grant, Overrun, Paying
from daruma.state.task import Amounts, Measure

LIMITS = {"spend": Amounts(tokens=10)}


def over(node: Paying = "main") -> Overrun:
    return Overrun(node=node, scope="task", measure="tokens", spent=12, limit=10)


def spent(node: Paying = "main", **values: Any) -> State:
    task = a_task("plan_exec", verify=True, limits=LIMITS)
    return a_state(**{"task": task, "overrun": over(node)} | values)


def test_the_question_has_an_id_of_its_own() -> None:
    """Of the phase at hand, so that members ask apart; each time another one."""
    plan = a_plan(a_phase("a"), current="a")

    ids = [
        question_of(state)["id"]
        for state in (spent(), spent(plan=plan), spent(steps=taken("pause")))
    ]
    assert ids == ["t/1:task:budget:0", "t/1:a:budget:0", "t/1:task:budget:1"]


@pytest.mark.parametrize(
    ("limit", "reached"),
    [
        (Amounts(tokens=50), 1000),
        (Amounts(tokens=1_000_000), 1_000_000),
        (Amounts(tokens=1_234_567), -3),
        (Amounts(usd=0.00001), 0.00001),
        (Amounts(usd=2.5), 0.1 + 0.2),
        (Amounts(seconds=90.0), 0.0),
    ],
)
def test_the_amount_that_is_shown_can_be_answered(limit: Amounts, reached: float) -> None:
    """It is what the settings gave, in the words that are read."""
    (measure,) = [each for each in get_args(Measure) if limit.of(each)]
    task = a_task(limits={"spend": limit})
    asked = replace(over(), measure=measure, limit=reached)

    context = question_of(spent(task=task, overrun=asked))["context"]
    assert amount_in(context.split('"')[-2]) == (measure, limit.of(measure))


def test_as_much_again_is_enough_to_go_on() -> None:
    """One call can spend many times what was allowed: nobody is asked the same again at once."""
    far = replace(over(), spent=57, limit=10)

    (step,) = apply_decision(spent(overrun=far), AGAIN, a_context())["steps"]
    assert step.grant is not None
    assert step.grant.more == Amounts(tokens=50)


def test_nobody_is_asked_who_can_not_answer_or_has_said_to_stop() -> None:
    """By the settings of the task, by what there is, by the record."""
    stop = Grant(node="main", scope="task", more=Amounts(), stopped=True)
    by_settings = a_task(limits={"when_spent": "stop"})

    assert asks_person(spent(), a_context())
    assert not asks_person(spent(), replace(a_context(), can_ask=False))
    assert not asks_person(spent(task=by_settings), a_context())
    assert not asks_person(spent(steps=taken("pause", grant=stop)), a_context())


@pytest.mark.parametrize(("answer", "tokens"), [(AGAIN, 10), ("tokens 7", 7)])
def test_a_grant_is_put_on_record(answer: str, tokens: int) -> None:
    """And nothing else changes."""
    update = apply_decision(spent(), answer, a_context())

    (step,) = update["steps"]
    assert step.grant == Grant(node="main", scope="task", more=Amounts(tokens=tokens))
    assert update.keys() == {"overrun", "steps"}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (spent(), "budget_exceeded"),
        (spent("plan"), "budget_exceeded"),
        (spent("verify", steps=taken("think")), "budget_exceeded"),
        (spent(steps=taken("think")), None),
        (spent(steps=[*taken("think"), *taken("verify")]), "budget_exceeded"),
        (spent("recovery", failure=a_failure()), None),
    ],
)
def test_an_end_is_a_failure_unless_something_comes_first(state: State, code: str | None) -> None:
    """Work that nobody has checked is checked; a failure that is there stays the first (EM-04)."""
    update = apply_decision(state, STOP, a_context())

    failure = update.get("failure")
    assert (failure.code if failure else None) == code
    assert update["steps"][0].grant == Grant(
        node=over().node if state.overrun is None else state.overrun.node,
        scope="task",
        more=Amounts(),
        stopped=True,
    )
