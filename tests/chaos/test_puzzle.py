"""The tasks of the chaos runs can be done, and the model's answer rests on every step."""

import json
from typing import Any

import pytest
from tests.chaos.puzzle import MOST_STEPS, Puzzle, model, puzzle

NUMBERS = range(200)


def asked(task: Puzzle, *results: str) -> dict[str, Any]:
    """A request of the task with what the calls so far came to."""
    told = [{"role": "tool", "content": result} for result in results]
    return {"messages": [{"role": "user", "content": task.goal}, *told], "tools": [{}]}


def test_a_task_is_done_step_by_step() -> None:
    """Each call is the next step's; when all are done, the answer is right."""
    for task in map(puzzle, NUMBERS):
        results = [task.result(step.mark) for step in task.steps]

        answers = [model(asked(task, *results[:done])) for done in range(len(results) + 1)]

        called = [answer.calls[0]["arguments"] for answer in answers[:-1]]
        assert called == [step.call["arguments"] for step in task.steps]
        assert answers[-1].text == task.answer


def test_a_step_that_is_missing_is_asked_for_again() -> None:
    """Whatever else the history holds: no answer is made up."""
    task = next(each for each in map(puzzle, NUMBERS) if len(each.steps) == MOST_STEPS)
    results = [task.result(step.mark) for step in task.steps]

    for missing, step in enumerate(task.steps):
        kept = [*results[:missing], "Error: timed out", *results[missing + 1 :]]
        (call,) = model(asked(task, *kept)).calls
        assert call["arguments"] == step.call["arguments"]


def test_a_key_that_was_cut_short_leads_nowhere() -> None:
    """A call that runs with half of its arguments is not taken for the step."""
    task = puzzle(0)

    with pytest.raises(LookupError, match="nothing under"):
        task.result(task.steps[0].mark[:-2])


def test_tasks_are_of_all_lengths_and_always_the_same() -> None:
    """From one step to six; two tasks do not share an answer by design."""
    tasks = [puzzle(number) for number in NUMBERS]

    assert {len(task.steps) for task in tasks} == set(range(1, MOST_STEPS + 1))
    assert tasks == [puzzle(number) for number in NUMBERS]


def test_what_is_asked_beside_the_task_is_answered_with_json() -> None:
    """Whoever asks how to recover is told to try again."""
    request = {"messages": [{"role": "system", "content": "Choose a strategy."}]}

    assert json.loads(model(request).text)["strategy"] == "retry"
