"""A call lacks what its tool says is asked for, and nothing else is wrong with it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from tests.parts import settings

from daruma.state.calls import ToolTask
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.resolve import tool_tasks, with_arguments
from daruma.tools.calls.visible import Offer

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


@tool
def book(name: str, seats: int, day: str, note: str = "") -> str:
    """Book a table."""
    return name + str(seats) + day + note


book.metadata = {
    "daruma": {
        "argument_aliases": {"date": "day"},
        "dates": {"day": "date"},
        "ask_for": {"day": "On which day?", "name": "For whom?"},
    }
}
WHOLE = {"name": "Ann", "seats": 2, "day": "2026-11-25"}


def become(args: dict[str, Any] | str, *, asks: bool = True, **given: Any) -> ToolTask:
    """What a call becomes; arguments as a text are such as could not be read."""
    tools = settings(tools={"call_repair_attempts": 0} | given).tools
    offer = Offer(Registry([book]).visible(tools, ()), settings=tools, now=NOW, asks=asks)
    made = {"name": "book", "args": args, "id": "c1"}
    bad = [{**made, "type": "invalid_tool_call", "error": None}] if isinstance(args, str) else []
    good = [] if isinstance(args, str) else [made]
    (task,) = tool_tasks(AIMessage("", tool_calls=good, invalid_tool_calls=bad, id="m"), offer)
    return task


@pytest.mark.parametrize(
    ("args", "missing", "question"),
    [
        ({"name": "Ann", "seats": 2}, ("day",), "On which day?"),
        ({"seats": 2}, ("day", "name"), "On which day? For whom?"),
        ({"name": "Ann", "seats": "2"}, ("day",), "On which day?"),
        (WHOLE | {"day": " "}, ("day",), "On which day?"),
        (WHOLE | {"name": None}, ("name",), "For whom?"),
        (WHOLE | {"day": "soon"}, ("day",), "On which day? ('soon' leaves it open.)"),
        ('{"name": "Ann", "seats": 2,}', ("day",), "On which day?"),
    ],
)
def test_what_is_missing_is_asked_for(args: Any, missing: tuple[str, ...], question: str) -> None:
    """CO-01: missing, blank or in doubt; what is there is mended and canonical."""
    task = become(args)

    assert (task.status, task.missing, task.reason) == ("lacking", missing, question)
    assert task.args == {key: value for key, value in WHOLE.items() if key not in missing}


@pytest.mark.parametrize(
    "args",
    [{"name": "Ann"}, {"name": "Ann", "seats": "many"}, {"name": "Ann", "seats": 2, "colour": 1}],
)
def test_what_does_not_fit_for_another_reason_is_not_asked_for(args: dict[str, Any]) -> None:
    """It is for the model to mend."""
    task = become(args)

    assert (task.status, task.problem) == ("failed", "invalid_args")


def test_what_is_whole_runs() -> None:
    """With its date in ISO form; a blank that nothing needs is no matter."""
    task = become({"name": "Ann", "seats": 2, "date": "on Wednesday", "note": ""})

    assert task.status == "ready"
    assert task.args == WHOLE | {"note": ""}


def test_where_nobody_can_be_asked_the_model_is_told() -> None:
    """Also of a date that is in doubt: it is not run with a guess."""
    lacks, vague = become({"name": "Ann", "seats": 2}, asks=False), WHOLE | {"day": "soon"}
    told = become(vague, asks=False)

    assert lacks.reason == "invalid_args: $: 'day' is a required property"
    assert told.reason == (
        "invalid_args: day: 'soon' is no day or time beyond doubt: give it as 2026-11-25T09:00"
    )


def test_the_policy_goes_first() -> None:
    """TL-12: what is denied is not asked for."""
    task = become({"seats": 2}, policy={"book": "deny"})

    assert (task.status, task.reason) == ("failed", "denied by policy: book is not allowed here")


def test_a_persons_edit_is_not_asked_about() -> None:
    """It can not be used, and is told to be so."""
    offer = Offer(Registry([book]).visible(settings().tools, ()), now=NOW)

    edited = with_arguments(become(WHOLE), {"seats": 2}, replace(offer, asks=False))

    assert edited.problem == "invalid_args"
