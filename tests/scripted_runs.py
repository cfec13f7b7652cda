"""Whole runs of the machine under a script, and what must be true of each of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_openai.chat_models.base import _convert_message_to_dict
from langgraph.types import Command, Interrupt
from pydantic import PrivateAttr
from tests.openai_rules import violations
from tests.parts import memory
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.state.channels import State
from daruma.state.result import TaskResult
from daruma.state.settings import Settings

CLOSERS: Mapping[str, tuple[str, ...]] = {
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
"""What closes each event that opens something (PL-04)."""

REQUESTS = ("spec_review_request", "approval_request", "question_request")
"""The questions to a person, all of which ``question_closed`` closes."""


class RecordingModel(ScriptedChatModel):
    """A scripted model that keeps the requests it was sent."""

    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._requests.append(list(messages))
        return super().answer(messages, metadata=metadata, tools=tools)


class Run:
    """A thread of a graph under a script; ``nodes`` and ``events`` grow with all that is sent."""

    def __init__(
        self,
        script: Any,
        *,
        settings: Settings | None = None,
        tools: Iterable[BaseTool | Callable[..., Any]] = (),
        graph: Any = None,
    ) -> None:
        self.model = RecordingModel(script=script)
        self.graph: Any = graph or build_graph(
            self.model, tools, settings or Settings(), checkpointer=memory()
        )
        self.config: RunnableConfig = {"configurable": {"thread_id": "t"}}
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
        return self.send({"messages": [HumanMessage(text)], **request})

    def reply(self, reply: object) -> Self:
        """Answer the one open question."""
        return self.send(Command(resume={self.question.id: reply}))

    def decide(self, **decisions: str) -> Self:
        """Answer open approvals by the id of their call, with their digests."""
        digests = {a["approval_id"]: a["digest"] for a in self.question.value["approvals"]}
        return self.reply(
            {
                "decisions": [
                    {"approval_id": id_, "digest": digests[id_], "decision": decision}
                    for id_, decision in decisions.items()
                ]
            }
        )

    def approve(self) -> Self:
        """Approve every open call."""
        return self.decide(
            **{a["approval_id"]: "approve" for a in self.question.value["approvals"]}
        )

    @property
    def snapshot(self) -> Any:
        return self.graph.get_state(self.config)

    @property
    def question(self) -> Interrupt:
        (question,) = self.snapshot.interrupts
        assert isinstance(question, Interrupt)
        return question

    @property
    def state(self) -> State:
        return State(**self.snapshot.values)

    @property
    def messages(self) -> list[AnyMessage]:
        return self.state.messages

    @property
    def result(self) -> TaskResult:
        result = self.state.result
        assert result is not None, f"no result; the run went {self.nodes}"
        return result

    def happened(self, type_: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == type_]


def illegal(messages: Sequence[BaseMessage]) -> list[str]:
    """What OpenAI's API would refuse in a conversation: unpaired calls, illegal names and so on."""
    sent = [_convert_message_to_dict(message) for message in messages]
    return violations({"model": "m", "messages": sent})


def unclosed(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """What was opened and not closed, or closed and not opened."""
    counts = Counter("question" if event["type"] in REQUESTS else event["type"] for event in events)
    return [
        f"{counts[opener]} {opener}, {closed} closed"
        for opener, closers in {**CLOSERS, "question": ("question_closed",)}.items()
        if counts[opener] != (closed := sum(counts[closer] for closer in closers))
    ]


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def fall(text: str) -> str:
    """Fall over."""
    raise ValueError(f"fell over {text}")


def call(name: str = "shout", id_: str | None = None, **args: Any) -> dict[str, Any]:
    """One call in a script's turn."""
    return {"name": name, "args": args or {"text": "hello"}} | ({"id": id_} if id_ else {})


def calls(*names_or_calls: str | dict[str, Any]) -> dict[str, Any]:
    """A turn that calls tools; a name alone stands for a call of it."""
    return {"calls": [call(c) if isinstance(c, str) else c for c in names_or_calls]}


def say(text: str = "Done.") -> dict[str, Any]:
    return {"say": text}


def phases(*given: Mapping[str, Any] | str) -> dict[str, Any]:
    """A turn that proposes a plan."""
    return {"json": {"phases": list(given)}}


def against(strategy: str, confidence: float = 0.9, **action: Any) -> dict[str, Any]:
    """A turn that proposes an action against a failure."""
    said = {"strategy": strategy, "reasoning": "It may help.", "action": action}
    return {"json": said | {"expected_outcome": "It works.", "confidence": confidence}}
