"""A request's tokens are the sum of what it holds, by the documented rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_registry
from tests.scripted_runs import shout
from tests.tools.context_window.histories import HISTORIES

from daruma.state.messages import Growing
from daruma.tools.model_requests import CALL, MESSAGE, PART, Tokens, sendable

WORDS = Tokens(lambda text: len(text.split()))
LETTERS = Tokens(len)


def test_a_message_is_its_text_and_its_frame() -> None:
    """OpenAI's rule: three a message, one for the role, one more for a name."""
    assert WORDS.of_message(HumanMessage("one two")) == MESSAGE + 2
    assert WORDS.of_message(HumanMessage("one two", name="Ann")) == MESSAGE + 2 + 2


def test_calls_count_with_their_arguments() -> None:
    """Broken ones too: they are sent as they are."""
    calling = AIMessage("I look.", tool_calls=[{"name": "look", "args": {"at": "it"}, "id": "c"}])
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{a b", "id": "c", "error": None}]
    )

    assert WORDS.of_message(calling) == MESSAGE + 2 + CALL + 1 + 2
    assert WORDS.of_message(broken) == MESSAGE + CALL + 1 + 2


@pytest.mark.long
@given(HISTORIES, st.lists(st.integers(0, 4), max_size=12))
def test_a_history_is_counted_as_it_is_sent(history: list[AnyMessage], parts: list[int]) -> None:
    """However it grew, and whatever of it has to be mended: a result that is missing counts."""
    mended = [each for n, each in enumerate(history) if n % 7 != 6]
    grown: Growing[AnyMessage] = Growing()
    for size in [*parts, len(mended)]:
        grown = grown.with_more(mended[len(grown) : len(grown) + size])
        assert WORDS.of_history(grown) == WORDS.of_messages(sendable(list(grown)))

    assert LETTERS.of_history(grown) == LETTERS.of_messages(sendable(mended))
    assert WORDS.of_history(mended) == WORDS.of_messages(sendable(mended))


def test_what_is_no_text_has_a_flat_figure() -> None:
    """An image's bytes are not its tokens."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 99_999}}
    shown = HumanMessage([{"type": "text", "text": "see this"}, image])

    assert WORDS.of_message(shown) == MESSAGE + 2 + PART


def test_tools_count_as_they_are_offered() -> None:
    """Name, description and schema."""
    registry = a_registry([shout])
    tool = registry.named("shout")
    assert tool is not None

    assert WORDS.of_tools([tool, tool]) == 2 * WORDS.of_tools([tool])
    assert WORDS.of_tools([tool]) > len(["Say", "it", "loudly."])


def test_a_text_is_counted_once() -> None:
    """A history is weighed for each request, and most of it was before."""
    asked: list[str] = []
    tokens = Tokens(lambda text: asked.append(text) or 1)  # type: ignore[func-returns-value]

    total = tokens.of_messages([ToolMessage("same", tool_call_id=str(n)) for n in range(9)])

    assert (asked, total) == (["same"], 9 * (MESSAGE + 1))
