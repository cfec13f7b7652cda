"""The signature of what a think step asked for."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import a_call

from daruma.state.calls import ToolTask
from daruma.state.progress import signature_of, tools_in

NOTHING = AIMessage("")


def named(name: str, **changes: Any) -> ToolTask:
    return a_call(**({"name": name, "requested_name": name} | changes))


def test_an_answer_without_calls_has_none() -> None:
    """It is never a loop."""
    assert signature_of(NOTHING, []) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([named("search", args={"q": "a b"})], [named("search", args={"q": "A  b"})]),
        ([named("search", id="c7", message_id="m9")], [named("search")]),
        ([named("search", requested_name="Search")], [named("search")]),
        ([named("search", status="failed", reason="why")], [named("search", status="awaiting")]),
        ([named("search", args={"a": 1, "b": 2})], [named("search", args={"b": 2, "a": 1})]),
    ],
)
def test_the_same_calls_have_the_same_signature(one: list[ToolTask], other: list[ToolTask]) -> None:
    """Whatever ids they have, and whatever becomes of them."""
    assert signature_of(NOTHING, one) == signature_of(NOTHING, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([named("search")], [named("view")]),
        ([named("search", args={"page": 1})], [named("search", args={"page": 2})]),
        ([named("a"), named("b")], [named("b"), named("a")]),
        ([named("a")], [named("a"), named("a")]),
    ],
)
def test_other_calls_have_another(one: list[ToolTask], other: list[ToolTask]) -> None:
    """The set of an answer's calls, in order, is one action."""
    assert signature_of(NOTHING, one) != signature_of(NOTHING, other)


def test_calls_that_could_not_be_read_differ_by_their_text() -> None:
    """Their arguments are empty; a second try with another text is something else."""
    tasks = [named("a", id="c1", problem="invalid_json")]
    one, other, again = (
        AIMessage("", invalid_tool_calls=[{"name": "a", "args": raw, "id": "c1", "error": None}])
        for raw in ("{oops", '{"x": 1', "{oops")
    )

    assert signature_of(one, tasks) != signature_of(other, tasks)
    assert signature_of(one, tasks) == signature_of(again, tasks)


def test_a_signature_names_its_tools() -> None:
    """Each once, the first three, with nothing in them that hides or can not be stored."""
    calls = [named(name) for name in ("b", "a", "b", "\u202ex\ud800é", "d", "")]

    assert tools_in(signature_of(NOTHING, calls)) == ("b", "a", "?x??")
    assert tools_in(signature_of(NOTHING, [named("")])) == ("unnamed",)
    assert tools_in("") == ()


def test_an_endless_name_makes_no_endless_signature() -> None:
    """It stands in every step of a task, and a model may write anything."""
    assert tools_in(signature_of(NOTHING, [named("x" * 10_000)])) == ("x" * 60,)
