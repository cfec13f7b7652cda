"""LangGraph's development server as a process of its own, on a database and folders of its own."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Thread
from typing import Any
from uuid import UUID, uuid5

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

ROOT = Path(__file__).parents[2]
_NAMES = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
ASSISTANT = str(uuid5(_NAMES, "daruma"))
"""The id that the server gives to the assistant of a graph of this name."""
PLAYED = str(uuid5(_NAMES, "played"))
"""That of the graph that plays scripts."""
OWN = {
    "DARUMA_TOOLS__POLICY": '{"run_command": "allow"}',
    "DARUMA_FALLBACK_CHAIN__RECOVERY__MAX_RETRIES": "2",
}
"""The server's own settings: looser than the defaults, for clients to tighten."""


class DevServer:
    """``langgraph dev`` on the repository's ``langgraph.json``, started in ``folder``.

    Beside the graph there it has one that plays scripts; ``http`` is another section of this name.
    """

    def __init__(self, url: str, folder: Path, http: dict[str, Any] | None = None) -> None:
        self.folder, self.url = folder, url
        self.port = _free_port()
        self._said: list[str] = []
        for name in ("data", "tmp"):
            (folder / name).mkdir()
        given = json.loads((ROOT / "langgraph.json").read_text())
        given["graphs"]["played"] = f"{ROOT}/tests/studio/played.py:graph"
        given["dependencies"], given["http"] = [str(ROOT)], http or given["http"]
        (folder / "langgraph.json").write_text(json.dumps(given))
        self.client = _client(self.port)
        self.start()

    @property
    def log(self) -> str:
        """All that it has said, in all its lives."""
        return "".join(self._said)

    def start(self) -> None:
        """Start it, and return once it answers."""
        self._process = Popen(
            [
                *(str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser"),
                *("--no-reload", "--n-jobs-per-worker", "4", "--port", str(self.port)),
                *("--config", str(self.folder / "langgraph.json")),
            ],
            cwd=self.folder,
            env=self._environment(),
            stdout=PIPE,
            stderr=STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout
        for line in self._process.stdout:
            self._said.append(line)
            if "Application started up" in line:
                break
        else:
            with self._process:  # it has ended
                raise AssertionError(f"the server did not start: {self.log}")
        self._reader = Thread(target=self._said.extend, args=[self._process.stdout], daemon=True)
        self._reader.start()
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
            client.get(f"http://127.0.0.1:{self.port}/ok").raise_for_status()

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DARUMA_", "OPENAI_", "LANG"))
        }
        return (
            kept
            | OWN
            | {
                "DARUMA_POSTGRES_URL": self.url,
                "DARUMA_DATA_DIR": str(self.folder / "data"),
                "TMPDIR": str(self.folder / "tmp"),
                "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            }
        )

    def kill(self) -> None:
        """End it as a power cut does, and whatever it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> int:
        """End it as Ctrl-C does; return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(20)
        self._ended()
        return self._process.returncode

    def _ended(self) -> None:
        self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()

    def plays(self, thread: str, **roles: Any) -> None:
        """Have a thread's script played from now on."""
        (self.folder / f"{thread}.json").write_text(json.dumps(roles))


def _client(port: int) -> SyncLangGraphClient:
    return get_sync_client(url=f"http://127.0.0.1:{port}", api_key=None, timeout=60)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
