"""The ``daruma`` command as tests call it: in this process, or as a real one of its own."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from daruma.graph.command_line import main
from daruma.state.settings import Settings, propose_trust


@dataclass(frozen=True)
class Said:
    """How a command ended, and all that it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output, read as JSON."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def complaint(self) -> str:
        """The one line that a mistake is answered with; nothing else may have been said."""
        assert (self.code, self.out) == (2, "")
        (line,) = self.err.splitlines()
        assert line.startswith("daruma: ")
        return line


class Daruma:
    """Calls ``daruma`` in a folder of its own, on a database of its own, without any key."""

    def __init__(
        self,
        url: str,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for name in os.environ:
            if name.startswith(("DARUMA_", "OPENAI_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("DARUMA_POSTGRES_URL", url)
        monkeypatch.setenv("DARUMA_DATA_DIR", str(folder / "data"))
        monkeypatch.chdir(folder)
        self.folder = folder
        self.url = url
        self.setenv: Callable[[str, str], None] = monkeypatch.setenv
        self.chdir: Callable[[Path], None] = monkeypatch.chdir
        self._capsys = capsys

    def __call__(self, *args: str) -> Said:
        """Call it in this process."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(args)
        said = self._capsys.readouterr()
        return Said(int(end.value.code or 0), said.out, said.err)

    def start(self, *args: str, **options: Any) -> Popen[str]:
        """Start it as a process of its own."""
        streams: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        return Popen([sys.executable, "-m", "daruma", *args], text=True, **(streams | options))

    def run(self, *args: str) -> Said:
        """Start it as a process of its own, and wait for its end."""
        with self.start(*args) as process:
            out, err = process.communicate()
        return Said(process.returncode, out, err)

    def configure(self, text: str) -> None:
        """Write ``daruma.yaml`` into the folder, and agree to it as a person would."""
        (self.folder / "daruma.yaml").write_text(text)
        propose_trust(Settings, self.folder).agree()

    def script(self, **roles: Any) -> str:
        """Write a script into the folder and return the name of the model that plays it."""
        (self.folder / "script.json").write_text(json.dumps(roles))
        return "scripted:script.json"


PLAN = {"json": {"phases": [{"id": "p1", "title": "Do it", "instructions": "Just do it."}]}}
OTHER_PLAN = {"json": {"phases": [{"id": "p1", "title": "Do it otherwise"}]}}
DONE = {"say": "It is done."}


def command(text: str, id_: str | None = None) -> dict[str, Any]:
    """A call of ``run_command``."""
    return {"name": "run_command", "args": {"command": text}} | ({"id": id_} if id_ else {})
