"""The command line as pages to read: each ``pages/*.txt`` is played, and has to come out as it is.

A page is what a person would see: lines with two blanks before them are what was typed and what
came of it, all others tell what it is about. Whoever changes what is said has the pages written
anew with ``WRITE_PAGES=1 pytest -n 0 tests/graph/command_line/test_pages.py``, and reads what
changed in them.

``$`` begins a command, and ``>`` goes on with it. ``!`` is what went to standard error, ``[2]`` an
exit code other than 0; a ``\\`` keeps what was said from looking like a command. ``daruma`` is
called in this process, others in a shell. With ``COLUMNS=80`` it is on a terminal of 80 columns,
and ``<`` is what a person types there; elsewhere that is piped to it. What is another each time
stands as ``<what it is>``, and ``<id 2>`` can be typed.
"""

import asyncio
import io
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psycopg
import pytest
from tests.aged import age
from tests.damages import DAMAGES
from tests.daruma_command import Daruma
from tests.sandboxes import sandbox_at
from tests.screen import Screen
from tests.tools.evolution.ended_tasks import on_record
from typing_extensions import override

from daruma.graph.storage import aopen_postgres
from daruma.state.lessons import Experience, KnownPitfall, Lessons, Setback
from daruma.tools.evolution import Pitfalls, Variant, Variants

PAGES: Final = Path(__file__).with_name("pages")
ID: Final = (
    r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{12}-[0-9a-f]{8}"
    r"|(?=\d*[a-f])[0-9a-f]{12,64})\b"
)
NEW: Final = {
    (
        r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\d"
        r"(?:[T ]\d\d:\d\d(?::\d\d)?)?(?:\.\d+)?(?:[+-]\d\d:\d\d|Z)?"
    ): "<date>",
    r"\b\d\d:\d\d:\d\d +\+\d+:\d\d\b": "<clock>",
    r"(?<=^)\d\d:\d\d:\d\d\b": "<clock>",
    r"(?:  (?=\d+(?:\.\d+)? s\b)| ·(?= \d+(?:\.\d+)? s$)) ?\d+(?:\.\d+)? s$": "",  # shown if long
    r"(?<=  )\d+(?:\.\d+)? s · ": "",
    r"\b\d+(?:\.\d+)?(?= (?:s|ms)\b)": "<n>",
    r"\b\d[\d,]*(?= (?:tokens|read|written)\b)": "<n>",
    r"\b\d+(?:\.\d+)? (?:bytes|KB|MB)\b": "<size>",
    r'(?<=at": )\d+\.\d+': "<unix>",
    r'(?<="score": )\d+\.\d+': "<n>",
    r"postgresql://postgres@\S+(?=: )": "<database>",
}
"""What is another each time, or with each change of a prompt, and what stands in its place."""


OF_A_TERMINAL: Final = (
    *("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("VISUAL", "EDITOR"),
)
"""What whoever runs the tests may have set: a page says itself what it is on."""


@dataclass
class Command:
    """What is typed, and what a person answers; a text that is not typed is ``prose``."""

    prose: str = ""
    typed: str = ""
    answers: str = ""


def read(text: str) -> Iterator[Command]:
    """Yield what a page holds, without what came of it."""
    found: Command | None = None
    for line in text.splitlines():
        if line.startswith("  $ "):
            if found:
                yield found
            found = Command(typed=line[4:])
        elif found and line.startswith("  > "):
            found.typed += f"\n{line[4:]}"
        elif found and line.startswith("  < "):
            found.answers += f"{line[4:]}\n"
        elif line and not line.startswith("  "):
            if found and not found.prose:
                yield found
                found = None
            found = Command(prose=f"{found.prose}\n{line}".strip() if found else line)
    if found:
        yield found


class Person(io.StringIO):
    """Standard input: somebody types, on a terminal or not, and what is typed is seen there."""

    def __init__(self, text: str, *, terminal: bool) -> None:
        super().__init__(text)
        self._terminal = terminal

    @override
    def isatty(self) -> bool:
        return self._terminal

    @override
    def readline(self, *args: Any) -> str:  # type: ignore[override] # typeshed has two bases
        line = super().readline(*args)
        if self._terminal:
            sys.stdout.write(line)
        return line


class Player:
    """Plays a page, and says what comes of it."""

    def __init__(self, daruma: Daruma, patch: pytest.MonkeyPatch) -> None:
        self._daruma, self._patch = daruma, patch
        self._ids = list[str]()
        self._here = str(daruma.folder)
        patch.setenv("HOME", self._here)
        patch.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
        for name in OF_A_TERMINAL:
            patch.delenv(name, raising=False)

    def play(self, page: str) -> str:
        """Return the page as it comes out."""
        return "\n".join(part for each in read(page) for part in (*self._part(each), ""))

    def _part(self, each: Command) -> Iterator[str]:
        if each.prose:
            yield each.prose
            return
        first, *more = each.typed.split("\n")
        yield f"  $ {first}"
        yield from (f"  > {line}" for line in more)
        yield from (f"  < {line}" for line in each.answers.splitlines())
        out, err, code = self._done(re.sub(r"<id (\d+)>", self._known, each.typed), each.answers)
        told = [self._steady(line) for line in out.rstrip().splitlines()]
        told += [f"! {self._steady(line)}" for line in err.splitlines()]
        yield from (re.sub(r"^  (?=[$<>] )", r"  \\", f"  {line}").rstrip() for line in told)
        if code:
            yield f"  [{code}]"

    def _done(self, typed: str, answers: str) -> tuple[str, str, int]:
        before, called, after = typed.partition("daruma ")
        variables = dict(each.split("=", 1) for each in shlex.split(before) if "=" in each)
        if called and len(variables) == len(shlex.split(before)):
            words, _, shell = after.partition(" | ")
            out, err, code = self._called(self._words(words), variables, answers)
            return (self._shell(shell, out)[0] if shell else out, err, code)
        name, *args = typed.split(maxsplit=1)
        ours: Callable[..., object] | None = DONE_BY_US.get(name)
        if ours is None:
            return self._shell(typed, answers)
        ours(self._daruma, *self._words(*args))
        return "", "", 0

    def _words(self, typed: str) -> list[str]:
        """As the shell would hand them to a program."""
        if "$(" not in typed:
            return shlex.split(typed)
        return self._shell(f"printf '%s\\0' {typed}", "")[0].split("\0")[:-1]

    def _called(
        self, words: list[str], variables: dict[str, str], answers: str
    ) -> tuple[str, str, int]:
        terminal = "COLUMNS" in variables
        with self._patch.context() as patch:
            if terminal:
                patch.setenv("TTY_COMPATIBLE", "1")
                patch.setenv("TERM", "xterm")
                patch.setenv("NO_COLOR", "1")
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr("sys.stdin", Person(answers, terminal=terminal))
            said = self._daruma(*words)
        out = "\n".join(Screen().write(said.out).shown) if terminal else said.out
        return out, said.err, said.code

    def _shell(self, typed: str, given: str) -> tuple[str, str, int]:
        done = subprocess.run(  # noqa: S602 - a page is ours
            typed, shell=True, input=given, capture_output=True, text=True, check=False,
            errors="surrogateescape",
        )  # fmt: skip
        return done.stdout, done.stderr, done.returncode

    def _steady(self, line: str) -> str:
        line = re.sub(ID, self._numbered, line.replace(self._here, "~"))
        for pattern, said in NEW.items():
            line = re.sub(pattern, said, line)
        return line

    def _numbered(self, found: re.Match[str]) -> str:
        if found[0] not in self._ids:
            self._ids.append(found[0])
        return f"<id {self._ids.index(found[0]) + 1}>"

    def _known(self, found: re.Match[str]) -> str:
        return self._ids[int(found[1]) - 1]


# --- What is done here: what is no program, and what no command does (years pass, a disk fails).


def go_to(daruma: Daruma, folder: str) -> None:
    """Go to a folder below the first."""
    daruma.chdir(daruma.folder / folder)


def export(daruma: Daruma, assignment: str) -> None:
    """Set a variable for all that comes."""
    daruma.setenv(*assignment.split("=", 1))


def grow_old(daruma: Daruma, thread: str) -> None:
    """Let a thread have been written in 2020."""
    with psycopg.connect(daruma.url) as connection:
        age(connection, thread)


def damage(daruma: Daruma, name: str) -> None:
    """Damage thread ``t``."""
    with psycopg.connect(daruma.url) as connection:
        connection.execute(DAMAGES[name].encode())


def learn(
    daruma: Daruma, text: str, owner: str = "", how: str = "ended", days: str = "0", told: str = ""
) -> None:
    """Let a task have failed at something, some days ago; ``told`` is the pitfall it knew of."""
    owner = owner or str(daruma.folder)
    setback = Setback(kind="check", actor="main", signature=text, text=text, ended=how == "ended")
    known = Lessons(task_id="t/2", pitfalls=(KnownPitfall(id=told, text=text),)) if told else None
    experience = Experience(
        task_id="t/2" if told else f"{owner}/{text}", owner=owner, mode="react", status="failed",
        goal="Fix the rounding of the invoices", at=time.time() - float(days) * 86_400,
        lessons=known,
    )  # fmt: skip

    async def put() -> None:
        async with aopen_postgres(daruma.url) as postgres:
            own = Pitfalls(postgres.store, owner, shared=how == "shared")
            await on_record(own, setback, experience, 0.5)

    asyncio.run(put())


def add_to_prompt(daruma: Daruma, pitfall: str) -> None:
    """Let two additions to a prompt have been made of a pitfall, of which one was withdrawn."""
    made = Variant(
        id="v1", owner=str(daruma.folder), actor="main", place="system", text="Round last.",
        advice="Round last.", status="testing", pitfalls=(pitfall,),
    )  # fmt: skip

    async def keep_both() -> None:
        async with aopen_postgres(daruma.url) as postgres:
            variants = Variants(postgres.store, made.owner)
            await variants.put(made)
            await variants.put(replace(made, id="v2", status="withdrawn"))

    asyncio.run(keep_both())


DONE_BY_US: Final[dict[str, Callable[..., None]]] = {
    "add-to-prompt": add_to_prompt,
    "cd": go_to,
    "export": export,
    "damage": damage,
    "grow-old": grow_old,
    "learn": learn,
}


@pytest.fixture
def player(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Player]:
    """Who plays, in a folder whose name is as long on every machine: terminals break lines."""
    with TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "ws").mkdir()
        yield Player(Daruma(postgres_url, Path(folder), monkeypatch, capsys), monkeypatch)
        monkeypatch.undo()


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.txt")), ids=lambda page: page.stem)
def test_a_page_comes_out_as_it_is(page: Path, player: Player) -> None:
    """FA-04: all that is said, to whom, and the exit code, line by line."""
    text = page.read_text(encoding="utf-8")
    if re.search(r"\bsandbox:? +namespace\b", text):  # a weaker one says what it leaves open
        sandbox_at("namespace")
    played = player.play(text)
    if "WRITE_PAGES" in os.environ:
        page.write_text(played, encoding="utf-8")
        pytest.skip("written anew, compared with nothing")

    assert "  $ daruma " in text
    assert played.splitlines() == text.splitlines()
