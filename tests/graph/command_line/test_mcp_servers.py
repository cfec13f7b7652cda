"""The command line offers the tools of the MCP servers that the settings name."""

import json
import sys

from tests.daruma_command import DONE, Daruma

SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("notes", log_level="ERROR")

@server.tool()
def write(text: str) -> str:
    "Write it down."
    return f"wrote {text}"

server.run()
"""


def configured(daruma: Daruma, *command: str) -> None:
    """Name one server, and allow what it offers."""
    tools = {"mcp_servers": {"notes": {"command": command}}, "policy": {"mcp__*": "allow"}}
    (daruma.folder / "daruma.yaml").write_text(json.dumps({"tools": tools}))


def test_a_run_may_call_a_servers_tools(daruma: Daruma) -> None:
    """TL-22: in a process of its own, as a person starts it."""
    (daruma.folder / "server.py").write_text(SERVER)
    configured(daruma, sys.executable, "server.py")
    call = {"name": "mcp__notes__write", "args": {"text": "this"}}
    told = DONE | {"expect": ["wrote this"]}
    model = daruma.script(main=[{"calls": [call]}, told])

    said = daruma.run("run", "Do it", "--model", model, "--json")

    assert (said.code, said.json["status"]) == (0, "completed"), said.err


def test_a_server_that_does_not_start_is_one_line(daruma: Daruma) -> None:
    """It names the setting to correct, before anything runs."""
    configured(daruma, "/not/there")

    said = daruma("run", "Do it", "--model", daruma.script(main=[DONE]))

    assert "the MCP server 'notes' (/not/there) can not be used" in said.complaint
    assert "tools.mcp_servers.notes" in said.complaint
