"""The JSON Schema of all events, generated from their types, and the way back from JSON."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from daruma.state.errors import DarumaError
from daruma.state.event_fields import meaning_of
from daruma.state.events import EVENTS, SCHEMA_VERSION, Event

SCHEMA: Final = "events.schema.json"
ID: Final = f"urn:daruma-agent:events:{SCHEMA_VERSION}"


class EventRefused(DarumaError):
    """Raised for what is no event, or none that this version knows; says which and why."""


def events_schema() -> dict[str, Any]:
    """Return the schema: any value of the stream ``custom`` is one of its ``$defs``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Daruma's events",
        "description": "What a run tells in stream_mode='custom'. The version, the end of $id, "
        "grows when a field or an event is renamed, changed or removed. A release that only adds "
        "some keeps it, and brings its own file.",
        "type": "object",
        "required": ["type"],
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in EVENTS],
        "$defs": {name: _schema_of(event) for name, event in EVENTS.items()},
    }


def read_event(told: Mapping[str, Any]) -> Event:
    """Turn an event's JSON back into the event; fields of a newer version are left out.

    Raises :class:`EventRefused`.
    """
    event = EVENTS.get(str(told.get("type")))
    if event is None:
        raise EventRefused(f"{told.get('type')!r} is no event that this version knows")
    reader = _adapter(event.type)
    known = {key: each for key, each in told.items() if key in event.__dataclass_fields__}
    try:
        read: Event = reader.validate_python(known)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EventRefused(f"{event.type}: {where}: {first['msg']}") from None
    return read


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(EVENTS[name])


def _schema_of(event: type[Event]) -> dict[str, Any]:
    plain = _adapter(event.type).json_schema()
    fields = {
        name: {key: value for key, value in each.items() if key != "title"}
        | {"description": meaning_of(event.type, name)}
        for name, each in plain["properties"].items()
    }
    return {
        "type": "object",
        "description": " ".join((event.__doc__ or "").split()),
        "properties": {"type": {"const": event.type}, **fields},
        "required": ["type", *(name for name in fields if name != "member")],
        "additionalProperties": False,
    }
