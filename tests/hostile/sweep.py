"""Runs Daruma in a hostile workspace, and says what got out of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.hostile.traps import TRAPS, Bait, lay_ground, pack

KEY: Final = "sk-proj-Zq7canaryKEY4bTh9wLm2xVn8"
"""The key in the environment: nothing that is written may hold it."""
HOME_SECRET: Final = "canary-of-the-home-folder-5521"
SECONDS: Final = 300
"""How long all the commands of one run may take; what takes longer hangs.

Most of it is what pytest, ruff and git take in the sandbox, ten times as long on a busy machine.
"""
OWN_SECONDS: Final = 60
"""Processor time of Daruma's own, without what it starts: the same however busy the machine is."""
CODES: Final = frozenset({0, 1, 2, 3})
WAYS: Final = ("cloned", "planted")
"""A trap is there from the beginning, or a command of the first task lays it."""
CASES: Final = tuple((trap, way) for trap in TRAPS for way in WAYS)


@dataclass(frozen=True)
class Place:
    """The folders of one case, with the environment that its commands have."""

    top: Path
    url: str
    level: str = ""

    @property
    def workspace(self) -> Path:
        """The hostile workspace."""
        return self.top / "ws"

    @property
    def canary(self) -> Path:
        """The file outside of the workspace that no trap may write."""
        return self.top / "outside/canary"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a person who trusts the folder too much."""
        own = self.workspace
        path = (own / ".venv/bin", own / "node_modules/.bin", Path(), Path("bin"))
        return {
            "PATH": ":".join((*map(str, path), os.environ["PATH"])),
            "HOME": str(self.top / "home"),
            "DARUMA_DATA_DIR": str(self.top / "data"),
            "DARUMA_POSTGRES_URL": self.url,
            "OPENAI_API_KEY": KEY,
            "DARUMA_BUDGETS__VERIFY": "2",  # each runs the checks up to ten times
        } | ({"DARUMA_SANDBOX__REQUIRE": self.level} if self.level else {})

    def make(self) -> None:
        """Make the folders, and the repository."""
        for name in ("ws", "outside", "home/.ssh"):
            (self.top / name).mkdir(parents=True)
        (self.top / "home/.ssh/id_rsa").write_text(HOME_SECRET)
        lay_ground(self.workspace)

    def holds(self, text: str) -> bool:
        """Whether a text stands in a file of the workspace or beside it."""
        command = ["grep", "-rqsaF", "--devices=skip", "--exclude=huge.py", text]
        done = subprocess.run([*command, self.workspace, self.canary.parent], check=False)
        return done.returncode == 0


def _call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


WORK: Final = (
    _call("str_replace_editor", command="view", path="."),
    _call(
        "run_command",
        command="git status --short; git diff; ls -la; cat AGENTS.md README.md",
        timeout=20,  # it waits for a pipe, and what has no end is read for as long
    ),
    _call("str_replace_editor", command="create", path="notes.md", file_text="notes\n"),
    _call("run_command", command="python -m pytest -q"),
)
PLANT: Final = _call("run_command", command="tar -xf trap.tar; rm -f trap.tar; true")


def _commands(thread: str, script: Path, *, undo: bool) -> list[list[str]]:
    goal = f"Look around and write notes, {KEY[:9]}"
    run = ["run", goal, "--workspace", ".", "--model", f"scripted:{script}"]
    return [
        [*run, "--thread", thread, "--yes"],
        ["show", thread],
        ["threads"],
        ["doctor"],
        ["graph"],
        *([["undo", thread, "--yes"]] if undo else []),
    ]


def _carry_out(place: Place, thread: str, *first: dict[str, Any]) -> Iterator[str]:
    """Run a task and what a person looks at afterwards; yield what went wrong."""
    script, told = place.top / f"{thread}.json", place.top / f"{thread}.told"
    calls = [{"calls": [each]} for each in (*first, *WORK)]
    said = [{"say": "Notes are written."}] * 9
    script.write_text(json.dumps({"main": [*calls, *said], "reflect": said}))
    told.write_text(json.dumps(_commands(thread, script, undo=not first)))
    driver = Path(__file__).with_name("driver.py")
    try:
        done = subprocess.run(
            [sys.executable, driver, told, str(SECONDS - 10)],
            check=False,
            cwd=place.workspace,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        where = (late.stderr or b"").decode(errors="replace")
        yield f"{thread}: hangs after {SECONDS} s: {where[-4000:]}"
        return
    if done.returncode:
        yield f"{thread}: ended with {done.returncode}: {done.stderr[-2000:]}"
        return
    ended = json.loads(told.read_text())
    if (own := sum(each["own_seconds"] for each in ended)) > OWN_SECONDS:
        yield f"{thread}: takes {own:.0f} s of processor time"
    for each in ended:
        name, said = each["args"][0], each["out"] + each["err"]
        if each["code"] not in CODES or "Traceback" in said or "this is a bug" in said:
            yield f"{thread}: {name} ended with {each['code']}: {said[-2000:]}"
        if KEY in said or HOME_SECRET in said:
            yield f"{thread}: {name} shows the key, or a secret of the home folder"


def _look(place: Place, after: str) -> Iterator[str]:
    if place.canary.exists():
        yield f"{after}: the canary was touched"
        place.canary.unlink()
    for what, text in (("key", KEY), ("secret of the home folder", HOME_SECRET)):
        if place.holds(text):
            yield f"{after}: the {what} was read"


def carry_out(trap: str, way: str, place: Place) -> list[str]:
    """Run Daruma where a trap is laid; return what got out, nothing if it is safe."""
    place.make()
    bait = Bait(place.canary)
    if way == "cloned":
        TRAPS[trap](place.workspace, bait)
        return [*_carry_out(place, "one"), *_look(place, "one")]
    model = place.top / "model"
    model.mkdir()
    lay_ground(model)
    TRAPS[trap](model, bait)
    pack(model, place.workspace / "trap.tar")
    found = [*_carry_out(place, "one", PLANT), *_look(place, "one")]
    found += [*_carry_out(place, "two"), *_look(place, "two")]
    with suppress(subprocess.TimeoutExpired):  # git itself waits for pipes
        command = ["git", "status"]
        subprocess.run(
            command, cwd=place.workspace, check=False, capture_output=True, timeout=SECONDS / 4
        )
    return [*found, *_look(place, "a person's git status")]
