"""One MCP server a run, however it is called and however it ends (FA-11)."""

import asyncio
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_servers import PICTURE, McpServerOfOurs
from tests.openai_answers import Reply
from tests.openai_server import openai_server
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, phases, say

from daruma.graph.build import build_graph
from daruma.tools.calls import mcp_tools, open_mcp_tools

PID, PICTURE_OF = ({"name": f"mcp__s__{name}", "args": {}} for name in ("pid", "picture"))
HANG = call("mcp__s__hang", seconds=60)
ALLOWED = settings(tools={"policy": {"mcp__*": "allow"}}, spec_review={"enabled": False})


@pytest.fixture
def server(tmp_path: Path) -> McpServerOfOurs:
    return McpServerOfOurs(tmp_path / "server")


@pytest.fixture
def tools(server: McpServerOfOurs) -> list[Any]:
    """Its tools, for which it was started once, and ended."""
    found = asyncio.run(mcp_tools({"s": server.setting()}))
    assert len(server.started) == 1
    assert not server.alive
    return found


def answers(run: Run) -> set[int]:
    return {int(m.text) for m in run.messages if m.type == "tool"}


def test_a_run_starts_a_server_once(server: McpServerOfOurs, tools: list[Any]) -> None:
    """Also where calls run side by side, and for the tools that are called by hand then."""
    script = {"main": [calls(PID, PID, PID), calls(PID), say("Done."), calls(PID), say("Done.")]}
    run = Run(script, tools=tools, settings=ALLOWED).ask()

    assert len(server.started) == 2
    assert answers(run) == {server.started[1]}
    assert not server.alive
    assert len(answers(run.ask("Again"))) == 2
    assert len(server.started) == 3
    assert not server.alive


def test_servers_in_settings_alone_are_not_passed_by_in_silence(
    server: McpServerOfOurs, tools: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """In Python they start nothing: the tools are passed in."""
    named = settings(tools={"mcp_servers": {"s": server.setting()}})
    build_graph(RecordingModel(script={}), tools, named)
    assert caplog.text == ""
    build_graph(RecordingModel(script={}), [], named)
    assert "tools.mcp_servers starts nothing here: pass tools=await mcp_tools(" in caplog.text


@pytest.mark.long
async def test_an_asynchronous_run_starts_a_server_once(
    server: McpServerOfOurs, tools: list[Any]
) -> None:
    """It lives on the caller's loop."""
    model = RecordingModel(script={"main": [calls(PID, PID), calls(PID), say("Done.")]})
    graph = build_graph(model, tools, ALLOWED)
    state = await graph.ainvoke({"messages": [("user", "Do it")]})

    assert {m.text for m in state["messages"] if m.type == "tool"} == {str(server.started[1])}
    assert len(server.started) == 2
    assert not server.alive


@pytest.mark.long
def test_a_team_shares_a_server(server: McpServerOfOurs, tools: list[Any], tmp_path: Path) -> None:
    """PL-06: members are of one run."""
    (tmp_path / "work").mkdir()
    pair = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    script = {
        "plan": [phases(*pair)],
        "main@a": [calls(PID), say("A.")],
        "main@b": [calls(PID), say("B.")],
        "main": [say("Both.")],
    }
    run = Run(script, tools=tools, settings=ALLOWED)
    run.ask(mode="team_collab", workspace=str(tmp_path / "work"))

    assert run.result.status == "completed"
    assert len(server.started) == 2
    assert not server.alive


@pytest.mark.long
async def test_servers_that_are_kept_open_serve_all_runs(server: McpServerOfOurs) -> None:
    """Those of the command line, where a run may stop at a question several times."""
    async with open_mcp_tools({"s": server.setting()}) as tools:
        for _ in range(2):
            model = RecordingModel(script={"main": [calls(PID), say("Done.")]})
            await build_graph(model, tools, ALLOWED).ainvoke({"messages": [("user", "Do it")]})

        assert len(server.started) == 1
        assert server.alive
    assert not server.alive


@pytest.mark.long
async def test_a_cancelled_run_leaves_no_server(server: McpServerOfOurs, tools: list[Any]) -> None:
    """It does not even hear of the end of its input."""
    graph = build_graph(RecordingModel(script={"main": [calls(HANG)]}), tools, ALLOWED)
    task = asyncio.ensure_future(graph.ainvoke({"messages": [("user", "Do it")]}))
    await asyncio.to_thread(server.hear_of_hang)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not server.alive


@pytest.mark.long
def test_a_server_that_died_is_started_again(server: McpServerOfOurs, tools: list[Any]) -> None:
    """The call that it died of is not known, the next one is answered."""
    script = {"main": [calls(PID), calls(call("mcp__s__die", words="x")), calls(PID), say("Done.")]}
    run = Run(script, tools=tools, settings=ALLOWED).ask()
    first, died, last = (m.text for m in run.messages if m.type == "tool")

    assert "outcome_unknown" in died
    assert [first, last] == [str(each) for each in server.started[1:]]
    assert not server.alive


@pytest.mark.long
def test_an_approved_call_is_looked_at_on_the_same_server(
    server: McpServerOfOurs, tools: list[Any]
) -> None:
    """SE-06: it is asked for the tool once more, in the run that goes on."""
    given = settings(tools={"policy": {"mcp__*": "confirm"}})
    run = Run({"main": [calls(PID), say("Done.")]}, tools=tools, settings=given).ask()
    assert len(server.started) == 1

    run.approve()

    assert run.result.status == "completed"
    assert answers(run) == {server.started[1]}
    assert len(server.started) == 2


@pytest.mark.long
def test_images_of_a_tool_reach_the_model(tools: list[Any]) -> None:
    """FA-11: in the message that answers the call, as LangChain has them; on record too."""
    model = RecordingModel(script={"main": [calls(PICTURE_OF), say("Done.")]})
    saver = memory()
    graph = build_graph(model, tools, ALLOWED, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "Do it")]}, config)
    image = {"type": "image", "mime_type": "image/png", "base64": PICTURE}

    for messages in (model.requests[-1], graph.get_state(config).values["messages"]):
        (answer,) = (each for each in messages if each.type == "tool")
        text = "drawn\n[image 1: image/png]"
        assert answer.content == [{"type": "text", "text": text}, image]


@pytest.mark.long
def test_openai_is_sent_images_of_tools_as_the_users(
    tools: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chat interface takes them from nobody else."""
    wanted = {"name": "mcp__s__picture", "arguments": {}}
    with openai_server([Reply(calls=[wanted]), Reply("Done.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        state = build_graph("openai:m", tools, ALLOWED).invoke({"messages": [("user", "Do it")]})
        *_, result, shown = model.requests[-1]["messages"]

    assert state["result"].status == "completed"
    assert result["role"] == "tool"
    assert PICTURE not in str(result)
    assert shown["role"] == "user"
    assert shown["content"][-1]["image_url"]["url"] == f"data:image/png;base64,{PICTURE}"


KILLED = """
import asyncio, json, sys
from daruma.tools.calls import Surroundings, open_mcp_tools, wrap_tool

async def main():
    async with open_mcp_tools({"s": json.loads(sys.argv[1])}) as tools:
        (hang,) = (each for each in tools if each.name == "mcp__s__hang")
        await wrap_tool(hang).run({"seconds": 600}, Surroundings())

asyncio.run(main())
"""


@pytest.mark.long
def test_a_killed_process_leaves_no_server(server: McpServerOfOurs) -> None:
    """Not even one that is at work, and so does not hear that its input has ended."""
    argv = [sys.executable, "-c", KILLED, json.dumps(server.setting())]
    with subprocess.Popen(argv) as process:
        server.hear_of_hang()
        (pid,) = server.started
        served = os.pidfd_open(pid)
        process.kill()

    ended = select.poll()
    ended.register(served, select.POLLIN)
    assert ended.poll(30_000)
    os.close(served)
