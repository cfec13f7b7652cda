"""Which part of a history may be left out, and which is the latest: rounds are never torn apart."""

from collections.abc import Callable, Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from daruma.tools.context_window.view import SUMMARY_ID


def starts(messages: Sequence[BaseMessage]) -> Iterator[int]:
    """Yield where each part begins, the last first: a message, or an answer with its results.

    Of a long history only the end is looked at.
    """
    places = range(len(messages) - 1, -1, -1)
    return (n for n in places if not isinstance(messages[n], ToolMessage))


def latest(messages: Sequence[AnyMessage], room: int, weigh: Callable[[AnyMessage], int]) -> int:
    """Return where the latest part begins, which is left as it is.

    That is as many of the last parts as ``room`` has tokens for, and always the last answer with
    all that follows it. What is before ends with a message that has an id.
    """
    begins, weight, end = _last_answer(messages), 0, len(messages)
    for start in starts(messages):
        weight += sum(map(weigh, messages[start:end]))
        end = start
        if weight > room:
            break
        begins = min(begins, start)
    return _named(messages, begins)


def _last_answer(messages: Sequence[AnyMessage]) -> int:
    """Return where the last answer stands, with the results of its calls; else the last part."""
    answers = (n for n in starts(messages) if isinstance(messages[n], AIMessage))
    return next(answers, next(starts(messages), 0))


def _named(messages: Sequence[AnyMessage], begins: int) -> int:
    """Return the nearest place before which there is a message with an id."""
    places = (n for n in starts(messages[: begins + 1]) if n > 0)
    return next((n for n in places if messages[n - 1].id not in (None, SUMMARY_ID)), 0)
