"""Every path of the command line, in every broken place: one line, and never a traceback."""

import os
import random
from pathlib import Path

import psycopg
import pytest
from tests.command_lines.lines import SHELLS, Words, commands, lines, presses
from tests.command_lines.worlds import (
    NOBODY,
    ODD_PRESSES,
    World,
    environment,
    fault_of,
    lay_out,
    press,
    worlds,
)
from tests.daruma_command import Daruma

from daruma.graph.storage import open_postgres

CHANCE = random.Random(27)  # noqa: S311 - of `python -m tests.command_lines`, a part
LINES = [line for line in lines() if line[:1] != ("demo",)]  # it runs a whole task
BARE = [path for path, _ in commands() if path in LINES]
NAMES = [*worlds(NOBODY, NOBODY, Path())]
SOME = {name: [*CHANCE.sample(BARE, 8), *CHANCE.sample(LINES, 12)] for name in NAMES}
SOME["no database"] += BARE


def enter(world: World, top: Path, patch: pytest.MonkeyPatch) -> None:
    """Go into a world."""
    folder = lay_out(world, top)
    wanted = environment(world, top)
    for name in [name for name in os.environ if name not in wanted]:
        patch.delenv(name)
    for name, text in wanted.items():
        patch.setenv(name, text)
    patch.chdir(folder)
    if world.gone:
        for each in sorted(folder.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        folder.rmdir()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SOME)
def test_every_line_is_answered_in_one_line_in_every_place(
    name: str,
    daruma: Daruma,
    empty_postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FA-04: exit code 2 and one line for a mistake, whatever it is, and wherever it is made."""
    with open_postgres(empty_postgres_url), psycopg.connect(empty_postgres_url) as owner:
        owner.execute("UPDATE daruma_version SET v = v + 1")
    enter(worlds(daruma.url, empty_postgres_url, tmp_path)[name], tmp_path, monkeypatch)

    found = list[tuple[Words, str, str]]()
    for line in SOME[name]:
        said = daruma(*line)
        if fault := fault_of(line, said.code, said.out, said.err):
            found.append((line, fault, said.err))

    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["no database", "a folder that is gone"])
def test_tab_says_nothing_but_what_it_offers(
    name: str, daruma: Daruma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind every command and every option, in every shell: nothing on standard error."""
    enter(worlds(NOBODY, NOBODY, tmp_path)[name], tmp_path, monkeypatch)

    bare = [(*path, "") for path in BARE]
    for number, words in enumerate([*bare, *CHANCE.sample(presses(), 20)]):
        with monkeypatch.context() as patch:
            for variable, text in press(SHELLS[number % len(SHELLS)], words).items():
                patch.setenv(variable, text)
            said = daruma()
        assert (said.err, said.code in (0, 1)) == ("", True), words


@pytest.mark.sampled(4)
@pytest.mark.parametrize("asked", ODD_PRESSES, ids=str)
def test_what_no_shell_asks_is_no_bug(
    asked: dict[str, str], daruma: Daruma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables may be left over from anything."""
    for variable, text in asked.items():
        monkeypatch.setenv(variable, text)

    said = daruma()

    assert said.code in (0, 1)
    assert "bug" not in said.err
    assert "Traceback" not in said.err
