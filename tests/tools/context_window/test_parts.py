"""The latest part of a history is what fits, and never less than the last round."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from tests.tools.context_window.histories import rounds, working

from daruma.tools.window.tokens import Tokens
from daruma.tools.window.view import latest, starts

BY_LENGTH = Tokens(len)
ROUND = rounds(1, "I look.", ["out", "put"], False)
CHAT: list[AnyMessage] = [
    HumanMessage("a", id="1"),
    *ROUND,
    *(HumanMessage("b", id=f"b{n}") if n % 2 else AIMessage("c", id=f"c{n}") for n in range(40)),
]


def test_a_part_is_an_answer_with_its_results() -> None:
    """TL-03: they are never torn apart."""
    assert [*starts([HumanMessage("a"), *ROUND, HumanMessage("b")])] == [4, 1, 0]


def test_the_last_round_is_always_of_it() -> None:
    """However large it is; and all that follows it."""
    history = [HumanMessage("a", id="1"), *ROUND, HumanMessage("b", id="2")]

    assert latest(history, 0, BY_LENGTH.of_message) == 1
    assert latest(history, 6, BY_LENGTH.of_message) == 1  # there is room for what follows it


def test_as_many_parts_as_fit_are_of_it() -> None:
    """Whole rounds."""
    history = working(9, size=100)
    each = BY_LENGTH.of_messages(history[-2:])

    assert latest(history, 3 * each + 5, BY_LENGTH.of_message) == len(history) - 6


def test_in_a_chat_an_old_round_is_not_the_last() -> None:
    """Its last answer is."""
    assert latest(CHAT, 0, BY_LENGTH.of_message) == len(CHAT) - 2


@pytest.mark.parametrize("history", [[], [HumanMessage("a", id="1")], ROUND])
def test_of_little_all_is_the_latest(history: list[AnyMessage]) -> None:
    """Nothing is older."""
    assert latest(history, 0, BY_LENGTH.of_message) == 0


def test_what_is_older_ends_with_a_message_that_has_an_id() -> None:
    """A place without a name could not be found again."""
    history = [HumanMessage("a", id="1"), HumanMessage("b"), HumanMessage("c"), *ROUND]

    assert latest(history, 0, BY_LENGTH.of_message) == 1
