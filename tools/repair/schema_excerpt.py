"""A JSON schema in few bytes, still of use to a model: prose goes first, then all but keys."""

import json
from collections.abc import Mapping
from typing import Any, Final

PROSE: Final = frozenset(
    {"description", "title", "examples", "example", "$comment", "default", "$schema", "$id"}
)
MARK: Final = " [cut]"


def schema_excerpt(schema: Mapping[str, Any], max_bytes: int) -> str:
    """Return the schema as JSON of at most ``max_bytes`` of UTF-8, cut as little as that allows.

    Whole; else without descriptions; else keys, their types and which are required; else the
    beginning of that, with a mark that it was cut.
    """
    for each in (schema, _without_prose(schema), _outline(schema)):
        text = json.dumps(each, ensure_ascii=False, separators=(",", ":"), default=str)
        if len(text.encode(errors="replace")) <= max_bytes:
            return text
    return cut(text, max_bytes)


def cut(text: str, max_bytes: int) -> str:
    """Return a text in at most ``max_bytes`` of valid UTF-8, with a mark where it is cut."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max(0, max_bytes - len(MARK))].decode(errors="ignore") + MARK


def _without_prose(schema: Any, *, names: bool = False) -> Any:
    """Return a schema without its prose; ``names`` says that the keys are properties' own names."""
    if isinstance(schema, list):
        return [_without_prose(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: _without_prose(each, names=not names and key in ("properties", "$defs"))
        for key, each in schema.items()
        if names or key not in PROSE
    }


def _outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    known = schema.get("properties")
    keys = {key: _type(each) for key, each in known.items()} if isinstance(known, Mapping) else {}
    return {"required": schema.get("required", []), "properties": keys}


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return "|".join(dict.fromkeys(_type(each) for each in choices))
    named = schema.get("type", "object" if "$ref" in schema else "any")
    return "|".join(map(str, named)) if isinstance(named, list) else str(named)
