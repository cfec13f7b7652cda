"""Tightening a tool's JSON schema where nothing that was meant is refused by it (TL-07). Pure.

An object that lists its ``properties`` and is silent about others is closed. It stays open wherever
another part of the schema has a say in the same value: closing one half of an ``allOf`` would
refuse what the other half asks for.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Schema = dict[str, Any]

_SILENT = {
    *("$schema", "$comment", "$defs", "definitions", "title", "description", "default", "examples"),
    *("deprecated", "readOnly", "writeOnly", "type", "required"),
}
"""Keywords that say nothing of what else an object may hold."""

_CHOICES = {"anyOf", "oneOf"}
_SAME_VALUE = {
    *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then"),
    *("else", "dependentSchemas", "dependencies", "contains", "patternProperties"),
    *("unevaluatedProperties", "unevaluatedItems"),
}
"""Keywords by which more than one schema, or another one, judges the same value."""

_NAMING = {"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"}
_SHARED = ("#/$defs/", "#/definitions/")


def strict(schema: Mapping[str, Any]) -> Schema:
    """Return a tightened copy. Values with listed keys only fit it as they fit the original.

    ``additionalProperties`` that is set is kept. The whole is said to be an object, which the
    arguments of a call always are. Tightening twice is tightening once.
    """
    copy = _with_properties(deepcopy(dict(schema)))
    shared = [each for key in ("$defs", "definitions") for each in _values(copy.get(key))]
    reached = [*_own(copy), *(each for entry in shared for each in _own(entry))]
    elsewhere = [ref for node in reached for ref in _foreign_refs(node)]
    named = any(_NAMING & node.keys() for node in reached)
    if named or not all(ref.startswith(_SHARED) for ref in elsewhere):
        return copy
    for node in _own(copy) if elsewhere else reached:
        _close(node)
    return copy


def _with_properties(schema: Schema) -> Schema:
    """Add the keyword that providers insist on, without closing an object for it."""
    if {"properties", "$ref"} & schema.keys():
        return schema if "$ref" in schema else {"type": "object", **schema}
    opened: Schema = {} if _SAME_VALUE & schema.keys() else {"additionalProperties": True}
    return {"type": "object", **opened, **schema, "properties": {}}


def _close(node: Schema) -> None:
    if isinstance(node.get("properties"), dict) and not _SAME_VALUE & node.keys():
        node.setdefault("additionalProperties", False)


def _own(node: object) -> Iterator[Schema]:
    """Yield the schemas, this one first, that alone judge the values they are about."""
    if not isinstance(node, dict):
        return
    yield node
    for child in _parts(node):
        yield from _own(child)


def _parts(node: Schema) -> Iterator[object]:
    """Yield the schemas of a value's parts, or the one real choice beside plain values."""
    judged = _SAME_VALUE & node.keys()
    if not judged:
        yield from _values(node.get("properties"))
        yield from (node.get("items"), node.get("additionalProperties"))
        yield from _list(node.get("prefixItems"))
    elif (choice := _lone_choice(node)) is not None:
        yield choice


def _lone_choice(node: Schema) -> Schema | None:
    """Return what an "X or null" is about: the one branch that is no plain value."""
    keys = node.keys() - _SILENT
    if len(keys) != 1 or not keys <= _CHOICES:
        return None
    branches = [each for each in _list(node[keys.pop()]) if not _plain(each)]
    return branches[0] if len(branches) == 1 and isinstance(branches[0], dict) else None


def _plain(branch: object) -> bool:
    kind = branch.get("type") if isinstance(branch, dict) else None
    return kind in ("null", "string", "integer", "number", "boolean")


def _foreign_refs(node: Schema) -> Iterator[str]:
    """Yield the references that stand where another schema judges the same value."""
    alone = node.keys() - _SILENT == {"$ref"} or _lone_choice(node) is not None
    if _SAME_VALUE & node.keys() and not alone:
        yield from _refs({key: node[key] for key in node.keys() - _SILENT})


def _refs(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _refs(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef"):
                yield str(value)
            yield from _refs(value)


def _values(section: object) -> list[object]:
    return list(section.values()) if isinstance(section, dict) else []


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
