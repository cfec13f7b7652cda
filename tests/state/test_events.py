"""Events are typed, declared and JSON-able."""

import json
from dataclasses import fields
from typing import Any

import pytest

from daruma.state.events import EVENTS, Event, PhaseFailed, TaskStarted


def test_every_event_is_declared_under_its_own_name() -> None:
    """FA-06: two events of one name would hide each other."""
    assert len(EVENTS) == len(Event.__subclasses__())
    assert all(name == event.type for name, event in EVENTS.items())


def test_an_event_shows_its_type_and_fields() -> None:
    """What observers get."""
    event = TaskStarted(task_id="t/1", mode="react", goal="Do it", workspace=None)

    assert event.to_dict() == {
        "type": "task_started",
        "task_id": "t/1",
        "mode": "react",
        "goal": "Do it",
        "workspace": None,
        "schema_version": 1,
    }


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_no_field_of_an_event_hides_its_type(event: type[Event]) -> None:
    """``type`` is the key that observers switch on."""
    assert "type" not in {field.name for field in fields(event)}


def test_a_list_in_an_event_survives_json() -> None:
    """The dev server sends events as JSON."""
    event: dict[str, Any] = PhaseFailed(
        phase_id="a", title="A", number=1, of=2, outcome="failed", reason="r", fallen=("b",)
    ).to_dict()

    assert json.loads(json.dumps(event))["fallen"] == ["b"]
