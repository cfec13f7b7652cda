"""Daruma as an agent of editors, with the client of the ``agent-client-protocol`` package."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from tests.graph.command_line.conftest import daruma
from tests.graph.protocols.clients import client_threads, folder_in
from tests.late import Late
from tests.spec.face import Daruma, call, calls, command, create, plan, say

from daruma.graph.protocols import ClientThreads

__all__ = ["daruma"]

acp: Any = Late("acp")

SCRIPT = {
    "plan": [plan("Do it")],
    "main": [
        {"say": "<think>Easy.</think>I make it.", **calls(create("a.txt", "hello", "c1"))},
        calls({"name": "runCommand", "args": "{'command': 'rm -f gone',}", "id": "c2"}),
        say("Made."),
    ],
}


@dataclass
class Editor:
    """The editor's side: keeps what it is told, and chooses by the beginning of a name."""

    choices: list[str] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    async def session_update(self, update: Any, **_: Any) -> None:
        self.told.append(update)

    async def request_permission(self, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append((tool_call.title, [each.kind for each in options]))
        wanted = self.choices.pop(0)
        named = [each.option_id for each in options if each.name.startswith(wanted)]
        if not wanted:
            chosen = acp.schema.DeniedOutcome(outcome="cancelled")
        else:
            option = named[0] if named else wanted
            chosen = acp.schema.AllowedOutcome(outcome="selected", option_id=option)
        return acp.RequestPermissionResponse(outcome=chosen)

    def texts(self, kind: str) -> list[str]:
        """What was told in updates of one kind."""
        return [each.content.text for each in self.told if each.session_update == kind]

    @property
    def messages(self) -> list[str]:
        return self.texts("agent_message_chunk")

    @property
    def tools(self) -> list[tuple[str, str]]:
        """Ids and states of calls, in turn."""
        found = [each for each in self.told if each.session_update.startswith("tool_call")]
        return [(each.tool_call_id, each.status) for each in found]

    @property
    def plans(self) -> list[list[tuple[str, str]]]:
        found = [each.entries for each in self.told if each.session_update == "plan"]
        return [[(each.content, each.status) for each in entries] for entries in found]


@asynccontextmanager
async def connected(threads: ClientThreads, editor: Editor) -> AsyncIterator[Any]:
    """Connect an editor over a pair of sockets; leaving is its going away."""
    from daruma.graph.protocols._acp import EditorAgent

    ours, its = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    agent_reader, agent_writer = await asyncio.open_connection(sock=its)
    agent: Any = EditorAgent(threads)
    serving = asyncio.create_task(acp.run_agent(agent, agent_writer, agent_reader))
    client: Any = editor
    connection = acp.connect_to_agent(client, writer, reader)
    try:
        yield connection
    finally:
        writer.write_eof()
        await asyncio.wait_for(serving, 20)
        await connection.close()
        for each in (writer, agent_writer):
            each.close()


async def prompt(connection: Any, text: str, session: str = "one") -> str:
    """Send a prompt, and return why its turn ended."""
    done = await connection.prompt(session_id=session, prompt=[acp.text_block(text)])
    reason: str = done.stop_reason
    return reason


async def test_a_plan_is_reviewed_a_call_approved_and_a_thread_shown_again(
    postgres_url: str, tmp_path: Path
) -> None:
    folder, editor, later = folder_in(tmp_path), Editor(["Carry", "Run it"]), Editor()
    async with client_threads(postgres_url, SCRIPT) as threads:
        async with connected(threads, editor) as connection:
            begun = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
            session = await connection.new_session(cwd=folder, mcp_servers=[])
            await connection.set_session_mode(mode_id="plan_exec", session_id="one")
            ended = await prompt(connection, "Make it")
        async with connected(threads, later) as connection:
            await connection.load_session(cwd=folder, session_id="one", mcp_servers=[])

    assert begun.agent_capabilities.load_session
    assert [each.id for each in session.modes.available_modes][:2] == ["auto", "direct_chat"]
    assert ended == "end_turn"
    kinds = ["allow_once", "allow_always", "reject_once"]
    assert editor.asked == [
        ("Plan", ["allow_once", "reject_once"]),
        ("$ rm -f gone", kinds),
    ]
    assert editor.messages == ["I make it.", "Made.", "*completed, not checked*"]
    assert editor.texts("agent_thought_chunk")[0] == "Easy."
    assert editor.tools == [
        *(("c1", "in_progress"), ("c1", "completed")),
        *(("c2", "in_progress"), ("c2", "completed")),
    ]
    first, second = (each for each in editor.told if each.session_update == "tool_call")
    (_, again) = (each for each in later.told if each.session_update == "tool_call")
    assert again == second  # as it was executed (TL-11)
    assert (second.title, second.kind) == ("$ rm -f gone", "execute")
    (diff,) = first.content
    path = str(tmp_path / "ws" / "a.txt")
    assert (first.kind, first.locations[0].path) == ("edit", path)
    assert (diff.path, diff.old_text, diff.new_text) == (path, None, "hello")
    assert [each[0][1] for each in editor.plans] == ["pending", "in_progress", "completed"]
    assert later.texts("user_message_chunk") == ["Make it"]
    assert later.messages == ["I make it.", "Made."]
    assert later.tools == editor.tools
    assert later.plans == editor.plans[-1:]


async def test_what_is_left_open_stays_so_until_somebody_decides(
    postgres_url: str, tmp_path: Path
) -> None:
    """PL-04: no choice, a wrong one, and an editor that goes away decide nothing."""
    folder = folder_in(tmp_path)
    choices = ["", "Not now", "no such", "Change it: Smaller", "Carry", "Do not run it"]
    editor = Editor(choices)
    script = {"plan": [plan("Do it"), plan("Do less")], "main": SCRIPT["main"][1:]}
    async with client_threads(postgres_url, script) as threads:
        async with connected(threads, editor) as connection:
            await connection.new_session(cwd=folder, mcp_servers=[])
            texts = ["@plan Make it", "What?", "Well?"]
            assert [await prompt(connection, each) for each in texts] == ["end_turn"] * 3
            assert all("Is this plan to be carried out?" in each for each in editor.messages)
        async with connected(threads, editor) as connection:
            await connection.load_session(cwd=folder, session_id="one", mcp_servers=[])
            assert await prompt(connection, "Smaller") == "end_turn"

    assert editor.choices == []
    assert editor.plans[-1] == [("Do less", "completed")]
    assert ("c2", "failed") in editor.tools
    assert editor.messages[-1] == "*completed, not checked*"


def escalated(question: str) -> dict[str, Any]:
    """A turn of recovery that asks a person."""
    action = {"escalation_message": question}
    doubtful = {"reasoning": "r", "expected_outcome": "x", "confidence": 0.2}
    return {"json": {"strategy": "escalate", "action": action, **doubtful}}


async def test_a_text_answers_one_question_and_is_the_reason_of_a_denial(
    postgres_url: str, tmp_path: Path
) -> None:
    """PL-04, TL-14: where two are open the person says which; the other one stays open."""
    folder = folder_in(tmp_path)
    own = [{"id": "p1", "title": "One"}, {"id": "p2", "title": "Two"}]
    script = {
        "plan": [plan(*(each | {"expert": "developer"} for each in own))],
        "recovery@p1": [escalated("Drop the database?")],
        "recovery@p2": [escalated("Go on with the docs?")],
        "main@p1": [say(""), say("Dropped.")],
        "main@p2": [say(""), calls(command("rm -f gone", "c2")), {"say": "Left.", "expect": [WHY]}],
    }
    editor = Editor(["Carry", "None", "Go on", "", "run_command", f"Do not run it: {WHY}"])
    serving = client_threads(postgres_url, script)
    async with serving as threads, connected(threads, editor) as connection:
        await connection.new_session(cwd=folder, mcp_servers=[])
        for text in ("@team Do both", "Yes", "Yes, do that", WHY):
            await prompt(connection, text)
        open_then = editor.messages[-1]
        await prompt(connection, "Yes, do that")

    which = ("Which question do you answer?", ["allow_once", "allow_once", "reject_once"])
    call_ = ("$ rm -f gone", ["allow_once", "allow_always", "reject_once"])
    assert editor.choices == []
    assert editor.asked[1:] == [which, which, call_, which, call_]
    assert open_then.startswith("Drop the database?")
    assert "docs" not in open_then
    assert editor.plans[-1] == [("One", "completed"), ("Two", "completed")]


WHY = "write b instead"


@pytest.mark.long
async def test_a_prompt_is_cancelled_or_its_editor_leaves_and_it_is_taken_up(
    postgres_url: str, tmp_path: Path
) -> None:
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
    editor = Editor()
    async with client_threads(postgres_url, script, [hang], **settings) as threads:
        async with connected(threads, editor) as connection:
            await connection.new_session(cwd=folder, mcp_servers=[])
            running = asyncio.create_task(prompt(connection, "Wait"))
            await asyncio.wait_for(begun.wait(), 20)
            with pytest.raises(acp.RequestError, match="another prompt"):
                await prompt(connection, "And this")
            await connection.cancel(session_id="one")
            assert await running == "cancelled"
            assert await prompt(connection, "Something else") == "end_turn"
            assert "Send `resume`" in editor.messages[-1]
            begun.clear()
            running = asyncio.create_task(prompt(connection, "resume"))
            await asyncio.wait_for(begun.wait(), 20)
        with suppress(ConnectionError):
            await running
        async with connected(threads, editor) as connection:
            await connection.load_session(cwd=folder, session_id="one", mcp_servers=[])
            assert await prompt(connection, "resume") == "end_turn"

    assert ended == ["cleaned up"] * 2
    assert editor.messages[-2:] == ["So be it.", "*completed, not checked*"]


FAILING: dict[str, Callable[[], Any]] = {
    "end_turn": lambda: {"main": [{"raise": "overloaded", "status": 400}] * 4},
    "max_turn_requests": lambda: [calls(create("a.txt", str(n), f"c{n}")) for n in range(3)],
}


@pytest.mark.long
@pytest.mark.parametrize("reason", FAILING)
async def test_a_task_that_fails_is_said_to_have_failed(
    reason: str, postgres_url: str, tmp_path: Path
) -> None:
    folder, editor = folder_in(tmp_path), Editor()
    limits: Any = {"budgets": {"max_steps": 2}}
    serving = client_threads(postgres_url, FAILING[reason](), **limits)
    async with serving as threads, connected(threads, editor) as connection:
        await connection.new_session(cwd=folder, mcp_servers=[])
        assert await prompt(connection, "Do it") == reason
    assert editor.messages[-1].endswith(
        "*failed*" if reason == "end_turn" else "*max_steps_exceeded*"
    )


@pytest.mark.long
def test_the_command_says_nothing_but_the_protocol(daruma: Daruma) -> None:
    """An agent of its own process; what is refused is one line (SE-02)."""
    daruma.script(main=[say("Hello.")])
    (daruma.folder / "bad").mkdir()
    (daruma.folder / "bad" / "daruma.yaml").write_text("tools: {policy: {x: allow}}")
    editor, said = Editor(), list[str]()
    client: Any = editor

    async def use() -> str:
        args = ["-m", "daruma", "acp", "--model", f"scripted:{daruma.folder / 'script.json'}"]
        started = acp.spawn_agent_process(client, sys.executable, *args, env=dict(os.environ))
        async with started as (connection, _):
            await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
            for folder in ("nowhere", "bad"):
                with pytest.raises(acp.RequestError) as error:
                    await connection.new_session(cwd=str(daruma.folder / folder), mcp_servers=[])
                said.append(str(error.value))
            session = await connection.new_session(cwd=str(daruma.folder / "ws"), mcp_servers=[])
            return await prompt(connection, "@chat Hi", session.session_id)

    assert asyncio.run(use()) == "end_turn"
    assert editor.messages == ["Hello.", "*completed, not checked*"]
    assert "not a folder" in said[0]
    assert "daruma trust" in said[1]


@pytest.mark.long
def test_a_package_that_is_missing_is_named_in_one_line() -> None:
    code = """
import sys
from daruma.graph.command_line import main
for name in ("acp", "mcp"):
    sys.modules[name] = None
    try:
        main([name])
    except SystemExit as end:
        print(end.code)
"""
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "2"]
    said = "daruma: {0} needs a package: pip install 'daruma-agent[{0}]'"
    assert done.stderr.splitlines() == [said.format("acp"), said.format("mcp")]
