"""The one door for commands: a level of confinement, what it leaves open, and running in it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from daruma.tools.commands.command import LIMIT, CommandResult, run_in_group
from daruma.tools.commands.launch import Asked, Confinement, Launch, Limits
from daruma.tools.commands.live_output import LiveOutput
from daruma.tools.errors import CommandRefused
from daruma.tools.files.threads import to_thread
from daruma.tools.sandbox.level import Level
from daruma.tools.sandbox.open_in import open_in

Launcher = Callable[[Path, Asked], AbstractContextManager[Launch]]
"""Prepares one command in a workspace."""


@dataclass(frozen=True)
class Sandbox:
    """A proved level. ``not_covered`` says in plain words what it does not stop.

    ``mechanism`` names what enforces it and its version, or why there is nothing.
    """

    level: Level
    not_covered: tuple[str, ...]
    mechanism: str
    limits: Limits
    launcher: Launcher

    @property
    def line(self) -> str:
        """Level, mechanism, and what is left open, on one line."""
        left = f"; not covered: {', '.join(self.not_covered)}" if self.not_covered else ""
        return f"{self.level} ({self.mechanism}){left}"

    async def run(
        self,
        command: str | Sequence[str],
        *,
        workspace: Path,
        cwd: Path | None = None,
        timeout: float,
        limit: int = LIMIT,
        live: LiveOutput | None = None,
    ) -> CommandResult:
        """Run shell text or an argument list, confined to the workspace, to the end of all of it.

        ``timeout`` is in seconds, ``limit`` in bytes for each of the two outputs, of which ``live``
        is told while it runs. Raises
        :class:`~daruma.tools.errors.CommandRefused` if it can not be started.
        """
        if self.level != "none" and workspace == Path("/"):
            raise CommandRefused("the workspace is /, all of the system: choose a folder")
        also_open = await to_thread(open_in, workspace, self.level)
        confinement = Confinement(
            level=self.level,
            not_covered=(*self.not_covered, *also_open),
            limits=self.limits,
            launch=partial(self.launcher, workspace),
        )
        return await run_in_group(
            command,
            cwd=cwd or workspace,
            timeout=timeout,
            limit=limit,
            confinement=confinement,
            live=live,
        )
