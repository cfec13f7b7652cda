"""Checking values against a schema: what is seen at first sight is what a validator says."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from daruma.tools.calls.schema import SchemaCheck, SchemaUnreadable

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


@settings(max_examples=1000, deadline=None)
@given(schema=SCHEMAS, value=st.dictionaries(KEYS, VALUES) | VALUES)
def test_what_fits_is_what_fits_a_validator(schema: dict[str, Any], value: Any) -> None:
    """Whatever the schema says, and whatever it is about."""
    fits = Draft202012Validator(schema).is_valid(value)

    assert (SchemaCheck(schema).problem_of(value) is None) == fits


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"number": 1, "text": "a"}, None),
        ({"number": True}, "$.number: True is not of type 'integer'"),
        ({"text": "a"}, "$: 'number' is a required property"),
        (
            {"number": 1, "more": 2},
            "$: Additional properties are not allowed ('more' was unexpected)",
        ),
    ],
)
def test_the_same_check_says_it_of_one_value_after_the_other(
    value: dict[str, Any], problem: str | None
) -> None:
    """What was found of one is nothing that is said of the next."""
    check = SchemaCheck(PLAIN)

    assert [check.problem_of(each) for each in ({}, value, value)][1:] == [problem, problem]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"type": "string", "enum": ["a"]}, "b"),
        ({"type": "string", "minLength": 2}, "b"),
        ({"type": "integer", "minimum": 5}, 4),
        ({"type": "number", "not": {"const": 0}}, 0),
    ],
)
def test_what_is_said_beside_a_type_is_heard(said: dict[str, Any], value: object) -> None:
    """It is not seen at first sight."""
    check = SchemaCheck({"type": "object", "properties": {"a": said}})

    assert (check.problem_of({"a": value}) or "").startswith("$.a: ")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "no such"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?<x>"}}},
        {"type": "object", "required": True},
        {"type": "object", "properties": 7},
    ],
)
def test_a_schema_that_can_not_be_read_is_told_apart(schema: dict[str, Any]) -> None:
    """Every time: that a value does not fit it would be a lie."""
    check = SchemaCheck(schema)

    for _ in range(2):
        with pytest.raises(SchemaUnreadable):
            check.problem_of({"a": "b"})
