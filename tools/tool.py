"""What a tool is to Daruma, wherever it comes from."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from langgraph.store.base import BaseStore

from daruma.state.events import Event, unheard
from daruma.state.settings import Settings
from daruma.tools.canonical import Canonical
from daruma.tools.errors import ToolError
from daruma.tools.files.edit_history import EditHistory
from daruma.tools.files.workspace import Workspace
from daruma.tools.outputs import Outputs, ProcessOutputs
from daruma.tools.repair.schema_check import SchemaCheck, SchemaUnreadable
from daruma.tools.sandbox.level import SandboxUnavailable
from daruma.tools.sandbox.opening import open_best
from daruma.tools.sandbox.sandbox import Sandbox
from daruma.tools.strict_schema import strict

Effect = Literal["none", "workspace", "external"]
"""What running a tool changes: nothing, files of the workspace, or the world outside."""

Toolset = Literal["workspace", "memory", "skills", "assistant", "knowledge"]
"""What a tool that ships belongs to; each is shown where it can be used, or is asked for."""

Origin = Literal["builtin", "application", "mcp"]
"""Where a tool comes from: Daruma, the application that built the graph, or an MCP server."""


@dataclass(frozen=True)
class Surroundings:
    """What a tool may use of the run it is called in. ``timeout`` is in seconds, for commands.

    ``store`` is the graph's, None where it has none; ``memory_owner`` says whose memories the task
    works with; ``call_id`` is the call's; ``expert`` is the team member that calls; ``now`` gives
    Unix time in seconds.
    """

    workspace: Workspace | None = None
    history: EditHistory | None = None
    timeout: float = 120.0
    open_sandbox: Callable[[], Awaitable[Sandbox]] = open_best
    emit: Callable[[Event], None] = unheard
    outputs: Outputs = field(default_factory=lambda: Outputs(ProcessOutputs()))
    store: BaseStore | None = None
    settings: Settings = field(default_factory=Settings)
    thread_id: str = "local"
    task_id: str = ""
    call_id: str = ""
    expert: str = ""
    memory_owner: str = "default"
    now: Callable[[], float] = time.time

    def needs_store(self) -> BaseStore:
        """Return the store. Raises :class:`ToolError` for a graph that has none."""
        if self.store is None:
            raise ToolError("nothing can be kept here: the graph was built without a store")
        return self.store

    async def sandbox(self) -> Sandbox:
        """Return what commands run in, opened when first asked for.

        Raises :class:`ToolError` if what the settings require is not to be had.
        """
        try:
            return await self.open_sandbox()
        except SandboxUnavailable as error:
            raise ToolError(f"sandbox_violation: {error}") from None

    def needs_workspace(self) -> Workspace:
        """Return the workspace. Raises :class:`ToolError` for a task that has none."""
        if self.workspace is None:
            raise ToolError("this needs a workspace, and the task has none")
        return self.workspace

    def needs_history(self) -> EditHistory:
        """Return what remembers edits. Raises :class:`ToolError` for a task without workspace."""
        if self.history is None:
            raise ToolError("this needs a workspace, and the task has none")
        return self.history


@dataclass(frozen=True)
class Tool:
    """One tool: what the model is shown, and what runs.

    ``parameters`` is a JSON schema, tightened when the tool is made: what the model is shown is
    what its calls are checked against. ``run`` gets the arguments and returns the text for the
    model; it raises :class:`daruma.tools.errors.ToolError` for what the model should hear of.
    ``source`` says in a few words where the tool comes from, for people. An ``idempotent`` tool may
    be called again with the same arguments: the effect is that of one call. ``idempotency_key`` is
    the argument by which a service knows a call that is made again; the model is not shown it.
    ``blocking`` says that ``run`` only waits for a thread, and ends at once when it is cancelled.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], Surroundings], Awaitable[str]]
    effect: Effect = "external"
    origin: Origin = "application"
    toolset: Toolset | None = None
    idempotent: bool = False
    idempotency_key: str = ""
    canonical: Canonical | None = None
    source: str = ""
    blocking: bool = False

    def __post_init__(self) -> None:
        """Tighten the schema, once."""
        object.__setattr__(self, "parameters", strict(self.parameters))

    @property
    def repeatable(self) -> bool:
        """Whether a call whose outcome is not known can simply be made again."""
        return self.idempotent or bool(self.idempotency_key)

    @property
    def builtin(self) -> bool:
        """Whether the tool ships with Daruma."""
        return self.origin == "builtin"

    def misfit(self, args: Mapping[str, Any]) -> str | None:
        """Say what of some arguments does not fit the schema, None if all does."""
        try:
            return self._check.problem_of(args)
        except SchemaUnreadable:
            return None  # the tool's own fault: it will say itself what it can not take

    @cached_property
    def _check(self) -> SchemaCheck:
        return SchemaCheck(self.parameters)

    def as_function(self) -> dict[str, Any]:
        """Return the tool in the form that chat models are given."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}
