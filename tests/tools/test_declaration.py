"""What an application declares of its tools is read strictly."""

from typing import Any

import pytest
from langchain_core.tools import tool

from daruma.tools.calls.application_tool import ToolRefused, from_application
from daruma.tools.calls.tool import Canonical


def declaring(**declared: Any) -> Any:
    """A tool with one argument and that declaration."""

    @tool
    def note(text: str, day: str = "") -> str:
        """Note it."""
        return text + day

    note.metadata = {"daruma": declared, "own": "thing"}
    return note


@pytest.mark.parametrize("effect", ["none", "workspace", "external"])
def test_the_effect_is_declared(effect: str) -> None:
    """What running it changes."""
    assert from_application(declaring(effect=effect)).effect == effect


def test_aliases_and_a_promotion_are_declared() -> None:
    """TL-19. An alias may lead to an argument that only the other tool has."""
    declared = {
        "argument_aliases": {"date": "day", "at": "due_time"},
        "promote_to": "schedule",
        "promote_when": ["due_time"],
    }

    assert from_application(declaring(**declared)).canonical == Canonical(
        {"date": "day", "at": "due_time"}, "schedule", ("due_time",)
    )
    assert from_application(declaring(effect="none")).canonical is None


def test_dates_and_questions_are_declared() -> None:
    """CO-01: what is read as a day or a time, and what the user is asked for."""
    declared = {"dates": {"day": "date"}, "ask_for": {"day": "When?"}}

    assert from_application(declaring(**declared)).canonical == Canonical(
        dates={"day": "date"}, ask_for={"day": "When?"}
    )


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"efect": "none"}, "an unknown key 'efect'; did you mean 'effect'"),
        ({"zzz": 1}, "an unknown key 'zzz'; known: effect, idempotent, idempotency_key,"),
        ({"effect": "read"}, r"effect: Input should be 'none', .*given: 'read'"),
        ({"argument_aliases": ["a"]}, "argument_aliases: Input should be a valid dictionary"),
        ({"promote_to": "x"}, "one of promote_to and promote_when"),
        ({"promote_when": ["x"]}, "one of promote_to and promote_when"),
        ({"dates": {"text": "moment"}}, "dates.text: Input should be 'date' or 'time'"),
        ({"dates": {"dya": "date"}}, "dates or ask_for 'dya', which is no argument that the"),
        ({"ask_for": {"dya": "When?"}}, "dates or ask_for 'dya', which is no argument that"),
        ({"ask_for": {"day": "?"}, "idempotency_key": "day"}, "ask_for 'day', which is no arg"),
        ({"argument_aliases": {"text": "day"}}, "'text' as another name of 'day', and it is an"),
        ({"argument_aliases": {"date": "dya"}}, "'date' as another name of 'dya', which is no"),
    ],
)
def test_what_can_not_be_meant_is_refused(declared: dict[str, Any], said: str) -> None:
    """At once, in one line that names the tool."""
    with pytest.raises(ToolRefused, match=rf"^the tool 'note' declares in .*{said}") as refused:
        from_application(declaring(**declared))

    assert "\n" not in str(refused.value)


def test_a_declaration_that_is_no_dictionary_is_refused() -> None:
    """Likewise."""
    silly = declaring()
    silly.metadata = {"daruma": "none"}

    with pytest.raises(ToolRefused, match="note"):
        from_application(silly)
