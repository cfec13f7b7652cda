"""Values that stand in a checkpoint's own row: small ones, which the next checkpoint has no more.

A row of their own would cost several times their size, in the table, its index and the log.
"""

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langgraph.checkpoint.serde.types import TASKS

from daruma.graph.storage.sealing import Typed, typed
from daruma.state.errors import DamagedState

VALUES: Final = "values"
"""Their key in the manifest."""

FLEETING: Final = frozenset({TASKS, "calls"})
"""The channels whose values seldom outlast a checkpoint: sends, and the calls of a message.

The same for every saver: one that goes on with a thread finds a value where it was left.
"""

_MOST: Final = 300
"""Bytes: a checkpoint's row that gets large is cut to pieces by Postgres, each a row."""


def is_small(payload: bytes | None) -> bool:
    """Whether a value, as it is to be stored, may stand in the checkpoint's row."""
    return payload is not None and len(payload) <= _MOST


def values_within(blobs: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """Return the rows of channels' values as a part of a manifest."""
    return {row[2]: [row[4], b64encode(row[5]).decode()] for row in blobs}


def typed_within(manifest: Mapping[str, Any]) -> dict[str, Typed]:
    """Return the values that a manifest holds, by channel, as they were stored.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    try:
        return {
            name: typed(kind, b64decode(text, validate=True))
            for name, (kind, text) in manifest.get(VALUES, {}).items()
        }
    except (AttributeError, Error, TypeError, ValueError):
        raise DamagedState("its row has lost a value that stands in it") from None
