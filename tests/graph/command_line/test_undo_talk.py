"""At a terminal a person sees what will change, and is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from daruma.graph.command_line.output import Paper
from daruma.graph.command_line.undo import EXACT, REFUSED, UndoTalk
from daruma.graph.history import Place, snapshots_of


@dataclass(frozen=True)
class Undone:
    """A workspace in which the work changed ``a.txt`` from ``one`` to ``two``, and made another."""

    folder: Path
    place: Place

    def by(self, read: Callable[[str], str], out: StringIO) -> int:
        """Talk with a person."""
        return UndoTalk(Paper(Console(file=out)), read=read).hold(self.place, "refuse", None)


@pytest.fixture
def undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Undone:
    """The workspace, which can be put back."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    snapshots = snapshots_of(str(folder), "t")
    start = snapshots.take("start", by="work", fresh=True).snapshot.id
    (folder / "a.txt").write_text("two")
    (folder / "new.txt").touch()
    snapshots.take("end", by="work")
    return Undone(folder, Place("t", str(folder), start))


def closed(_: str) -> str:
    raise EOFError


def unasked(question: str) -> str:
    raise AssertionError(question)


@pytest.mark.parametrize(("said", "code", "left"), [("y", EXACT, "one"), ("n", REFUSED, "two")])
def test_a_person_is_shown_what_will_change_and_asked(
    undone: Undone, said: str, code: int, left: str
) -> None:
    """No is an answer too: then nothing has changed."""
    out, asked = StringIO(), []

    def read(question: str) -> str:
        asked.append((question, out.getvalue()))
        return said

    found = undone.by(read, out)

    assert (found, (undone.folder / "a.txt").read_text()) == (code, left)
    assert len(asked) == 1
    assert "a.txt  changed" in asked[0][1]


def test_the_end_of_the_input_is_no(undone: Undone) -> None:
    """Nothing is done that nobody has agreed to."""
    out = StringIO()

    assert undone.by(closed, out) == REFUSED
    assert "nothing was put back" in out.getvalue()
    assert (undone.folder / "a.txt").read_text() == "two"


def test_where_nothing_is_to_be_put_back_nobody_is_asked(undone: Undone) -> None:
    """Done a second time it has nothing to do."""
    undone.by(lambda _: "y", StringIO())
    out = StringIO()

    assert undone.by(unasked, out) == EXACT
    assert "nothing is to be put back" in out.getvalue()


def test_conflicts_are_told_instead_of_a_question(undone: Undone) -> None:
    """There is nothing to agree to before a person has chosen a way."""
    (undone.folder / "a.txt").write_text("three")
    out = StringIO()

    assert undone.by(unasked, out) == REFUSED
    assert "--overwrite" in out.getvalue()
    assert (undone.folder / "a.txt").read_text() == "three"
