"""A task ends with one result, whose dictionary older readers still understand."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from tests.parts import GREEN, a_failure, a_phase

from daruma.state.emergency import emergency_of
from daruma.state.result import TaskResult
from daruma.state.task import Status

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
        "output",
        "error_message",
        "phases",
        "verification",
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


def test_an_error_is_shown_with_its_fields() -> None:
    """MO-07 and EM-01."""
    failed = replace(RESULT, status="failed", error_struct=emergency_of(a_failure()))

    assert failed.to_dict()["error_struct"]["error_code"] == "llm_failure"


def test_the_dictionary_is_json() -> None:
    """It goes out of ``daruma run --json`` as it is."""
    failed = replace(RESULT, error_struct=emergency_of(a_failure()))

    assert json.loads(json.dumps(failed.to_dict())) == failed.to_dict()


@pytest.mark.parametrize("status", get_args(Status))
def test_only_completed_is_a_success(status: Status) -> None:
    """MO-08: the eight statuses, and the one that counts."""
    assert replace(RESULT, status=status).completed == (status == "completed")
    assert len(get_args(Status)) == 8
