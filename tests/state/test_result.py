"""A task ends with one result, whose dictionary older readers still understand."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from IPython.lib import pretty
from tests.parts import GREEN, a_failure, a_phase

from daruma.state.emergency import emergency_of
from daruma.state.result import Checked, TaskResult
from daruma.state.task import Status
from daruma.state.verification import Outcome

IN_IPYTHON: Callable[[object], str] = pretty.pretty

RESULT = TaskResult(
    task_id="t/1",
    status="completed",
    output="Done.",
    phases=(a_phase("a", status="completed", outcome="completed"),),
    verification=GREEN,
    budgets={"think": 2},
    usage={"main": {"calls": 2, "input_tokens": 10, "output_tokens": 4}},
    timings={"total": 1.5},
    notes=("said",),
)


def test_without_an_error_its_key_is_absent() -> None:
    """MO-07: ``to_dict()`` leaves ``error_struct`` out, and shows all the rest."""
    assert set(RESULT.to_dict()) == {
        "task_id",
        "status",
        "headline",
        "output",
        "answer",
        "checked",
        "error_message",
        "phases",
        "verification",
        "verifications",
        "recoveries",
        "budgets",
        "usage",
        "timings",
        "notes",
        "audit",
        "sandbox",
        "context_cost",
    }
    assert RESULT.to_dict()["error_message"] is None


def test_the_dictionary_is_json() -> None:
    """It goes out of ``daruma run --json`` as it is."""
    failed = replace(RESULT, error_struct=emergency_of(a_failure()))

    assert json.loads(json.dumps(failed.to_dict())) == failed.to_dict()


@pytest.mark.parametrize("status", get_args(Status))
def test_only_completed_is_a_success(status: Status) -> None:
    """MO-08: the eight statuses, and the one that counts."""
    assert replace(RESULT, status=status).completed == (status == "completed")
    assert len(get_args(Status)) == 8


@pytest.mark.parametrize(
    ("status", "outcome", "headline"),
    [
        ("completed", "none", "completed, not checked"),
        ("completed", "passed", "completed"),
        ("failed", "none", "failed"),
        ("gave_up_after_reflections", "failed", "gave_up_after_reflections"),
    ],
)
def test_a_success_that_nothing_checked_says_so(
    status: Status, outcome: Outcome, headline: str
) -> None:
    """MO-10: printed, and shown in IPython."""
    result = replace(RESULT, status=status, checked=Checked(outcome=outcome, why="because"))
    shown = IN_IPYTHON(result)

    assert (result.headline, str(result), shown) == (headline, *[f"{headline}\nDone."] * 2)
    assert result.to_dict()["checked"] == {"outcome": outcome, "by": [], "why": "because"}
