"""The policy's keys: what can be read, and what is a setting's error."""

from typing import Any

import pytest
from tests.parts import settings

from daruma.state.settings import PolicyKey, SettingsError, policy_key

READ = {
    "shout": PolicyKey("shout"),
    "mcp__*": PolicyKey("mcp__*"),
    "run_command(git push *)": PolicyKey("run_command", words=("git", "push"), open_end=True),
    "run_command(git 'a b')": PolicyKey("run_command", words=("git", "a b")),
    "run_command(*)": PolicyKey("run_command", words=(), open_end=True),
    "run_command(make A=1)": PolicyKey("run_command", words=("make", "A=1")),
    "run_command(cwd=sub)": PolicyKey("run_command", globs=(("cwd", "sub"),)),
    "pay(amount=1*, to=a b)": PolicyKey("pay", globs=(("amount", "1*"), ("to", "a b"))),
    "f(path={a,b}/**)": PolicyKey("f", globs=(("path", "{a,b}/**"),)),
}


@pytest.mark.parametrize("text", READ)
def test_a_key_is_read(text: str) -> None:
    """A name, the beginning of a command, or patterns of arguments."""
    assert policy_key(text) == READ[text]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "a key is NAME"),
        ("a b", "a key is NAME"),
        ("pay(", "a key is NAME"),
        ("pay(a=1)x", "a key is NAME"),
        ("pay(amount)", "not argument=pattern, and only run_command takes"),
        ("pay(a=)", "not argument=pattern"),
        ("run_command()", "no command is named"),
        ("run_command(A=1 make)", "no command is named"),
        ("run_command(path=x)", "no command is named"),
        ("run_command(git 'x)", "the command can not be read: no closing quotation"),
    ],
)
def test_a_key_that_can_not_be_read_is_named(key: str, said: str) -> None:
    """One line, before anything runs: a rule that silently never holds would be worse."""
    with pytest.raises(SettingsError) as refused:
        settings(tools={"policy": {key: "deny"}})

    assert str(refused.value).startswith(f"setting {'tools.policy.' + key!r}: {said}")
    assert "\n" not in str(refused.value)


# --- MCP servers, as everybody writes them (FA-11).

PROGRAM = {"command": "npx", "args": ["-y", "x"]}
WRITTEN: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "Claude Desktop": (PROGRAM | {"env": {"KEY": "${KEY}"}}, ("npx", "-y", "x"), "stdio"),
    "VS Code": (PROGRAM | {"type": "stdio"}, ("npx", "-y", "x"), "stdio"),
    "one list": ({"command": ["npx", "-y", "x"]}, ("npx", "-y", "x"), "stdio"),
    "numbers in YAML": (
        PROGRAM | {"args": [3000, 1.5, True]},
        ("npx", "3000", "1.5", "true"),
        "stdio",
    ),
    "an address": ({"url": "http://x/mcp"}, (), "http"),
    "an address of SSE": ({"url": "http://x/sse/"}, (), "sse"),
    "Cursor": ({"url": "http://x/sse", "type": "streamable-http"}, (), "http"),
    "Cline": ({"url": "http://x/sse", "type": "streamableHttp"}, (), "http"),
    "LangChain": ({"url": "http://x", "transport": "streamable_http"}, (), "http"),
    "nothing given": (
        PROGRAM | dict.fromkeys(("url", "env", "cwd", "headers", "type")),
        ("npx", "-y", "x"),
        "stdio",
    ),
    "Cline as it saves it": (
        PROGRAM | {"disabled": False, "autoApprove": [], "transportType": "stdio"},
        ("npx", "-y", "x"),
        "stdio",
    ),
    "Windsurf": ({"serverUrl": "http://x/mcp", "disabled": False, "alwaysAllow": []}, (), "http"),
    "Gemini": ({"httpUrl": "http://x/mcp", "trust": False}, (), "http"),
    "an address in a variable": ({"url": "${WIKI}/sse"}, (), "sse"),
    "SSE by name": ({"url": "http://x", "transport": "sse", "headers": {"A": "b"}}, (), "sse"),
}


@pytest.mark.parametrize("whose", WRITTEN)
@pytest.mark.parametrize("within", ["", "mcpServers", "servers"])
def test_a_server_is_read_as_everybody_writes_it(whose: str, within: str) -> None:
    """Also a whole file of another program, with what else it holds."""
    given, argv, transport = WRITTEN[whose]
    servers: dict[str, Any] = {"x": given}
    servers = {within: servers, "inputs": [], "globalShortcut": ""} if within else servers
    (server,) = settings(tools={"mcp_servers": servers}).tools.mcp_servers.values()

    assert (server.argv, server.transport) == (argv, transport)


def test_servers_under_both_names_are_all_read() -> None:
    """None of them is lost: a file of one program that was put into that of another."""
    servers = {"servers": {"a": PROGRAM}, "mcpServers": {"b": PROGRAM}, "c": PROGRAM, "inputs": []}
    read = settings(tools={"mcp_servers": servers}).tools.mcp_servers

    assert sorted(read) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            PROGRAM | {"disabled": True},
            "unknown setting 'tools.mcp_servers.x.disabled'; leave out",
        ),
        (
            PROGRAM | {"autoApprove": ["write"]},
            "x.autoApprove'; what runs unasked is said by tools.policy",
        ),
        (PROGRAM | {"envFile": ".env"}, "x.envFile'; name the variables in env"),
        ({"serverUrl": "http://x", "url": "http://y"}, "x.serverUrl'; write url"),
        ({"url": "http://x", "type": "http", "transport": "sse"}, "x.transport'; known here: type"),
        ({"url": "localhost:8000/mcp"}, "x': its url has to begin with http:// or https://"),
        ({"url": "ws://x/mcp"}, "x': its url has to begin with http:// or https://"),
        ({"url": " "}, "x': its url has to begin with http:// or https://"),
        ({"command": "npx", "args": "-y x"}, "x.args': write a list"),
        (PROGRAM | {"comand": "y"}, "x.comand'; did you mean 'command'"),
        (PROGRAM | {"url": "http://x"}, "x': an MCP server needs a command or a url, one of them"),
        ({"args": ["x"]}, "x': an MCP server needs a command or a url"),
        ({"command": "", "args": ["x"]}, "x': an MCP server needs a command or a url"),
        (
            {"url": "http://x", "env": {"KEY": "hush-hush"}},
            "x': args, env and cwd go with a command",
        ),
        (PROGRAM | {"headers": {"A": "hush-hush"}}, "x': headers go with a url"),
        (PROGRAM | {"type": "sse"}, "x': type sse goes with a url"),
        ({"url": "http://x", "type": "stdio"}, "x': type stdio goes with a command"),
        ({"url": "http://x", "type": "websocket"}, "x.type': Input should be 'stdio', 'http' or"),
        (PROGRAM | {"cwd": "here"}, "x': cwd has to be a whole path"),
        (PROGRAM | {"env": {"KEY": ["hush-hush"]}}, "x.env.KEY': Input should be a valid string"),
    ],
)
@pytest.mark.parametrize("within", ["", "mcpServers"])
def test_a_server_that_can_not_be_meant_is_one_line(
    given: dict[str, Any], said: str, within: str
) -> None:
    """With the key as it is written, and never a value: that may be a key (SE-08)."""
    servers = {within: {"x": given}} if within else {"x": given}
    with pytest.raises(SettingsError) as refused:
        settings(tools={"mcp_servers": servers})

    assert said in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "\n" not in str(refused.value)
