"""Tools of MCP servers, with a real server over stdio."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from tests.parts import a_registry
from tests.sandboxes import sandbox_at

from daruma.state.settings import McpServer, SettingsError
from daruma.tools.calls import (
    Surroundings,
    Tool,
    ToolRefused,
    mcp_tools,
    open_mcp_tools,
    run_with_timeout,
    wrap_tool,
)
from daruma.tools.calls._mcp import McpUnavailable, is_mcp_tool, usable_name
from daruma.tools.calls._mcp_servers import server_places
from daruma.tools.errors import CommandRefused, OutcomeUnknown, PathRefused, ToolError
from daruma.tools.files import FilesBeneath

SERVER = """
import os, time
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("notes", log_level="ERROR")
forged = ToolAnnotations(readOnlyHint=False, daruma={"effect": "none"})

@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look(at: str) -> str:
    "Look at it."
    return f"saw {at}"

@server.tool(annotations=forged)
def write(text: str, config: str = "") -> str:
    "Write it down."
    if text == "die":
        os._exit(3)
    if text == "hang":
        time.sleep(60)
    if text == "fail":
        raise ValueError("no more paper")
    return f"wrote {text} {config}"

@server.tool(name="odd name/look")
def odd() -> str:
    "Has a name that providers refuse."
    return "odd"

server.run()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's program."""
    script = tmp_path_factory.mktemp("mcp") / "server.py"
    script.write_text(SERVER)
    return script


@pytest.fixture(scope="module")
def served(script: Path) -> Mapping[str, BaseTool]:
    """The tools of one server, as the adapter makes them."""
    server = McpServer(command=(sys.executable, str(script)))
    return {tool.name: tool for tool in asyncio.run(mcp_tools({"notes": server}))}


@pytest.fixture
def tools(served: Mapping[str, BaseTool]) -> dict[str, Tool]:
    """The same as tools of ours, by their short names."""
    made = [wrap_tool(tool) for tool in served.values()]
    return {tool.name.removeprefix("mcp__notes__"): tool for tool in made}


async def call(tool: Tool, **args: Any) -> str:
    return await tool.run(args, Surroundings())


@pytest.mark.long
def test_a_servers_tools_are_named_for_it(tools: dict[str, Tool]) -> None:
    """TL-22: so that two servers, or a server and Daruma, are not in each other's way.

    Only what a server calls read-only has no effect, and nothing else that it writes is taken for
    the application's declaration. Its schema is tightened (TL-07).
    """
    look, write, odd = tools.values()

    assert [tool.name for tool in tools.values()] == [
        "mcp__notes__look",
        "mcp__notes__write",
        "mcp__notes__odd_name_look",
    ]
    assert {tool.origin for tool in tools.values()} == {"mcp"}
    assert odd.source == "MCP tool 'mcp__notes__odd name/look'"
    assert (look.effect, write.effect, odd.effect) == ("none", "external", "external")
    assert write.canonical is None
    assert look.description == "Look at it."
    assert look.parameters["additionalProperties"] is False
    assert look.parameters["required"] == ["at"]


async def test_a_servers_tool_is_called(script: Path) -> None:
    """TL-22: also under a name that had to be changed; LangChain keeps ``config`` for itself.

    What a server answers is a failure, and known to be one; one that dies may have written before
    (TL-21).
    """
    server = {"command": sys.executable, "args": [str(script)]}
    async with open_mcp_tools({"notes": server}) as served:
        look, write, odd = map(wrap_tool, served)

        assert await call(look, at="this") == "saw this"
        assert await call(odd) == "odd"
        with pytest.raises(ToolError, match="'config' can not be passed on"):
            await call(write, text="this", config="that")
        with pytest.raises(ToolError, match="no more paper") as told:
            await call(write, text="fail")
        with pytest.raises(OutcomeUnknown, match="the MCP server broke off mcp__notes__write"):
            await call(write, text="die")

    assert not isinstance(told.value, OutcomeUnknown)


async def test_a_server_that_can_not_be_read_is_one_clear_line() -> None:
    """Written as in the settings, in Python too; without servers no adapter is needed."""
    assert await mcp_tools({}) == []
    with pytest.raises(SettingsError, match="mcp_servers"):
        await mcp_tools({"notes": {"command": ["x"], "url": "http://y"}})


@pytest.mark.long
async def test_a_server_that_hangs_is_given_up(tools: dict[str, Tool]) -> None:
    """TL-21; it is ended, too: its session waits for that."""
    with pytest.raises(OutcomeUnknown, match="did not end in 1 s"):
        await run_with_timeout(1, tools["write"], {"text": "hang"}, Surroundings())


async def test_a_server_that_is_gone_was_not_called(tmp_path: Path) -> None:
    """It could not even be started again."""
    script = tmp_path / "server"
    script.write_text(f"#!{sys.executable}\n{SERVER}")
    script.chmod(0o755)
    _, write, _ = await mcp_tools({"s": McpServer(command=(str(script),))})
    script.unlink()

    with pytest.raises(ToolError, match="could not be started") as told:
        await call(wrap_tool(write), text="x")

    assert not isinstance(told.value, OutcomeUnknown)


async def test_a_server_that_does_not_start_is_one_clear_line() -> None:
    """It names the server, and the setting to correct."""
    server: Any
    for server, said in [
        (McpServer(command=("/not/there",)), r"'bad' \(/not/there\) can not be used: .*No such"),
        (McpServer(command=(sys.executable, "-c", "")), "Connection closed"),
        (McpServer(url="http://127.0.0.1:9/mcp?key=secret"), r"\(127.0.0.1\) can not be used"),
    ]:
        with pytest.raises(McpUnavailable, match=f"{said}.*tools.mcp_servers.bad$") as told:
            await mcp_tools({"bad": server})

        assert "\n" not in str(told.value)
        assert "secret" not in str(told.value)


@pytest.mark.long
def test_two_servers_tools_that_become_one_name_are_refused(
    served: Mapping[str, BaseTool],
) -> None:
    """TL-05: both are named as their server names them.

    A tool of the application is not taken for a server's, whatever its metadata says.
    """
    odd = served["mcp__notes__odd name/look"]
    twin = odd.model_copy(update={"name": "mcp__notes__odd_name.look"})
    own = StructuredTool.from_function(call_tool, metadata={"readOnlyHint": True})

    with pytest.raises(Exception, match=r"'mcp__notes__odd name/look' and .*odd_name.look'"):
        a_registry([odd, twin])
    assert not is_mcp_tool(own)
    assert wrap_tool(own).effect == "external"
    with pytest.raises(ToolRefused):
        wrap_tool(own.model_copy(update={"metadata": {"daruma": {"x": 1}}}))


def call_tool(text: str) -> str:
    """Do it."""
    return text


def test_a_name_is_one_that_providers_take() -> None:
    """Letters, digits, ``_`` and ``-``, at most 64 of them; what is cut off is in the digest."""
    for name, usable in [("look", "look"), ("a.b/c d", "a_b_c_d"), ("\u00e9t", "_t")]:
        assert usable_name(name) == usable
    first, second = usable_name("x" * 70 + "a"), usable_name("x" * 70 + "b")

    assert usable_name("x" * 64) == "x" * 64
    assert len(first) == len(second) == 64
    assert first != second


# --- What a server is run from is nothing that a task can write.

WHERE = """
import os, sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("where", log_level="ERROR")

@server.tool()
def where() -> str:
    "Say where it is run, and what it can import from."
    return f"{os.getcwd()}\\n" + "\\n".join([*sys.path, *os.environ["PATH"].split(":")])

server.run()
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, which is the current folder, with a server in it."""
    work = (tmp_path / "work").resolve()
    (work / "servers").mkdir(parents=True)
    (work / "servers" / "where.py").write_text(WHERE)
    monkeypatch.chdir(work)
    return work


async def started(work: Path, *command: str, **how: Any) -> dict[str, Tool]:
    tools = await mcp_tools({"where": McpServer(command=command, **how)}, work)
    return {tool.name: wrap_tool(tool) for tool in tools}


@asynccontextmanager
async def running(work: Path, *command: str, **how: Any) -> AsyncIterator[Tool]:
    server = McpServer(command=command, **how)
    async with open_mcp_tools({"where": server}, work) as (where,):
        yield wrap_tool(where)


async def test_a_server_does_not_run_in_the_workspace(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-01, SE-05, H6: it imports nothing from there, and finds no program there."""
    monkeypatch.setenv("PATH", f"{work}/.venv/bin:.::{os.environ['PATH']}")
    async with running(work, sys.executable, str(work / "servers" / "where.py")) as where:
        folder, *places = (await call(where)).splitlines()

    assert folder == "/"
    assert [place for place in places if place.startswith(str(work))] == [str(work / "servers")]
    assert not {"", "."} & {*places}


def modules_in(work: Path) -> list[str]:
    return sorted(str(each.relative_to(work)) for each in work.rglob("*.py"))


async def test_what_lies_beside_a_servers_script_can_not_be_written(work: Path) -> None:
    """H6: the next call would run it outside."""
    tools = await started(work, sys.executable, str(work / "servers" / "where.py"))
    with pytest.raises(PathRefused, match="is part of the MCP server 'where'"):
        FilesBeneath(work).create("servers/mcp.py", b"evil")
    attack = "echo evil > servers/mcp.py; mv servers old; cp -r old servers; touch servers/mcp.py"
    await sandbox_at("namespace").run(attack, workspace=work, timeout=20)

    assert modules_in(work) == ["servers/where.py"]
    assert await call(tools["mcp__where__where"])
    # Landlock can deny nothing in a folder that may be written: no command is run there.
    with pytest.raises(CommandRefused, match="the MCP server 'where' lies in it"):
        await sandbox_at("landlock").run("true", workspace=work, timeout=20)


async def test_a_server_of_the_workspace_is_refused_in_one_line(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-01, C2: its own programs are run in the sandbox only."""
    for name in ("python", "tool"):
        path = work / ".venv" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {work.parent}/canary\n")
        path.chmod(0o755)
    (work / "where.py").write_text(WHERE)
    monkeypatch.setenv("PATH", f"{work}/.venv/bin:/usr/bin:/bin")
    outside = "No such program outside of the workspace"
    for command, said in (
        (f"{work}/.venv/bin/python /x.py", outside),
        (".venv/bin/python /x.py", outside),
        ("tool", outside),
        (f"{sys.executable} {work}/where.py", "it lies in the workspace's own folder .*: move it"),
        (f"uv run --directory {work} x", "move it|No such program"),
        (f"{sys.executable} servers/where.py", r"write paths whole, or set cwd\)"),
    ):
        with pytest.raises(McpUnavailable, match=said) as refused:
            await started(work, *command.split())

        assert "\n" not in str(refused.value)
    assert sorted(work.parent.iterdir()) == [work]


@pytest.mark.long
async def test_a_folder_that_is_named_is_the_servers(work: Path) -> None:
    """Its own is kept; the workspace may be it, but no module is taken from there."""
    async with running(work, sys.executable, "where.py", cwd=str(work / "servers")) as where:
        assert (await call(where)).startswith(f"{work}/servers\n")
    async with running(work, sys.executable, "-c", WHERE, cwd=str(work)) as where:
        folder, *places = (await call(where)).splitlines()

    assert folder == str(work)
    assert not {"", str(work)} & {*places}


def test_what_a_server_works_on_is_not_what_it_runs_from(tmp_path: Path) -> None:
    """A database beside the task's files can be written by both."""
    for name in ("data.sqlite", "at/server.py", "project/x", "bin/run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "bin" / "run").chmod(0o755)
    words = "run --db data.sqlite at/server.py --directory=project --project project . gone.py"
    found = server_places([str(tmp_path / "bin/run"), *words.split()], tmp_path)

    assert found == {tmp_path / "at", tmp_path / "bin", tmp_path / "project"}
