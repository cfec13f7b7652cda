"""The full names of stored types are part of the storage format."""

import dataclasses
import json
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import ValidationError

from daruma.state import channels
from daruma.state.serializer import STORED_TYPES, defaults_of
from daruma.state.task import Limits

VERSIONS = {
    "daruma.state.task.Amounts": 1,
    "daruma.state.steps.Grant": 1,
    "daruma.state.steps.Overrun": 1,
    "daruma.state.emergency.EmergencyError": 1,
    "daruma.state.failure.Failure": 1,
    "daruma.state.plan.Phase": 1,
    "daruma.state.plan.Plan": 1,
    "daruma.state.result.Checked": 1,
    "daruma.state.result.Structured": 1,
    "daruma.state.result.TaskResult": 1,
    "daruma.state.savepoint.Savepoint": 1,
    "daruma.state.savepoint.Drifted": 1,
    "daruma.state.steps.Compaction": 1,
    "daruma.state.steps.Crowded": 1,
    "daruma.state.steps.ContextCost": 1,
    "daruma.state.steps.ContextUsage": 1,
    "daruma.state.conversation.Clarification": 1,
    "daruma.state.conversation.Continuity": 1,
    "daruma.state.plan.Assignment": 1,
    "daruma.state.plan.Report": 1,
    "daruma.state.usage.Attempt": 1,
    "daruma.state.usage.Failover": 1,
    "daruma.state.lessons.Instruction": 1,
    "daruma.state.lessons.Instructions": 1,
    "daruma.state.lessons.KnownPitfall": 1,
    "daruma.state.lessons.Lessons": 1,
    "daruma.state.lessons.Recalled": 1,
    "daruma.state.lessons.Remembered": 1,
    "daruma.state.failure.Recovered": 1,
    "daruma.state.failure.RecoveryAction": 1,
    "daruma.state.steps.Step": 1,
    "daruma.state.task.Limits": 1,
    "daruma.state.task.Task": 1,
    "daruma.state.steps.ArgumentRepair": 1,
    "daruma.state.steps.Audit": 1,
    "daruma.state.steps.HookNote": 1,
    "daruma.state.steps.LeftOut": 1,
    "daruma.state.steps.NameChange": 1,
    "daruma.state.steps.RepairRound": 1,
    "daruma.state.calls.Dispatch": 1,
    "daruma.state.calls.Allowance": 1,
    "daruma.state.calls.ToolTask": 1,
    "daruma.state.usage.Usage": 1,
    "daruma.state.verification.Check": 1,
    "daruma.state.verification.Verdict": 1,
    "daruma.state.verification.Verification": 1,
}
"""Renaming or moving a type, or changing its fields, needs a migration of what is stored."""

DEFAULTS = Path(__file__).with_name("stored_defaults.json")
"""What is not written of a record, as it is its default."""


def full_name(type_: type) -> str:
    return f"{type_.__module__}.{type_.__name__}"


def test_the_names_are_pinned() -> None:
    """DU-05: a checkpoint embeds them."""
    assert {full_name(type_) for type_ in STORED_TYPES} == set(VERSIONS)


def records_in(annotation: Any, known: frozenset[type] = frozenset()) -> set[type]:
    """The record types that a type annotation speaks of, at any depth."""
    if annotation in known:
        return set()
    if isinstance(annotation, type) and annotation.__module__.startswith("daruma.state"):
        inner, now = get_type_hints(annotation).values(), known | {annotation}
        return {annotation}.union(*(records_in(hint, now) for hint in inner))
    arguments = (
        get_args(annotation) if not isinstance(annotation, UnionType) else annotation.__args__
    )
    return set().union(*(records_in(argument, known) for argument in arguments))


def test_everything_the_state_can_hold_may_be_read_back() -> None:
    """A type that is written and not declared would make its checkpoint unreadable."""
    held = set().union(*map(records_in, get_type_hints(channels.State).values()))

    assert held - set(STORED_TYPES) == set()


@pytest.mark.parametrize("record", STORED_TYPES, ids=full_name)
def test_a_record_is_frozen_and_versioned(record: type) -> None:
    """So that it can be shared and migrated."""
    versions = [f.default for f in dataclasses.fields(record) if f.name == "schema_version"]

    assert versions == [VERSIONS[full_name(record)]]
    assert record.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of every dataclass


def test_a_record_validates_and_refuses_what_it_does_not_know() -> None:
    """A damaged or foreign payload is an error, not half a record."""
    with pytest.raises(ValidationError, match="think"):
        Limits(think="many", verify=1, reflect=1)  # type: ignore[arg-type]  # is the point
    with pytest.raises(ValidationError, match="more"):
        Limits(think=1, verify=1, reflect=1, more=1)  # type: ignore[call-arg]  # is the point


def test_what_is_written_can_be_read() -> None:
    """LangGraph drops unknown keys silently: every key of an update is a channel of the state."""
    readable, written = get_type_hints(channels.State), get_type_hints(channels.Update)

    assert set(written) == set(readable) - {"mode", "workspace", "rubric"}
    asked = {"messages", "mode", "workspace", "rubric", "continuity"}
    assert set(get_type_hints(channels.Input)) == asked
    assert set(get_type_hints(channels.Output)) <= set(readable)


def test_no_default_of_a_stored_field_changes_unnoticed() -> None:
    """Stored records lack what is a default: a new one needs a new version, and a migration."""
    defaults = {full_name(each): dict(defaults_of(each)) for each in STORED_TYPES}

    assert json.loads(json.dumps(defaults)) == json.loads(DEFAULTS.read_text())
