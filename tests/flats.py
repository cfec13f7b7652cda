"""States of a workspace written down as texts by path, for tests of merging."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from daruma.tools.snapshots import Entry
from daruma.tools.team._merging import Flat, Goal, Merge, above

Files: TypeAlias = Mapping[str, str | bytes | Entry]
State: TypeAlias = dict[str, Entry]

FOLDER = Entry("directory", 0o755, "")


@dataclass
class Kept:
    """The contents of all states of a test; ``read`` raises KeyError as a store does."""

    blobs: dict[str, bytes] = field(default_factory=dict)

    def read(self, digest: str) -> bytes:
        return self.blobs[digest]

    def file(self, content: str | bytes, mode: int = 0o644) -> Entry:
        data = content.encode() if isinstance(content, str) else content
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return Entry("file", mode, digest)

    def flat(self, files: Files) -> State:
        """Return a state: texts are files; the folders that they lie in are added."""
        found = {
            path: each if isinstance(each, Entry) else self.file(each)
            for path, each in files.items()
        }
        return {folder: FOLDER for path in found for folder in above(path)} | found

    def states(self, base: Files, mine: Files, theirs: Files) -> tuple[State, State, State]:
        """Return the three sides of a merge."""
        return self.flat(base), self.flat(mine), self.flat(theirs)

    def texts(self, there: Flat, merge: Merge) -> dict[str, str]:
        """Return the texts of the files of a state, those that the merge has made included."""
        blobs = self.blobs | dict(merge.contents)
        return {p: blobs[e.content].decode() for p, e in there.items() if e.kind == "file"}


def reached(mine: Flat, goal: Goal) -> dict[str, Entry]:
    """Return a state after a goal; it has to be one that a file system can hold."""
    after = {path: entry for path, entry in {**mine, **goal}.items() if entry is not None}
    for path in after:
        for folder in above(path):
            assert after[folder].kind == "directory", f"{path} lies in no folder"
    return after
