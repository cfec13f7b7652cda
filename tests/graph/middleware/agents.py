"""LangChain agents whose model says what it is told to, for the parts that are of use alone."""

import threading
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.types import Command
from pydantic import PrivateAttr
from typing_extensions import override


class Says(BaseChatModel):
    """Gives its answers in turn, and notes what it was asked; an exception is raised."""

    answers: list[Any]
    model_name: str = "says"
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._asked

    @property
    @override
    def _llm_type(self) -> str:
        return "says"

    @override
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        with self._lock:
            said = self.answers[len(self._asked)]
            self._asked.append(messages)
        if isinstance(said, Exception):
            raise said
        said = AIMessage(said) if isinstance(said, str) else said
        return ChatResult(generations=[ChatGeneration(message=said.model_copy(deep=True))])


def call(name: str, id_: str = "c1", /, **args: Any) -> dict[str, Any]:
    """Return a call that can be read."""
    return {"type": "tool_call", "id": id_, "name": name, "args": args}


def calling(*calls: dict[str, Any], **fields: Any) -> AIMessage:
    """Return an answer with calls."""
    return AIMessage("", tool_calls=list(calls), **fields)


def broken(name: str, text: str, id_: str = "c1", **fields: Any) -> AIMessage:
    """Return an answer with one call whose arguments could not be read."""
    bad: Any = {"type": "invalid_tool_call", "id": id_, "name": name, "args": text, "error": None}
    return AIMessage("", invalid_tool_calls=[bad], **fields)


class Desk:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def read_file(self, path: str) -> str:
        """Read a file."""
        self.done.append(f"read {path}")
        return f"text of {path}"

    def pay(self, amount: int, to: str = "shop") -> str:
        """Pay somebody."""
        self.done.append(f"paid {amount} to {to}")
        return "paid"

    def rest(self, hours: int = 1) -> str:
        """Rest."""
        self.done.append(f"rested {hours}")
        return "rested"

    @property
    def tools(self) -> list[Any]:
        return [self.read_file, self.pay, self.rest]


REQUEST: Any = {"messages": [("user", "Do it")]}
THREAD: Any = {"configurable": {"thread_id": "t"}}


def agent(model: Any, desk: Desk, middleware: Sequence[Any], **options: Any) -> Any:
    """Make an agent."""
    return create_agent(model, desk.tools, middleware=list(middleware), **options)


def decided(out: Any, decision: str = "approve", **more: Any) -> Command[Any]:
    """Decide all approvals that are asked for."""
    (question,) = out["__interrupt__"]
    decisions = [
        {key: each[key] for key in ("approval_id", "digest")} | {"decision": decision} | more
        for each in question.value["approvals"]
    ]
    return Command(resume={question.id: {"decisions": decisions}})
