"""What a model is told of the sandbox: that a limit was hit, or may be what was in the way."""

from typing import Final

from daruma.tools.commands.command import CommandResult

_KILLED: Final = {
    "": "",
    "memory": "killed, it used more memory than sandbox.memory_mb allows",
    "processes": "killed, it had more processes than sandbox.processes allows",
}

_PLACES: Final = {
    "namespace": "the workspace (but .git/hooks, .git/config and .git/info) and /tmp",
    "landlock": "the workspace and $TMPDIR",
}

SIGNS: Final = (
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Device or resource busy",
)
"""What programs say when the system refuses something; the sandbox need not be the reason."""


def killed_for(result: CommandResult) -> str:
    """Return the limit that ended a command, in words; empty if none did."""
    return _KILLED[result.stopped_by]


def hint(result: CommandResult) -> str:
    """Return one line on what the sandbox forbids, for a failure that looks like it."""
    if result.sandbox == "none" or result.passed:
        return ""
    said = result.stdout + result.stderr
    if not any(sign in said for sign in SIGNS):
        return ""
    network = any("network" in each for each in result.not_covered)
    forbids = "" if network else ", and there is no network"
    places = _PLACES.get(result.sandbox, "the workspace")
    return f"(sandbox: level {result.sandbox}; commands can write in {places} only{forbids})"
