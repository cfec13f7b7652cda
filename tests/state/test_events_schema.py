"""The schema of events is of all events there are, and real runs keep to it."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.parts import settings
from tests.scripted_runs import Run, against, call, calls, fall, phases, say, shout

from daruma.state.events import EVENTS, Event
from daruma.state.events_schema import MEANINGS, EventRefused, events_schema, meaning_of, read_event

QUICK: dict[str, Any] = {
    "tools": {"policy": {"run_command": "allow"}},
    "fallback_chain": {"recovery": {"wait_seconds": 0}},
    "llm": {"requests": {"wait_seconds": 0}},
}


def events_of_runs(workspace: Path) -> list[dict[str, Any]]:
    """What some unlike runs tell: tools, plans, a red check, recovery, a rollback, a team."""
    plain = Run(
        {"main": [calls("shout", call("fall", text="x")), {"raise": "down"}, say()]}
        | {"recovery": [against("retry")]},
        tools=[shout, fall],
        settings=settings(**QUICK),
    ).ask()
    red = settings(**QUICK, verification={"commands": ["test -e ok"]})
    touch = calls(call("run_command", command="touch ok"))
    plan = phases({"id": "a", "rollback": "snapshot"}, {"id": "b", "depends_on": ["a"]})
    planned = Run({"plan": [plan], "main": [touch, say(), say()]}, settings=red)
    planned.ask(mode="plan_exec", workspace=str(workspace)).reply({"decision": "confirm"})
    given_up = Run({"plan": [plan], "main": [say()] * 9, "reflect": [say("Hm.")] * 9}, settings=red)
    (workspace / "ok").unlink()
    given_up.ask(mode="plan_exec", workspace=str(workspace)).reply({"decision": "confirm"})
    pair = phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    team = Run({"plan": [pair], "main@a": [say()], "main@b": [say()]}, settings=settings(**QUICK))
    team.ask(mode="team_collab").reply({"decision": "confirm"})
    return [*plain.events, *planned.events, *given_up.events, *team.events]


@pytest.mark.long
def test_the_events_of_real_runs_keep_to_the_schema(tmp_path: Path) -> None:
    """FA-06: as JSON, each of them is valid, and reads back as the event that it was."""
    validator = Draft202012Validator(events_schema())

    told = [json.loads(json.dumps(event)) for event in events_of_runs(tmp_path)]

    assert [error.message for event in told for error in validator.iter_errors(event)] == []
    assert [json.loads(json.dumps(read_event(event).to_dict())) for event in told] == told
    assert len({event["type"] for event in told}) > 20


@pytest.mark.long
def test_the_schema_is_one_and_names_its_version() -> None:
    """A reader knows by ``$id``, and by the first event of a task."""
    schema = events_schema()

    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "urn:daruma-agent:events:1"
    assert set(schema["$defs"]) == set(EVENTS)


@pytest.mark.parametrize("change", [{"type": "unheard_of"}, {"goal": 7}, {"surprise": 1}])
def test_what_is_no_event_is_refused(change: dict[str, Any]) -> None:
    """FA-06: a type, a value and a field that nobody declared."""
    event: dict[str, Any] = {"type": "task_started", "task_id": "t/1", "mode": "react", "goal": "x"}
    event |= {"workspace": None, "schema_version": 1}
    validator = Draft202012Validator(events_schema())

    assert validator.is_valid(event)
    assert not validator.is_valid(event | change)


def test_reading_says_what_is_wrong_and_leaves_out_what_is_newer() -> None:
    """A consumer may be older than what it reads."""
    told = {"type": "phase_completed", "phase_id": "a", "newer": 1, "member": "m"}
    read = read_event(told)

    assert {key: read.to_dict().get(key) for key in told} == told | {"newer": None}
    with pytest.raises(EventRefused, match="'unheard_of' is no event"):
        read_event({"type": "unheard_of"})
    with pytest.raises(EventRefused, match="phase_completed: phase_id: Field required"):
        read_event({"type": "phase_completed"})


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_every_event_says_what_it_is(event: type[Event]) -> None:
    """A dataclass without a docstring shows its signature, which says nothing."""
    assert event.__doc__
    assert not event.__doc__.startswith(f"{event.__name__}(")


def test_every_meaning_is_of_a_field() -> None:
    """Nothing is left of what is gone; what has no meaning yet is told where to put it."""
    names = {field.name for event in EVENTS.values() for field in fields(event)}
    both = {f"{event.type}.{f.name}" for event in EVENTS.values() for f in fields(event)}

    assert [key for key in MEANINGS if key not in names | both] == []
    with pytest.raises(LookupError, match=r"state/events_schema\.py"):
        meaning_of("task_started", "unheard_of")
