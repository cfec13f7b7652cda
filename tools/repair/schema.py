"""What a JSON schema takes: its variants, their types, the keys of an object."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from daruma.tools.repair.schema_check import SchemaCheck, SchemaUnreadable

Schema = Mapping[str, Any]

MOST_VARIANTS: Final = 50
"""Variants of one value that are looked at; also what ends a schema that refers to itself."""


def misfit(value: Any, schema: Schema, root: Schema) -> str | None:
    """Say in one line what does not fit, None if all does. ``root`` holds what ``$ref`` names."""
    local = {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}
    try:
        return SchemaCheck(local).problem_of(value)
    except SchemaUnreadable:
        return "the tool's own schema can not be read"


def variants(schema: Any, root: Schema) -> list[Schema]:
    """Return the schemas of which a value may fit any one, references followed."""
    found: list[Schema] = []
    waiting = [schema]
    for _ in range(MOST_VARIANTS):
        if not waiting:
            break
        each = waiting.pop()
        if not isinstance(each, Mapping):
            continue
        choices = list(_choices(each, root))
        waiting.extend(choices)
        found.extend([] if choices else [each])
    return found


def _choices(schema: Schema, root: Schema) -> Iterator[Any]:
    if isinstance(schema.get("$ref"), str):
        yield _named(schema["$ref"], root)
    for word in ("anyOf", "oneOf"):
        yield from schema.get(word) or ()
    whole: list[Any] = schema.get("allOf") or []
    if len(whole) == 1:
        yield whole[0]


def _named(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def types(schema: Schema) -> frozenset[str]:
    """Return the JSON types that one variant takes; those of its fixed values if it names none."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(map(str, named))
    fixed = fixed_values(schema)
    if fixed:
        return frozenset(map(type_of, fixed))
    return frozenset({"object"} if "properties" in schema else ())


def fixed_values(schema: Schema) -> list[Any]:
    """Return the values of an ``enum`` or a ``const``."""
    return list(schema.get("enum") or ()) or ([schema["const"]] if "const" in schema else [])


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def properties(schema: Schema) -> Mapping[str, Any]:
    """Return an object's known keys with their schemas."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def takes_any_key(schema: Schema) -> bool:
    """Whether keys beside the known ones are wanted, in so many words."""
    more = schema.get("additionalProperties", False)
    return more is not False or "patternProperties" in schema


def same_word(text: str) -> str:
    """Return a name without what differs between spellings: case and separators."""
    return "".join(each for each in text.casefold() if each not in "_-. ")
