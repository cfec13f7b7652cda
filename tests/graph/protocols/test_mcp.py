"""Daruma as an MCP server, with the client of the ``mcp`` package."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.shared.exceptions import McpError
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification
from tests.graph.command_line.conftest import daruma
from tests.graph.protocols.clients import client_threads, folder_in
from tests.spec.face import Daruma, call, calls, command, plan, say

from daruma.graph.protocols import ClientThreads
from daruma.graph.protocols._mcp import mcp_server

__all__ = ["daruma"]

SCRIPT = {"plan": [plan("Do it")], "main": [calls(command("rm -f gone", "c1")), say("Made.")]}


async def called(session: ClientSession, tool: str, /, **args: Any) -> dict[str, Any]:
    """Call a tool that goes well."""
    done = await session.call_tool(tool, args)
    assert not done.isError, done.content
    assert done.structuredContent is not None
    return done.structuredContent


async def refused(session: ClientSession, tool: str, /, **args: Any) -> str:
    """Call a tool that is refused, in one line."""
    done = await session.call_tool(tool, args)
    (said,) = done.content
    assert done.isError
    assert said.type == "text"
    assert "\n" not in said.text
    return said.text


def connected(
    threads: ClientThreads, folder: str
) -> AbstractAsyncContextManager[ClientSession, bool | None]:
    """Connect a client in this process."""
    return create_connected_server_and_client_session(mcp_server(threads, folder))


@asynccontextmanager
async def served(url: str, folder: str, script: Any) -> AsyncIterator[ClientSession]:
    """Serve what plays a script, and connect a client."""
    async with client_threads(url, script) as threads, connected(threads, folder) as session:
        yield session


async def test_a_plan_is_reviewed_and_a_call_approved_by_what_they_are_named(
    postgres_url: str, tmp_path: Path
) -> None:
    """SE-03, TL-13: what does not name its question, or asks for more, changes nothing."""
    folder, heard = folder_in(tmp_path), list[str | None]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(heard) + 1, None)
        heard.append(message)

    async with served(postgres_url, folder, SCRIPT) as session:
        args = {"task": "Make it", "mode": "plan_exec"}
        asked = (await session.call_tool("run", args)).structuredContent or {}
        (review,) = asked["questions"]
        assert (asked["thread"], asked["status"], review["kind"]) == ("one", "waiting", "plan")
        assert "Do it" in review["text"]
        thread = {"thread": "one"}
        assert "waits for an answer" in await refused(session, "run", task="More", **thread)
        wrong = await refused(session, "answer", question=review["id"], reply={"x": 1}, **thread)
        assert "has the form" in wrong

        confirm = {"question": review["id"], "reply": {"decision": "confirm"}, **thread}
        done = await session.call_tool("answer", confirm, progress_callback=hear)
        (approval,) = (done.structuredContent or {})["questions"]
        assert "Do it" in heard
        (named,) = approval["approvals"]
        assert named["shown"] == "rm -f gone"
        assert "always" not in approval["reply"]
        yes = {"approval_id": "c1", "digest": named["digest"], "decision": "approve"}
        for more, why in (
            ({"always": "thread"}, "this call only"),
            ({"digest": "0"}, "the digest given"),
            ({"approval_id": "c2"}, "no approval 'c2' is open"),
        ):
            reply = {"decisions": [{**yes, **more}]}
            said = await refused(session, "answer", question=approval["id"], reply=reply, **thread)
            assert why in said
        reply = {"decisions": [yes]}
        stale = await refused(session, "answer", question=review["id"], reply=reply, **thread)
        assert "answers go by the id" in stale
        end = await called(session, "answer", question=approval["id"], reply=reply, **thread)
        shown = await called(session, "show", **thread)

    assert (end["status"], end["output"]) == ("completed, not checked", "Made.")
    assert end["questions"] == []
    assert any("$ rm -f gone" in line for line in shown["timeline"])


@pytest.mark.long
async def test_a_client_that_cancels_or_leaves_stops_the_run_which_can_be_taken_up(
    postgres_url: str, tmp_path: Path
) -> None:
    """What was cut short is in doubt, and the thread is unfinished: nothing is lost."""
    folder, begun, ended = folder_in(tmp_path), asyncio.Event(), list[str]()

    async def hang() -> str:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")
        return "unreachable"

    script = [calls(call("hang", "c1")), calls(call("hang", "c2")), say("So be it.")]
    settings: Any = {"tools": {"in_doubt": "tell"}}
    async with client_threads(postgres_url, script, [hang], **settings) as threads:
        async with connected(threads, folder) as session:
            waiting = asyncio.create_task(session.call_tool("run", {"task": "Wait"}))
            await asyncio.wait_for(begun.wait(), 20)
            number = CancelledNotificationParams(requestId=1)
            gone = CancelledNotification(method="notifications/cancelled", params=number)
            await session.send_notification(ClientNotification(gone))
            with pytest.raises(McpError, match="cancelled"):
                await waiting
            stood = await called(session, "show", thread="one")
            begun.clear()
            left = asyncio.create_task(session.call_tool("run", {"thread": "one"}))
            await asyncio.wait_for(begun.wait(), 20)
        left.cancel()
        async with connected(threads, folder) as session:
            end = await called(session, "run", thread="one")

    assert ended == ["cleaned up"] * 2
    assert (stood["status"], stood["questions"]) == ("unfinished", [])
    assert end["output"] == "So be it."


async def test_threads_of_other_folders_are_not_there(postgres_url: str, tmp_path: Path) -> None:
    """SE-03: a client gets at its own folder's threads, and names none of them anew."""
    mine, other = folder_in(tmp_path), folder_in(tmp_path, "other")
    async with served(postgres_url, mine, [say("Hello.")]) as session:
        assert (await called(session, "run", task="@chat Hi"))["output"] == "Hello."
    async with served(postgres_url, other, [say("Hello.")]) as session:
        said = [
            await refused(session, "show", thread="one"),
            await refused(session, "run", thread="one", task="@chat And?"),
            await refused(session, "answer", thread="one", question="q", reply={}),
            await refused(session, "run", thread="none"),
            await refused(session, "run"),
        ]
    assert ["no thread 'one'" in each for each in said[:3]] == [True] * 3
    assert "there is no thread 'none'" in said[3]
    assert "say what is to be done" in said[4]


@pytest.mark.long
def test_the_command_says_nothing_but_the_protocol(daruma: Daruma) -> None:
    """A client of its own process; what can not be served is one line before it begins."""
    args = ["-m", "daruma", "mcp", "--workspace", "ws", "--model"]
    args.append(daruma.script(main=[say("Hello.")]))
    server = StdioServerParameters(command=sys.executable, args=args, env=dict(os.environ))

    async def use() -> tuple[set[str], dict[str, Any]]:
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = {each.name for each in (await session.list_tools()).tools}
            return tools, await called(session, "run", task="@chat Hi", thread="t")

    tools, done = asyncio.run(use())

    assert tools == {"run", "answer", "show"}
    assert (done["status"], done["output"]) == ("completed, not checked", "Hello.")
    assert "Hello." in daruma("show", "t").out
    assert "not a folder" in daruma("mcp", "--workspace", "nowhere").complaint
    daruma.folder.joinpath("ws", "daruma.yaml").write_text("tools: {policy: {x: allow}}")
    assert "daruma trust" in daruma("mcp", "--workspace", "ws").complaint
