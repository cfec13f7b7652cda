"""What can be said of a history without a model."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage
from tests.tools.context_window.histories import HISTORIES, rounds

from daruma.tools.window.summary import bounded, by_rules
from daruma.tools.window.tokens import ESTIMATE


def test_it_names_requests_answers_files_errors_and_calls() -> None:
    """The newest of each."""
    history = [
        HumanMessage("Mend the door\nquickly", id="q"),
        *rounds(1, "I look at the hinge.", ["fine", "hi"], False),
    ]

    told = by_rules(history, "It was red.", 500, ESTIMATE.of)

    assert told.split("\n\n") == [
        "Summarised earlier:\n- It was red.",
        "Asked:\n- Mend the door",
        "Said and decided:\n- I look at the hinge.",
        "Files named:\n- src/1.py",
        "Last errors:\n- look: hi",
        "Calls made:\n- look: 2",
    ]


@given(HISTORIES, st.integers(100, 600), st.sampled_from(["", "It was red. " * 200]))
def test_it_fits_and_is_the_same_each_time(
    history: list[AnyMessage], room: int, earlier: str
) -> None:
    """Whatever is in the history."""
    told = by_rules(history, earlier, room, ESTIMATE.of)

    assert ESTIMATE.of(told) <= room
    assert told == by_rules(history, earlier, room, ESTIMATE.of)
    assert told


def test_a_text_is_bounded_by_its_ends() -> None:
    """And one that fits is itself."""
    text = "begin " + "word " * 1000 + "end"

    less = bounded(text, 100, ESTIMATE.of)

    assert (less[:5], less[-3:]) == ("begin", "end")
    assert ESTIMATE.of(less) <= 100
    assert bounded("short", 100, ESTIMATE.of) == "short"
