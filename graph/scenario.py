"""The shipped scenarios: a small repository with a bug, and the script of a model that meets it."""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daruma.state.errors import DarumaError
from daruma.tools.commands import CannotRun, command_environment, find_in, run_git

_FOLDER = Path(__file__).parent / "scenarios"
GOAL = "Make the tests pass"
_GIT_SECONDS = 30.0
_AS_DARUMA = ("-c", "user.name=Daruma", "-c", "user.email=daruma@localhost")
_HISTORY = (
    ("init", "--quiet"),
    ("add", "--all"),
    (*_AS_DARUMA, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "As it was found"),
)


class DemoRefused(DarumaError):
    """Raised when a scenario can not be played; says what is missing."""


@dataclass(frozen=True)
class Scenario:
    """One scenario: ``repo/`` with the bug, and ``script.yaml``, whose first line is its title.

    What lies in ``untracked/``, if it is there, git does not know of.
    """

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def title(self) -> str:
        first, *_ = (self.folder / "script.yaml").read_text(encoding="utf-8").splitlines()
        return first.lstrip("# ")

    @property
    def model(self) -> str:
        """The scripted model's name."""
        return f"scripted:{self.folder / 'script.yaml'}"

    def request(self, repository: Path) -> dict[str, Any]:
        """Return what the graph is given for this scenario."""
        messages = [("user", GOAL)]
        return {"messages": messages, "mode": "plan_exec", "workspace": str(repository)}


def scenarios() -> list[Scenario]:
    """Return the scenarios that are shipped, by name."""
    return [Scenario(script.parent) for script in sorted(_FOLDER.glob("*/script.yaml"))]


def scenario_named(name: str) -> Scenario:
    """Return one scenario. Raises :class:`DemoRefused`, naming those that there are."""
    known = {scenario.name: scenario for scenario in scenarios()}
    if name not in known:
        raise DemoRefused(f"there is no scenario {name!r}; there are: {', '.join(known)}")
    return known[name]


def prepare(scenario: Scenario) -> Path:
    """Copy a scenario's repository into a fresh folder, with a git history where there is git.

    Raises :class:`DemoRefused` without the programs that verification runs.
    """
    repository = Path(tempfile.mkdtemp(prefix="daruma-demo-")) / scenario.name
    places = command_environment(os.environ, repository, Path(sys.executable).parent)["PATH"]
    if missing := missing_programs(places):
        raise DemoRefused(f"the demo runs real checks: pip install {' '.join(missing)}")
    shutil.copytree(
        scenario.folder / "repo", repository, ignore=shutil.ignore_patterns("__pycache__")
    )
    _commit(repository)
    if (notes := scenario.folder / "untracked").is_dir():
        shutil.copytree(notes, repository, dirs_exist_ok=True)
    return repository


def missing_programs(places: str) -> list[str]:
    """Return the programs of the checks that are in none of these places (as in ``PATH``)."""
    return [name for name in ("pytest", "ruff") if not find_in(places, name)]


def _commit(repository: Path) -> None:
    for arguments in _HISTORY:
        try:
            done = run_git(*arguments, folder=repository, seconds=_GIT_SECONDS)
        except CannotRun:
            return  # there is no git: the demo needs none
        if done.returncode:
            return
