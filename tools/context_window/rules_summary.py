"""A summary that is made without a model: what can be read off a history by rule. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from daruma.tools.context_window.shortening import ends
from daruma.tools.context_window.transcript import Count

LINE: Final = 200
"""Characters of each line."""
_REQUESTS, _DECISIONS, _FILES, _ERRORS = 8, 12, 30, 5
"""How many of each are named, the newest."""
_PATHS: Final = ("path", "file", "filename", "file_path", "cwd")


def by_rules(messages: Sequence[AnyMessage], earlier: str, room: int, count: Count) -> str:
    """Return requests, answers, files, errors and calls, within ``room`` tokens.

    What was summarised ``earlier`` stays as it was, or its two ends where that is too long.
    """
    sections = {
        "Summarised earlier": [bounded(earlier, room // 2, count)] if earlier else [],
        "Asked": _last(_first_lines(messages, HumanMessage), _REQUESTS),
        "Said and decided": _last(_first_lines(messages, AIMessage), _DECISIONS),
        "Files named": _last(_files(messages), _FILES),
        "Last errors": _last(_errors(messages), _ERRORS),
        "Calls made": [f"{name}: {n}" for name, n in _calls(messages).items()],
    }
    told = [
        f"{title}:\n" + "\n".join(f"- {each}" for each in lines)
        for title, lines in sections.items()
        if lines
    ]
    return bounded("\n\n".join(told), room, count)


def bounded(text: str, room: int, count: Count) -> str:
    """Return a text of at most so many tokens: itself, or its two ends."""
    while (weight := count(text)) > room and len(text) > 100:
        text = ends(text, min(len(text) - 1, max(100, len(text) * room * 9 // (weight * 10))))
    return text


def _first_lines(messages: Iterable[AnyMessage], kind: type[AnyMessage]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, kind) and message.text.strip():
            yield ends(message.text.strip().splitlines()[0], LINE)


def _files(messages: Iterable[AnyMessage]) -> Iterator[str]:
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            yield from (ends(str(v), LINE) for key, v in call["args"].items() if key in _PATHS)


def _errors(messages: Iterable[AnyMessage]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ToolMessage) and message.status == "error":
            yield ends(f"{message.name}: {message.text}".splitlines()[0], LINE)


def _calls(messages: Iterable[AnyMessage]) -> Counter[str]:
    answers = (each for each in messages if isinstance(each, AIMessage))
    return Counter(str(call["name"])[:64] for each in answers for call in each.tool_calls)


def _last(lines: Iterable[str], most: int) -> list[str]:
    """Return the newest lines, each once, in their order."""
    return [*dict.fromkeys(reversed([*lines]))][:most][::-1]
