"""What a table was measured on: without that its numbers say nothing."""

import os
import platform
from importlib.metadata import version
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
    versions = ", ".join(f"{name} {version(name)}" for name in _NAMED)
    cores, busy = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"Python {platform.python_version()}, {versions}; {cores} cores, load {busy:.1f}"
