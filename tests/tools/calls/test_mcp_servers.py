"""MCP servers as everybody writes them: over all transports, with keys in variables (FA-11)."""

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from tests.mcp_servers import McpServerOfOurs

from daruma.state.settings import McpServer
from daruma.tools.calls import Surroundings, mcp_tools, open_mcp_tools, wrap_tool
from daruma.tools.calls._mcp import McpUnavailable
from daruma.tools.calls._mcp_servers import Server, expand_variables, literal_secrets
from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.text import mask_keys, read_live_values

CANARY = "canary-of-notes-7"


@pytest.fixture
def server(tmp_path: Path) -> McpServerOfOurs:
    return McpServerOfOurs(tmp_path / "server")


async def call(tools: list[BaseTool], name: str, **args: Any) -> str:
    (tool,) = (each for each in tools if each.name == f"mcp__s__{name}")
    return await wrap_tool(tool).run(args, Surroundings())


# --- How it is spoken to.


@pytest.mark.long
@pytest.mark.parametrize("how", ["http", "sse"])
async def test_headers_reach_a_server(
    how: str, server: McpServerOfOurs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable's value does, over both transports; without one the server says no."""
    monkeypatch.setenv("NOTES_TOKEN", CANARY)
    with server.listening(how, f"Bearer {CANARY}") as url:
        setting: dict[str, Any] = {
            "url": url,
            "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"},
        }
        async with open_mcp_tools({"s": setting}) as tools:
            assert await call(tools, "pid") == str(server.started[0])
        named = setting | {"type": {"http": "streamable-http"}.get(how, how)}
        assert await call(await mcp_tools({"mcpServers": {"s": named}}), "pid")
        with pytest.raises(McpUnavailable, match=r"'s' \(127.0.0.1\) can not be used: .*401"):
            await mcp_tools({"s": {"url": url}})


@pytest.mark.long
async def test_variables_reach_a_program(
    server: McpServerOfOurs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Claude Code and VS Code write them; what a server said at its end is told."""
    monkeypatch.setenv("MY_NOTES", CANARY)
    for text in ("${MY_NOTES}", "${env:MY_NOTES}", f"${{NOT_SET:-{CANARY}}}", CANARY):
        assert expand_variables(text, "env") == CANARY
    assert await mcp_tools({"s": server.setting(CANARY, env={"NOTES_KEY": "${MY_NOTES}"})})
    with pytest.raises(McpUnavailable, match=r"Connection closed \(it said: NOTES_KEY is None\)"):
        await mcp_tools({"s": server.setting("other")})


async def test_a_variable_that_is_not_there_is_one_line() -> None:
    """It names the variable, the server, and the place."""
    given: Any
    for given, said in [
        (
            {"env": {"A": "${NOT_SET_AT_ALL}"}},
            "the variable NOT_SET_AT_ALL of its env A is not set",
        ),
        ({"args": ["${NOT_SET_AT_ALL}"]}, "the variable NOT_SET_AT_ALL of its args is not set"),
        ({"env": {"A": "${input:key}"}}, r"its env A has \$\{input:key\}: only \$\{NAME\} of"),
        ({"cwd": "${NOT_SET_AT_ALL}"}, "the variable NOT_SET_AT_ALL of its cwd"),
        ({"command": "npx -y server"}, "No such program .*: its arguments belong in args"),
    ]:
        with pytest.raises(McpUnavailable, match=f"'s' .*{said}.*tools.mcp_servers.s$") as refused:
            await mcp_tools({"s": {"command": "sh"} | given})

        assert "\n" not in str(refused.value)
    there = {"url": "http://127.0.0.1:9/x", "headers": {"A": "${NOT_SET_AT_ALL}"}}
    with pytest.raises(McpUnavailable, match="NOT_SET_AT_ALL of its header A is not set"):
        await mcp_tools({"s": there})


# --- What is never shown (SE-08).

SECRET: Mapping[str, dict[str, Any]] = {
    "env": {"command": "x", "env": {"API_KEY": CANARY}},
    "option": {"command": "x", "args": ["--api-key", CANARY]},
    "option with a sign": {"command": ["x", f"--token={CANARY}"]},
    "variable in args": {"command": "docker", "args": ["run", "-e", f"GH_TOKEN={CANARY}", "y"]},
    "header in args": {
        "command": "npx",
        "args": ["r", "--header", f"Authorization: Bearer {CANARY}"],
    },
    "header": {"url": "http://x/mcp", "headers": {"X-Notes": CANARY}},
    "bearer": {"url": "http://x/mcp", "headers": {"Authorization": f"Bearer {CANARY}"}},
    "query": {"url": f"http://x/mcp?api_key={CANARY}"},
    "password": {"url": f"http://me:{CANARY}@x/mcp"},
}


def test_a_literal_key_is_known_and_not_part_of_what_is_pinned() -> None:
    """SE-06: a new key is no other server; settings that anybody may read stay readable."""
    env = {"LOG_LEVEL": "debug", "REGION": "eu-west-1", "HOST": "api.example.com"}
    plain = {"command": "npx", "args": ["-y", "server@1.2.3", "/data/notes"], "env": env}
    assert literal_secrets(McpServer.model_validate(plain)) == []
    for where in SECRET:
        setting = McpServer.model_validate(SECRET[where])
        text = repr(SECRET[where]).replace(CANARY, "another-key-of-notes-8")
        other = McpServer.model_validate(eval(text))  # noqa: S307 - what was written above
        one, two = Server("s", setting), Server("s", other)

        assert CANARY in literal_secrets(setting)
        assert CANARY not in repr((one.command, one.rest))
        assert (one.command, one.rest) == (two.command, two.rest)


def test_what_starts_a_server_is_pinned() -> None:
    """SE-06: command, arguments, folder, and the names of its variables; not their values."""
    given = {"command": "x", "args": ["a"], "env": {"A": "1"}}

    def pin(**changed: Any) -> object:
        server = Server("s", McpServer.model_validate(given | changed))
        return server.command, server.rest

    assert pin(env={"A": "2"}) == pin()
    pins = [pin(args=["b"]), pin(cwd="/srv"), pin(env={"A": "1", "B": "2"}), pin(command="y")]
    assert pin() not in pins


@pytest.mark.long
async def test_a_servers_last_words_hide_keys(
    server: McpServerOfOurs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In results, errors, at its end and in the logs of the libraries."""
    monkeypatch.setenv("MY_NOTES", CANARY)
    setting = server.setting(CANARY, env={"NOTES_KEY": "${MY_NOTES}"})
    async with open_mcp_tools({"s": setting}) as tools:
        with pytest.raises(ToolError, match=r"\[key\]") as failed:
            await call(tools, "fail", words="no")
        with pytest.raises(OutcomeUnknown, match=r"\(it said: I am \[key\]\)") as died:
            await call(tools, "die", words=f"I am {CANARY}")
        wrong = server.setting("other", env={"NOTES_KEY": "${MY_NOTES}"})
        with pytest.raises(McpUnavailable, match=r"it said: NOTES_KEY is \[key\]") as refused:
            await mcp_tools({"s": wrong})
    logging.getLogger("mcp.client.stdio").warning("a line with %s", CANARY)

    told = repr((failed.value, died.value, refused.value)) + caplog.text
    assert CANARY not in told
    assert "a line with [key]" in caplog.text


def test_a_variable_of_every_process_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder, say, is in every path."""
    monkeypatch.setenv("HOME", "/home/somebody-else")
    assert expand_variables("${HOME}/x", "args") == "/home/somebody-else/x"
    read_live_values()

    assert mask_keys("/home/somebody-else") == "/home/somebody-else"


# --- What reaches the model.

ODD_SERVER = """
import json, sys
print("Listening on port 3000")
sys.stdout.buffer.write(b"\\xff\\xfe no UTF-8\\n")
sys.stdout.flush()
schemas = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    said = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        },
        "tools/list": {
            "tools": [{"name": f"odd{n}", "inputSchema": each} for n, each in enumerate(schemas)]
        },
        "tools/call": {"content": [], "structuredContent": {"found": "über 1"}},
    }.get(asked["method"])
    answer = {"result": said} if said else {"error": {"code": -32601, "message": "no such method"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def an_odd_server(tmp_path: Path, *schemas: Mapping[str, Any]) -> dict[str, Any]:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "server.py").write_text(ODD_SERVER)
    return {"command": sys.executable, "args": [str(folder / "server.py"), json.dumps(schemas)]}


async def test_a_server_that_keeps_few_rules_is_used(tmp_path: Path) -> None:
    """It talks beside its answers, in no UTF-8; has no resources, and says so; answers in data."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    async with open_mcp_tools({"s": an_odd_server(tmp_path, schema)}) as tools:
        assert await call(tools, "odd0", a="b") == '{"found": "über 1"}'
        assert [each.name for each in tools] == ["mcp__s__odd0"]


# Each of these stands for so many places that nobody could write them out.
TWICE = {
    f"A{each}": {"properties": {side: {"$ref": f"#/$defs/A{each + 1}"} for side in "lr"}}
    for each in range(60)
}
LAST = {"A60": {"type": "string"}}
REFERENCES: tuple[Mapping[str, Any], ...] = (
    {"n": {"$ref": "#/$defs/A0"}},
    {"n": {"$ref": "#/$defs/Nothing"}},
    {"n": {"$ref": "http://127.0.0.1:9/x.json"}},
    {"$ref": {"type": "string"}, "n": {"type": "string"}},  # a name of an argument
    {"n": {"$ref": "#/properties/n"}},
    {"n": {"$ref": "#"}},
)


async def test_a_schema_whose_references_lead_nowhere_is_used(tmp_path: Path) -> None:
    """A hang, or an error of LangChain's, else: the server itself knows what it takes."""
    parts = {"type": "object", "$defs": TWICE | LAST}
    schemas = [parts | {"properties": each} for each in REFERENCES]
    async with open_mcp_tools({"s": an_odd_server(tmp_path, *schemas)}) as tools:
        for tool in map(wrap_tool, tools):
            assert "n" in tool.parameters["properties"]
            assert "found" in await tool.run({"n": "x"}, Surroundings())
        assert len(tools) == len(REFERENCES)


async def test_all_parts_of_a_result_are_told(server: McpServerOfOurs) -> None:
    """Texts are; of what can not be shown, what it is. No address is given on to be fetched.

    What a server has beside its tools is listed and read; one that it has not is an error in its
    words.
    """
    async with open_mcp_tools({"s": server.setting()}) as tools:
        assert (await call(tools, "parts")).splitlines() == [
            "[audio/wav, 3 bytes, left out: only text and images are shown]",
            "[resource note://2: two, more]",
            "[resource note://1]",
            "what is noted",
            "[resource file:///a.pdf]",
            "[application/pdf, 3 bytes, left out: only text and images are shown]",
        ]
        listed = await call(tools, "read_resource")
        read = await call(tools, "read_resource", uri="note://7")
        with pytest.raises(ToolError, match="Unknown resource: nothing:"):
            await call(tools, "read_resource", uri="nothing://7")

    assert listed == "note://{number}: note, A note., text/plain"
    assert read == "[resource note://7]\nnote number 7"
