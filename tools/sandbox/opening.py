"""Opening the sandbox: the best level there is, proved before it is relied on."""

import importlib.util
import os
import sys
from typing import Final

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.commands.launch import Limits
from daruma.tools.files.threads import to_thread
from daruma.tools.sandbox.bubblewrap import find_bubblewrap
from daruma.tools.sandbox.filters import supported
from daruma.tools.sandbox.level import REMEDY, STRENGTH, Level, SandboxUnavailable
from daruma.tools.sandbox.namespace import Namespace
from daruma.tools.sandbox.sandbox import Sandbox
from daruma.tools.sandbox.self_test import NotProved, proved
from daruma.tools.sandbox.unconfined import unconfined

NOTHING: Final = (
    "files outside of the workspace, secrets, the network, other processes",
    *(() if sys.platform == "linux" else ("memory and number of processes",)),
)
"""What the level none leaves open; its limits are read from a process table that Linux has."""

ONLY_LINUX: Final = "there is no sandbox on this system but on Linux"

_opened: dict[str, Sandbox] = {}  # by settings: a proof holds as long as the process lives


async def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """Return the best level there is, proved by a self-test in the real policy.

    It is proved once in a process for the same settings. Without ``require`` the level may be none,
    and says so. Raises :class:`SandboxUnavailable`, with the reason and the remedy, if what is
    required is not to be had.
    """
    key = settings.model_dump_json()
    if key not in _opened:
        _opened.setdefault(key, await _best(settings))
    return _opened[key]


async def open_best() -> Sandbox:
    """Return the best level there is, under the settings' defaults."""
    return await open_sandbox(SandboxSettings())


def require_mechanism(required: Level | None) -> None:
    """Raise :class:`SandboxUnavailable` if it is plain, without a proof, that a level is not there.

    A level is required at least: where namespaces are missing, *landlock* may still be met by them.
    """
    if required in (None, "none"):
        return
    reasons = {level: _missing(level) for level in _candidates(required)}
    if all(reasons.values()):
        raise _unavailable(required, reasons)


async def _best(settings: SandboxSettings) -> Sandbox:
    limits = Limits(settings.memory_mb * 1024 * 1024, settings.processes)
    reasons: dict[Level, str] = {}
    for level in _candidates(settings.require):
        try:
            opened = await to_thread(prepared, level, network=settings.network, limits=limits)
            return await proved(opened, network=settings.network)
        except NotProved as error:
            reasons[level] = str(error)
    if settings.require not in (None, "none"):
        raise _unavailable(settings.require, reasons)
    why = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    mechanism = "chosen by name" if settings.require else why
    return Sandbox("none", NOTHING, mechanism, limits, unconfined)


def _candidates(required: Level | None) -> tuple[Level, ...]:
    if required == "none":
        return ()
    levels: tuple[Level, ...] = ("namespace", "landlock")
    return tuple(each for each in levels if STRENGTH[each] >= STRENGTH[required or "landlock"])


def prepared(level: Level, *, network: bool, limits: Limits) -> Sandbox:
    """Return a level that is not proved yet. Raises :class:`NotProved` if it can not be there."""
    if level == "none":
        return Sandbox(level, NOTHING, "chosen by name", limits, unconfined)
    if reason := _missing(level):
        raise NotProved(reason)
    if level == "namespace":
        found = find_bubblewrap(_places())
        if isinstance(found, str):
            raise NotProved(found)
        launcher = Namespace(found.path, network, limits).launch
        return Sandbox(level, (), f"bubblewrap {found.version}", limits, launcher)
    import landlockpy

    from daruma.tools.sandbox.landlock import Landlock

    abi = landlockpy.abi_version()
    return Sandbox(level, (), f"Landlock ABI {abi}", limits, Landlock(network).launch)


def _missing(level: Level) -> str:
    """Return why a level can not be there; empty if it may be."""
    if sys.platform != "linux":
        return ONLY_LINUX
    if not supported():
        return "there is no system call filter for this processor"
    if level == "namespace":
        found = find_bubblewrap(_places())
        return found if isinstance(found, str) else ""
    return _landlock_missing()


def _places() -> str:
    return os.environ.get("PATH", os.defpath)


def _landlock_missing() -> str:
    if importlib.util.find_spec("landlockpy") is None:
        return "landlockpy is not installed"
    import landlockpy

    return "" if landlockpy.supported() else "the kernel has no Landlock"


def _unavailable(required: Level | None, reasons: dict[Level, str]) -> SandboxUnavailable:
    why = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    return SandboxUnavailable(f"sandbox.require is {required!r}, but {why}. Remedy: {REMEDY}")
