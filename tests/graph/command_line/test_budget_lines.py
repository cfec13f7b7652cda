"""Budgets of tokens, money and time on paper."""

from typing import Any

from tests.parts import a_task

from daruma.graph.command_line.asking import _answer
from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.panel import bar, in_words, spent_of
from daruma.graph.command_line.questions import how_to_answer
from daruma.state.events import BudgetSettled, BudgetSpent
from daruma.state.spending import AGAIN
from daruma.state.steps import Step
from daruma.state.task import Amounts
from daruma.state.usage import Usage

WHERE: Any = {"node": "main", "scope": "task", "measure": "usd"}


def test_a_spent_budget_is_told_and_what_became_of_it() -> None:
    """In the words that people write amounts in."""
    spent = BudgetSpent(**WHERE, spent=0.26, limit=0.25).to_dict()
    granted = BudgetSettled(**WHERE, more=0.25).to_dict()
    ended = BudgetSettled(**WHERE, stopped=True).to_dict()

    lines = [line.text for event in (spent, granted, ended) for line in lines_of(event)]
    assert lines == [
        "the task's budget is spent",
        "granted $0.25 more",
        "the work stops where its budget is spent",
    ]


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
