"""The protocols' own clients, of npm, run tasks with a review and an approval to the end.

They need Node and the npm registry: ``pytest -m long tests/graph/protocols``.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from tests.graph.command_line.conftest import daruma
from tests.graph.protocols.clients import folder_in
from tests.graph.protocols.test_ag_ui import worked
from tests.spec.face import Daruma, calls, command, create, plan, say

from daruma.graph.protocols import ag_ui_events
from daruma.graph.storage import Postgres

__all__ = ["daruma"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node and npm"),
]

NODE = Path(__file__).parent / "node"
SCRIPT = {
    "plan": [plan({"id": "p1", "title": "Do it"})],
    "main": [
        calls(create("a.txt", "hello", "c1")),
        calls(command("rm -f gone", "c2")),
        say("All is made."),
    ],
}

Client = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """Return what runs one of the clients, and returns what it was told."""
    folder = tmp_path_factory.mktemp("node") / "clients"
    shutil.copytree(NODE, folder)
    npm = [shutil.which("npm") or "npm", "install", "--silent", "--no-fund", "--no-audit"]
    subprocess.run(npm, cwd=folder, check=True)

    def run(name: str, *args: str) -> dict[str, Any]:
        node = [shutil.which("node") or "node", f"{name}.mjs", *args]
        done = subprocess.run(
            node, cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    return run


def test_an_editor_with_acps_own_client(daruma: Daruma, client: Client) -> None:
    """Plan, approval, calls, thoughts and the session again, as its SDK reads them."""
    script = daruma.folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    workspace = daruma.folder / "ws"
    agent = [sys.executable, "-m", "daruma", "acp", "--model", f"scripted:{script}"]
    told = client("acp_client", str(workspace), "Make it", *agent)

    kinds = [each["sessionUpdate"] for each in told["updates"]]
    said = [each for each in told["updates"] if each["sessionUpdate"] == "agent_message_chunk"]
    assert (told["protocolVersion"], told["stopReason"]) == (1, "end_turn")
    assert told["asked"] == ["Plan", "$ rm -f gone"]
    assert [each["content"]["text"] for each in said] == [
        "All is made.",
        "*completed, not checked*",
    ]
    assert {"plan", "tool_call", "tool_call_update"} <= {*kinds}
    assert "user_message_chunk" in [each["sessionUpdate"] for each in told["again"]]
    assert (workspace / "a.txt").read_text() == "hello"


async def test_a_front_end_with_ag_uis_own_client(
    postgres_url: str, tmp_path: Path, client: Client
) -> None:
    """Over HTTP, each question answered by what its interrupt says."""
    folder = folder_in(tmp_path)
    async with worked(postgres_url, SCRIPT) as postgres, served(postgres, folder) as url:
        told = await asyncio.to_thread(client, "ag_ui_client", url, "Make it")

    assert told["asked"] == ["plan", "approval"]
    assert (told["outcome"], told["errors"]) == ("success", [])
    assert told["texts"][-1] == "All is made."
    assert [each[0] for each in told["calls"]] == ["c1", "c2"]
    assert told["states"][-1] == "completed, not checked"
    assert (tmp_path / "ws" / "a.txt").read_text() == "hello"


@asynccontextmanager
async def served(postgres: Postgres, folder: str) -> AsyncIterator[str]:
    """Serve the guide's route on a free port; yield its address."""
    app = FastAPI()

    @app.post("/ag-ui")
    async def ag_ui(run_input: RunAgentInput) -> StreamingResponse:
        events = ag_ui_events(postgres, run_input, workspace=folder, mode="plan_exec")
        lines = (EventEncoder().encode(each) async for each in events)
        return StreamingResponse(lines, media_type="text/event-stream")

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    port = listening.getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/ag-ui"
    finally:
        server.should_exit = True
        await serving
