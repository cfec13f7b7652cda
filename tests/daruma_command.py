"""The ``daruma`` command as tests of its insides call it: in this process, or as a real one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spec import face
from tests.spec.face import Said
from typing_extensions import override

from daruma.state.settings import Settings, propose_trust

__all__ = ["DONE", "OTHER_PLAN", "PLAN", "Daruma", "Said", "command"]


class Daruma(face.Daruma):
    """Calls ``daruma`` in a folder of its own, on a database of its own, without any key."""

    def __init__(
        self,
        url: str,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        super().__init__(url, folder, monkeypatch, capsys)
        self.chdir: Callable[[Path], None] = monkeypatch.chdir

    @override
    def configure(self, text: str) -> None:
        """Write ``daruma.yaml`` into the folder, and agree to it without a command."""
        (self.folder / "daruma.yaml").write_text(text)
        propose_trust(Settings, self.folder).agree()


PLAN = {"json": {"phases": [{"id": "p1", "title": "Do it", "instructions": "Just do it."}]}}
OTHER_PLAN = {"json": {"phases": [{"id": "p1", "title": "Do it otherwise"}]}}
DONE = {"say": "It is done."}


def command(text: str, id_: str | None = None) -> dict[str, Any]:
    """A call of ``run_command``."""
    return {"name": "run_command", "args": {"command": text}} | ({"id": id_} if id_ else {})
