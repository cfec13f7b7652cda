"""The key of a database, and whether it is the right one."""

import base64
import binascii
import os
from importlib.util import find_spec
from typing import Final

from daruma.graph.storage.pool import Connection, Pool
from daruma.graph.storage.sealing import Checked, Sealed, Sealing
from daruma.state.errors import DamagedState, KeyRefused

_BYTES: Final = 32
_PLACE: Final = ("", "proof")
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('daruma.seal'))"
_KNOWN: Final = "SELECT kind, proof FROM daruma_seal"
_USED: Final = "SELECT FROM checkpoints LIMIT 1"
_NOTE: Final = "INSERT INTO daruma_seal (kind, proof) VALUES (%s, %s)"


def key_bytes(given: str | bytes) -> bytes:
    """Read a key: 32 bytes as they are, or as text in base64 or hex.

    Raises :class:`~daruma.state.errors.KeyRefused`, which does not quote it.
    """
    key = given if isinstance(given, bytes) else _decoded(given.strip())
    if len(key) != _BYTES:
        raise KeyRefused(
            "the key that seals state must be 32 bytes, in base64 or hex: "
            "`openssl rand -base64 32` makes one for DARUMA_POSTGRES_KEY"
        )
    return key


def _decoded(text: str) -> bytes:
    try:
        if len(text) == 2 * _BYTES:
            return bytes.fromhex(text)
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (ValueError, binascii.Error):
        return b""


async def sealing_of(pool: Pool, given: str | bytes | None) -> Sealing:
    """Return how a database's values are wrapped: sealed under the key given, if there is one.

    None reads ``DARUMA_POSTGRES_KEY``. A database is sealed as a whole, from its first thread on;
    it holds a proof of its key. Raises :class:`~daruma.state.errors.KeyRefused`.
    """
    given = given or os.environ.get("DARUMA_POSTGRES_KEY") or None
    sealed = _sealed(given) if given else None
    async with pool.connection() as connection, connection.transaction():
        if sealed:
            await connection.execute(_LOCK)
        row = await (await connection.execute(_KNOWN)).fetchone()
        if sealed is None:
            if row:
                raise KeyRefused("this database is sealed: set DARUMA_POSTGRES_KEY to its key")
            return Checked()
        if row:
            _prove(sealed, row["kind"], row["proof"])
        else:
            await _begin(connection, sealed)
    return sealed


def _sealed(given: str | bytes) -> Sealed:
    key = key_bytes(given)
    if not find_spec("cryptography"):
        raise KeyRefused('sealing state needs a package: pip install "daruma-agent[encryption]"')
    return Sealed(key)


def _prove(sealed: Sealed, kind: str, proof: bytes) -> None:
    try:
        sealed.open((kind, proof), _PLACE)
    except DamagedState:
        raise KeyRefused(
            "this database is sealed with another key: set DARUMA_POSTGRES_KEY to its own"
        ) from None


async def _begin(connection: Connection, sealed: Sealed) -> None:
    if (await connection.execute(_USED)).rowcount:
        raise KeyRefused(
            "this database holds threads in clear: go on without DARUMA_POSTGRES_KEY, or take a "
            "new database for what is to be sealed"
        )
    await connection.execute(_NOTE, sealed.seal(("proof", b""), _PLACE))
