"""What a stored value is wrapped in: a digest, or encryption bound to its place; smaller."""

import hmac
import json
import os
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Protocol

from daruma.state.errors import DamagedState

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


# --- Small values made smaller: most of one is names that all others of its kind hold, too.
#
# Postgres compresses nothing that takes less than 2 KB, and knows no value but the one at hand. So
# a value is deflated against the names below, which stand for whatever was stored with them:
# another choice of names is another form.

_LEAST: Final = 64
_MOST: Final = 2000
"""Bytes: what is longer, Postgres compresses by itself. Nothing is unpacked to more than this."""

_FAST: Final = 1
_NO_HEADER: Final = -15

_REACH: Final = -13
"""No header either; it looks back from a value's last byte to the first of the names."""

_MEMORY: Final = 6
"""Tables of 64 KB. To get and to clear those of zlib's own choice takes six times as long."""

NAMES: Final = (
    b"\x05\x94\xbflangchain_core.messages.system\xadSystemMessage\xbdlangchain_core.messages.human"
    b"\xacHumanMessage\xa5human\x93\xb2daruma.state.audit\xa5Audit\xaamessage_id\xa5names"
    b"\xacNameChange\xaetool_call_id\xa3how\xa9arguments\xabrepaired_by\xa5rungs\xa8failover"
    b"\x93\xb4daruma.state.failure\xa7Failure\xa4code\xa6detail\xa7message\xa9retryable"
    b"\x93\xb1daruma.state.plan\xa4Plan\xa6phases\xa5Phase\xa8phase_id\xa5title\xa4goal"
    b"\xaacompaction\xacverification\xa7blockers\xa8recovery\xa7counted\xa6failed\xa8required"
    b"\xa6reason\xa9workspace\xa8repaired\xa6exact\xa6search\xa5query\xa5limit\xa4path\xa7command"
    b"\x91\xc8\x02\x01\x93\xaflanggraph.types\xa4Send\x92\xa4tool\xc8\x02\x93\xb6daruma.state.tool_task\xa8Dispatch\x83\xa4task\xc8\x01\x02\x93\xb1daruma.state."
    b"task\xa4Task\x88\xa2id\xd9\xa4goal\xa4mode\xa5react\xa6limits\xc7\x02\x93\xb1daruma.state."
    b"task\xa6Limits\x84\xa5think\xa6verify\xa7reflect\x01\xaeschema_version\x01\xa6review\xc3"
    b"\xaastarted_at\xcbA\xda\xa7request\xd9$\xaeschema_version\x01\xa4call\xc7"
    b"\x91\xc8\x01\x02\x93\xb1daruma.state.step\xa4Step\x88\xa4kind\xa5think\xa7task_id\xd9\xa2ok"
    b"\xc2\xa2at\xcbA\xda\xa7seconds\xcb?\xa9signature\xa5usage\xc7\x02\x93\xb2daruma.state.usage"
    b"\xa5Usage\x86\xa4role\xa4main\xa5model\xacinput_tokens\xadoutput_tokens\xa3usd\xcb\x00\x00"
    b"\x00\x00\x00\x00\x00\x00\xaeschema_version\x01\xa3saw\xb0\xaeschema_version\x01"
    b"\x91\xc8\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xda"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa2id\xd9"
    b"\xactool_call_id\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json"
    b"\x91\xc8\x01\x05\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xa0"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x82\xadfinish_reason\xaatool_calls\xa4stop"
    b"\xaamodel_name\xa4type\xa2ai\xa4name\xc0\xa2id\xd9\xaatool_calls\x91\x84\xa4name\xa4args\x81"
    b"\xa2id\xa5call_\xa4type\xa9tool_call\xb2invalid_tool_calls\x90\xaeusage_metadata\x83"
    b"\xacinput_tokens\xadoutput_tokens\xactotal_tokens\xb3model_validate_json"
    b"\x93\xa4done\x91\xc7\x02\x93\xb6daruma.state.tool_task\xa8ToolTask\x87\xa2id\xa5call_"
    b"\xaamessage_id\xd9:answer:\xa4name\xaerequested_name\xa4args\x81\xa6status\xa4done"
    b"\xaeschema_version\x01"
)
"""As they stand in messages and records; what comes most often comes last."""


def deflated(payload: bytes) -> bytes | None:
    """Return a value in its small form; None for one that is stored as it is."""
    if not _LEAST <= len(payload) <= _MOST:
        return None
    making = zlib.compressobj(_FAST, zlib.DEFLATED, _REACH, _MEMORY, zdict=NAMES)
    made = making.compress(payload) + making.flush()
    return made if len(made) < len(payload) else None


def inflated(made: bytes) -> bytes:
    """Return what was given to ``deflated``. Raises :class:`~daruma.state.errors.DamagedState`."""
    reading = zlib.decompressobj(_NO_HEADER, zdict=NAMES)
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
    """Digests alone, so that a thread can be copied. What was stored without one is read as it is.

    Values are made smaller here alone: how small one gets tells something of what is in it.

    >>> Checked().open(Checked().seal(("msgpack", b"x"), ["t"]), ["u"])
    ('msgpack', b'x')
    """

    hides = False

    def seal(self, value: Typed, place: Place) -> Typed:  # noqa: ARG002 - any place will do
        kind, payload = value
        small = deflated(payload)
        if small is not None:
            return _SMALL + kind, _digest(_SMALL + kind, small) + small
        return _CHECKED + kind, _digest(kind, payload) + payload

    def open(self, value: Typed, place: Place) -> Typed:  # noqa: ARG002 - any place will do
        stored, payload = value
        if stored.startswith(_SMALL):
            return stored.removeprefix(_SMALL), inflated(_sound(stored, payload))
        if stored.startswith(_CHECKED):
            kind = stored.removeprefix(_CHECKED)
            return kind, _sound(kind, payload)
        if stored.startswith(_SEALED):
            raise DamagedState("a value is sealed, in a database that is not")
        return value

    def mark(self, text: str, place: Place) -> str:  # noqa: ARG002 - any place will do
        return _digest("", text.encode()).hex()


class Sealed:
    """AES-GCM under one key; the place and the kind of a value are authenticated with it.

    A nonce is drawn for each value: one key is good for some four thousand million of them.
    """

    hides = True

    def __init__(self, key: bytes) -> None:
        self._cipher = _cipher(key)
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


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


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
