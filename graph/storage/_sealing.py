"""What a stored value is wrapped in: a digest, or encryption bound to its place; smaller."""

import hmac
import json
import os
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Final, Protocol

from daruma.state.errors import DamagedState, KeyRefused

# --- Small values made smaller: Postgres compresses nothing that takes less than 2 KB.

_LEAST: Final = 64
_MOST: Final = 2000
"""Bytes: what is longer, Postgres compresses by itself. Nothing is unpacked to more than this."""

_WINDOW: Final = -13
"""Looks back over all of a value; no header."""

_MEMORY: Final = 6
"""Tables of 64 KB. To get and to clear those of zlib's own choice takes six times as long."""


def deflate(payload: bytes) -> bytes | None:
    """Return a value in its small form; None for one that is stored as it is."""
    if not _LEAST <= len(payload) <= _MOST:
        return None
    making = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY)
    made = making.compress(payload) + making.flush()
    return made if len(made) < len(payload) else None


def inflate(made: bytes) -> bytes:
    """Return what was given to ``deflate``. Raises :class:`~daruma.state.errors.DamagedState`."""
    reading = zlib.decompressobj(_WINDOW)
    try:
        payload = reading.decompress(made, _MOST)
    except zlib.error as error:
        raise DamagedState(f"a value is not what was stored: {error}") from None
    if not reading.eof or reading.unused_data:
        raise DamagedState("a value is not what was stored")
    return payload


# --- What a stored value is wrapped in: a digest that shows damage, or encryption bound to its
# place.
#
# A value is what a serializer makes: its kind, and bytes. The place of one names the thread first.

Typed = tuple[str, bytes]
Place = Sequence[str]

_CHECKED: Final = "checked:"
_SMALL: Final = "small:"
"""Checked too, and deflated."""

_SEALED: Final = "sealed:"
_DIGEST: Final = 8
"""Bytes: against damage, not against somebody who writes into the database."""
_NONCE: Final = 12
"""Bytes: what AES-GCM is made for."""


class Sealing(Protocol):
    """Wraps stored values, and unwraps them again. ``hides`` says that nobody else can read them.

    ``open`` raises :class:`~daruma.state.errors.DamagedState` for what ``seal`` did not make, and
    where values are hidden also for what it made for another place.
    """

    hides: bool

    def seal(self, value: Typed, place: Place) -> Typed:
        """Return what is to be stored."""

    def open(self, value: Typed, place: Place) -> Typed:
        """Return what was given to ``seal``."""

    def mark(self, text: str, place: Place) -> str:
        """Return what shows later whether a text, which stays in clear, is still the same."""


class Checked:
    """Digests alone, so that a thread can be copied.

    Values are made smaller here alone: how small one gets tells something of what is in it.

    >>> Checked().open(Checked().seal(("msgpack", b"x"), ["t"]), ["u"])
    ('msgpack', b'x')
    """

    hides = False

    def seal(self, value: Typed, place: Place) -> Typed:  # noqa: ARG002 - any place will do
        kind, payload = value
        small = deflate(payload)
        if small is not None:
            return _SMALL + kind, _digest(_SMALL + kind, small) + small
        return _CHECKED + kind, _digest(kind, payload) + payload

    def open(self, value: Typed, place: Place) -> Typed:  # noqa: ARG002 - any place will do
        stored, payload = value
        if stored.startswith(_SMALL):
            return stored.removeprefix(_SMALL), inflate(_sound(stored, payload))
        if stored.startswith(_CHECKED):
            kind = stored.removeprefix(_CHECKED)
            return kind, _sound(kind, payload)
        if stored.startswith(_SEALED):
            raise DamagedState("a value is sealed, in a database that is not")
        raise DamagedState("a value is not what was stored")

    def mark(self, text: str, place: Place) -> str:  # noqa: ARG002 - any place will do
        return _digest("", text.encode()).hex()


class Sealed:
    """AES-GCM under one key; the place and the kind of a value are authenticated with it.

    A nonce is drawn for each value: one key is good for some four thousand million of them.
    """

    hides = True

    def __init__(self, key: bytes) -> None:
        if not find_spec("cryptography"):
            raise KeyRefused(
                'sealing state needs a package: pip install "daruma-agent[encryption]"'
            )
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)
        self._marking = blake2b(b"daruma.mark", key=key).digest()

    def seal(self, value: Typed, place: Place) -> Typed:
        kind, payload = value
        nonce = os.urandom(_NONCE)
        return _SEALED + kind, nonce + self._cipher.encrypt(nonce, payload, _bound(place, kind))

    def open(self, value: Typed, place: Place) -> Typed:
        from cryptography.exceptions import InvalidTag

        stored, sealed = value
        if not stored.startswith(_SEALED):
            raise DamagedState("a value is in clear, where all are sealed")
        kind = stored.removeprefix(_SEALED)
        bound = _bound(place, kind)
        try:
            return kind, self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
        except (InvalidTag, ValueError):
            raise DamagedState("a sealed value is not what was stored in its place") from None

    def mark(self, text: str, place: Place) -> str:
        bound = _bound(place, text)
        return blake2b(bound, key=self._marking, digest_size=16).hexdigest()


def _bound(place: Place, kind: str) -> bytes:
    return json.dumps([*place, kind]).encode()


def _digest(kind: str, payload: bytes) -> bytes:
    return blake2b(kind.encode() + b"\0" + payload, digest_size=_DIGEST).digest()


def _sound(kind: str, payload: bytes) -> bytes:
    """Return what stands behind its digest. Raises ``DamagedState``."""
    own = payload[_DIGEST:]
    if not hmac.compare_digest(payload[:_DIGEST], _digest(kind, own)):
        raise DamagedState("a value is not what was stored")
    return own


def check_typed_value(kind: Any, payload: Any) -> Typed:
    """Return a value as it was found in a row. Raises ``DamagedState`` for one that is none."""
    if not isinstance(kind, str) or not isinstance(payload, bytes):
        raise DamagedState("a value is lost from its row")
    return kind, payload
