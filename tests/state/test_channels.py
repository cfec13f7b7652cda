"""The state of the machine: what nodes may read, and what they may write."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite
from tests.parts import (
    a_call,
    a_phase,
    a_plan,
    a_state,
    a_task,
    taken,
)

from daruma.state.channels import (
    State,
    refuse_misfits,
    state_of,
)
from daruma.state.errors import DamagedState
from daruma.state.steps import Step


@pytest.mark.parametrize(
    "values", [{}, {"task": None, "steps": taken("think")}, vars(a_state(calls=(a_call(),)))]
)
def test_a_state_is_that_of_its_constructor(values: dict[str, Any]) -> None:
    """With every default where a channel holds nothing; no list is shared."""
    state = state_of(values)

    assert state == State(**values)
    assert list(vars(state)) == list(vars(State(**values)))
    assert state_of({}).messages is not state_of({}).messages


# --- What a channel holds is of the type that the state says, however it was stored (DU-05).

TASK = a_task()
PLAN = a_plan(a_phase("p1"))
STEP = Step(kind="think", task_id="1")
CALL = a_call()

FITTING: dict[str, Any] = {
    "messages": [HumanMessage("hello"), AIMessage("hi")],
    "mode": "react",
    "workspace": "/a",
    "task": TASK,
    "plan": PLAN,
    "steps": [STEP],
    "calls": [CALL],
    "failure": None,
    "foreign": object(),
}


def test_what_the_state_holds_fits() -> None:
    """As it is made, as msgpack gives it back, and as a snapshot; other channels are let be."""
    refuse_misfits(FITTING)
    refuse_misfits({"calls": (CALL,), "steps": _DeltaSnapshot([STEP])})
    refuse_misfits(vars(State()))


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        ("task", "a text"),
        ("task", PLAN),
        ("plan", [PLAN]),
        ("plan", {"goal": "g"}),
        ("mode", "no such mode"),
        ("workspace", 5),
        ("messages", ["a text"]),
        ("messages", None),
        ("messages", _DeltaSnapshot([TASK])),
        ("steps", [STEP, TASK]),
        ("steps", True),
        ("calls", CALL),
        ("failure", False),
        ("result", PLAN),
    ],
)
def test_another_value_is_refused_by_the_name_of_its_channel(channel: str, value: Any) -> None:
    """A record that validates is still none of this channel's."""
    with pytest.raises(DamagedState, match=f"channel '{channel}' holds a {kind_of(value)}"):
        refuse_misfits({**FITTING, channel: value})


def kind_of(value: Any) -> str:
    return type(value.value if isinstance(value, _DeltaSnapshot) else value).__name__


def test_what_nodes_and_callers_write_fits() -> None:
    """One call of many, a value that takes the place of all, whatever a message can be made of."""
    writes = [
        ("calls", CALL),
        ("calls", [CALL]),
        ("steps", [STEP]),
        ("steps", Overwrite([STEP])),
        ("plan", None),
        ("messages", "a text"),
        ("messages", [RemoveMessage(id="1")]),
        ("branch:to:main", object()),
    ]

    refuse_misfits({}, writes)


@pytest.mark.parametrize(
    ("channel", "value"),
    [("plan", TASK), ("steps", [TASK]), ("steps", Overwrite([TASK])), ("calls", "a text")],
)
def test_another_write_is_refused_as_well(channel: str, value: Any) -> None:
    """It waits to be applied: the damage would be the next checkpoint's."""
    with pytest.raises(DamagedState, match=f"a {type(value).__name__} was written to .*{channel}"):
        refuse_misfits({}, [(channel, value)])
