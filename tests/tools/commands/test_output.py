"""What is kept and shown of a command's output while it runs and afterwards."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.state.events import CommandOutput, Event, unheard
from daruma.tools.commands import BoundedOutput, LiveOutput, live_output, run_in_group
from daruma.tools.commands._command import EVERY, LINES, LONGEST, last_lines

# --- However much a command writes, its beginning and end are kept, as clean text.


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20)), st.integers(2, 40))
def test_the_beginning_and_the_end_are_kept(pieces: list[bytes], limit: int) -> None:
    """Whatever pieces it comes in, exactly `limit` bytes stay and the rest is counted."""
    whole = b"".join(pieces).replace(b"\0", b"0")
    ascii_only = bytes(byte & 0x7F or 0x30 for byte in whole)
    kept, at = BoundedOutput(limit), 0
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
    """Neither NUL nor lone surrogates reach whoever stores it, nor a character cut in two."""
    cut = BoundedOutput(10)
    cut.add("éééééééééé".encode())
    assert cut.text() == "éé\n[10 bytes left out]\néé"
    kept = BoundedOutput(limit)
    kept.add(data)

    assert "\0" not in kept.text()
    assert kept.text().encode().decode() == kept.text()


def test_memory_stays_bounded() -> None:
    """A gigabyte passes through; what is held is of the order of the limit."""
    kept, piece = BoundedOutput(1024), b"x" * 65536
    for _ in range(16384):
        kept.add(piece)

    assert len(kept.text()) < 1100
    assert len(kept._head) + sum(map(len, kept._tail)) <= 1024 + len(piece)


# --- The last lines of a running command: bounded, masked, and nothing where nobody listens.

KEY = "sk-" + "a1b2c3d4" * 4


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_tells_twice_in_a_second_at_most() -> None:
    """Whatever comes in between is told together; a quick command is not told of.

    It waits only while there is something to tell: a silent command wakes nobody.
    """
    clock, told = Clock(), list[tuple[str, ...]]()
    live = LiveOutput(told.append, clock)
    silent = live.wait()
    live.add(b"one\n")
    waits = live.wait()
    live.tell()
    early = [*told]

    clock.now = EVERY
    live.tell()
    live.add(b"two\n")
    live.tell()
    clock.now = 2 * EVERY
    live.tell()

    assert (silent, waits, early) == (float("inf"), EVERY, [])
    assert told == [("one",), ("one", "two")]


def test_keys_are_masked_however_the_output_is_cut() -> None:
    """A key that is not written to its end is not shown, nor one whose beginning is gone."""
    text = f"password {KEY}\nnext {KEY}\n".encode()

    for end in range(len(text)):
        for start in range(0, end, 7):
            said = " ".join(last_lines(text[start:end], whole=start == 0))
            assert "a1b2" not in said


def test_dots_of_a_line_that_is_not_ended_are_shown() -> None:
    """This is how test runners tell how far they are."""
    assert last_lines(b"tests/test_a.py ....", whole=True) == ("tests/test_a.py ....",)
    assert last_lines(b"\x1b[32m10 %\x1b[0m\r20 %\r", whole=True) == ("10 %", "20 %")


@given(st.binary(max_size=2000))
def test_what_is_told_is_bounded(data: bytes) -> None:
    """In lines and in characters."""
    lines = last_lines(data, whole=False)

    assert len(lines) <= LINES
    assert all(len(line) <= LONGEST for line in lines)


async def test_a_running_command_is_heard(tmp_path: Path) -> None:
    """Its lines come while it runs: this one ends only when somebody has heard it."""
    heard = list[Event]()

    def hear(event: Event) -> None:
        heard.append(event)
        (tmp_path / "heard").touch()

    live = live_output(hear, "tool", "wait", "c1")
    command = "echo up; while ! test -e heard; do sleep 0.02; done; echo down"
    result = await run_in_group(command, cwd=tmp_path, timeout=30, live=live)

    assert (result.stdout, result.timed_out) == ("up\ndown\n", False)
    first = heard[0]
    assert first == CommandOutput(purpose="tool", command="wait", lines=("up",), call_id="c1")
    assert live_output(unheard, "tool", "x") is None  # nothing is made where nobody listens
