"""The shipped scenarios, and what the demo says beside them (FA-05)."""

import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daruma.graph.command_line.asking import yes_to
from daruma.graph.command_line.diagnosis import program_path
from daruma.graph.command_line.output import Line, Paper
from daruma.graph.command_line.session import Replies, Stop
from daruma.state.errors import DarumaError
from daruma.tools.commands.host_programs import CannotRun, find_in, run_git

# --- The shipped scenarios: a small repository with a bug, and the script of a model that meets it.

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
    if missing := missing_programs(program_path(repository)):
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


# --- What the demo says to a newcomer, beside what happens.

ASIDES = {
    "plan_proposed": "Daruma plans first. Every step it takes is kept in Postgres, so that it could"
    " be killed here and resumed elsewhere.",
    "phase_started": "Now the model works with tools: it may read and edit files in the"
    " repository, and run its tests.",
    "verification_started": "The model says that it is done. Daruma does not take its word for it:"
    " it runs the checks itself.",
    "reflected": "The checks disagree, so the work is not done. Before the next attempt the model"
    " says what went wrong.",
}
"""Remarks by event; each is made once, before its event."""

_REVIEW = (
    "Nothing is done before a person has seen the plan. Here the demo answers for you: confirm."
)
_APPROVAL = "A command is asked about before it runs. Here the demo answers for you: approve."
_ROLLED_BACK = (
    "One phase failed, so the task counts as failed (exit code 1). But the mess is gone: edits, new"
    " files, modes, and the note that git did not know of are as they were, and the phase that did"
    " not depend on it is done."
)
_ENDS = {
    0: "It fell and got up again: the work counts as done because the checks say so.",
    1: "Its budget is spent and the checks are still red. Daruma says so, in words, in the status"
    " and in the exit code (1), rather than claim a success.",
}


_NEXT = {"seven-falls": "rollback", "rollback": "gives-up"}
"""Which scenario to see after another."""


def beginning(scenario: Scenario, repository: Path) -> list[Line]:
    """Say what will be seen, and where."""
    return [
        Line("head", f"daruma demo {scenario.name}", scenario.title),
        Line("aside", "No key, no server: a scripted model plays the model's part."),
        Line("aside", "The repository, its tests, the commands and the database are real."),
        Line("note", f"repository: {repository}"),
    ]


def reviewer(paper: Paper) -> Callable[[Stop], Replies]:
    """Return who answers the demo's questions, for everyone to see."""

    def answer(stop: Stop) -> Replies:
        replies = yes_to(stop.questions)
        if replies:
            reviewed = any(q.value["type"] == "spec_review_request" for q in stop.questions)
            paper.put(Line("aside", _REVIEW if reviewed else _APPROVAL))
        return replies

    return answer


def ending(thread: str, scenario: Scenario, code: int) -> list[Line]:
    """Say what was seen, and what to try next."""
    if code not in _ENDS:
        return []
    name = shlex.quote(thread)
    other = _NEXT.get(scenario.name, "seven-falls")
    rolled_back = scenario.name == "rollback" and code == 1
    return [
        Line("head", "That was it"),
        Line("aside", _ROLLED_BACK if rolled_back else _ENDS[code]),
        Line("head", "Try next"),
        Line("line", f"daruma show {name}", "all that was said and done"),
        Line("line", f"daruma undo {name} --list", "every state that the files can be put back to"),
        Line("line", "daruma graph", "the machine that you saw walking"),
        Line("line", f"daruma demo {other}", "another story"),
        Line(
            "line",
            "daruma run 'Make the tests pass' --workspace DIR --mode plan_exec --model openai:NAME",
            "your own repository",
        ),
    ]
