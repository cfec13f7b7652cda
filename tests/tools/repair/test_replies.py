"""What a model answers to a request for repair is taken only as far as it fits."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.calls.repair.by_model import argument_repairs, name_repairs

VISIBLE = ("read_file", "search")


def reply(*repairs: Any) -> str:
    """Return a reply with these repairs."""
    return json.dumps({"repairs": list(repairs)})


def named(call_id: str, name: Any) -> dict[str, Any]:
    """Return one name's repair."""
    return {"tool_call_id": call_id, "name": name}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (reply(named("1", "search")), {"1": "search"}),
        ("```json\n" + reply(named("1", "search")) + "\n```", {"1": "search"}),
        ("Here you are:\n" + reply(named("1", "search")), {"1": "search"}),
        (reply(named("1", "search"), named("2", "nope")), {"1": "search"}),
        (reply(named("1", "Search")), {}),
        (reply(named("3", "search")), {}),
        (reply(named("1", "search"), named("1", "read_file")), {}),
        (reply(named("1", "search"), named("1", "search")), {"1": "search"}),
        (reply(named("1", "search"), named("1", "nope"), named("2", "search")), {"2": "search"}),
        (reply(named("1", None), "1", 1, None, {"name": "search"}), {}),
        ('{"repairs": {"tool_call_id": "1", "name": "search"}}', {}),
        ('{"repairs": [{"tool_call_id": "1", "name": "search"}', {}),
        ("[]", {}),
        ("", {}),
    ],
)
def test_a_name_must_be_a_visible_tool_s(text: str, wanted: dict[str, str]) -> None:
    """TL-08: exactly equal, for a call that was asked about, and said only once."""
    assert name_repairs(text, ["1", "2"], VISIBLE) == wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [({"a": [1]}, {"1": {"a": [1]}}), ({}, {"1": {}}), ("{}", {}), ([], {}), (None, {})],
)
def test_arguments_must_be_an_object(arguments: Any, wanted: dict[str, Any]) -> None:
    """TL-09: anything else is as if it had not been said."""
    text = reply({"tool_call_id": "1", "arguments": arguments})

    assert argument_repairs(text, ["1"]) == wanted


def test_partial_success_is_success() -> None:
    """TL-09: one good repair of two is one repair."""
    good, bad = {"tool_call_id": "1", "arguments": {"a": 1}}, {"tool_call_id": "2"}

    assert argument_repairs(reply(good, bad), ["1", "2"]) == {"1": {"a": 1}}


@given(text=st.text(alphabet="{}[]\",:repairs'`1\\\n ", max_size=80))
def test_any_text_is_an_answer(text: str) -> None:
    """Nothing is raised, and nothing comes of what is no JSON."""
    assert argument_repairs(text, ["1"]) == {}
    assert name_repairs(text, ["1"], VISIBLE) == {}
