"""Tools of MCP servers, by the ecosystem's adapter (TL-22), which is an extra.

Each call has a session of its own: a server over stdio is started for it, and ended after it."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stderr
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from pydantic import PrivateAttr

from daruma.state.errors import DarumaError
from daruma.state.settings import Settings
from daruma.state.settings.tools import McpServer
from daruma.tools.calls.langchain import KEPT
from daruma.tools.calls.tool import Effect, Surroundings, Tool
from daruma.tools.errors import OutcomeUnknown, ToolError

if TYPE_CHECKING:
    from langchain_mcp_adapters.sessions import Connection


Run = Callable[[Mapping[str, Any], Surroundings], Awaitable[str]]

START_SECONDS = 30.0
"""For a server to start and say which tools it has; `npx` may have to fetch it first."""

_ADAPTER = "langchain_mcp_adapters"
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64
"""Characters of a name, and which ones, by OpenAI's and Anthropic's interfaces."""


class McpUnavailable(DarumaError):
    """Raised when a server's tools can not be had; names the server and what to do."""


async def mcp_tools(servers: Mapping[str, McpServer | Mapping[str, Any]]) -> list[BaseTool]:
    """Ask each server for its tools, which are named ``mcp__SERVER__TOOL``.

    A server is written as in the settings: ``{"command": [...]}`` or ``{"url": ...}``. Raises
    :class:`~daruma.state.settings.errors.SettingsError` for one that is neither, and
    :class:`McpUnavailable` without the adapter, and for the first server that does not start or
    answer within ``START_SECONDS``.
    """
    known = Settings.model_validate({"tools": {"mcp_servers": dict(servers)}}).tools.mcp_servers
    loads = (_load(name, server) for name, server in known.items())
    found = await asyncio.gather(*loads, return_exceptions=True)
    tools: list[BaseTool] = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        tools += each
    return tools


async def _load(name: str, server: McpServer) -> list[BaseTool]:
    try:
        # For its servers' errors the library keeps the stderr that it finds when it is imported: in
        # a notebook or under a test that may be no file.
        with redirect_stderr(sys.__stderr__ or sys.stderr):
            from langchain_mcp_adapters.tools import load_mcp_tools
    except ImportError as error:
        raise McpUnavailable(
            "tools.mcp_servers needs the MCP adapter: pip install 'daruma-agent[mcp]'"
        ) from error
    try:
        async with asyncio.timeout(START_SECONDS):
            tools = await load_mcp_tools(None, connection=_connection(server), server_name=name)
    except Exception as error:
        where = server.command[0] if server.command else urlsplit(server.url or "").hostname
        raise McpUnavailable(
            f"the MCP server {name!r} ({where}) can not be used: {_reason(error)}; correct or "
            f"remove tools.mcp_servers.{name}"
        ) from error
    return [_Served.of(each, name, server) for each in tools]


class _Served(StructuredTool):
    """A tool of the adapter's that knows its server, which no tracer is told."""

    _server: tuple[str, McpServer] = PrivateAttr()

    @classmethod
    def of(cls, tool: BaseTool, name: str, server: McpServer) -> "_Served":
        given = {field: getattr(tool, field) for field in type(tool).model_fields}
        served = cls(**given | {"name": f"mcp__{name}__{tool.name}"})
        served._server = name, server
        return served

    async def again(self) -> BaseTool:
        """Ask the server for the same tool. Raises ``ToolError`` where there is none any more."""
        try:
            tools = await _load(*self._server)
        except McpUnavailable as error:
            raise ToolError(str(error)) from error
        if now := next((each for each in tools if each.name == self.name), None):
            return now
        raise ToolError(f"the MCP server has no tool {self.name!r} any more")

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the server, or its address."""
        _, server = self._server
        return server.command or (str(server.url),)


def _connection(server: McpServer) -> "Connection":
    if server.url:
        return {"transport": "streamable_http", "url": server.url}
    command, *args = server.command
    return {"transport": "stdio", "command": command, "args": args}


def is_mcp_tool(tool: BaseTool) -> bool:
    """Whether the adapter made a tool, here or in the application."""
    module = str(getattr(getattr(tool, "coroutine", None), "__module__", ""))
    return module.partition(".")[0] == _ADAPTER


def mcp_tool(
    tool: BaseTool,
    description: str,
    parameters: Mapping[str, Any],
    run: Run,
    make: Callable[[BaseTool], Tool],
) -> Tool:
    """Make a tool that the adapter made one of ours: its effect is what the server says of it.

    Nothing else that a server writes beside its tool is taken for a declaration of the application.
    ``make`` makes one of ours of what the server says later.
    """
    hints = tool.metadata or {}
    effect: Effect = "none" if hints.get("readOnlyHint") is True else "external"
    name = usable_name(tool.name)

    async def run_there(args: Mapping[str, Any], surroundings: Surroundings) -> str:
        if lost := [each for each in (*KEPT, "runtime") if each in args]:
            raise ToolError(f"the argument {lost[0]!r} can not be passed on to an MCP server")
        try:
            return await run(args, surroundings)
        except (ToolError, GraphBubbleUp):
            raise
        except (FileNotFoundError, PermissionError) as error:
            raise ToolError(f"the MCP server could not be started: {_reason(error)}") from error
        except Exception as error:
            said = f"the MCP server broke off {name}: {_reason(error)}"
            raise (ToolError if effect == "none" else OutcomeUnknown)(said) from error

    async def look_again() -> Tool:
        return make(await tool.again() if isinstance(tool, _Served) else tool)

    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        run=run_there,
        effect=effect,
        origin="mcp",
        idempotent=hints.get("idempotentHint") is True,
        source=f"MCP tool {tool.name!r}",
        server=tool.command if isinstance(tool, _Served) else (),
        look_again=look_again,
    )


def usable_name(name: str) -> str:
    """Return a name that providers take: refused characters become ``_``, a long one is cut.

    A cut name ends in a digest of the whole one, so that no two become one.
    """
    safe = _REFUSED.sub("_", name)
    if len(safe) <= _LONGEST:
        return safe
    return f"{safe[: _LONGEST - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def _reason(error: BaseException) -> str:
    """Say in one line what is at the bottom of an error; task groups wrap it several times."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    if isinstance(error, TimeoutError) and not text:
        return f"it did not answer in {START_SECONDS:g} s"
    return f"{text or type(error).__name__}"[:300]
