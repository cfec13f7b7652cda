"""The order in which places are hidden, shown and opened: what lies deeper comes later."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from daruma.tools.sandbox.hidden import Seen, within

Kind = Literal["hidden", "shown", "workspace"]


def mounts(seen: Seen, workspace: Path, sockets: tuple[Path, ...] = ()) -> list[tuple[Path, Kind]]:
    """Return each place once, from the top down. ``sockets`` are hidden where they can be seen.

    In the workspace nothing is shown anew, for that would make it read-only: but Daruma's own
    interpreter, whose code is run outside of the sandbox, is.
    """
    own = {Path(sys.prefix), Path(sys.base_prefix)}
    kinds: dict[Path, Kind] = dict.fromkeys(seen.hidden, "hidden")
    kinds |= dict.fromkeys(_open_sockets(seen, workspace, sockets), "hidden")
    kinds |= {
        path: "shown" for path in seen.shown if path in own or not path.is_relative_to(workspace)
    }
    kinds |= {path: "shown" for path in own if path != workspace and path.is_relative_to(workspace)}
    kinds[workspace] = "workspace"
    return _without_repetition(kinds, seen.home)


def _without_repetition(kinds: dict[Path, Kind], home: Path) -> list[tuple[Path, Kind]]:
    """Leave out what changes nothing; the home folder is kept, for it is one of its own."""
    kept: dict[Path, Kind] = {}
    for path in sorted(kinds, key=lambda each: (len(each.parts), str(each))):
        around = next((kept[each] for each in path.parents if each in kept), None)
        if path == home or kinds[path] != around:
            kept[path] = kinds[path]
    return list(kept.items())


def _open_sockets(seen: Seen, workspace: Path, sockets: tuple[Path, ...]) -> Iterator[Path]:
    for path in sockets:
        covered = within(path, seen.hidden) and not within(path, seen.shown)
        if not covered and not path.is_relative_to(workspace):
            yield path


def listening_sockets() -> tuple[Path, ...]:
    """Return the unix sockets of this host that have a name in the file system."""
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    names = (line.split(maxsplit=7)[-1] for line in lines.splitlines()[1:] if " /" in line)
    found = {Path(os.path.realpath(name)) for name in names}
    return tuple(sorted(path for path in found if _is_socket(path)))


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:  # it may not be looked at, and so not be connected to either
        return False
