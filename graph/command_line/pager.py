"""Showing what is longer than the screen, a screen at a time."""

import os
import shlex
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress

from daruma.graph.command_line.foreground import in_foreground
from daruma.graph.command_line.paper import Line, Paper


def paged(paper: Paper, lines: Sequence[Line]) -> None:
    """Show all of the lines in ``$PAGER``, else ``less``; without one they are printed."""
    command = _pager()
    with paper.console.capture() as captured:
        paper.put(*lines)
    if not command or not _shown_in(command, captured.get()):
        paper.put(*lines)


def _pager() -> list[str]:
    with suppress(ValueError):  # a quote that is never closed
        if named := shlex.split(os.environ.get("PAGER", "")):
            return named
    found = shutil.which("less")
    return [found] if found else []


def _shown_in(command: Sequence[str], text: str) -> bool:
    options = {"LESS": "-R", "LESSCHARSET": "utf-8"}  # what is set already counts before these
    data = text.encode("utf-8", "replace")
    try:
        code = in_foreground(command, data, options | dict(os.environ))
    except OSError:
        return False
    return code in (0, -signal.SIGINT)  # one that Ctrl-C ended has been looked at
