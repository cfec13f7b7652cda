"""What a table was measured on: without that its numbers say nothing."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

_NAMED: Final = (
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langchain",
    "deepagents",
    "psycopg",
)


def machine_line() -> str:
    """Return versions, processors and how busy these were in the last minute."""
    versions = ", ".join(f"{name} {_version(name)}" for name in _NAMED)
    cores, busy = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"Python {platform.python_version()}, {versions}; {cores} cores, load {busy:.1f}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
