"""What was sent counts, not what was made of it on the way."""

import pytest
from langchain_core.messages import AIMessage

from daruma.tools.calls.parse import SENT_CALLS, as_sent

GUESSED = {"type": "tool_call", "name": "pay", "args": {"to": "An"}, "id": "c1"}


def answer(*texts: str) -> AIMessage:
    """An answer that was read as one call, and holds what was sent."""
    sent = [{"id": f"c{n}", "name": "pay", "args": text} for n, text in enumerate(texts, 1)]
    kept = {SENT_CALLS: sent, "refusal": None}
    return AIMessage("", tool_calls=[GUESSED], additional_kwargs=kept)


def test_a_call_that_was_cut_off_is_not_read() -> None:
    """Its text is kept, for whoever can tell what was meant."""
    message = as_sent(answer('{"to": "An'))

    assert message.tool_calls == []
    assert message.invalid_tool_calls[0]["args"] == '{"to": "An'
    assert message.additional_kwargs == {"refusal": None}


@pytest.mark.parametrize("text", ["", "{}"])
def test_calls_beside_it_are_as_they_were(text: str) -> None:
    """No text at all stands for no arguments."""
    message = as_sent(answer('{"to": "Ann"}', "[1", text))

    assert [(call["id"], call["args"]) for call in message.tool_calls] == [
        ("c1", {"to": "Ann"}),
        ("c3", {}),
    ]
    assert [call["id"] for call in message.invalid_tool_calls] == ["c2"]


@pytest.mark.parametrize("text", ["null", "[]", '"{}"', "{" * 100_000, '{"a": ' * 5_000])
def test_what_is_no_object_is_not_read(text: str) -> None:
    """JSON of another kind, and what no reader takes."""
    assert as_sent(answer(text)).tool_calls == []


def test_an_answer_that_holds_nothing_of_it_is_as_it_was() -> None:
    """Of other providers, and not streamed."""
    message = AIMessage("", tool_calls=[GUESSED])

    assert as_sent(message) is message
