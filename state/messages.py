"""Lists and sets that only grow and know what they hold, and the messages channel (DU-08)."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Literal, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)

from daruma.state.text import REFERENCE

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""LangGraph's own; its module loads the engine, which who only reads a thread does without."""

# --- A list that only ever grows, and knows of itself what would else be looked up in all of it.
#
# What is looked up in it takes as long at step 1,000 of a thread as at step 10. What is known is no
# state: it follows from the list, is never stored, and is found out anew of a list that was read
# back.

T = TypeVar("T")
V = TypeVar("V")


class Growing(list[T]):
    """The values of a channel. They are never changed in place: what is added makes a new list."""

    __slots__ = ("_first", "_known")
    _known: dict[Callable[..., Any], tuple[int, Any, object]]
    _first: "Growing[T] | None"

    def __init__(self, values: Iterable[T] = ()) -> None:
        super().__init__(values)
        self._known = {}
        self._first = None

    def __reduce__(self) -> tuple[type["Growing[T]"], tuple[list[T]]]:
        """Leave behind what is known: who reads it back finds it out anew."""
        return Growing, (list(self),)

    def __copy__(self) -> "Growing[T]":
        """Copy what is known too: LangGraph copies channels to look ahead."""
        return self.with_more(())

    def with_more(self, values: Iterable[T]) -> "Growing[T]":
        """Return a list with values added; what is known of this one is known of its beginning."""
        more = Growing(self)
        more.extend(values)
        more._known, more._first = dict(self._known), self._first
        return more

    def followed_by(self, values: Iterable[T]) -> "Growing[T]":
        """Return a list with values added that others are to follow in the place of.

        What is found out of it later is found out of this one first, and known of its beginning to
        whatever else begins with it.
        """
        more = self.with_more(values)
        more._first = self
        return more

    def known(self, fold: Callable[[V, Sequence[T]], V], start: V, *, of: object = None) -> V:
        """Return what ``fold`` makes of all values; it is given each of them only once.

        Folding part by part comes to the same as folding all at once, and ``fold`` returns a new
        value: lists that grew from the same one share the old one. What it comes to beside the
        values, ``start`` brings along, and ``of`` says: of something else all is folded anew.
        """
        through, value, told = self._known.get(fold, (0, start, of))
        if told != of:
            through, value = 0, start
        if self._first is not None and through < len(self._first):
            through, value = len(self._first), self._first.known(fold, start, of=of)
        if through < len(self):
            value = fold(value, self[through:])
            self._known[fold] = len(self), value, of
        return cast(V, value)

    def note(self, fold: Callable[[V, Sequence[T]], V], value: V) -> None:
        """Have a value known that was found out otherwise; ``fold`` goes on with it."""
        self._known[fold] = len(self), value, None


def growing(values: Sequence[T]) -> Growing[T]:
    """Return values as a list that knows of itself; the same one if it is one."""
    return values if isinstance(values, Growing) else Growing(values)


def plain(out: Any) -> Any:
    """Return what a run gives back with common lists in the place of those that grow.

    ``asyncio`` writes out, shortened, what a coroutine returned; it knows how to shorten a list
    only, and would spend a sixth of a run of 100 steps on the messages of its thread.
    """
    from langgraph.types import GraphOutput

    if isinstance(out, GraphOutput):
        return replace(out, value=plain(out.value))
    if isinstance(out, dict):
        return {key: list(v) if isinstance(v, Growing) else v for key, v in out.items()}
    return out


# --- A set that only ever grows, in two parts: what is added copies little of what there is.
#
# A list that knows of itself is given a whole new set for each step otherwise, and copies at step
# 1,000 what it knows of all the steps before.

H = TypeVar("H", bound=Hashable)

Gathered = tuple[frozenset[H], frozenset[H]]
"""Most of it, and what came last: so few that it is as well copied each time."""

NOTHING: Final[Gathered[Any]] = frozenset(), frozenset()


def extend_known(known: Gathered[H], values: Iterable[H]) -> Gathered[H]:
    """Return what is known with values added; ``known`` stays as it is."""
    most, last = known
    last = last.union(values)
    if len(last) ** 2 > len(most):
        return most | last, frozenset()
    return most, last


def holds_any(known: Gathered[H], values: Collection[H]) -> bool:
    """Whether any of the values is among what is known."""
    most, last = known
    return not (most.isdisjoint(values) and last.isdisjoint(values))


# --- The reducer of the ``messages`` channel, written for a delta channel.
#
# A delta channel stores writes and replays them in batches of any size, so the reducer is a plain
# fold: it invents nothing (no random ids) and handles one message after the other.

Messages = list[AnyMessage | RemoveMessage]


def reduce_messages(messages: list[AnyMessage], writes: Sequence[Messages]) -> list[AnyMessage]:
    """Append messages; a known ``id`` takes the old message's place; ``RemoveMessage`` removes.

    ``RemoveMessage(id=REMOVE_ALL_MESSAGES)`` empties the history. Removing what is not there does
    nothing: a replay must never fail.
    """
    written: list[Any] = [message for write in writes for message in _read(write)]
    old = growing(messages)
    if _all_new(old, written):  # as almost always: the rest takes time for each old message
        return old.with_more(written)
    folded: dict[object, Any] = {_key(message): message for message in messages}
    for message in written:
        if not isinstance(message, RemoveMessage):
            folded[_key(message)] = message
        elif message.id == REMOVE_ALL_MESSAGES:
            folded.clear()
        else:
            folded.pop(message.id, None)
    return Growing(folded.values())


def _read(write: Any) -> Sequence[BaseMessage]:
    """Return what was written as messages: nodes write nothing else, callers may."""
    if isinstance(write, list) and all(isinstance(message, BaseMessage) for message in write):
        return write
    return convert_to_messages(write)


def _all_new(messages: Growing[AnyMessage], written: Sequence[BaseMessage]) -> bool:
    ids = [message.id for message in written if message.id]
    return (
        len(set(ids)) == len(ids)
        and not any(isinstance(message, RemoveMessage) for message in written)
        and not holds_any(messages.known(_ids, NOTHING), ids)
    )


def _ids(known: Gathered[str | None], messages: Sequence[BaseMessage]) -> Gathered[str | None]:
    return extend_known(known, [message.id for message in messages])


def _key(message: BaseMessage) -> object:
    return message.id or object()


# --- Which messages of a thread are a person's.


def is_request(message: AnyMessage, thread: str) -> bool:
    """Whether a person said it to begin a task: notes of the machine have its task in their id."""
    own = str(message.id or "").startswith(f"{thread}/")
    return isinstance(message, HumanMessage) and not own


# --- What the calls of a task tell: what its planner looked at, the model's list of its own steps.


def looked_at(messages: Sequence[AnyMessage], task_id: str) -> list[str]:
    """Return a line for each call with which the planner of a task looked around (PL-01a)."""
    looks = (m for m in messages if str(m.id).startswith(f"{task_id}:look:"))
    calls = (call for m in looks if isinstance(m, AIMessage) for call in m.tool_calls)
    lines = (f"{call['name']} {short_values(call['args'])}".strip() for call in calls)
    return [*dict.fromkeys(lines)]


def short_values(args: Mapping[str, Any]) -> str:
    """Return the short arguments of a call, on one line."""
    shown = (str(value) for value in args.values() if isinstance(value, str | int))
    return " ".join(text for text in shown if len(text) <= 80 and "\n" not in text)


TODO: Final = "todo"
"""The name of the tool with which a model keeps a short list of its own steps."""

TodoStatus = Literal["pending", "in_progress", "done"]
TODO_MARKS: Final[Mapping[TodoStatus, str]] = {"pending": " ", "in_progress": ">", "done": "x"}
_TODO_STATUSES: Final = {mark: status for status, mark in TODO_MARKS.items()}
_TODO_HEAD: Final = re.compile(r"\d+ of \d+ steps done\.")
_TODO_LINE: Final = re.compile(r"\[([ x>])\] (.+)")


def render_todo(items: Sequence[tuple[str, TodoStatus]]) -> str:
    """Return a list of steps as text: what its call answers, and what is read back of it."""
    done = sum(status == "done" for _, status in items)
    head = f"{done} of {len(items)} steps done."
    return "\n".join((head, *(f"[{TODO_MARKS[status]}] {text}" for text, status in items)))


def todo_of(messages: Sequence[AnyMessage], task_id: str) -> tuple[tuple[str, TodoStatus], ...]:
    """Return the model's list of its own steps: that of its last call of the task, if any."""
    ours = (m for m in reversed(messages) if str(m.id).startswith(f"{task_id}:"))
    for message in ours:
        if isinstance(message, ToolMessage) and message.name == TODO and message.status != "error":
            head, *lines = message.text.splitlines() or [""]
            found = [_TODO_LINE.fullmatch(line) for line in lines]
            if _TODO_HEAD.fullmatch(head):
                return tuple((each[2], _TODO_STATUSES[each[1]]) for each in found if each)
    return ()


# --- What messages of a thread tell beside their text.

DEFINITION: Final = "definition"
"""Where the result of an MCP tool says what the tool was when it ran."""


def approved_definitions(messages: Sequence[AnyMessage]) -> Mapping[str, str]:
    """Return by name what MCP tools were when they ran last: what was approved of them (SE-06)."""
    return growing(messages).known(_definitions, start={})


def _definitions(known: Mapping[str, str], messages: Sequence[AnyMessage]) -> Mapping[str, str]:
    ran = (each for each in messages if isinstance(each, ToolMessage))
    new = {str(m.name): str(m.additional_kwargs.get(DEFINITION, "")) for m in ran}
    return {**known, **{name: each for name, each in new.items() if each}}


def has_shortened_results(messages: Sequence[AnyMessage]) -> bool:
    """Whether one of the messages is a result that was left out in part."""
    return growing(messages).known(_leave_out, start=False)


def _leave_out(known: bool, messages: Sequence[AnyMessage]) -> bool:  # noqa: FBT001 - a fold
    return known or any(
        isinstance(message, ToolMessage) and REFERENCE in message.additional_kwargs
        for message in messages
    )


END_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Where providers say why an answer ended: OpenAI and Google, Anthropic, Bedrock, Ollama."""

_BY_THE_MODEL = re.compile(
    r"(?:(?:reason_)?stop(?:[_-]sequence)?|eos(?:_token)?|end(?:_turn|_?of_?(?:text|turn))?|success|done"
    r"|completed?|finish(?:ed)?|(?:tool|function)[_-]?calls?|tool[_-]?use|normal|null|none"
    r"|(?:finish_reason_)?unspecified)*",
    re.IGNORECASE,
)
"""How all of them say that it is whole (a stream may repeat it). Any other word is taken for none:
what is refused by mistake is told with that word, and half an answer would pass in silence."""

REASONING: Final = "reasoning_content"
"""Where an answer holds what its model thought, beside its text: the name that servers give it."""


def reasoning_of(message: AIMessage) -> str:
    """Return what a model thought before an answer, as far as its provider shows it."""
    blocks = message.content if isinstance(message.content, list) else ()
    kept = [message.additional_kwargs.get(REASONING)]
    kept += [text for each in blocks for text in _thoughts(each)]
    return "\n\n".join(each for each in kept if isinstance(each, str) and each.strip())


_THOUGHTS: Final = ("thinking", "reasoning", "reasoning_content")
"""The kinds of providers' blocks that are thoughts."""
_THOUGHT_IN: Final = (*_THOUGHTS, "summary", "text")
"""Where such a block holds them: as a text, or as blocks in their turn."""


def _thoughts(block: object) -> list[object]:
    if not isinstance(block, Mapping) or block.get("type") not in _THOUGHTS:
        return []
    found = [block.get(key) for key in _THOUGHT_IN]
    parts = chain.from_iterable(each if isinstance(each, list) else [each] for each in found)
    return [each.get("text") if isinstance(each, Mapping) else each for each in parts]


def cut_off_reason(message: AIMessage) -> str:
    """Return why an answer was not ended by the model itself; empty if it was (MO-10, TL-17)."""
    told = message.response_metadata
    said = [told.get(key) for key in END_REASON_KEYS]
    if isinstance(details := told.get("incomplete_details"), Mapping):  # OpenAI's Responses API
        said += details.values()
    return next((w for w in said if isinstance(w, str) and not _BY_THE_MODEL.fullmatch(w)), "")
