"""The shipped scenarios: a small repository with a bug, the script of a model that meets it; and a
model that plays one where a graph has none.

What is edited and run is real: a copy of the scenario's repository, in a temporary folder.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from pydantic import PrivateAttr
from typing_extensions import override

from daruma.graph.models import (
    CALL_KEY,
    ROLE_KEY,
    AnsweringModel,
    ScriptedChatModel,
    ScriptError,
    read_script,
)
from daruma.graph.requests import RequestRefused
from daruma.state.errors import DarumaError
from daruma.tools.commands import CannotRun, command_environment, find_in, run_git

# --- The shipped scenarios.

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


# --- The model of a graph that has none: it plays a shipped example, and says how to have a real
# one.

EXAMPLE: Final = "fix"

HINT: Final = (
    f"No model is set, so all I can do is play the shipped example: say “{GOAL}” on a new thread, "
    "with no workspace of your own. For real work, set llm.model, such as openai:NAME, in "
    "daruma.yaml, or as DARUMA_LLM__MODEL, and its key in the environment."
)


class ShownModel(AnsweringModel):
    """Plays the example's script from its first turn, and gives a hint where that does not fit."""

    model_name: str = "the shipped example"

    _script: ScriptedChatModel = PrivateAttr()

    @override
    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        script = read_script(scenario_named(EXAMPLE).folder / "script.yaml")
        self._script = ScriptedChatModel(script=script, model_name=self.model_name)

    @property
    @override
    def _llm_type(self) -> str:
        return "daruma-shown"

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        is_main = metadata.get(ROLE_KEY, "main") == "main"
        asked = any(message.text == GOAL for message in messages)
        if asked and (tools or not is_main):  # else it is a task of another model's, or a chat
            place = {**metadata, CALL_KEY: _answers(messages) if is_main else 0}
            with suppress(ScriptError):
                return self._script.answer(messages, metadata=place, tools=tools)
        return AIMessage(HINT)


def _answers(messages: Sequence[BaseMessage]) -> int:
    """Count the answers since the example's work began, with its one phase or without a plan."""
    count = 0
    for message in messages:
        asked = isinstance(message, HumanMessage) and message.text.startswith((GOAL, "Phase "))
        count = 0 if asked else count + isinstance(message, AIMessage)
    return count


def shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that is made of one: the example's, on a fresh copy, or a mere chat.

    Raises :class:`~daruma.graph.requests.RequestRefused` for a workspace of the user's own, and
    :class:`~daruma.graph.scenario.DemoRefused` without the programs of the checks.
    """
    messages: Any = given.get("messages")
    try:
        said = convert_to_messages(messages if isinstance(messages, list) else [messages])
    except (ValueError, NotImplementedError, TypeError):
        said = []
    if not said or said[-1].text.strip().rstrip(".!").casefold() != GOAL.casefold():
        return {**given, "mode": "direct_chat", "workspace": None}
    own = given.get("workspace")
    if own and not (Path(str(own)) / "bill" / "split.py").is_file():
        raise RequestRefused(f"workspace {str(own)!r}: {HINT}")
    workspace = own or str(prepare(scenario_named(EXAMPLE)))
    messages = [HumanMessage(GOAL)]
    kept = {key: value for key, value in given.items() if value is not None}
    return {"mode": "plan_exec", **kept, "messages": messages, "workspace": workspace}
