"""The server of the docs, as it stands there but for the model's name, in a process of its own."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from tests import warm
from tests.pages import block_with

SECONDS = 120
GRACE = 5

SCRIPT = """\
plan:
- json: {phases: [{title: Note it}]}
main:
- calls: [{name: run_command, args: {command: "echo noted >> effects"}}]
- say: Noted.
"""


def app_of_the_docs(folder: Path, script: str = SCRIPT) -> None:
    """Write the ``app.py`` of the docs into a folder, with a script in the place of a model."""
    (folder / "script.yaml").write_text(script)
    named = block_with("FastAPI(lifespan").replace(
        "openai:NAME", f"scripted:{folder / 'script.yaml'}"
    )
    (folder / "app.py").write_text(named)


class Server:
    """One process; ``url`` is there once it listens."""

    def __init__(self, process: "Popen[str]", url: str) -> None:
        self.process, self.url = process, url

    def kill(self) -> None:
        """End it as a lost machine ends."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, and return its exit code: that of the signal, once all is put away."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


@contextmanager
def serving(folder: Path, database: str, grace: int = GRACE) -> Iterator[Server]:
    """Start it on a free port; whatever becomes of it, it ends with this.

    ``grace`` is how many seconds open streams have to end once it is asked to stop.
    """
    command = ["-m", "uvicorn", "app:app", "--port", "0", "--no-access-log"]
    command += ["--timeout-graceful-shutdown", str(grace)]
    own: Any = {"cwd": folder, "env": os.environ | {"DARUMA_POSTGRES_URL": database}}
    streams: Any = {"stdout": DEVNULL, "stderr": PIPE, "text": True}
    with (
        (folder / "server.log").open("a") as log,
        warm.start(command, imports="uvicorn fastapi", **own, **streams) as it,
    ):
        watchdog = threading.Timer(SECONDS, it.kill)
        watchdog.start()
        reading = None
        try:
            url = ""
            for line in it.stderr or ():
                log.write(line)
                if found := re.search(r"running on (http://\S+)", line):
                    url = found[1]
                    break
            reading = threading.Thread(target=lambda: log.writelines(it.stderr or ()))
            reading.start()
            assert url, (folder / "server.log").read_text()
            yield Server(it, url)
        finally:
            watchdog.cancel()
            it.kill()
            if reading:
                reading.join()
