"""Tools of MCP servers, by the ecosystem's adapter (TL-22), which is an extra.

Each call has a session of its own: a server over stdio is started for it, and ended after it."""

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stderr
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from pydantic import PrivateAttr

from daruma.state.errors import DarumaError
from daruma.state.settings import Settings
from daruma.state.settings.tools import McpServer
from daruma.tools.calls.langchain import KEPT
from daruma.tools.calls.tool import Effect, Surroundings, Tool
from daruma.tools.commands.host_programs import find_program, search_path
from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.files.own_files import add_own
from daruma.tools.threads import to_thread

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


async def mcp_tools(
    servers: Mapping[str, McpServer | Mapping[str, Any]], workspace: Path | None = None
) -> list[BaseTool]:
    """Ask each server for its tools, which are named ``mcp__SERVER__TOOL``.

    Its program is none of the ``workspace`` (without one: of the current folder), where tasks work,
    and runs in / unless the server has a folder by name; what it runs from can not be written by
    tasks of this process from then on (SE-01, SE-05).

    A server is written as in the settings: ``{"command": [...]}`` or ``{"url": ...}``. Raises
    :class:`~daruma.state.settings.errors.SettingsError` for one that is neither, and
    :class:`McpUnavailable` without the adapter, and for the first server that does not start or
    answer within ``START_SECONDS``.
    """
    known = Settings.model_validate({"tools": {"mcp_servers": dict(servers)}}).tools.mcp_servers
    loads = (_load(name, server, workspace) for name, server in known.items())
    found = await asyncio.gather(*loads, return_exceptions=True)
    tools: list[BaseTool] = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        tools += each
    return tools


async def _load(name: str, server: McpServer, workspace: Path | None) -> list[BaseTool]:
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
            connection = await to_thread(_connection, name, server, workspace)
            tools = await load_mcp_tools(None, connection=connection, server_name=name)
    except Exception as error:
        where = server.command[0] if server.command else urlsplit(server.url or "").hostname
        raise McpUnavailable(
            f"the MCP server {name!r} ({where}) can not be used: {_reason(error)}"
            f"{_about_paths(server)}; correct or remove tools.mcp_servers.{name}"
        ) from error
    return [_Served.of(each, (name, server, workspace)) for each in tools]


_Server = tuple[str, McpServer, Path | None]
"""Its name, what it is in the settings, and the workspace that it is none of."""


class _Served(StructuredTool):
    """A tool of the adapter's that knows its server, which no tracer is told."""

    _server: _Server = PrivateAttr()

    @classmethod
    def of(cls, tool: BaseTool, server: _Server) -> "_Served":
        given = {field: getattr(tool, field) for field in type(tool).model_fields}
        served = cls(**given | {"name": f"mcp__{server[0]}__{tool.name}"})
        served._server = server
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
        _, server, _ = self._server
        return server.command or (str(server.url),)


def _connection(name: str, server: McpServer, workspace: Path | None) -> "Connection":
    if server.url:
        return {"transport": "streamable_http", "url": server.url}
    here, folder = Path(os.path.realpath(workspace or Path.cwd())), Path(server.cwd or "/")
    program = find_program(server.command[0], here)
    if program is None:
        raise FileNotFoundError("No such program outside of the workspace")
    places = server_places([program, *server.command[1:]], folder)
    if inside := [each for each in places if here.is_relative_to(each)]:
        raise PermissionError(
            f"it lies in the workspace's own folder {inside[0]}: move it to another"
        )
    env = {"PATH": os.pathsep.join(search_path(here))}
    if here.is_relative_to(folder) and folder != Path("/"):
        env["PYTHONSAFEPATH"] = "1"  # asked for by name: but no module is taken from there
    elif server.cwd:
        places.add(folder)
    add_own(places | {Path(os.path.realpath(each)) for each in places}, f"the MCP server {name!r}")
    args = [*server.command[1:]]
    return {"transport": "stdio", "command": program, "args": args, "cwd": folder, "env": env}


_PROGRAM_ENDS: Final = (
    ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".sh", ".rb", ".pl",
    ".php", ".lua", ".jar", ".exs", ".dll", ".wasm",
)  # fmt: skip
_NAMES_FOLDER: Final = frozenset({
    "--directory", "--project", "--prefix", "--cwd", "--package-dir", "-C",
})  # fmt: skip
"""Options of ``uv``, ``npm`` and their kin behind which the folder of a program stands."""


def server_places(command: Sequence[str], folder: Path) -> set[Path]:
    """Return what a server runs from: the folders of its program and scripts, as far as named.

    What it works on, such as a database, is not among them.
    """
    found = set()
    before = ""
    for number, word in enumerate(command):
        option, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
        path = folder / (value or word)
        if (option or before) in _NAMES_FOLDER and value and os.path.isdir(path):  # noqa: PTH112 - no error for a long word
            found.add(path)
        elif os.path.isfile(path) and (  # noqa: PTH113 - as above
            number == 0 or _is_program(path)
        ):
            found |= {path.parent, Path(os.path.realpath(path)).parent}
        before = word
    return found - {Path("/")}


def _is_program(path: Path) -> bool:
    return path.name.lower().endswith(_PROGRAM_ENDS) or os.access(path, os.X_OK)


def _about_paths(server: McpServer) -> str:
    if server.cwd or not any(os.path.isfile(word) for word in server.command[1:]):  # noqa: PTH113
        return ""
    return " (it is started in /: write paths whole, or set cwd)"


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
