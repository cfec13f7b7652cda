"""A history reads as a conversation, bounded, and in few pieces."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from tests.tools.context_window.histories import HISTORIES, working

from daruma.tools.window.summary import MOST_PIECES, TEXTS, pieces, spoken
from daruma.tools.window.tokens import ESTIMATE

CALLING = AIMessage("I look.", tool_calls=[{"name": "look", "args": {"at": "a.py"}, "id": "c"}])
FAILED = ToolMessage("gone", tool_call_id="c", name="look", status="error")


def test_each_message_says_who_spoke() -> None:
    """And an output whether it failed."""
    told = [spoken(each, 100) for each in (HumanMessage("Hi"), SystemMessage("Be kind"), FAILED)]

    assert told == ["[user] Hi", "[system] Be kind", "[result of look (it failed)] gone"]
    assert spoken(CALLING, 100) == '[assistant] I look.\n[assistant calls] look({"at": "a.py"})'
    assert spoken(AIMessage(""), 100) == "[assistant] (no text)"


def test_outputs_are_shown_less_of_than_words() -> None:
    """What was said matters more than what a tool printed."""
    long = "x" * 4000

    assert len(spoken(HumanMessage(long), 2000)) > 1900
    assert len(spoken(ToolMessage(long, tool_call_id="c"), 2000)) < 550


def test_of_an_output_that_is_cut_short_something_is_shown() -> None:
    """However little room there is: its size alone would tell nothing."""
    output = ToolMessage("37 tests passed, 2 failed in 3 s", tool_call_id="c", name="run")

    assert spoken(output, min(TEXTS)) == "[result of run] 37 tests passed, 2 failed in 3"


@given(HISTORIES, st.integers(150, 3000))
def test_pieces_are_few_and_fit(history: list[AnyMessage], room: int) -> None:
    """As long as there is room for all, each message is in one of them, in its order."""
    made = pieces(history, room, ESTIMATE.of)

    assert len(made) <= MOST_PIECES
    assert all(ESTIMATE.of(piece.text) <= room for piece in made)
    held = [message for piece in made for message in piece.messages]
    places = [next(n for n, each in enumerate(history) if each is one) for one in held]
    assert places == sorted(set(places))
    assert len(made) == MOST_PIECES or len(held) == len(history)


def test_of_far_too_much_both_ends_are_shown() -> None:
    """The first request and the latest work."""
    history = working(2000, size=50)

    made = pieces(history, 200, ESTIMATE.of)

    assert (made[0].messages[0], made[-1].messages[-1]) == (history[0], history[-1])
