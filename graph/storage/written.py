"""When a checkpoint was written, also where its row is damaged."""

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

_GREGORIAN: Final = datetime(1582, 10, 15, tzinfo=UTC)
"""The day from which a UUID counts its tenths of a microsecond."""


def written_at(checkpoint_id: str, noted: str | None) -> datetime:
    """Return the time that a checkpoint notes, else that of its id; both are those of its writer.

    The start of 1970 for one that tells neither.
    """
    try:
        return datetime.fromisoformat(noted or "").astimezone()
    except ValueError:
        return _of_id(checkpoint_id).astimezone()


def _of_id(checkpoint_id: str) -> datetime:
    try:
        number = UUID(checkpoint_id).int
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    ticks = (number >> 80) << 12 | (number >> 64) & 0xFFF
    return _GREGORIAN + timedelta(microseconds=ticks // 10)
