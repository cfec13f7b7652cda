"""Whether a process lives is known from the kernel, and where it is not known nobody is dead."""

from dataclasses import replace
from pathlib import Path

import pytest

from daruma.graph.storage.leases import Life, known_life, own_life


def test_this_process_lives() -> None:
    """And stays the same one."""
    assert not own_life().is_over
    assert own_life() == own_life()
    assert known_life() is own_life()


def test_a_file_that_nobody_holds_is_that_of_the_dead(tmp_path: Path) -> None:
    """The kernel drops a lock with its process."""
    file = tmp_path / "life"
    file.touch()

    assert replace(own_life(), file=str(file)).is_over


@pytest.mark.parametrize(("boot", "name"), [("another", "life"), ("", "life"), (None, "gone")])
def test_what_can_not_be_told_from_here_is_not_dead(
    tmp_path: Path, boot: str | None, name: str
) -> None:
    """Another machine, another start of it, a file that is not seen: then its lease decides."""
    (tmp_path / "life").touch()
    own = own_life()

    life = replace(own, file=str(tmp_path / name), boot=own.boot if boot is None else boot)

    assert not life.is_over


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": 1}', '{"a": 1}'])
def test_what_is_no_life_is_none(text: str) -> None:
    """A holder that another version wrote."""
    assert Life.of(text) is None
    assert Life.of(own_life().text) == own_life()
