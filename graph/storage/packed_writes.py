"""What a task wrote to channels that nothing is replayed from, in one row instead of one each.

Those writes are read as they wait to be applied, all of a checkpoint's at once: Postgres has no use
for a row, a key in the index and an entry in its log for each of them.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.types import TASKS

from daruma.graph.storage.saving import WriteRow
from daruma.state.errors import DamagedState

CHANNEL: Final = "__packed__"
"""What stands in the row in place of a channel."""

_OF_A_RUN: Final = "~__pregel_"
"""Begins the path of a task that a graph runs, which comes to its end once.

What is edited by hand takes such a task's place, also of one that has written already.
"""

_KIND: Final = "packed"
_SLOT: Final = -100
"""In place of a write's number; LangGraph's own slots below 0 are few."""


class Write(NamedTuple):
    """One of the writes in a row: its number among those of its task, and what is written where."""

    number: int
    channel: str
    kind: str
    payload: bytes


def together(rows: Sequence[WriteRow], passing: Collection[str]) -> Sequence[WriteRow]:
    """Return a task's rows, those for ``passing`` channels and for what follows as one.

    Delta channels must not be among them: those are replayed from rows that are found by name.
    """
    of_a_run = [row for row in rows if row[5] >= 0 and row[4].startswith(_OF_A_RUN)]
    packed = [row for row in of_a_run if _passes(row[6], passing)]
    if len(packed) < 2:
        return rows
    numbers = {row[5] for row in packed}
    payload = ormsgpack.packb([row[5:] for row in packed])
    one = (*packed[0][:5], _SLOT, CHANNEL, _KIND, payload)
    return [*(row for row in rows if row[5] not in numbers), one]


def writes_in(row: WriteRow) -> Iterable[Write]:
    """Return the writes of a row whose value is opened: mostly one."""
    if row[6] != CHANNEL:
        return [Write(*row[5:])]
    return _unpacked(row[7], row[8])


def _passes(channel: str, passing: Collection[str]) -> bool:
    return channel in passing or channel == TASKS or channel.startswith("branch:")


def _unpacked(kind: str, payload: bytes) -> list[Write]:
    """Raise :class:`~daruma.state.errors.DamagedState` for what ``together`` did not make."""
    try:
        found = ormsgpack.unpackb(payload) if kind == _KIND else None
    except ormsgpack.MsgpackDecodeError:
        found = None
    if not isinstance(found, list) or not all(map(_is_write, found)):
        raise DamagedState("the writes of a task are not what was stored")
    return [Write(*each) for each in found]


def _is_write(found: Any) -> bool:
    forms = (int, str, str, bytes)
    return (
        isinstance(found, list)
        and len(found) == len(forms)
        and all(type(part) is form for part, form in zip(found, forms, strict=True))
    )
