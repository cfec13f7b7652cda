"""Tools of MCP servers, by the ecosystem's adapter (TL-22), which is an extra."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from pydantic import PrivateAttr

from daruma.state.errors import DarumaError
from daruma.state.settings import McpServer, Settings
from daruma.tools.calls._mcp_servers import (
    START_SECONDS,
    McpServers,
    Server,
    StartFailed,
    ask_server,
    is_refusal,
    reason_of,
)
from daruma.tools.calls._tool import Effect, Surroundings, Tool
from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.text import mask_keys

if TYPE_CHECKING:
    from langchain_mcp_adapters.interceptors import MCPToolCallRequest
    from mcp import ClientSession
    from mcp.types import CallToolResult, ContentBlock, Resource, ResourceLink, ResourceTemplate
    from mcp.types import Tool as McpTool

    Answer = Callable[[MCPToolCallRequest, ClientSession], Awaitable[CallToolResult]]


Run = Callable[[Mapping[str, Any], Surroundings], Awaitable[str]]

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64
"""Characters of a name, and which ones, by OpenAI's and Anthropic's interfaces."""

KEPT = ("config", "run_manager", "self")
"""Names that a ``StructuredTool`` has for its own arguments: it drops, or trips over, a model's."""


class McpUnavailable(DarumaError):
    """Raised when a server's tools can not be had; names the server and what to do."""


async def mcp_tools(
    servers: Mapping[str, McpServer | Mapping[str, Any]], workspace: Path | None = None
) -> list[BaseTool]:
    """Ask each server for its tools, which are named ``mcp__SERVER__TOOL``.

    A server is ended then, and started again by each run that calls it, once for all its calls
    (FA-11); within :func:`open_mcp_tools` it goes on running. Its program is none of the
    ``workspace`` (without one: of the current folder), where tasks work, and runs in / unless the
    server has a folder by name; what it runs from can not be written by tasks of this process from
    then on (SE-01, SE-05).

    Servers are written as in the settings: ``{"command": "npx", "args": [...], "env": {...}}`` or
    ``{"url": ..., "headers": {...}}``, or as the ``mcpServers`` of a file. Raises
    :class:`~daruma.state.settings.SettingsError` for one that is neither, and
    :class:`McpUnavailable` without the adapter, and for the first server that does not start or
    answer within ``START_SECONDS``.
    """
    return await _tools(servers, workspace, None)


@asynccontextmanager
async def open_mcp_tools(
    servers: Mapping[str, McpServer | Mapping[str, Any]], workspace: Path | None = None
) -> AsyncIterator[list[BaseTool]]:
    """Yield the tools of servers that go on running: one of each for all runs meanwhile.

    That holds for runs on the same event loop. Raises what :func:`mcp_tools` does.
    """
    async with McpServers() as kept:
        yield await _tools(servers, workspace, kept)


async def _tools(
    servers: Mapping[str, McpServer | Mapping[str, Any]],
    workspace: Path | None,
    kept: McpServers | None,
) -> list[BaseTool]:
    known = Settings.model_validate({"tools": {"mcp_servers": dict(servers)}}).tools.mcp_servers
    named = [Server(name, each, workspace) for name, each in known.items()]
    if kept:
        for server in named:
            kept.start(server)
    found = await asyncio.gather(*(_load(each, kept) for each in named), return_exceptions=True)
    tools: list[BaseTool] = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        tools += each
    return tools


async def _load(server: Server, kept: McpServers | None) -> list[BaseTool]:
    try:
        from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool, load_mcp_tools
    except ImportError as error:
        raise McpUnavailable(
            "tools.mcp_servers needs the MCP adapter: pip install 'daruma-agent[mcp]'"
        ) from error

    def asking(answer: "Answer") -> Any:
        async def through(request: "MCPToolCallRequest", _: object) -> "CallToolResult":
            return await ask_server(server, kept, partial(answer, request))

        return {"server_name": server.name, "tool_interceptors": [through]}

    async def listed(session: "ClientSession") -> list[BaseTool]:
        async with asyncio.timeout(START_SECONDS):
            tools = await load_mcp_tools(session, **asking(_call))
            offers = session.get_server_capabilities()
            known = await _listed(session) if offers and offers.resources else []
        if known and RESOURCES not in {each.name for each in tools}:
            how = asking(_read)
            tools.append(convert_mcp_tool_to_langchain_tool(session, _resource_tool(), **how))
        return tools

    try:
        tools = await ask_server(server, kept, listed)
    except Exception as error:  # noqa: BLE001 - it may quote keys, and is not chained
        setting = server.setting
        words = [Path(each) for each in setting.argv[1:] if len(each) < 256 and "\0" not in each]
        files = (each for each in words if not each.is_absolute() and each.is_file())
        relative = not setting.cwd and next(files, None)
        hint = " (it is started in /: write paths whole, or set cwd)" if relative else ""
        raise McpUnavailable(
            f"the MCP server {server.name!r} ({server.where}) can not be used: {reason_of(error)}"
            f"{hint}; correct or remove tools.mcp_servers.{server.name}"
        ) from None
    return [_Served.of(each, server, kept) for each in tools]


class _Served(StructuredTool):
    """A tool of the adapter's that knows its server, which no tracer is told."""

    _server: Server = PrivateAttr()
    _kept: McpServers | None = PrivateAttr()

    @classmethod
    def of(cls, tool: BaseTool, server: Server, kept: McpServers | None) -> "_Served":
        given = {field: getattr(tool, field) for field in type(tool).model_fields}
        served = cls(**given | {"name": f"mcp__{server.name}__{tool.name}"})
        served._server, served._kept = server, kept
        return served

    async def again(self) -> BaseTool:
        """Ask the server for the same tool. Raises ``ToolError`` where there is none any more."""
        try:
            tools = await _load(self._server, self._kept)
        except McpUnavailable as error:
            raise ToolError(str(error)) from error
        if now := next((each for each in tools if each.name == self.name), None):
            return now
        raise ToolError(f"the MCP server has no tool {self.name!r} any more")

    @property
    def server(self) -> Server:
        """What it comes from."""
        return self._server


# --- What a server answers, as a model can read it.

RESOURCES: Final = "read_resource"
"""The tool for what a server has beside its tools: they often give the address of it alone."""

_PAGES: Final = 10


def _resource_tool() -> "McpTool":
    from mcp.types import Tool as Listed
    from mcp.types import ToolAnnotations

    return Listed(
        name=RESOURCES,
        description="Read a resource of this server by its URI; without one, list them.",
        inputSchema={"type": "object", "properties": {"uri": {"type": "string"}}},
        annotations=ToolAnnotations(readOnlyHint=True),
    )


async def _call(request: "MCPToolCallRequest", session: "ClientSession") -> "CallToolResult":
    """Call a tool; what it says is without keys from here on (SE-08)."""
    from mcp.types import TextContent

    result = await session.call_tool(request.name, request.args)
    content = [_readable(each) for each in result.content]
    if not content and result.structuredContent:
        text = json.dumps(result.structuredContent, ensure_ascii=False)
        content = [TextContent(type="text", text=text)]
    return mask_keys(result.model_copy(update={"content": content}))


async def _read(request: "MCPToolCallRequest", session: "ClientSession") -> "CallToolResult":
    from mcp.types import CallToolResult, EmbeddedResource, TextContent
    from pydantic import AnyUrl

    if uri := str(request.args.get("uri") or ""):
        parts = (await session.read_resource(AnyUrl(uri))).contents
        blocks = [EmbeddedResource(type="resource", resource=each) for each in parts]
        return mask_keys(CallToolResult(content=[_readable(each) for each in blocks]))
    text = "\n".join(await _listed(session)) or "This server has no resources."
    return mask_keys(CallToolResult(content=[TextContent(type="text", text=text)]))


async def _listed(session: "ClientSession") -> list[str]:
    """Return a line for each resource that a server has, and for each kind of them."""
    from mcp import McpError

    lines: list[str] = []
    with suppress(McpError):  # some say that they have them, and do not know the request
        lines += [_about(each.uri, each) async for each in _resources(session)]
    with suppress(McpError):  # not every server has them
        known = (await session.list_resource_templates()).resourceTemplates
        lines += [_about(each.uriTemplate, each) for each in known]
    return lines


async def _resources(session: "ClientSession") -> "AsyncIterator[Resource]":
    from mcp.types import PaginatedRequestParams

    cursor = None
    for _ in range(_PAGES):
        page = await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
        for each in page.resources:
            yield each
        if not (cursor := page.nextCursor):
            return


def _about(uri: object, each: "Resource | ResourceTemplate | ResourceLink") -> str:
    about = [each.title or each.name, each.description, each.mimeType]
    return f"{uri}: {', '.join(part for part in about if part)}"


def _readable(block: "ContentBlock") -> "ContentBlock":
    """Return a part of a result as a text or an image: no provider reads more of a tool's.

    An address is not looked up: neither here nor by a provider that would be given it.
    """
    from mcp.types import (
        AudioContent,
        BlobResourceContents,
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        TextContent,
    )

    if isinstance(block, AudioContent):
        return TextContent(type="text", text=_left_out(block.mimeType, block.data))
    if isinstance(block, ResourceLink):
        return TextContent(type="text", text=f"[resource {_about(block.uri, block)}]")
    if not isinstance(block, EmbeddedResource):
        return block
    held = block.resource
    if not isinstance(held, BlobResourceContents):
        return TextContent(type="text", text=f"[resource {held.uri}]\n{held.text}")
    kind = held.mimeType or "data"
    if kind.startswith("image/"):
        return ImageContent(type="image", data=held.blob, mimeType=kind)
    return TextContent(type="text", text=f"[resource {held.uri}]\n{_left_out(kind, held.blob)}")


def _left_out(kind: str, data: str) -> str:
    return f"[{kind}, {len(data) * 3 // 4} bytes, left out: only text and images are shown]"


def is_mcp_tool(tool: BaseTool) -> bool:
    """Whether the adapter made a tool, here or in the application."""
    module = str(getattr(getattr(tool, "coroutine", None), "__module__", ""))
    return module.partition(".")[0] == "langchain_mcp_adapters"


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
    server = tool.server if isinstance(tool, _Served) else None
    effect: Effect = "none" if hints.get("readOnlyHint") is True else "external"
    name = usable_name(tool.name)

    async def run_there(args: Mapping[str, Any], surroundings: Surroundings) -> str:
        if lost := [each for each in (*KEPT, "runtime") if each in args]:
            raise ToolError(f"the argument {lost[0]!r} can not be passed on to an MCP server")
        try:
            return await run(args, surroundings)
        except (ToolError, GraphBubbleUp):
            raise
        except StartFailed as error:
            raise ToolError(f"the MCP server could not be started: {reason_of(error)}") from None
        except Exception as error:
            if is_refusal(error):
                raise ToolError(reason_of(error)) from None
            said = f"the MCP server broke off {name}: {reason_of(error)}"
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
        server=server.command if server else (),
        server_rest=server.rest if server else (),
        look_again=look_again,
    )


def usable_name(name: str) -> str:
    """Return a name that providers take: refused characters become ``_``, a long one is cut.

    A cut name ends in a digest of the whole one, so that no two become one.
    """
    safe = _REFUSED.sub("_", name) or "_"
    if len(safe) <= _LONGEST:
        return safe
    return f"{safe[: _LONGEST - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
