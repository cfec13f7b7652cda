"""Whether a process lives is known from the kernel, and where it is not known nobody is dead."""

from dataclasses import replace
from pathlib import Path

import pytest

from daruma.graph.storage.lifeline import Life, own_life


def test_this_process_lives() -> None:
    """And stays the same one."""
    assert not own_life().is_over
    assert own_life() == own_life()


def test_a_file_that_nobody_holds_is_that_of_the_dead(tmp_path: Path) -> None:
    """The kernel drops a lock with its process."""
    file = tmp_path / "life"
    file.touch()

    assert replace(own_life(), file=str(file)).is_over


@pytest.mark.parametrize("change", [{"boot": "another"}, {"boot": ""}, {"file": "/not/there"}])
def test_what_can_not_be_told_from_here_is_not_dead(tmp_path: Path, change: dict[str, str]) -> None:
    """Another machine, another start of it, a file that is not seen: then its lease decides."""
    file = tmp_path / "life"
    file.touch()

    assert not replace(own_life(), **{"file": str(file), **change}).is_over


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": 1}', '{"a": 1}'])
def test_what_is_no_life_is_none(text: str) -> None:
    """A holder that another version wrote."""
    assert Life.of(text) is None
    assert Life.of(own_life().text) == own_life()
