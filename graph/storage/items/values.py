"""Values as they are stored: JSON that reads back as what was given, and nothing else."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from daruma.graph.storage.items.names import stored_name, stored_namespace
from daruma.graph.storage.sealing import Sealing, Typed
from daruma.state.errors import DamagedState, DarumaError

_KIND = "json"


class ValueRefused(DarumaError, ValueError):
    """Raised for a value that JSON has no form for, or would read back as another."""


def sealed_value(
    sealing: Sealing, namespace: Sequence[str], key: str, value: Mapping[str, Any]
) -> Typed:
    """Return what is to be stored of a value. Raises :class:`ValueRefused`."""
    try:
        if odd := _odd(value):
            raise ValueError(odd)
        text = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueRefused(f"the item {key!r} can not be kept: {told}; give JSON") from None
    return sealing.seal((_KIND, text.encode()), _place(namespace, key))


def opened_value(
    sealing: Sealing, namespace: Sequence[str], key: str, stored: Typed
) -> dict[str, Any]:
    """Return a value as it was given. Raises :class:`~daruma.state.errors.DamagedState`."""
    try:
        kind, text = sealing.open(stored, _place(namespace, key))
        if kind != _KIND:
            raise DamagedState(f"a value stored as {kind!r} is never read")
        value: dict[str, Any] = json.loads(text)
    except (DamagedState, ValueError) as error:
        raise DamagedState(f"the item {key!r} in {'/'.join(namespace)}: {error}") from error
    return value


def _place(namespace: Sequence[str], key: str) -> tuple[str, ...]:
    return stored_namespace(namespace), "item", stored_name(key)


def _odd(value: Any) -> str | None:
    """Say what JSON would silently make something else of."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                return f"its key {key!r} is no text"
            if odd := _odd(each):
                return odd
    elif isinstance(value, list | tuple):
        return next((odd for each in value if (odd := _odd(each))), None)
    return None
