"""The record of steps, and what was done in each: the one source of spent budget."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.parts import taken

from daruma.state.steps import (
    ArgumentRepair,
    Audit,
    LeftOut,
    NameChange,
    RepairRound,
    Step,
    append_steps,
)

# --- The audit of an answer: plain values for those who read it, and nothing where nothing was.


def test_an_audit_is_plain_values() -> None:
    """TL-11: it goes into results and events, which are JSON."""
    audit = Audit(
        message_id="m",
        names=(NameChange(tool_call_id="c", requested_name="a", name="b", how="alias"),),
        arguments=(
            ArgumentRepair(tool_call_id="c", name="b", repaired_by="rules", rungs=("code fence",)),
        ),
        left_out=LeftOut(total=3, executed=2, omitted=1, limit=2, names=("x",)),
        round=RepairRound(
            kind="names", attempt=1, candidates=("c", "d"), repaired=("c",), failed=("d",)
        ),
    )

    plain = json.loads(json.dumps(audit.to_dict()))

    assert plain["names"] == [
        {"tool_call_id": "c", "requested_name": "a", "name": "b", "how": "alias"}
    ]
    assert plain["arguments"][0]["rungs"] == ["code fence"]
    assert plain["left_out"] == {
        "total": 3,
        "executed": 2,
        "omitted": 1,
        "limit": 2,
        "names": ["x"],
    }
    assert (plain["round"]["repaired"], plain["round"]["failed"]) == (["c"], ["d"])


# --- The record of steps only grows, in whatever batches it is written.

STEPS = st.lists(st.sampled_from(taken("plan", "think", "verify", "reflect", "recover")))


@given(STEPS, st.lists(STEPS, max_size=4), st.lists(STEPS, max_size=4))
def test_steps_are_appended_whatever_the_batches(
    start: list[Step], first: list[list[Step]], second: list[list[Step]]
) -> None:
    """Nothing is lost, changed or counted twice by a replay."""
    at_once = append_steps(start, first + second)

    assert append_steps(append_steps(start, first), second) == at_once
    assert at_once == [*start, *(step for write in first + second for step in write)]
