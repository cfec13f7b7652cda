"""A real MCP server of ours, over all transports; it writes down each of its starts."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PICTURE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
"""A PNG of one pixel."""

SERVER: Final = f"""
import os, sys, time
from mcp.server.fastmcp import FastMCP, Context, Image
from mcp.types import (AudioContent, BlobResourceContents, EmbeddedResource, ImageContent,
                       ResourceLink, TextContent, TextResourceContents, ToolAnnotations)

log, how, port, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
server = FastMCP("s", log_level="ERROR")
looks = ToolAnnotations(readOnlyHint=True)

with open(log, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
if wanted and how == "stdio" and os.environ.get("NOTES_KEY") != wanted:
    sys.exit(f"NOTES_KEY is {{os.environ.get('NOTES_KEY')}}")

@server.tool(annotations=looks)
def pid() -> str:
    "Say which process this is."
    return str(os.getpid())

@server.tool()
def die(words: str) -> str:
    "Fail for good."
    print(words, file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
def fail(words: str) -> str:
    "Fail, and say all that there is to say."
    raise ValueError(f"{{words}} {{sys.argv}} {{dict(os.environ)}}")

@server.tool(annotations=looks)
def hang(seconds: float) -> str:
    "Take long, once somebody has heard of it."
    open(log + ".hangs", "w").close()
    time.sleep(seconds)
    return "late"

@server.tool(annotations=looks)
def picture() -> list[TextContent | ImageContent]:
    "Draw."
    return [TextContent(type="text", text="drawn"),
            ImageContent(type="image", data="{PICTURE}", mimeType="image/png")]

@server.tool(annotations=looks)
def parts() -> list[TextContent | AudioContent | ResourceLink | EmbeddedResource]:
    "Say it in all forms."
    text = TextResourceContents(uri="note://1", mimeType="text/plain", text="what is noted")
    blob = BlobResourceContents(uri="file:///a.pdf", mimeType="application/pdf", blob="AAAA")
    return [AudioContent(type="audio", data="AAAA", mimeType="audio/wav"),
            ResourceLink(type="resource_link", uri="note://2", name="two", description="more"),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob)]

@server.resource("note://{{number}}")
def note(number: str) -> str:
    "A note."
    return f"note number {{number}}"

if how == "stdio":
    server.run()
else:
    import uvicorn
    app = server.sse_app() if how == "sse" else server.streamable_http_app()

    async def checked(scope, receive, send):
        sent = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and wanted and sent != wanted:
            await send({{"type": "http.response.start", "status": 401, "headers": []}})
            body = f"{{sent}} is not what is known".encode()
            await send({{"type": "http.response.body", "body": body}})
        else:
            await app(scope, receive, send)

    uvicorn.run(checked, fd=port, log_level="error")
"""


class McpServerOfOurs:
    """A server's script, and the processes that were started of it."""

    def __init__(self, folder: Path) -> None:
        self.script, self._log = folder / "server.py", folder / "started"
        folder.mkdir(exist_ok=True)
        self.script.write_text(SERVER)
        os.mkfifo(f"{self._log}.hangs")

    def argv(self, how: str = "stdio", listener: int = 0, wanted: str = "") -> list[str]:
        """Return what starts it; ``wanted`` is what it has to be given."""
        return [sys.executable, str(self.script), str(self._log), how, str(listener), wanted]

    def setting(self, wanted: str = "", **given: Any) -> dict[str, Any]:
        """Return it as everybody writes it."""
        program, *args = self.argv(wanted=wanted)
        return {"command": program, "args": args, **given}

    @property
    def started(self) -> list[int]:
        """The processes that were started, oldest first."""
        return [int(each) for each in self._log.read_text().split()] if self._log.exists() else []

    @property
    def alive(self) -> list[int]:
        """Those of them that run."""
        return [pid for pid in self.started if Path(f"/proc/{pid}").exists()]

    def hear_of_hang(self) -> None:
        """Wait until its call that takes long has begun. Blocks."""
        Path(f"{self._log}.hangs").read_bytes()

    @contextmanager
    def listening(self, how: str, wanted: str = "") -> Iterator[str]:
        """Run it over HTTP; yield its address, which listens already."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            fd, port = listener.fileno(), listener.getsockname()[1]
            process = subprocess.Popen(self.argv(how, fd, wanted), pass_fds=[fd])
        try:
            yield f"http://127.0.0.1:{port}/{'sse' if how == 'sse' else 'mcp'}"
        finally:
            process.kill()
            process.wait()
