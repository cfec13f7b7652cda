"""What a node works with beside the state: the live things of one run."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from langchain_core.messages import AIMessage, BaseMessage

from daruma.state.data_dir import data_dir
from daruma.state.events import Event, unheard
from daruma.state.settings import Settings
from daruma.state.usage import Role, Usage
from daruma.tools.files.edit_history import EditHistory
from daruma.tools.files.workspace import Workspace
from daruma.tools.registry import Registry
from daruma.tools.sandbox.sandbox import Sandbox
from daruma.tools.tool import Surroundings, Tool


@dataclass(frozen=True)
class Answer:
    """A model's answer and what it cost."""

    message: AIMessage
    usage: Usage


class Ask(Protocol):
    """Asks the model of a role. Raises :class:`daruma.state.failure.ModelFailed`."""

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),
        exact: bool = False,
        emit: Callable[[Event], None],
    ) -> Answer:
        """Ask once. ``call`` counts the thread's calls from ``node``, by its record of steps.

        ``exact`` asks for the likeliest answer (temperature 0), in one piece.
        """


@dataclass(frozen=True)
class Context:
    """The live things of one run: never in the state, made when the graph is built.

    ``open_sandbox`` opens what every command runs in; a task without commands never calls it. It
    raises :class:`~daruma.tools.sandbox.level.SandboxUnavailable`.
    """

    settings: Settings
    ask: Ask
    tools: Registry
    open_sandbox: Callable[[], Awaitable[Sandbox]]
    thread_id: str = "local"
    emit: Callable[[Event], None] = unheard
    now: Callable[[], float] = time.time

    async def surroundings(self, workspace: str | None, *, timeout: float = 120.0) -> Surroundings:
        """Open a workspace for tools and commands. Raises ``ToolError`` if it is not there."""
        if workspace is None:
            return Surroundings(timeout=timeout, open_sandbox=self.open_sandbox, emit=self.emit)
        key = hashlib.sha256(f"{workspace}\0{self.thread_id}".encode()).hexdigest()[:32]
        return Surroundings(
            workspace=await asyncio.to_thread(Workspace, Path(workspace)),
            history=EditHistory(data_dir() / "edits" / key),
            timeout=timeout,
            open_sandbox=self.open_sandbox,
            emit=self.emit,
        )
