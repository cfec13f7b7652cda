"""Random restores against an oracle, and proof that it sees what is wrong (RO-06)."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.snapshot_fuzz.rounds import Make, in_memory, rounds

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.ignore_patterns import Rules
from daruma.tools.snapshots.outcome import Entry
from daruma.tools.snapshots.placing import Applying
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Contents

Blur: TypeAlias = Callable[[Entry], Entry]

ROUNDS = 50


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in memory, with the data of the project in it."""
    with in_memory() as folder:
        monkeypatch.setenv("DARUMA_DATA_DIR", str(folder / "data"))
        yield folder


def test_random_restores_are_exact_or_say_what_is_not(place: Path) -> None:
    """Whatever the work and others do, nothing is wrong that is not named."""
    counted, faults = rounds(place, range(ROUNDS))

    assert faults == []
    assert counted["exact"] > ROUNDS / 2
    assert counted["needlessly declared"] == 0


class ForgetsModesOfDirectories(Applying):
    """A mutant."""

    def close(self, folder: int, path: Parts) -> None:
        """Leave directories as they are."""


class KeepsNewFilesFurtherDown(Applying):
    """A mutant."""

    def remove(self, folder: int, path: Parts) -> None:
        """Remove only what lies near the top."""
        if len(path) < 2:
            super().remove(folder, path)


class DeletesIgnoredFiles(Applying):
    """A mutant: what is ignored is looked at by no one, so only the oracle can tell."""

    def run(self) -> None:
        """Go the way, and remove what is ignored as well."""
        super().run()
        for at, _, files, folder in os.fwalk(".", dir_fd=self.top):
            above = Path(at).parts
            for name in files:
                if self.rules.outside((*above, name), directory=False):
                    os.unlink(name, dir_fd=folder)


class BlindSnapshots(Snapshots):
    """A mutant: what is alike to `blurred` is never seen to differ, neither before nor after."""

    def __init__(self, *given: Any, blurred: Blur, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.blurred = blurred

    def seen(self, contents: Contents, top: int, rules: Rules) -> tuple[str, list[str]]:
        """Keep what the workspace holds, less what can not be told apart."""
        root, unkept = super().seen(contents, top, rules)
        return self._blurred(contents, root), unkept

    def _blurred(self, contents: Contents, id_: str) -> str:
        tree = contents.tree(id_)
        for name, entry in tree.items():
            inside = entry.kind == "directory" and entry.content
            plain = replace(entry, content=self._blurred(contents, inside)) if inside else entry
            tree[name] = self.blurred(plain)
        return contents.put_tree(tree)


def by_length(entry: Entry) -> Entry:
    """Tell links apart by the length of their targets only."""
    return replace(entry, content="." * len(entry.content)) if entry.kind == "link" else entry


def without_modes(entry: Entry) -> Entry:
    """Tell directories apart by what is in them only."""
    return replace(entry, mode=0o755) if entry.kind == "directory" else entry


def broken_way(way: type[Applying]) -> Make:
    """Return snapshots that go a broken way."""
    return lambda workspace, thread, store: Snapshots(workspace, thread, store, way=way)


def blind(blurred: Blur) -> Make:
    """Return snapshots that do not see something."""
    return lambda workspace, thread, store: BlindSnapshots(
        workspace, thread, store, blurred=blurred
    )


MUTANTS = {
    "modes of directories forgotten": (broken_way(ForgetsModesOfDirectories), "without need"),
    "new files kept further down": (broken_way(KeepsNewFilesFurtherDown), "without need"),
    "ignored files deleted": (broken_way(DeletesIgnoredFiles), "damaged"),
    "links compared by length": (blind(by_length), "silently wrong"),
    "modes of directories not seen": (blind(without_modes), "silently wrong"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_short_form_finds_every_planted_mistake(mutant: str, place: Path) -> None:
    """The rounds of the suite are dense enough: they would have found each of these."""
    make, fault = MUTANTS[mutant]

    _, faults = rounds(place, range(ROUNDS), make, until=fault)

    assert any(fault in each for each in faults)
