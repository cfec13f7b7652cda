"""Reading the ignore rules of a workspace as they are now."""

import os
from collections.abc import Sequence

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import directory_opened
from daruma.tools.snapshots.ignored import Rules


def frozen(top: int, exclude: Sequence[str] = ()) -> Rules:  # noqa: ARG001
    """Return the rules that hold beneath an open directory now."""
    repositories: set[str] = set()
    waiting: list[Parts] = [()]
    while waiting:
        path = waiting.pop()
        try:
            with directory_opened(top, path) as fd, os.scandir(fd) as found:
                for each in found:
                    if each.name == ".git":
                        repositories.add("/".join((*path, each.name)))
                    elif each.is_dir(follow_symlinks=False):
                        waiting.append((*path, each.name))
        except OSError:
            continue
    return Rules(frozenset(repositories))
