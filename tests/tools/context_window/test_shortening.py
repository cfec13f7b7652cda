"""Less of a message is still the message: its kind, its id, its calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.tools.context_window.histories import HISTORIES, IMAGE

from daruma.state.text import REFERENCE
from daruma.tools.window.summary import TEXTS
from daruma.tools.window.view import PRUNED, SHRUNK, ends, pruned, shortened


@given(st.text(max_size=900), st.integers(100, 500))
def test_the_ends_of_a_text_are_no_longer_than_told(text: str, most: int) -> None:
    """And a text that is short enough is itself."""
    found = ends(text, most)

    assert len(found) <= max(most, 0)
    assert found == text or (found[:20] == text[:20] and len(text) > most)


@given(st.text(max_size=90), st.integers(0, 60))
def test_where_there_is_no_room_to_say_so_a_text_is_only_cut(text: str, most: int) -> None:
    """It is never longer than told, and never longer than it was."""
    assert len(ends(text, most)) <= min(most, len(text))


def test_a_pruned_output_says_whose_it_was_and_how_to_read_it() -> None:
    """Its id is that of the whole output, where that is kept."""
    long = "x" * (PRUNED + 1)
    kept = ToolMessage(long, tool_call_id="c", name="search", additional_kwargs={REFERENCE: "ab12"})
    lost = ToolMessage(long, tool_call_id="c", name="search")

    assert pruned(kept).text == (
        "search: [301 characters left out; read_output shows them: id ab12]"
    )
    assert pruned(lost).text == "search: [301 characters left out to save room]"
    assert pruned(kept).tool_call_id == "c"


@pytest.mark.parametrize(
    "message", [ToolMessage("short", tool_call_id="c"), HumanMessage("x" * 999)]
)
def test_what_is_no_long_output_is_not_pruned(message: HumanMessage | ToolMessage) -> None:
    """A line for a line would save nothing."""
    assert pruned(message) is message


def test_long_arguments_are_shortened_and_stay_arguments() -> None:
    """What a call was about can still be told."""
    args = {"path": "src/a.py", "text": "x" * 5000}
    calling = AIMessage("", tool_calls=[{"name": "write", "args": args, "id": "c"}])

    (call,) = shortened(calling, SHRUNK).tool_calls

    assert (call["name"], call["id"], call["args"]["path"]) == ("write", "c", "src/a.py")
    assert len(call["args"]["text"]) <= SHRUNK // 2
    assert calling.tool_calls[0]["args"] == args


def test_arguments_of_many_parts_are_told_by_their_size() -> None:
    """Shortening texts would not make them less."""
    calling = AIMessage("", tool_calls=[{"name": "sum", "args": {"of": [1] * 9000}, "id": "c"}])

    (call,) = shortened(calling, SHRUNK).tool_calls

    assert call["args"] == {"left_out": "27008 characters of arguments"}


def test_broken_arguments_are_shortened_too() -> None:
    """They are sent as they are."""
    call = {"name": "write", "args": '{"a": "' + "x" * 5000, "id": "c", "error": None}

    (less,) = shortened(AIMessage("", invalid_tool_calls=[call]), SHRUNK).invalid_tool_calls

    assert len(less["args"] or "") <= SHRUNK


def test_an_image_is_named_only() -> None:
    """And the text beside it stays."""
    message = HumanMessage([{"type": "text", "text": "Look"}, IMAGE])

    assert shortened(message, SHRUNK).content == "Look\n[1 parts that are no text, left out]"


@given(HISTORIES, st.sampled_from([*TEXTS, SHRUNK]))
def test_shortening_twice_is_shortening_once(history: list[HumanMessage], most: int) -> None:
    """Else a view would change from request to request."""
    once = [shortened(pruned(message), most) for message in history]

    assert [shortened(pruned(message), most) for message in once] == once
    assert [message.id for message in once] == [message.id for message in history]
