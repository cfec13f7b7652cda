"""The places that the command is called in, most of them broken, and what it may say there."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NOBODY: Final = "postgresql://nobody@127.0.0.1:1/nothing"

SETTINGS: Final = {
    "settings with a tab": "llm:\n\tmodel: openai:x\n",
    "settings that are a list": "- llm\n",
}
"""Of worlds with a ``daruma.yaml`` that can not be read."""


@dataclass(frozen=True)
class World:
    """Where a command is called: its variables beside those of a sound place, None for no such one.

    ``gone`` removes the folder that it is called in.
    """

    variables: Mapping[str, str | None]
    settings: str = ""
    gone: bool = False


def worlds(live: str, foreign: str, top: Path) -> dict[str, World]:
    """Return all worlds. ``live`` is a database of ours, ``foreign`` one of another format."""
    dead = {"DARUMA_POSTGRES_URL": NOBODY}
    return {
        "sound": World({"DARUMA_POSTGRES_URL": live}),
        "another format": World({"DARUMA_POSTGRES_URL": foreign}),
        "no database": World(dead),
        "no URL": World({"DARUMA_POSTGRES_URL": "nonsense"}),
        "SQLAlchemy's URL": World({"DARUMA_POSTGRES_URL": "postgresql+psycopg2://u:p@h/db"}),
        "a wrong variable": World({**dead, "DARUMA_DATABSE_URL": live}),
        "a data folder in a file": World(
            {"DARUMA_POSTGRES_URL": None, "DARUMA_DATA_DIR": str(top / "file.txt" / "data")}
        ),
        "nobody's data folder": World({**dead, "DARUMA_DATA_DIR": "~nobody-at-all/data"}),
        "no home": World({**dead, "HOME": None}),
        "a home that is not there": World({**dead, "HOME": str(top / "away" / "home")}),
        "a home that can not be written": World({**dead, "HOME": "/proc"}),
        "a folder that is gone": World(dead, gone=True),
        "narrow": World({**dead, "COLUMNS": "8", "LINES": "2", "TERM": "dumb"}),
        "C": World({**dead, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "TERM": "nonsense"}),
        **{name: World(dead, settings=text) for name, text in SETTINGS.items()},
    }


def environment(world: World, top: Path) -> dict[str, str]:
    """Return the variables that the command has in a world."""
    own = ("DARUMA_", "_DARUMA_", "OPENAI_", "COMP_", "_TYPER_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(own)}
    sound: dict[str, str | None] = {
        "DARUMA_DATA_DIR": str(top / "data"),
        "DARUMA_POSTGRES_OUTAGE_SECONDS": "0",
        "HOME": str(top / "home"),
    }
    wanted = {**kept, **sound, **world.variables}
    return {name: text for name, text in wanted.items() if text is not None}


def lay_out(world: World, top: Path) -> Path:
    """Make what a command may find, and return the folder that it is called in."""
    here = top / "here"
    for folder in (here, here / "ws", top / "home"):
        folder.mkdir(exist_ok=True)
    for file in (top / "file.txt", here / "file.txt"):
        file.write_text("neither a plan nor settings\n")
    if world.settings:
        (here / "daruma.yaml").write_text(world.settings)
    return here


def fault_of(line: tuple[str, ...], code: object, out: str, err: str) -> str | None:
    """Say what is wrong with how a mistake is answered, None if nothing is (FA-04)."""
    said = [each for each in err.splitlines() if each.startswith("daruma: ")]
    if "Traceback" in out + err or "this is a bug" in err:
        return f"a bug: {err[-300:] or out[-300:]}"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    if len(said) != (code == 2):
        return f"{len(said)} complaints with exit code {code}"
    if said and (err.splitlines()[-1] != said[0] or len(said[0]) < len("daruma: what?")):
        return "the complaint is not the last line, or empty"
    begun = line[:1] == ("demo",)  # it has told what it is about to do
    return None if begun or not said or (not out and len(err.splitlines()) == 1) else "more lines"


def press(shell: str, words: tuple[str, ...]) -> dict[str, str]:
    """Return the variables by which a shell asks what Tab could mean."""
    text = " ".join(["daruma", *words])
    asked = {"_DARUMA_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        return {**asked, "COMP_WORDS": text.replace(" ", "\n"), "COMP_CWORD": str(len(words))}
    return {**asked, "_TYPER_COMPLETE_ARGS": text, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


ODD_PRESSES: Final[tuple[dict[str, str], ...]] = (
    {"_DARUMA_COMPLETE": "complete_bash"},
    {"_DARUMA_COMPLETE": "complete_bash", "COMP_WORDS": "daruma answer", "COMP_CWORD": "x"},
    {"_DARUMA_COMPLETE": "complete_bash", "COMP_WORDS": "", "COMP_CWORD": "99"},
    {"_DARUMA_COMPLETE": "complete_bash", "COMP_WORDS": "daruma run '", "COMP_CWORD": "-1"},
    {"_DARUMA_COMPLETE": "complete_zsh"},
    {"_DARUMA_COMPLETE": "complete_fish"},
    {"_DARUMA_COMPLETE": "complete_powershell"},
    {"_DARUMA_COMPLETE": "source_bash"},
    {"_DARUMA_COMPLETE": "nonsense"},
    {"_DARUMA_COMPLETE": ""},
)
"""What a shell would hardly ask."""
