"""What a snapshot knows of one name in a directory."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind = Literal["file", "link", "directory", "repository", "special", "unread"]
"""``repository`` is a ``.git``, which is never looked into; ``special`` a socket, pipe or device;
``unread`` a file that is too large, or a file or directory that may not be read: known to be there,
and not kept."""

HERE: Final = "."
"""The name in a root's tree that stands for the workspace itself: a directory with a mode and no
content. No file can have this name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. ``mode`` holds the permission bits (0o7777), 0 for what has none of its own.

    ``content`` is the SHA-256 (hexadecimal) of a file's bytes, the id of a directory's tree, the
    target of a link; of what is not kept, what tells it from another.
    """

    kind: Kind
    mode: int
    content: str


Tree: TypeAlias = dict[str, Entry]
"""A directory: names, as ``os.fsdecode`` gives them, to entries."""
