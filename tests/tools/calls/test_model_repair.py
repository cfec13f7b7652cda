"""The model rung: one batched call for names or arguments (TL-08, TL-09)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls._json_reader import Problem
from daruma.tools.calls._model_repair import (
    MOST_RAW_BYTES,
    ArgumentCandidate,
    NameCandidate,
    argument_repairs,
    argument_request,
    name_repairs,
    name_request,
)
from daruma.tools.tokens import ESTIMATE

# --- What a model answers to a request for repair is taken only as far as it fits.

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


# --- What is asked of a model that repairs: little, bounded, and as data.


def broken(call_id: str, raw: str = "{", problem: Problem = "invalid_json") -> ArgumentCandidate:
    """Return a call of the editor that needs repair."""
    return ArgumentCandidate(call_id, TOOLS["str_replace_editor"], raw, problem, "why")


def test_names_are_asked_for_in_one_batch() -> None:
    """TL-08: calls, what is visible, and the form of the answer."""
    calls = [NameCandidate("1", "serch", '{"pattern": "x"}'), NameCandidate("2", "ls", "{}")]

    request = name_request(calls, ["search", "run"], max_candidates=9, max_visible=9)

    assert json.loads(request.user) == {
        "calls": [
            {"tool_call_id": "1", "name": "serch", "arguments_excerpt": '{"pattern": "x"}'},
            {"tool_call_id": "2", "name": "ls", "arguments_excerpt": "{}"},
        ],
        "tools": ["search", "run"],
    }
    assert '{"repairs":[{"tool_call_id":"...","name":"..."}]}' in request.system
    assert (request.asked_ids, request.cut) == (("1", "2"), False)


def test_cut_lists_are_marked() -> None:
    """TL-08: the audit and the model can tell that there was more."""
    calls = [NameCandidate(str(n), "x" * 5_000, "é" * 5_000) for n in range(5)]

    request = name_request(calls, ["a", "b", "c"], max_candidates=2, max_visible=1)

    assert request.cut
    assert request.asked_ids == ("0", "1")
    assert json.loads(request.user)["tools"] == ["a"]
    assert json.loads(request.user)["cut"] is True
    assert len(request.user.encode()) < 2_000


def test_arguments_are_asked_for_with_problem_and_schema() -> None:
    """TL-09: what was written stands there whole, as a JSON string."""
    request = argument_request([broken("1", '{"a" \n')], max_candidates=9, max_schema_bytes=4096)

    (call,) = json.loads(request.user)["calls"]
    assert call["arguments"] == '{"a" \n'
    assert call["problem"] == "invalid_json: why"
    assert json.loads(call["schema"])["required"] == ["command", "path"]
    assert '{"repairs":[{"tool_call_id":"...","arguments":{}}]}' in request.system
    assert not request.cut


def test_what_can_not_be_repaired_is_not_asked_about() -> None:
    """A payload that ends early, or that can not be shown whole, has no certain repair."""
    calls = [broken("1", problem="cut_off"), broken("2", "x" * MOST_RAW_BYTES + "x"), broken("3")]

    request = argument_request(calls, max_candidates=9, max_schema_bytes=4096)

    assert request.asked_ids == ("3",)
    assert request.cut


def test_a_batch_has_a_limit() -> None:
    """TL-09: the rest stays as it was."""
    request = argument_request(
        [broken(str(n)) for n in range(5)], max_candidates=3, max_schema_bytes=4096
    )

    assert request.asked_ids == ("0", "1", "2")
    assert json.loads(request.user)["cut"] is True


def test_half_characters_do_no_harm() -> None:
    """What no server takes is replaced."""
    request = argument_request([broken("1", "\ud800")], max_candidates=1, max_schema_bytes=4096)

    assert request.user.encode()


def test_a_batch_fits_a_small_context() -> None:
    """Ten large calls are not sent at once: those that are left out stay as they were."""
    calls = [broken(str(n), '{"text": "' + "some words " * 1400) for n in range(10)]

    request = argument_request(calls, max_candidates=10, max_schema_bytes=4096)

    assert (request.asked_ids, request.cut) == (("0",), True)
    assert ESTIMATE.of(request.system + request.user) < 8000


def test_the_first_call_of_a_batch_is_always_asked_about() -> None:
    """Whatever its size."""
    (only,) = [broken("1", "x" * MOST_RAW_BYTES)]

    assert argument_request([only], max_candidates=1, max_schema_bytes=9000).asked_ids == ("1",)
