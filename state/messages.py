"""The reducer of the ``messages`` channel, written for a delta channel.

A delta channel stores writes and replays them in batches of any size, so the reducer is a plain
fold: it invents nothing (no random ids) and handles one message after the other.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    convert_to_messages,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from daruma.state.gathered import NOTHING, Gathered, gathered, holds_any
from daruma.state.growing import Growing, growing

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
    return gathered(known, [message.id for message in messages])


def _key(message: BaseMessage) -> object:
    return message.id or object()
