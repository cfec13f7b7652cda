"""Daruma as its users reach it, for the chapters: the public names, and nothing behind them.

What a chapter needs of a module comes through here or not at all: every module may move.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final, Self

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import PrivateAttr
from tests import warm
from typing_extensions import override

from daruma import ScriptedChatModel, Settings, TaskResult, UntrustedSettings, build_graph

DarumaError: Final[type[Exception]] = next(
    each for each in UntrustedSettings.__mro__ if each.__name__ == "DarumaError"
)
"""What every error for people is; it may move, and is taken from one that is public."""


# --- Turns of a script.


def call(name: str, id_: str | None = None, /, **args: Any) -> dict[str, Any]:
    """One call of a tool."""
    return {"name": name, "args": args} | ({"id": id_} if id_ else {})


def calls(*each: Mapping[str, Any]) -> dict[str, Any]:
    """A turn that calls tools."""
    return {"calls": [*each]}


def say(text: str = "Done.", **more: Any) -> dict[str, Any]:
    """A turn that answers."""
    return {"say": text, **more}


def raw(name: str, args: str, id_: str = "c1") -> dict[str, Any]:
    """One call with its arguments exactly as a model wrote them."""
    return {"name": name, "args": args, "id": id_}


def command(text: str, id_: str | None = None) -> dict[str, Any]:
    """A call of ``run_command``."""
    return call("run_command", id_, command=text)


def create(path: str, text: str, id_: str | None = None) -> dict[str, Any]:
    """A call that makes a file."""
    return call("str_replace_editor", id_, command="create", path=path, file_text=text)


def view(path: str, id_: str | None = None) -> dict[str, Any]:
    """A call that reads a file, or lists a folder."""
    return call("str_replace_editor", id_, command="view", path=path)


def plan(*phases: Mapping[str, Any] | str) -> dict[str, Any]:
    """A turn that proposes a plan; a text stands for a phase of that title."""
    return {"json": {"phases": [*phases]}}


def action(strategy: str, confidence: float = 0.9, **act: Any) -> dict[str, Any]:
    """A turn that proposes what to do against a failure."""
    said = {"strategy": strategy, "reasoning": "It may help.", "action": act}
    return {"json": said | {"expected_outcome": "It works.", "confidence": confidence}}


ALLOWED: Final = {"policy": {"run_command": "allow"}}
"""Settings of ``tools`` under which commands run without a question."""


# --- A model that keeps what it was asked.


@dataclass(frozen=True)
class Request:
    """What a model was asked: for which role, with which messages, and offered which tools."""

    role: str
    messages: Sequence[BaseMessage]
    tools: Mapping[str, Mapping[str, Any]]
    """The functions that were offered, by name."""

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "\n".join(str(each.content) for each in self.messages)


class RecordingModel(ScriptedChatModel):
    """Plays a script, and keeps every request."""

    _requests: list[Request] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[Request]:
        return self._requests

    def asked(self, role: str = "main") -> list[Request]:
        """The requests of one role."""
        return [each for each in self._requests if each.role == role]

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        offered = {each["function"]["name"]: each["function"] for each in tools}
        role = metadata.get("daruma_role", "main")
        self._requests.append(Request(role, list(messages), offered))
        return super().answer(messages, metadata=metadata, tools=tools)


# --- A thread of a graph.

OPENS: Final[Mapping[str, tuple[str, ...]]] = {
    "task_started": ("task_completed",),
    "model_call_started": ("model_call_completed",),
    "tool_started": ("tool_completed",),
    "verification_started": ("verification_completed",),
    "phase_started": ("phase_completed", "phase_failed"),
    "phase_rollback_started": ("phase_rollback_completed", "phase_rollback_failed"),
    "recovery_started": ("recovery_completed",),
    "member_started": ("member_completed",),
    "budget_spent": ("budget_settled",),
    "clarification_request": ("clarification_resolved",),
}
"""What closes each event that opens something."""


class Run:
    """One thread of a graph under a script, until it ends or asks; ``events`` grow on the way.

    ``sections`` are those of the settings: ``Run(script, verification={"enabled": False})``;
    ``with_tools`` are the application's own tools. A ``workspace`` and a ``mode`` go with every
    request that names no other; with None it names none.
    """

    def __init__(
        self,
        script: Any,
        *,
        with_tools: Iterable[Any] = (),
        workspace: Path | None = None,
        mode: str | None = "react",
        persistence: Any = None,
        store: Any = None,
        graph: Any = None,
        thread: str = "t",
        **sections: Any,
    ) -> None:
        self.model = RecordingModel(script=script)
        memory = None if persistence else InMemorySaver()
        kept = {"persistence": persistence, "checkpointer": memory, "store": store}
        self.graph: Any = graph or build_graph(self.model, with_tools, Settings(**sections), **kept)
        self.config: Any = {"configurable": {"thread_id": thread}}
        named = {"mode": mode, "workspace": str(workspace) if workspace else None}
        self.request = {name: value for name, value in named.items() if value}
        self.nodes: list[str] = []
        self.events: list[dict[str, Any]] = []

    def send(self, given: Any, **options: Any) -> Self:
        """Start or go on, until the end or the next question."""
        modes = ["updates", "custom"]
        for mode, part in self.graph.stream(given, self.config, stream_mode=modes, **options):
            if mode == "custom":
                self.events.append(part)
            else:
                self.nodes.extend(part)
        return self

    def ask(self, text: str = "Do it", **request: Any) -> Self:
        """Send a new request."""
        return self.send({"messages": [HumanMessage(text)], **self.request, **request})

    def reply(self, reply: object) -> Self:
        """Answer the one open question."""
        return self.send(Command(resume={self.question.id: reply}))

    def decide(self, *decisions: Mapping[str, Any], **by_call: str) -> Self:
        """Answer open approvals: whole decisions, or one word for each id of a call."""
        digests = {each["approval_id"]: each["digest"] for each in self.approvals}
        words = [
            {"approval_id": id_, "digest": digests[id_], "decision": word}
            for id_, word in by_call.items()
        ]
        return self.reply({"decisions": [*decisions, *words]})

    def approve(self) -> Self:
        """Approve every open call."""
        return self.decide(**{each["approval_id"]: "approve" for each in self.approvals})

    @property
    def snapshot(self) -> Any:
        return self.graph.get_state(self.config)

    @property
    def question(self) -> Any:
        """The one open interrupt."""
        (question,) = self.snapshot.interrupts
        return question

    @property
    def approvals(self) -> list[dict[str, Any]]:
        """What the open question wants approved."""
        found: list[dict[str, Any]] = self.question.value["approvals"]
        return found

    @property
    def messages(self) -> list[AnyMessage]:
        found: list[AnyMessage] = self.snapshot.values["messages"]
        return found

    @property
    def outputs(self) -> dict[str, str]:
        """What each call came to, by its id."""
        found = [each for each in self.messages if isinstance(each, ToolMessage)]
        assert len({each.tool_call_id for each in found}) == len(found)
        return {each.tool_call_id: str(each.content) for each in found}

    @property
    def result(self) -> TaskResult:
        result = self.snapshot.values.get("result")
        assert isinstance(result, TaskResult), f"no result; the run went {self.nodes}"
        return result

    def happened(self, type_: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == type_]

    @property
    def unclosed(self) -> list[str]:
        """What was opened and not closed, or closed and not opened."""
        counted = [each["type"] for each in self.events]
        return [
            f"{counted.count(opener)} {opener}, {closed} closed"
            for opener, closers in OPENS.items()
            if counted.count(opener) != (closed := sum(map(counted.count, closers)))
        ]


def refused(called: Callable[[], object]) -> str:
    """Call what has to be refused, and return the one line that says why."""
    with pytest.raises(DarumaError) as error:
        called()
    line = str(error.value)
    assert "\n" not in line
    return line


# --- The command line.


@dataclass(frozen=True)
class Said:
    """How a command ended, and all that it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output, read as JSON."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def complaint(self) -> str:
        """The one line that a mistake is answered with; nothing else may have been said."""
        assert (self.code, self.out) == (2, "")
        (line,) = self.err.splitlines()
        assert line.startswith("daruma: ")
        return line


class Daruma:
    """The ``daruma`` command in a folder of its own, on a database of its own, without any key."""

    def __init__(
        self,
        url: str,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for name in os.environ:
            if name.startswith(("DARUMA_", "OPENAI_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("DARUMA_POSTGRES_URL", url)
        monkeypatch.setenv("DARUMA_DATA_DIR", str(folder / "data"))
        monkeypatch.chdir(folder)
        self.folder = folder
        self.url = url
        self.setenv: Callable[[str, str], None] = monkeypatch.setenv
        self._capsys = capsys
        self._main: Callable[[Sequence[str]], object] = entry_points(group="console_scripts")[
            "daruma"
        ].load()

    def __call__(self, *args: str) -> Said:
        """Call it in this process."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            self._main(args)
        said = self._capsys.readouterr()
        return Said(int(end.value.code or 0), said.out, said.err)

    def start(self, *args: str, **options: Any) -> Popen[str]:
        """Start it as a process of its own."""
        streams: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        return warm.start(["-m", "daruma", *args], text=True, **(streams | options))

    def run(self, *args: str) -> Said:
        """Start it as a process of its own, and wait for its end."""
        with self.start(*args) as process:
            out, err = process.communicate()
        return Said(process.returncode, out, err)

    def configure(self, text: str) -> None:
        """Write ``daruma.yaml`` into the folder, and agree to it as a person would."""
        (self.folder / "daruma.yaml").write_text(text)
        assert self("trust", "--yes").code == 0

    def script(self, **roles: Any) -> str:
        """Write a script into the folder and return the name of the model that plays it."""
        (self.folder / "script.json").write_text(json.dumps(roles))
        return "scripted:script.json"


# --- What the chapters on plans and the loop share.

UNREVIEWED: Final[dict[str, Any]] = {"mode": "plan_exec", "spec_review": {"enabled": False}}
TEAM: Final[dict[str, Any]] = UNREVIEWED | {"mode": "team_collab"}
NO_RECOVERY: Final[dict[str, Any]] = {"fallback_chain": {"recovery": {"enabled": False}}}
A: Final = {"id": "a", "title": "Mend it"}
ON_A: Final = {"id": "b", "title": "Go on", "depends_on": ["a"]}
YES: Final = {"decision": "confirm"}


def planned(script: dict[str, Any], **more: Any) -> Run:
    """A run of a plan that is reviewed first."""
    return Run(script, mode="plan_exec", **more).ask("Mend the parser")


def statuses(run: Run) -> dict[str, str]:
    """How each phase ended."""
    return {phase.id: phase.status for phase in run.result.phases}
