"""An action is read out of whatever a model answers; what is in doubt is no action, or no trust."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.calls.parse import unstorable
from daruma.tools.recovery.proposal import LONGEST, action_in

FULL: dict[str, Any] = {
    "strategy": "parameter-adjustment",
    "reasoning": "It was misspelt.",
    "action": {"tool_name": "view", "parameters": {"path": "a"}, "escalation_message": "Which?"},
    "expected_outcome": "The file is shown.",
    "confidence": 0.9,
}
READ = RecoveryAction(
    strategy="parameter-adjustment",
    reasoning="It was misspelt.",
    tool_name="view",
    parameters={"path": "a"},
    escalation_message="Which?",
    expected_outcome="The file is shown.",
    confidence=0.9,
)


def test_all_fields_are_read() -> None:
    """RE-04; and what is shown of it is what was read."""
    assert action_in(json.dumps(FULL)) == READ
    assert {key: READ.to_dict()[key] for key in FULL} == FULL


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{json.dumps(FULL)}\n```",
        f"Here is what I would do:\n{json.dumps(FULL)}",
        json.dumps({**FULL, **FULL["action"], "action": None}),
        json.dumps(FULL | {"strategy": "Parameter_Adjustment"}),
        json.dumps(FULL | {"more": 1}),
    ],
    ids=["fenced", "with words", "flat", "spelt otherwise", "more than asked for"],
)
def test_what_has_one_meaning_is_read(text: str) -> None:
    """Models wrap, flatten and respell."""
    assert action_in(text) == READ


@pytest.mark.parametrize(
    "text",
    [
        "",
        "retry",
        "[]",
        "{}",
        "null",
        '{"strategy": "pray", "confidence": 1}',
        '{"strategy": null}',
        '{"strategy": ["retry"]}',
        json.dumps(FULL)[:-20],
        json.dumps(FULL) + json.dumps(FULL | {"strategy": "give-up"}),
        json.dumps(FULL | {"action": {"tool_name": "view", "parameters": {"n": 2**70}}}),
    ],
)
def test_what_has_no_certain_meaning_is_no_action(text: str) -> None:
    """RE-05: the rule takes over; also for what could not be stored."""
    assert action_in(text) is None


@pytest.mark.parametrize("said", [None, True, "0.9", "high", 90, -1, 1.5, [0.9], {}])
def test_an_odd_confidence_is_none(said: object) -> None:
    """So that a person is asked."""
    action = action_in(json.dumps(FULL | {"confidence": said}))

    assert action is not None
    assert action.confidence == 0


@given(st.text() | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(json.dumps))
def test_nothing_makes_it_raise(text: str) -> None:
    """RE-05: recovery itself never raises."""
    action_in(text)


@given(
    st.fixed_dictionaries(
        {"strategy": st.sampled_from(get_args(Strategy))},
        optional={
            key: st.none() | st.text() | st.integers() | st.dictionaries(st.text(), st.integers())
            for key in ("reasoning", "action", "expected_outcome", "confidence", "parameters")
        },
    )
)
def test_what_is_read_can_be_stored(said: dict[str, Any]) -> None:
    """An action waits for a person in a checkpoint."""
    action = action_in(json.dumps(said))

    assert action is None or unstorable(action.to_dict()) is None


def test_endless_texts_are_cut() -> None:
    """They stand in a checkpoint and before a person."""
    action = action_in(json.dumps(FULL | {"reasoning": "x" * 100_000}))

    assert action is not None
    assert len(action.reasoning) == LONGEST


def test_what_no_database_takes_is_replaced() -> None:
    """The reasoning becomes part of the history."""
    action = action_in(json.dumps(FULL | {"reasoning": "a\0b"}))

    assert action is not None
    assert action.reasoning == "a\ufffdb"
