"""JSON schemas of tools: what one takes, checked, tightened, and in few bytes for a model."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls._schema import SchemaCheck, SchemaUnreadable, cut, schema_excerpt, tighten

# --- Checking values against a schema: what is seen at first sight is what a validator says.

PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {"number": {"type": "integer", "title": "Number"}, "text": {"type": "string"}},
    "required": ["number"],
    "additionalProperties": False,
}

KEYS = st.sampled_from(["number", "text", "other"])
VALUES = st.sampled_from([0, 1, True, 1.0, 2.5, "", "a", None, [], [1], {}, {"number": 1}])
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"])
OF_VALUES: Any = st.one_of(
    st.fixed_dictionaries({"type": SCALARS}, optional={"default": VALUES, "title": st.just("T")}),
    st.fixed_dictionaries({"type": SCALARS}, optional={"enum": st.lists(VALUES, min_size=1)}),
    st.fixed_dictionaries({"type": st.lists(SCALARS, min_size=1, unique=True)}),
    st.sampled_from([True, False, {}, {"minimum": 1}, {"type": "string", "minLength": 1}]),
)
PARTS: Any = {
    "properties": st.dictionaries(KEYS, OF_VALUES),
    "required": st.lists(KEYS, unique=True),
    "additionalProperties": st.booleans(),
}
MORE: Any = {
    "type": st.sampled_from(["object", "array", ["object", "null"]]),
    "minProperties": st.just(1),
    "not": st.just({"required": ["other"]}),
}
SCHEMAS: Any = st.one_of(
    st.fixed_dictionaries({"type": st.just("object"), **PARTS}),
    st.fixed_dictionaries({}, optional=PARTS | MORE),
)


@settings(max_examples=100, deadline=None)
@given(schema=SCHEMAS, value=st.dictionaries(KEYS, VALUES) | VALUES)
def test_what_fits_is_what_fits_a_validator(schema: dict[str, Any], value: Any) -> None:
    """Whatever the schema says, and whatever it is about."""
    fits = Draft202012Validator(schema).is_valid(value)

    assert (SchemaCheck(schema).problem_of(value) is None) == fits


def test_the_same_check_says_it_of_one_value_after_the_other() -> None:
    """What was found of one is nothing that is said of the next."""
    value: Any
    problem: Any
    for value, problem in [
        ({"number": 1, "text": "a"}, None),
        ({"number": True}, "$.number: True is not of type 'integer'"),
        ({"text": "a"}, "$: 'number' is a required property"),
        (
            {"number": 1, "more": 2},
            "$: Additional properties are not allowed ('more' was unexpected)",
        ),
    ]:
        check = SchemaCheck(PLAIN)
        check.problem_of({})

        assert [check.problem_of(value), check.problem_of(value)] == [problem, problem]


def test_what_is_said_beside_a_type_is_heard() -> None:
    """It is not seen at first sight."""
    said: Any
    value: Any
    for said, value in [
        ({"type": "string", "enum": ["a"]}, "b"),
        ({"type": "string", "minLength": 2}, "b"),
        ({"type": "integer", "minimum": 5}, 4),
        ({"type": "number", "not": {"const": 0}}, 0),
    ]:
        check = SchemaCheck({"type": "object", "properties": {"a": said}})

        assert (check.problem_of({"a": value}) or "").startswith("$.a: ")


class Cat(BaseModel):
    """One form of a pet."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """The other."""

    kind: Literal["dog"]
    tail: str


class Visit(BaseModel):
    """Fields that may have one of several forms."""

    pet: Cat | Dog
    when: int | None = None
    tags: list[str] | str = ""


class Tagged(BaseModel):
    """The same, with the form named as pydantic does."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


CAUSES: dict[str, tuple[type[BaseModel], dict[str, Any], str]] = {
    "in the form it has": (Visit, {"kind": "cat", "lives": "x"}, "$.pet.lives: 'x' is not of type"),
    "in the other": (Visit, {"kind": "dog", "tail": 1}, "$.pet.tail: 1 is not of type 'string'"),
    "a field that lacks": (Visit, {"kind": "dog"}, "$.pet: 'tail' is a required property"),
    "no form": (Visit, {"kind": "bird"}, "$.pet.kind: 'bird' is not 'cat' or 'dog'"),
    "a form that is not told": (Visit, {}, "$.pet: {} is not valid under any of the given schemas"),
    "a form that is named": (Tagged, {"kind": "cat"}, "$.pet: 'lives' is a required property"),
}


def test_the_cause_is_named_and_not_what_another_form_wants() -> None:
    """TL-12: a model that is told of the wrong field mends the wrong one."""
    for model, pet, said in CAUSES.values():
        problem = SchemaCheck(model.model_json_schema()).problem_of({"pet": pet})

        assert problem is not None
        assert problem.startswith(said)


def test_all_types_that_are_possible_are_named() -> None:
    """Rather than that none of some schemas fits, which a model does not see by name."""
    value: Any
    for field, value, said in [
        ("when", "soon", "$.when: 'soon' is not of type 'integer' or 'null'"),
        ("tags", 1, "$.tags: 1 is not of type 'array' or 'string'"),
        ("tags", [1], "$.tags[0]: 1 is not of type 'string'"),
    ]:
        given = {"pet": {"kind": "cat", "lives": 9}, field: value}

        assert SchemaCheck(Visit.model_json_schema()).problem_of(given) == said


def test_a_schema_that_can_not_be_read_is_told_apart() -> None:
    """Every time: that a value does not fit it would be a lie."""
    schema: Any
    for schema in [
        {"type": "object", "properties": {"a": {"type": "no such"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?<x>"}}},
        {"type": "object", "required": True},
        {"type": "object", "properties": 7},
    ]:
        check = SchemaCheck(schema)

        for _ in range(2):
            with pytest.raises(SchemaUnreadable):
                check.problem_of({"a": "b"})


# --- A schema in few bytes is valid text and of use.

EVENT = TOOLS["create_event"].parameters


DOUBLING: dict[str, Any] = {
    f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)
}
HANGING: dict[str, tuple[dict[str, Any], Any]] = {
    "a group that repeats": ({"pattern": "^(a+)+$"}, "a" * 5_000 + "!"),
    "choices that repeat": ({"pattern": "^(?:a|a){60}b$"}, "a" * 60),
    "choices": ({"pattern": "a?" * 60 + "a" * 60}, "a" * 60),
    "two that repeat": ({"pattern": r"\s+\s+\s+$"}, " " * 50_000 + "x"),
    "looking around": ({"pattern": r"^(?=a)(a+)+$"}, "a" * 5_000 + "!"),
    "names of keys": (
        {"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
        {"a" * 5_000 + "!": 1},
    ),
    "values to compare": ({"uniqueItems": True}, [{"a": n} for n in range(100_000)]),
    "references that double": (
        {"$ref": "#/$defs/d0", "$defs": DOUBLING | {"d40": {"type": "string"}}},
        1,
    ),
    "references to each other": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        json.loads("[" * 500 + "]" * 500),
    ),
}


def test_no_schema_takes_endless_time() -> None:
    """SE-07: an MCP server writes the schema, a model the value."""
    for name, (schema, value) in HANGING.items():
        fits = name in ("choices", "values to compare")
        try:
            assert (SchemaCheck(schema).problem_of(value) is None) == fits
        except SchemaUnreadable:
            assert any(each in name for each in ("references", "keys", "around"))


def test_usual_patterns_are_checked() -> None:
    """Of texts of a usual length."""
    for pattern, value, fits in [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-02", True),
        (r"^\d{4}-\d{2}-\d{2}$", "tomorrow", False),
        (r"^[^@\s]+@[^@\s]+$", "me@example.org", True),
        (r"^[^@\s]+@[^@\s]+$", "me", False),
        (r"^(?:https?|ftp)://", "gopher://x", False),
        (r"^\d+(\.\d+)*$", "1.2.3", True),
        (r"^\d+(\.\d+)*$", "latest", False),
    ]:
        assert (SchemaCheck({"pattern": pattern}).problem_of(value) is None) == fits


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_no_schema_is_looked_up_elsewhere(keyword: str, tmp_path: Path) -> None:
    """A server would have us ask addresses that only we reach, and read files."""
    (tmp_path / "other.json").write_text('{"type": "string"}')
    for at in ((tmp_path / "other.json").as_uri(), "http://127.0.0.1:9/other.json"):
        with pytest.raises(SchemaUnreadable):
            SchemaCheck({"properties": {"a": {keyword: at}}}).problem_of({"a": 1})


def test_of_a_schema_that_is_too_long_prose_goes_first() -> None:
    """Then all but keys, types and what is required; a small one stays whole."""
    schema = {
        "title": "T",
        "properties": {"title": {"type": "string", "description": "x" * 500}},
        "required": ["title"],
    }
    typed = json.loads(schema_excerpt(EVENT, 300))

    assert json.loads(schema_excerpt(EVENT, 100_000)) == EVENT
    assert json.loads(schema_excerpt(schema, 200)) == {
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    assert typed["required"] == ["title", "date", "attendees"]
    assert list(typed["properties"]) == list(EVENT["properties"])
    assert typed["properties"]["location"] == "object|null"


@given(name=st.sampled_from(sorted(TOOLS)), max_bytes=st.integers(10, 3_000))
def test_an_excerpt_keeps_its_limit(name: str, max_bytes: int) -> None:
    """TL-09: bytes of UTF-8, not characters."""
    assert len(schema_excerpt(TOOLS[name].parameters, max_bytes).encode()) <= max_bytes


@given(text=st.text(), max_bytes=st.integers(10, 100))
def test_a_cut_text_is_valid_and_marked(text: str, max_bytes: int) -> None:
    """No character is cut in two."""
    short = cut(text, max_bytes)

    assert len(short.encode()) <= max_bytes
    assert short == text or short.endswith("[cut]") or "\ud800" <= max(text) <= "\udfff"


# --- Schemas are tightened where that refuses nothing that was meant.

Schema = dict[str, Any]


def obj(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties}


def closed(**properties: Any) -> Schema:
    return obj(**properties) | {"additionalProperties": False}


TEXT = {"type": "string"}
NULL = {"type": "null"}
A = {"$ref": "#/$defs/A"}


def test_an_object_that_lists_its_keys_is_closed() -> None:
    """TL-07: at every depth, and what is referred to as well."""
    loose: Any
    tight: Any
    for loose, tight in [
        (obj(x=TEXT), closed(x=TEXT)),
        (obj(), closed()),
        (obj(x=obj(y=TEXT)), closed(x=closed(y=TEXT))),
        (obj(x={"items": obj(y=TEXT)}), closed(x={"items": closed(y=TEXT)})),
        (obj(x={"prefixItems": [obj()]}), closed(x={"prefixItems": [closed()]})),
        (obj(x={"additionalProperties": obj()}), closed(x={"additionalProperties": closed()})),
        (obj(x={"anyOf": [obj(), NULL]}), closed(x={"anyOf": [closed(), NULL]})),
        (
            {**obj(x=A, y={"anyOf": [A, NULL]}), "$defs": {"A": obj()}},
            {**closed(x=A, y={"anyOf": [A, NULL]}), "$defs": {"A": closed()}},
        ),
        ({**A, "$defs": {"A": obj()}}, {**A, "$defs": {"A": closed()}}),
    ]:
        assert tighten(loose) == tight


def test_what_another_part_of_the_schema_judges_stays_open() -> None:
    """TL-07: one half of an ``allOf`` must not refuse what the other half asks for."""
    open_: Any
    for open_ in [
        obj(x=TEXT) | {"additionalProperties": True},
        obj(x=TEXT) | {"additionalProperties": TEXT},
        *(obj(x=TEXT) | {keyword: [obj(y=TEXT)]} for keyword in ("allOf", "anyOf", "oneOf")),
        obj(x=TEXT) | {"if": obj(x=TEXT), "then": obj(y=TEXT)},
        obj(x=TEXT) | {"patternProperties": {"^y": TEXT}},
        obj(x=TEXT) | {"unevaluatedProperties": False},
        {"$defs": {"A": obj(x=TEXT)}, **A, "properties": {"y": TEXT}},
        {"$defs": {"A": obj(x=TEXT)}, "allOf": [A], **obj(y=TEXT)},
        {"$defs": {"A": obj(x=TEXT)}, "not": A, **obj(y=TEXT)},
        obj(x=TEXT) | {"allOf": [{"$ref": "#/properties/x"}]},
        obj(x=TEXT) | {"$id": "https://example.org/x"},
    ]:
        assert tighten(open_) == open_


def test_what_a_value_may_fit_beside_another_stays_open() -> None:
    """The root is closed all the same: nobody else judges that.

    Providers refuse a schema without ``properties``; with empty ones it must not be closed.
    """
    both = {"allOf": [A, obj(y=TEXT)]}
    for loose in (
        {**obj(x=A, both=both), "$defs": {"A": obj(x=TEXT)}},
        obj(x={"anyOf": [obj(y=TEXT), obj(z=TEXT)]}),
    ):
        assert tighten(loose) == loose | {"additionalProperties": False}
    schema: Any
    for schema in ({}, {"type": "object"}):
        expected = {"type": "object", "properties": {}, "additionalProperties": True}

        assert tighten(schema) == expected


def test_a_broken_schema_raises_nothing() -> None:
    """It is the tool's own fault, and said elsewhere."""
    odd: Any
    for odd in [
        {"properties": None},
        {"properties": {"x": True}, "items": [1]},
        obj(x={"prefixItems": 3, "anyOf": None}),
        {"$defs": [], "$ref": 4},
        {"allOf": {}, "properties": {"x": {"type": ["string", "null"]}}},
    ]:
        assert tighten(tighten(odd)) == tighten(odd)


class Inner(BaseModel):
    """Something within."""

    n: int = 0


class Outer(BaseModel):
    """What Pydantic writes."""

    inner: Inner
    maybe: Optional[Inner] = None  # noqa: UP045  # as users write it
    many: list[Inner] = []
    by_name: dict[str, Inner] = {}


def test_what_pydantic_writes_is_closed_everywhere() -> None:
    """Optional, lists and dictionaries of models."""
    tight = tighten(Outer.model_json_schema())

    assert tight["additionalProperties"] is False
    assert tight["$defs"]["Inner"]["additionalProperties"] is False


NAMES = st.sampled_from(["a", "b", "c"])


def _under(keyword: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries({keyword: values})


def _objects(children: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    some = st.lists(children, min_size=1, max_size=2)
    return st.builds(
        lambda *parts: {key: value for part in parts for key, value in part.items()},
        _under("properties", st.dictionaries(NAMES, children, max_size=3)),
        st.sampled_from([{}, {"type": "object"}]),
        st.one_of(
            st.just({}),
            *(_under(keyword, some) for keyword in ("allOf", "anyOf", "oneOf")),
            *(_under(keyword, children) for keyword in ("not", "if", "then", "items")),
            st.sampled_from([{"additionalProperties": True}, {"unevaluatedProperties": False}]),
        ),
    )


PLAIN_STRICT_SCHEMA = st.sampled_from([TEXT, NULL, {"type": "integer"}])
SCALARS_STRICT_SCHEMA = PLAIN_STRICT_SCHEMA | st.sampled_from([A, {"$ref": "#/$defs/B"}])
SCHEMAS_STRICT_SCHEMA = st.recursive(SCALARS_STRICT_SCHEMA, _objects, max_leaves=8)
ROOTS = st.builds(
    lambda root, a, b: {**root, "$defs": {"A": a, "B": b}},
    _objects(SCHEMAS_STRICT_SCHEMA),
    _objects(PLAIN_STRICT_SCHEMA),
    _objects(PLAIN_STRICT_SCHEMA | st.just(A)),
)


def values(schema: Any, root: Schema, depth: int = 6) -> st.SearchStrategy[Any]:
    """Values made of keys that the schema lists, where it lists them."""
    if depth == 0 or not isinstance(schema, dict):
        return st.sampled_from(["", 1, None])
    parts: list[Any] = [
        *schema.get("allOf", ()),
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
    ]
    parts += [schema[key] for key in ("if", "then", "not") if key in schema]
    if "$ref" in schema:
        parts.append(root["$defs"][schema["$ref"].rpartition("/")[2]])
    kinds = {"string": st.just("x"), "integer": st.just(1), "null": st.none()}
    if schema.get("type") in kinds:
        return kinds[schema["type"]]
    own = st.fixed_dictionaries(
        {},
        optional={k: values(v, root, depth - 1) for k, v in schema.get("properties", {}).items()},
    )
    lists = st.lists(values(schema.get("items"), root, depth - 1), max_size=2)
    others = [values(part, root, depth - 1) for part in parts]
    merged = st.tuples(own, *others).map(_merged)
    return st.one_of(merged, *others, *([lists] if "items" in schema else []))


def _merged(parts: tuple[Any, ...]) -> Any:
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items() if isinstance(part, dict) else ():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = _merged((result[key], value)) if both else value
    return result


@given(st.data(), ROOTS)
def test_what_fitted_with_listed_keys_fits_still(data: st.DataObject, schema: Schema) -> None:
    """TL-07: for whatever a schema is composed of."""
    before = deepcopy(schema)
    tight = tighten(schema)
    value = data.draw(values(schema, schema).filter(lambda v: isinstance(v, dict)))

    assert schema == before
    assert tighten(tight) == tight
    if Draft202012Validator(schema).is_valid(value):
        assert Draft202012Validator(tight).is_valid(value)


@given(ROOTS, st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["x", 1]), max_size=2))
def test_nothing_is_let_in_that_was_refused(schema: Schema, value: Any) -> None:
    """A tightened schema is never looser, ``not`` and ``oneOf`` included."""
    if Draft202012Validator(tighten(schema)).is_valid(value):
        assert Draft202012Validator(schema).is_valid(value)
