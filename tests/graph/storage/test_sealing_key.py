"""A database is sealed under one key, or not at all; each mistake is one line without the key."""

import base64
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damages import KEY, finished

from daruma.graph.storage.postgres import Postgres, key_bytes, open_postgres
from daruma.state.errors import KeyRefused

BASE64 = base64.b64encode(KEY).decode()


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_read_in_every_usual_form(key: bytes) -> None:
    """As bytes, in hex of either case, in base64 of either alphabet, with a line's end."""
    texts = [key.hex(), key.hex().upper(), base64.b64encode(key).decode()]

    for text in (*texts, base64.urlsafe_b64encode(key).decode(), f"{texts[0]}\n"):
        assert key_bytes(text) == key
    assert key_bytes(key) == key


@pytest.mark.parametrize(
    "bad", ["s3cret", "s3cret" * 9, "zz" * 32, BASE64[:-4], b"s3cret", "é" * 32]
)
def test_what_is_no_key_is_refused_without_quoting_it(bad: str | bytes) -> None:
    """One line says what a key is, and how to make one."""
    with pytest.raises(KeyRefused) as refused:
        key_bytes(bad)

    assert "32 bytes, in base64 or hex: `openssl rand -base64 32`" in str(refused.value)
    assert not any(secret in str(refused.value) for secret in ("s3cret", "zz", BASE64[:8], "é"))


def opening(url: str, key: str | bytes | None) -> Postgres:
    with open_postgres(url, key=key) as pg:
        return pg


def test_a_sealed_database_opens_with_its_own_key_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, before any thread is read; the environment's key will do."""
    opening(postgres_url, KEY)

    with pytest.raises(KeyRefused, match="is sealed: set DARUMA_POSTGRES_KEY to its key"):
        opening(postgres_url, None)
    with pytest.raises(KeyRefused, match="sealed with another key"):
        opening(postgres_url, bytes(32))
    monkeypatch.setenv("DARUMA_POSTGRES_KEY", BASE64)
    assert opening(postgres_url, None).checkpointer.sealing.hides


def test_a_database_with_threads_in_clear_is_not_sealed(postgres_url: str, tmp_path: Path) -> None:
    """Half of it would stay as it is; without the key it goes on."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")

    with pytest.raises(KeyRefused, match="holds threads in clear: go on without"):
        opening(postgres_url, KEY)
    assert not opening(postgres_url, None).checkpointer.sealing.hides


def test_a_damaged_proof_is_no_way_in(postgres_url: str) -> None:
    """A database that lost its proof, but has threads, counts as one in clear: neither is read."""
    opening(postgres_url, KEY)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE daruma_seal SET proof = ''")

    with pytest.raises(KeyRefused, match="sealed with another key"):
        opening(postgres_url, KEY)


def test_the_key_is_nowhere_to_be_seen(postgres_url: str) -> None:
    """Not in what is shown of the open database, nor of the saver and its parts."""
    shown = opening(postgres_url, BASE64)
    saver = shown.checkpointer
    parts = [shown, saver, saver.sealing, saver.replies, vars(saver), vars(saver.sealing)]

    for part in parts:
        assert not any(each in repr(part) for each in (BASE64, KEY.hex(), repr(KEY)))
