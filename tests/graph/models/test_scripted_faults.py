"""A script fails in the ways in which models do: with a status, late, for some requests only."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.parts import settings
from tests.scripted_runs import Run, against, say

from daruma.graph.models.faults import ScriptedFault, ScriptInvalid, fault_of
from daruma.graph.models.scripted import ScriptedChatModel

OUTAGE = {"raise": "overloaded", "status": 503}
QUICK = {"requests": {"wait_seconds": 0, "seconds": 0.2}}


def asked(*turns: dict[str, Any], **llm: Any) -> Run:
    """A whole run, whose recovery tries again at once."""
    chain = {"recovery": {"wait_seconds": 0}}
    given = settings(llm={**QUICK, **llm}, fallback_chain=chain)
    script = {"main": list(turns), "recovery": [against("retry")]}
    return Run(script, settings=given).ask()


def attempts(run: Run) -> list[tuple[int | None, str]]:
    """What failed below the answer, and what was done about it."""
    failovers = [each.failover for each in run.result.audit if each.failover]
    return [(each.status, each.then) for one in failovers for each in one.attempts]


@pytest.mark.parametrize(
    ("status", "kind"), [(503, "again"), (429, "again"), (404, "next"), (401, "final")]
)
def test_a_fault_with_a_status_is_taken_as_a_providers(status: int, kind: str) -> None:
    """It goes through the one classification that all failures of models go through."""
    model = ScriptedChatModel(script=[{"raise": "no", "status": status}])

    with pytest.raises(ScriptedFault, match="no") as raised:
        model.invoke("hello")
    assert (fault_of(raised.value).kind, fault_of(raised.value).status) == (kind, status)


def test_a_fault_without_a_status_has_none() -> None:
    """As it was: a failure that nobody knows more of."""
    with pytest.raises(ScriptedFault) as raised:
        ScriptedChatModel(script=[{"raise": "no"}]).invoke("hello")

    assert fault_of(raised.value).status is None


def test_attempts_are_the_requests_for_one_answer() -> None:
    """An outage that passes: the second request is heard, and it is still the first call."""
    run = asked({"attempts": [OUTAGE, say("Heard.")]})

    assert run.result.output == "Heard."
    assert attempts(run) == [(503, "again")]
    assert run.result.budgets["think"] == 1


def test_the_last_attempt_stands_for_all_that_follow() -> None:
    """Three requests, of which the second and the third are answered alike."""
    run = asked({"attempts": [OUTAGE, {"raise": "down", "status": 500}]}, say())

    assert [status for status, _ in attempts(run)] == [503, 500, 500]
    assert run.result.status == "completed"


def test_a_model_that_is_late_meets_the_limit_and_another_stands_in(tmp_path: Path) -> None:
    """`wait` hangs as a real one does: the time limit strikes, and it can be cancelled."""
    spare = tmp_path / "spare.json"
    spare.write_text(json.dumps([say("The spare's.")]))
    began = time.monotonic()
    run = asked({"wait": 60, "say": "late"}, fallback_models=[f"scripted:{spare}"])

    assert run.result.output == "The spare's."
    assert time.monotonic() - began < 30


async def test_a_wait_holds_up_nobody_else() -> None:
    """Ten at once take as long as one, streamed or not."""
    model = ScriptedChatModel(script=[{"wait": 0.2, "say": "Late."}] * 10)
    began = time.monotonic()
    answers = await asyncio.gather(*(model.ainvoke("hello") for _ in range(10)))

    assert [answer.content for answer in answers] == ["Late."] * 10
    assert 0.2 <= time.monotonic() - began < 1.5


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_wait_is_as_long_in_synchronous_calls(way: str) -> None:
    """The same seconds whichever way the model is called."""
    model, began = ScriptedChatModel(script=[{"wait": 0.05, "say": "Late."}]), time.monotonic()
    said = [model.invoke("hello")] if way == "invoke" else [*model.stream("hello")]

    assert "".join(str(each.content) for each in said) == "Late."
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        ({"say": "x", "status": 503}, r"main\[0\]: a status is that of a fault: it needs raise"),
        ({"raise": "x", "status": 200}, r"main\[0\].status: .* greater than or equal to 400"),
        ({"say": "x", "wait": -1}, r"main\[0\].wait: .* greater than or equal to 0"),
        ({"attempts": [{"say": "x"}], "wait": 1}, r"main\[0\]: attempts stand alone"),
        ({"attempts": [{"attempts": [{"say": "x"}]}]}, r"main\[0\]: attempts stand alone"),
        ({"attempts": []}, r"main\[0\]: attempts needs a turn for a request"),
        ({"attempts": [{"says": "x"}]}, r'main\[0\].attempts\[0\]: unknown field "says".*"say"'),
    ],
)
def test_a_fault_that_can_not_be_meant_is_refused(turn: dict[str, Any], complaint: str) -> None:
    """With the place, when the model is made."""
    with pytest.raises(ScriptInvalid, match=complaint):
        ScriptedChatModel(script=[turn])
