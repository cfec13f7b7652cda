"""What of a history is sent: all, what its compaction says, or less of single messages. Pure."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from daruma.state.messages import Growing, growing
from daruma.state.steps import Compaction
from daruma.state.text import REFERENCE, left_out

# --- Showing less of one message: a placeholder for a tool's output, or the two ends of long texts.
#
# What is short enough stays as it is, so that shortening twice is shortening once.

PRUNED: Final = 300
"""Characters of a tool's output that stay in a pruned history; a placeholder is shorter."""
SHRUNK: Final = 600
"""Characters of a text in a shrunk turn: a paragraph from each end, or so."""

M = TypeVar("M", bound=BaseMessage)


def text_ends(text: str, most: int) -> str:
    """Return at most so many characters: the text, or its ends and how much is between them."""
    if len(text) <= most:
        return text
    mark = f"\n[... {len(text)} characters, shortened ...]\n"
    room = most - len(mark)
    if room <= 0:
        return text[:most]
    return f"{text[: room - room // 2]}{mark}{text[len(text) - room // 2 :]}"


def pruned(message: M) -> M:
    """Return a tool's output as one line that says whose it was, and how to read it again."""
    if not isinstance(message, ToolMessage):
        return message
    whole = message.content if isinstance(message.content, str) else message.text
    if len(whole) <= PRUNED and isinstance(message.content, list):
        images = sum(not _is_text(part) for part in message.content)
        note = f"{whole}\n[images left out to save room: {images}]"
        return message.model_copy(update={"content": note}) if images else message
    if len(whole) <= PRUNED:  # of a string LangChain's ``text`` would be a copy
        return message
    size, reference = len(whole), message.additional_kwargs.get(REFERENCE)
    line = left_out(size, reference) if reference else f"[{size} characters left out to save room]"
    return message.model_copy(update={"content": f"{(message.name or 'tool')[:64]}: {line}"})


def shortened(message: M, most: int) -> M:
    """Return a message of which no text is longer than ``most``; what is no text is named only."""
    changes: dict[str, Any] = {}
    content = _content(message, most)
    if content != message.content:
        changes["content"] = content
    if isinstance(message, AIMessage):
        changes |= _calls(message, most)
    return message.model_copy(update=changes) if changes else message


def _content(message: BaseMessage, most: int) -> Any:
    if isinstance(message.content, str):
        return text_ends(message.content, most)
    others = [part for part in message.content if not _is_text(part)]
    if not others and len(message.text) <= most:
        return message.content
    note = f"[{len(others)} parts that are no text, left out]" if others else ""
    return text_ends(message.text, max(0, most - len(note) - 1)) + ("\n" + note if note else "")


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")


def _calls(message: AIMessage, most: int) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    calls = [{**call, "args": _args(call["args"], most)} for call in message.tool_calls]
    if calls != message.tool_calls:
        changes["tool_calls"] = calls
    broken = [
        {**call, "args": text_ends(call["args"] or "", most)} for call in _long(message, most)
    ]
    if broken:
        changes["invalid_tool_calls"] = broken
    return changes


def _long(message: AIMessage, most: int) -> list[Any]:
    invalid = message.invalid_tool_calls
    return list(invalid) if any(len(call["args"] or "") > most for call in invalid) else []


def _args(args: dict[str, Any], most: int) -> dict[str, Any]:
    """Return arguments with the ends of their long texts; where that is not enough, their size."""
    size = len(json.dumps(args, default=str))
    if size <= most:
        return args
    short = {
        key: text_ends(each, most // 2) if isinstance(each, str) else each
        for key, each in args.items()
    }
    if len(json.dumps(short, default=str)) <= 2 * most:
        return short
    return {"left_out": f"{size} characters of arguments"}


# --- What of a history is sent: all of it, or what its compaction says. Pure.
#
# Messages are only ever added to a history, so what is shown of it between two compactions only
# ever grows at its end: providers cache the beginning of a request.

SUMMARY_ID: Final = "daruma:summary"
_MOST_KNOWN: Final = 3
"""Views of one history: the last one, and what is tried beside it to bring it under its budget."""

_SUMMARY: Final = """\
<summary_of_earlier_messages count="{count}">
{text}
</summary_of_earlier_messages>
The {count} messages that stood here are left out; this is a record of them, not a new request."""


def view(messages: Sequence[AnyMessage], compaction: Compaction | None) -> list[AnyMessage]:
    """Return the messages as they are sent. Viewing a view changes nothing.

    A place that is not in the history any more is one that nothing was done through.
    """
    history = growing(messages)
    if compaction is None:
        return history
    known, told = history.known(_grown, _NO_VIEWS), _told(compaction)
    shown = next((each for each in known if _told(each.compaction) == told), None)
    shown = shown or _gone_on(history, compaction, known) or _begun(history, compaction)
    if not known or shown is not known[0]:
        others = [each for each in known if each is not shown]
        history.note(_grown, (shown, *others)[:_MOST_KNOWN])
    return shown.messages


_told: Final = attrgetter(
    "summary",
    "summarised",
    "summarised_through",
    "kept",
    "pruned_through",
    "shrunk_through",
    "cut",
    "cut_through",
)
"""All of a compaction that what is shown depends on."""
_head: Final = attrgetter("summary", "summarised", "summarised_through", "kept")
"""What of it says which messages are sent, shortened or not."""


class Places(NamedTuple):
    """How many messages of a view, from its beginning, each measure is for."""

    pruned: int = 0
    shrunk: int = 0
    cut: int = 0


@dataclass(frozen=True)
class Shown:
    """What is sent of a history under a compaction, for as long as the history only grows.

    The ``head`` is as many messages as stand before those of the history from ``begins`` on;
    ``older`` is what is sent through the last of the ``places``: behind it all is as it was said.
    """

    compaction: Compaction
    head: int
    begins: int
    places: Places
    older: Growing[AnyMessage]
    messages: Growing[AnyMessage]


_NO_VIEWS: Final[tuple[Shown, ...]] = ()


def _grown(known: tuple[Shown, ...], messages: Sequence[AnyMessage]) -> tuple[Shown, ...]:
    """Return the last view with messages added; none if they hold a place: it is another then."""
    return tuple(
        replace(shown, messages=shown.messages.with_more(messages))
        for shown in known[:1]
        if not _holds_a_place(messages, shown.compaction)
    )


def _holds_a_place(messages: Sequence[AnyMessage], told: Compaction) -> bool:
    places = (SUMMARY_ID, told.summarised_through, *_ends(told))
    return any(message.id and message.id in places for message in messages)


def _ends(told: Compaction) -> tuple[str, str, str]:
    """Return the ids of the last messages that each measure is for."""
    return told.pruned_through, told.shrunk_through, told.cut_through


def _begun(history: Sequence[AnyMessage], told: Compaction) -> Shown:
    """View a history from its beginning."""
    begins = after(history, told.summarised_through)
    head = [each for each in history[:begins] if stays(each, told.kept)]
    there = begins < len(history) and history[begins].id == SUMMARY_ID
    if begins and told.summary and not there:
        head.append(summary_message(told))
    whole = [*head, *history[begins:]]
    places = Places(*(after(whole, id_) for id_ in _ends(told)))
    older = growing(_shortened(whole[: max(places)], told, places))
    messages = older.followed_by(whole[max(places) :])
    return Shown(told, len(head), begins, places, older, messages)


def _gone_on(
    history: Sequence[AnyMessage], told: Compaction, known: Sequence[Shown]
) -> Shown | None:
    """View a history from where a known view of it begins to differ; None where all may."""
    base = next((each for each in known if _head(each.compaction) == _head(told)), None)
    if base is None:
        return None
    before, ends = _ends(base.compaction), _ends(told)
    places = Places(
        *(
            place if end == was else _place(history, end, base)
            for place, was, end in zip(base.places, before, ends, strict=True)
        )
    )
    same = _same(base, told, places)
    if same < base.head:
        return None
    last = max(places)
    raw = history[same - base.head + base.begins :]
    older = base.older if same == len(base.older) else Growing(base.older[:same])
    older = older.with_more(_shortened(raw[: last - same], told, places, at=same))
    messages = older.followed_by(raw[last - same :])
    return Shown(told, base.head, base.begins, places, older, messages)


def _place(history: Sequence[AnyMessage], id_: str, base: Shown) -> int:
    """Return the place in a view behind the message of an id."""
    found = after(history, id_, base.begins)
    return found - base.begins + base.head if found else after(base.messages[: base.head], id_)


def _same(base: Shown, told: Compaction, places: Places) -> int:
    """Return how many messages are shown in both views, and in the same way."""
    moved = (min(pair) for pair in zip(base.places, places, strict=True) if pair[0] != pair[1])
    same = min(moved, default=len(base.older))
    return 0 if places.cut and base.places.cut and told.cut != base.compaction.cut else same


def after(messages: Sequence[BaseMessage], id_: str, begins: int = 0) -> int:
    """Return the place behind the message of an id, which is mostly one of the last; else 0."""
    found = (n for n in range(len(messages), begins, -1) if messages[n - 1].id == id_)
    return next(found, 0) if id_ else 0


def summary_message(compaction: Compaction) -> HumanMessage:
    """Return the message that stands for those that were summarised."""
    text = compaction.summary.replace("</summary_of", "< /summary_of")
    return HumanMessage(_SUMMARY.format(count=compaction.summarised, text=text), id=SUMMARY_ID)


def stays(message: BaseMessage, kept: Collection[str]) -> bool:
    """Whether a message is sent beside a summary that reaches beyond it."""
    return isinstance(message, SystemMessage) or message.id in kept


def _shortened(
    messages: Sequence[AnyMessage], told: Compaction, places: Places, *, at: int = 0
) -> list[AnyMessage]:
    """Return messages of a view, the first of which stands at a place, as they are sent."""
    return [_less(message, n, told, places) for n, message in enumerate(messages, at)]


def _less(message: AnyMessage, at: int, told: Compaction, places: Places) -> AnyMessage:
    whole = message.id == SUMMARY_ID or stays(message, told.kept)
    less = pruned(message) if at < places.pruned else message
    less = shortened(less, SHRUNK) if at < places.shrunk and not whole else less
    return shortened(less, told.cut) if at < places.cut else less


# --- Which part of a history may be left out, and which is the latest: rounds are never torn apart.


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
