"""JSON schemas of tools: what one takes, checked, tightened, and in few bytes for a model."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator
from pydantic_core.core_schema import str_schema

from daruma.tools.threads import to_thread

# --- A JSON schema that many values are checked against: read once, and most values at first sight.

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


class SchemaUnreadable(Exception):
    """Raised for a schema that nothing can be checked against."""


async def import_schema_checks() -> None:
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
        if self._plain is not None and isinstance(value, dict):
            types_of, required = self._plain  # an object, most often, and all of plain types
            plain = all(type(each) in types_of.get(key, ()) for key, each in value.items())
            if plain and required <= value.keys():
                return None
        from jsonschema.exceptions import relevance

        _followed[0] = 0
        try:
            problem = max(self._validator.iter_errors(value), key=relevance, default=None)
        except Exception as error:
            # A pattern in JavaScript, an unknown type, a circle: each raises something else.
            raise SchemaUnreadable from error
        if problem is None:
            return None
        path, message = _cause(problem)
        return f"{path}: {' '.join(message.split()):.300}"

    @cached_property
    def _validator(self) -> Any:
        from referencing.jsonschema import EMPTY_REGISTRY  # 36 ms: not before something runs

        if not all(map(_is_quick, _patterns_of_keys(self._schema))):
            raise SchemaUnreadable
        return _bounded_validator()(self._schema, registry=EMPTY_REGISTRY)

    @cached_property
    def _plain(self) -> "tuple[Mapping[str, frozenset[type]], frozenset[str]] | None":
        """The Python types that certainly fit each key, and the keys that are required.

        None where more is said of the whole; no types where more is said of a key than its type.
        """
        schema = self._schema
        if schema.get("type") != "object" or schema.keys() - _OF_OBJECTS - _SAYING_NOTHING:
            return None
        known, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(known, Mapping) or not isinstance(required, list):
            return None
        return {key: _types(each) for key, each in known.items()}, frozenset(required)


# --- What does not fit where a value may have one of several forms.


def _cause(problem: Any) -> tuple[str, str]:
    """Return where and how a value is wrong in the form that it has, not in one that it has not.

    Which form it has is told by its type, and by what stands in a field that names the form. Where
    each form wants something else in the same place, all that is possible is said.
    """
    from jsonschema.exceptions import relevance

    while problem.context:
        forms: dict[Any, list[Any]] = {}
        for each in problem.context:
            forms.setdefault(each.relative_schema_path[0], []).append(each)
        fitting = [form for form in forms.values() if not any(map(_tells_forms_apart, form))]
        if len(fitting) == 1:
            problem = max(fitting[0], key=relevance)
            continue
        apart = [next(filter(_tells_forms_apart, form)) for form in forms.values() if not fitting]
        if len({(each.json_path, each.validator == "type") for each in apart}) != 1:
            break
        wanted: list[Any] = []  # the types or the values that each form has there
        for each in apart:
            several = isinstance(each.validator_value, list) and each.validator != "const"
            wanted += each.validator_value if several else [each.validator_value]
        names = " or ".join(dict.fromkeys(map(repr, wanted)))
        of_type = "of type " if apart[0].validator == "type" else ""
        return apart[0].json_path, f"{apart[0].instance!r} is not {of_type}{names}"
    return problem.json_path, problem.message


def _tells_forms_apart(problem: Any) -> bool:
    fields, about = len(problem.relative_path), problem.validator
    return (fields == 0 and about == "type") or (fields == 1 and about in ("const", "enum"))


# --- Checking in bounded time (SE-07), by what stands in the schema alone: it may be a stranger's.

MOST_REFERENCES: Final = 10_000
"""References that one check follows: a few that name each other twice would not end."""

MOST_STEPS: Final = 10_000_000
"""Steps that Python's search for a pattern may take; for more there is one in linear time."""

_LONGEST_PATTERN: Final = 1_000
_SINGLE: Final = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_followed = [0]


@cache
def _bounded_validator() -> Any:
    """Return what checks as the standard says, but looks nothing up and takes no endless time."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    usual = Draft202012Validator.VALIDATORS

    def reference(keyword: str) -> Any:
        def follow(validator: Any, named: Any, value: Any, schema: Any) -> Iterator[Any]:
            _followed[0] += 1
            if _followed[0] > MOST_REFERENCES:
                raise SchemaUnreadable
            yield from usual[keyword](validator, named, value, schema) or ()

        return follow

    references = {keyword: reference(keyword) for keyword in ("$ref", "$dynamicRef")}
    bounded: Any = extend  # it has no types
    own = {"pattern": _pattern_problems, "uniqueItems": _unique_problems}
    return bounded(Draft202012Validator, {**references, **own})


def _pattern_problems(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    if _is_quick(wanted, len(value)):
        fits = re.search(wanted, value) is not None
    elif linear := _linear(wanted):
        fits = linear.isinstance_python(value)
    else:
        raise SchemaUnreadable
    if not fits:
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def _unique_problems(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if wanted and isinstance(value, list) and len({*map(_canonical, value)}) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _is_quick(pattern: str, length: int = 100) -> bool:
    """Whether to look for a pattern in a text of that length takes few steps at the worst.

    Each part that repeats may try all of the text, each choice two ways; a group that repeats may
    take for ever.

    >>> _is_quick("^[a-z]+$"), _is_quick("^(a+)+$")
    (True, False)
    """
    if len(pattern) > _LONGEST_PATTERN:
        return False
    plain = _SINGLE.sub("x", pattern)
    repeats = len(re.findall(r"[*+{]", re.sub(r"\{\d+\}", "", plain)))
    choices = len(re.findall(r"(?<!\()\?|\|", plain))
    steps = max(length, 2) ** (repeats + 1) * 2**choices
    return steps <= MOST_STEPS and not re.search(r"\)[*+{]", plain)


@lru_cache(maxsize=1000)
def _linear(pattern: str) -> SchemaValidator | None:
    """Return what searches for a pattern in linear time; None for one that looks around or back."""
    try:
        return SchemaValidator(str_schema(pattern=pattern, strict=True))
    except SchemaError:
        return None


def _canonical(value: Any) -> str:
    """Return a value as JSON, the same for those that are equal."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        fields = (f"{json.dumps(key)}:{_canonical(each)}" for key, each in sorted(value.items()))
        return f"{{{','.join(fields)}}}"
    return json.dumps(value)


def _patterns_of_keys(schema: Any) -> Iterator[str]:
    for each in _mappings_in(schema):
        named = each.get("patternProperties")
        yield from named if isinstance(named, Mapping) else ()


def _mappings_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _types(schema: Any) -> frozenset[type]:
    plain = isinstance(schema, Mapping) and not schema.keys() - _SAYING_NOTHING - {"type"}
    named = schema.get("type") if plain else None
    return _TYPES.get(named, frozenset()) if isinstance(named, str) else frozenset()


def object_schema_problem(schema: Any) -> str | None:
    """Say why an object can not be asked for by a schema; None if it can."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        json.dumps(schema)
        Draft202012Validator.check_schema(schema)
        references = [*_refs(schema)]
    except SchemaError as error:
        return f"{error.json_path}: {' '.join(error.message.split()):.200}"
    except (TypeError, ValueError, RecursionError) as error:
        return " ".join(str(error).split())[:200]
    for each in references:
        if each != "#" and not (each.startswith("#/") and variants({"$ref": each}, schema)):
            return f"{each!r:.80} is not in it"
    slow = [each for each in _patterns_of_keys(schema) if not _is_quick(each)]
    patterns = [p for each in _mappings_in(schema) if isinstance(p := each.get("pattern"), str)]
    slow += [each for each in patterns if not (_is_quick(each, 1) or _linear(each))]
    if slow:
        return f"the pattern {slow[0]!r:.80} can not be checked in bounded time"
    forms = variants(schema, schema)
    if not forms or any(types(each) != {"object"} for each in forms):
        return "its root has to be of type object"
    return None


# --- What a JSON schema takes: its variants, their types, the keys of an object.

MOST_VARIANTS: Final = 50
"""Variants of one value that are looked at; also what ends a schema that refers to itself."""


def misfit(value: Any, schema: Schema, root: Schema) -> str | None:
    """Say in one line what does not fit, None if all does. ``root`` holds what ``$ref`` names."""
    local = {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}
    try:
        return SchemaCheck(local).problem_of(value)
    except SchemaUnreadable:
        return "the schema can not be read, or not be checked in bounded time"


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
        choices = [*(each.get("anyOf") or ()), *(each.get("oneOf") or ())]
        if len(whole := each.get("allOf") or []) == 1:
            choices += whole
        if isinstance(reference := each.get("$ref"), str):
            named: Any = root
            for part in reference.removeprefix("#/").split("/"):
                named = named.get(part) if isinstance(named, Mapping) else None
            choices.insert(0, named)
        waiting.extend(choices)
        found.extend([] if choices else [each])
    return found


def types(schema: Schema) -> frozenset[str]:
    """Return the JSON types that one variant takes; those of its fixed values if it names none."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(map(str, named))
    if fixed := fixed_values(schema):
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
    return schema.get("additionalProperties", False) is not False or "patternProperties" in schema


def same_word(text: str) -> str:
    """Return a name without what differs between spellings: case and separators."""
    return "".join(each for each in text.casefold() if each not in "_-. ")


# --- A JSON schema in few bytes, still of use to a model: prose goes first, then all but keys.

PROSE: Final = frozenset(
    {"description", "title", "examples", "example", "$comment", "default", "$schema", "$id"}
)
MARK: Final = " [cut]"


def schema_excerpt(schema: Mapping[str, Any], max_bytes: int) -> str:
    """Return the schema as JSON of at most ``max_bytes`` of UTF-8, cut as little as that allows.

    Whole; else without descriptions; else keys, their types and which are required; else the
    beginning of that, with a mark that it was cut.
    """
    known = schema.get("properties")
    keys = {key: _type(each) for key, each in known.items()} if isinstance(known, Mapping) else {}
    outline = {"required": schema.get("required", []), "properties": keys}
    for each in (schema, _without_prose(schema), outline):
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


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return "|".join(dict.fromkeys(_type(each) for each in choices))
    named = schema.get("type", "object" if "$ref" in schema else "any")
    return "|".join(map(str, named)) if isinstance(named, list) else str(named)


# --- Tightening a tool's JSON schema where nothing that was meant is refused by it (TL-07). Pure.
#
# An object that lists its ``properties`` and is silent about others is closed. It stays open
# wherever another part of the schema has a say in the same value: closing one half of an ``allOf``
# would refuse what the other half asks for.

OwnSchema = dict[str, Any]

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


def tighten(schema: Mapping[str, Any]) -> OwnSchema:
    """Return a tightened copy. Values with listed keys only fit it as they fit the original.

    ``additionalProperties`` that is set is kept. The whole is said to be an object, which the
    arguments of a call always are. Tightening twice is tightening once.
    """
    copy = deepcopy(dict(schema))
    if "$ref" not in copy:  # providers insist on properties; no object is closed for it
        closed = {"properties", *_SAME_VALUE} & copy.keys()
        opened = {} if closed else {"additionalProperties": True}
        copy = {"type": "object", **opened, "properties": {}, **copy}
    shared = [each for key in ("$defs", "definitions") for each in _values(copy.get(key))]
    reached = [*_own(copy), *(each for entry in shared for each in _own(entry))]
    elsewhere = [ref for node in reached for ref in _foreign_refs(node)]
    named = any(_NAMING & node.keys() for node in reached)
    if named or not all(ref.startswith(_SHARED) for ref in elsewhere):
        return copy
    for node in _own(copy) if elsewhere else reached:
        if isinstance(node.get("properties"), dict) and not _SAME_VALUE & node.keys():
            node.setdefault("additionalProperties", False)
    return copy


def _own(node: object) -> Iterator[OwnSchema]:
    """Yield the schemas, this one first, that alone judge the values they are about.

    They are those of a value's parts, or the one real choice beside plain values.
    """
    if not isinstance(node, dict):
        return
    yield node
    parts: list[object] = [_lone_choice(node)]
    if not _SAME_VALUE & node.keys():
        parts = [*_values(node.get("properties")), *_list(node.get("prefixItems"))]
        parts += [node.get("items"), node.get("additionalProperties")]
    for each in parts:
        yield from _own(each)


def _lone_choice(node: OwnSchema) -> OwnSchema | None:
    """Return what an "X or null" is about: the one branch that is no plain value."""
    keys = node.keys() - _SILENT
    if len(keys) != 1 or not keys <= _CHOICES:
        return None
    plain = ("null", "string", "integer", "number", "boolean")
    forms = _list(node[keys.pop()])
    branches = [f for f in forms if not (isinstance(f, dict) and f.get("type") in plain)]
    return branches[0] if len(branches) == 1 and isinstance(branches[0], dict) else None


def _foreign_refs(node: OwnSchema) -> Iterator[str]:
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
