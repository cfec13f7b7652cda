"""However much a command writes, its beginning and end are kept, as clean text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.tools.commands.output import Kept


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20)), st.integers(2, 40))
def test_the_beginning_and_the_end_are_kept(pieces: list[bytes], limit: int) -> None:
    """Whatever pieces it comes in, exactly `limit` bytes stay and the rest is counted."""
    whole = b"".join(pieces).replace(b"\0", b"0")
    ascii_only = bytes(byte & 0x7F or 0x30 for byte in whole)
    kept, at = Kept(limit), 0
    for piece in pieces:
        kept.add(ascii_only[at : at + len(piece)])
        at += len(piece)

    text, missing = kept.text().encode(), len(whole) - limit
    assert kept.truncated == (missing > 0)
    if missing <= 0:
        assert text == ascii_only
    else:
        half = limit // 2
        head, tail = ascii_only[: limit - half], ascii_only[len(ascii_only) - half :]
        assert text == b"%s\n[%d bytes left out]\n%s" % (head, missing, tail)


@settings(deadline=None)
@given(st.binary(), st.integers(0, 50))
def test_any_bytes_become_clean_text(data: bytes, limit: int) -> None:
    """Neither NUL nor lone surrogates reach whoever stores the text."""
    kept = Kept(limit)
    kept.add(data)

    assert "\0" not in kept.text()
    assert kept.text().encode().decode() == kept.text()


def test_a_character_cut_in_two_is_left_out() -> None:
    """The cut adds no replacement characters to good text."""
    kept = Kept(10)
    kept.add("éééééééééé".encode())

    assert kept.text() == "éé\n[10 bytes left out]\néé"


def test_memory_stays_bounded() -> None:
    """A gigabyte passes through; what is held is of the order of the limit."""
    kept, piece = Kept(1024), b"x" * 65536
    for _ in range(16384):
        kept.add(piece)

    assert len(kept.text()) < 1100
    assert len(kept._head) + sum(map(len, kept._tail)) <= 1024 + len(piece)
