"""Replies to questions, accepted once: the first one to come counts, whoever else answers.

A reply is on record before the run that it starts. A run that is killed in between is resumed with
the reply that was accepted, so nobody is asked again.
"""

from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Replies(Protocol):
    """Where accepted replies are kept, by thread and by the id of the question's interrupt."""

    def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        """Keep all of the replies, or none and return False if one of them is there already."""

    async def aaccept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        """The same, asynchronous."""

    def accepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        """Return those replies to the questions of these ids that are there."""

    async def aaccepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        """The same, asynchronous."""

    async def adecided(self, thread_id: str) -> bool:
        """Whether there is a reply that approves or denies calls, to any question of a thread."""


def decides(reply: object) -> bool:
    """Whether a reply approves or denies calls."""
    return isinstance(reply, Mapping) and "decisions" in reply


class ProcessReplies:
    """Replies kept in this process, for checkpointers that have no place for them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Any] = {}
        self._lock = Lock()

    def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        with self._lock:
            if any((thread_id, id_) in self._kept for id_ in replies):
                return False
            self._kept.update({(thread_id, id_): reply for id_, reply in replies.items()})
            return True

    async def aaccept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        return self.accept(thread_id, replies)

    def accepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        with self._lock:
            return {
                id_: self._kept[thread_id, id_] for id_ in ids if (thread_id, id_) in self._kept
            }

    async def aaccepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        return self.accepted(thread_id, ids)

    async def adecided(self, thread_id: str) -> bool:
        with self._lock:
            return any(decides(it) for (thread, _), it in self._kept.items() if thread == thread_id)


def replies_of(checkpointer: Any) -> Replies:
    """Return where a checkpointer's replies are: its own place, else one in this process.

    The latter goes with the object, also into copies of it, so that all graphs over one
    checkpointer know what was answered.
    """
    own = getattr(checkpointer, "replies", None)
    if isinstance(own, Replies):
        return own
    kept: Replies = checkpointer.__dict__.setdefault("replies", ProcessReplies())
    return kept
