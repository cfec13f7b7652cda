"""The recent edits of one file, with what is needed to take them back."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from daruma.tools.errors import EditRefused, FileChanged
from daruma.tools.files.atomic_write import put_entry
from daruma.tools.files.openers import DIRECTORY
from daruma.tools.files.paths import shown

MOST_EDITS: Final = 10
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of former contents, per file."""

RECORD: Final = "record.json"


class Edit(BaseModel):
    """One edit; `before` is None where it made the file. Hashes are SHA-256, size in bytes."""

    number: int
    before: str | None
    after: str
    size: int


class Record(BaseModel):
    """What the history knows of one file; `seen` is the hash of what was last seen of it."""

    location: str
    seen: str | None = None
    edits: list[Edit] = []


def digest(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class FileHistory:
    """One file's history, for as long as `EditHistory.of` holds it. All methods block."""

    def __init__(self, folder: Path, location: str) -> None:
        self._folder = folder
        self._location = location
        self._record = self._load()

    def saw(self, data: bytes) -> None:
        """Note that this content was seen."""
        if self._record.seen != digest(data):
            self._record.seen = digest(data)
            self._save()

    def refuse_if_changed(self, data: bytes) -> None:
        """Raise FileChanged if another content was seen last; a file never seen is no matter.

        Nor is one that is as it was before its last edit: that was taken back by an undo.
        """
        edits = self._record.edits
        if edits and (edits[-1].before, edits[-1].after) == (digest(data), self._record.seen):
            self.drop_last()
        if self._record.seen not in {None, digest(data)}:
            raise FileChanged(
                f"{shown(self._location)}: changed since it was viewed: view it again"
            )

    @contextmanager
    def edit(self, before: bytes | None, after: bytes) -> Iterator[None]:
        """Note an edit that the body carries out; forgotten again if the body raises.

        It is on disk before the body runs: an edit that landed can be undone even after a crash.
        """
        former = self._record.model_copy(deep=True)
        self._append(before, after)
        try:
            yield
        except BaseException:
            self._record = former
            self._save()
            raise

    def last(self) -> Edit:
        """The last edit; EditRefused if none is kept."""
        if not self._record.edits:
            raise EditRefused(f"{shown(self._location)}: there is no edit to undo")
        return self._record.edits[-1]

    def content_before(self, edit: Edit) -> bytes:
        """The content that `edit` replaced; EditRefused if what was kept of it is damaged."""
        try:
            data = self._content(edit).read_bytes()
        except FileNotFoundError:
            data = b""
        if digest(data) != edit.before:
            raise EditRefused(f"{shown(self._location)}: the kept former content is damaged")
        return data

    def drop_last(self) -> int:
        """Forget the last edit, whose former content is there again; says how many are left."""
        dropped = self._record.edits.pop()
        self._record.seen = dropped.before
        self._save()
        return len(self._record.edits)

    def _append(self, before: bytes | None, after: bytes) -> None:
        edits = self._record.edits
        number = edits[-1].number + 1 if edits else 1
        hashed = None if before is None else digest(before)
        edit = Edit(number=number, before=hashed, after=digest(after), size=len(before or b""))
        if before is not None:
            self._put(self._content(edit).name, before)
        edits.append(edit)
        while len(edits) > MOST_EDITS or sum(each.size for each in edits) > MOST_BYTES:
            edits.pop(0)
        self._record.seen = edit.after
        self._save()

    def _content(self, edit: Edit) -> Path:
        return self._folder / f"{edit.number}.before"

    def _load(self) -> Record:
        try:
            return Record.model_validate_json((self._folder / RECORD).read_bytes())
        except (FileNotFoundError, ValidationError):  # damaged: as if nothing had been seen
            return Record(location=self._location)

    def _save(self) -> None:
        self._put(RECORD, self._record.model_dump_json().encode())
        kept = {self._content(edit).name for edit in self._record.edits}
        for content in self._folder.glob("*.before"):
            if content.name not in kept:
                content.unlink()

    def _put(self, name: str, data: bytes) -> None:
        directory = os.open(self._folder, DIRECTORY | os.O_CLOEXEC)
        try:
            put_entry(directory, name, data, 0o600)
        finally:
            os.close(directory)
