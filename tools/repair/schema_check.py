"""A JSON schema that many values are checked against: read once, and most values at first sight."""

import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple

from daruma.tools.files.threads import to_thread

Schema = Mapping[str, Any]

_SAYING_NOTHING: Final = frozenset({"title", "description", "default", "examples"})
_OF_OBJECTS: Final = frozenset({"type", "properties", "required", "additionalProperties"})
_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}
"""What certainly is of a JSON type; whether 1.0 is an integer is left to who knows."""


class _Plain(NamedTuple):
    """The Python types that certainly fit each key, none where more is said than one JSON type."""

    types: Mapping[str, frozenset[type]]
    required: frozenset[str]


class SchemaUnreadable(Exception):
    """Raised for a schema that nothing can be checked against."""


async def checks_at_hand() -> None:
    """Import what values are checked with, once a process, in a thread: it reads files."""
    if "jsonschema" not in sys.modules:
        await to_thread(import_module, "jsonschema")


class SchemaCheck:
    """What says whether a value fits a schema, which must not change."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def problem_of(self, value: Any) -> str | None:
        """Say in one line what does not fit, None if all does.

        Raises :class:`SchemaUnreadable`.
        """
        if self._plainly_fits(value):
            return None
        from jsonschema.exceptions import best_match

        try:
            problem = best_match(self._validator.iter_errors(value))
        except Exception as error:
            # A pattern in JavaScript, an unknown type, a circle: each raises something else.
            raise SchemaUnreadable from error
        if problem is None:
            return None
        return f"{problem.json_path}: {' '.join(problem.message.split()):.300}"

    def _plainly_fits(self, value: Any) -> bool:
        """Whether a value is an object that has what is required, all of it of plain types."""
        plain = self._plain
        return (
            plain is not None
            and isinstance(value, dict)
            and plain.required <= value.keys()
            and all(type(each) in plain.types.get(key, ()) for key, each in value.items())
        )

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator  # 36 ms: not before something runs

        return Draft202012Validator(self._schema)

    @cached_property
    def _plain(self) -> "_Plain | None":
        schema = self._schema
        if schema.get("type") != "object" or schema.keys() - _OF_OBJECTS - _SAYING_NOTHING:
            return None
        known, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(known, Mapping) or not isinstance(required, list):
            return None
        return _Plain({key: _types(each) for key, each in known.items()}, frozenset(required))


def _types(schema: Any) -> frozenset[type]:
    plain = isinstance(schema, Mapping) and not schema.keys() - _SAYING_NOTHING - {"type"}
    named = schema.get("type") if plain else None
    return _TYPES.get(named, frozenset()) if isinstance(named, str) else frozenset()
