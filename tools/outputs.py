"""Large outputs: kept whole beside the thread's state, which holds their two ends (DU-08)."""

import hashlib
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from daruma.state.reference import left_out
from daruma.tools.results import clean

MOST: Final = 10_000_000
"""Characters that are kept of one output; what is beyond is as good as endless."""


@runtime_checkable
class OutputStore(Protocol):
    """Where outputs are kept, by thread and by the digest of what they are."""

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        """Keep a text; what is kept already stays as it is."""

    async def read(self, thread_id: str, id_: str) -> str | None:
        """Return a text of this thread; None for what it has not kept."""


class ProcessOutputs:
    """Outputs in this process, for checkpointers that have no place for them.

    With ``most`` the oldest goes for each that is more.
    """

    def __init__(self, *, most: int | None = None) -> None:
        self._kept: dict[tuple[str, str], str] = {}
        self._most = most

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        self._kept[thread_id, id_] = text
        if self._most is not None and len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    async def read(self, thread_id: str, id_: str) -> str | None:
        return self._kept.get((thread_id, id_))


@dataclass(frozen=True)
class Outputs:
    """The outputs of one thread."""

    store: OutputStore
    thread_id: str = "local"

    async def keep(self, text: str) -> str:
        """Keep a text that any database takes, and return its id: the same for the same text."""
        id_ = hashlib.sha256(text.encode()).hexdigest()[:16]
        await self.store.keep(self.thread_id, id_, text)
        return id_

    async def read(self, id_: str) -> str | None:
        """Return a text by its id; None for one that this thread has not kept."""
        return await self.store.read(self.thread_id, id_)


@dataclass(frozen=True)
class Shown:
    """A result as the model is shown it; ``reference`` is the id of the whole, if that is more."""

    text: str
    reference: str = ""


async def shown(text: str, limit: int, outputs: Outputs) -> Shown:
    """Keep a text of more than ``limit`` characters; return its ends and how to read the rest."""
    text = clean(text)
    if len(text) <= limit:
        return Shown(text)
    whole = text[:MOST]
    id_ = await outputs.keep(whole)
    room = limit - len(left_out(len(text), id_)) - 2
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    return Shown(f"{head}\n{left_out(len(text) - room, id_)}\n{tail}", id_)
