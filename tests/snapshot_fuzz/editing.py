"""Random workspaces, and what people, programs and models do to them."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH112, PTH113, PTH114, PTH115, PTH118, PTH120, PTH123, PTH211

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.snapshot_fuzz.hidden import QUIET

NAMES = [b"a", b"b", b"c", b"build", b"x.log", b"keep.log", b"src", b"Makefile", b"new\nline"]
NAMES += [b"\xff\xfe", "é".encode(), "é".encode(), b"-rf", b" sp ace ", b"*", b"long" * 50]
IGNORES = [b"*.log\n", b"build/\n", b"*.log\n!keep.log\n", b"/c\n", b"*\n!*/\n", b"", b"src/a\n"]
MODES = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o640, 0o666]
FOLDER_MODES = [0o755, 0o700, 0o555, 0o1777, 0o2755, 0o711]
COMMIT = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "m"]


class Vandal:
    """Does random things beneath a folder, never to git's own files but by git."""

    def __init__(self, root: Path, random: Random) -> None:
        self.root = os.fsencode(root)
        self.random = random

    def grow(self) -> None:
        """Make a workspace: with git or without, some of it tracked, some ignored."""
        self._create(self.random.randrange(4, 14))
        if self.random.random() < 0.7:
            self.ignore()
        if self.random.random() < 0.6:
            self.git(self.root, "init", "-q")
            self.git(self.root, "add", "-f" if self.random.random() < 0.3 else "-A", ".")
            self.git(self.root, *COMMIT)
            self._create(self.random.randrange(0, 5))

    def _create(self, times: int) -> None:
        for _ in range(times):
            with suppress(PermissionError):
                self.create()

    def vandalise(self, times: int) -> None:
        """Do so many random things."""
        kinds = [self.create] * 5 + [self.write] * 4 + [self.delete] * 3 + [self.rename] * 3
        kinds += [self.chmod] * 3 + [self.chmod_folder] * 2 + [self.swap] * 3 + [self.ignore]
        kinds += [
            self.fifo,
            self.hard_link,
            self.nest,
            self.commit,
            self.wipe,
            self.flip,
            self.flip,
        ]
        for _ in range(times):
            with suppress(PermissionError):  # in directories that were locked before
                self.random.choice(kinds)()

    def create(self) -> None:
        """A file, a link or an empty folder somewhere."""
        path = self.fresh()
        roll = self.random.random()
        if roll < 0.55:
            self.fill(path)
        elif roll < 0.75:
            os.symlink(self.random.choice([b"a", b"..", b"/etc", b"b/c", b"zz"]), path)
        else:
            os.mkdir(path, self.random.choice(FOLDER_MODES))

    def write(self) -> None:
        """Other content, sometimes of the same size, sometimes in a new inode."""
        for path in self.some("file"):
            if self.random.random() < 0.5:
                self.fill(path)
            else:
                with open(path, "r+b") as file:
                    file.write(bytes([self.random.randrange(256)]))

    def flip(self) -> None:
        """A link to somewhere else, of the same length."""
        for path in self.some("link"):
            old = os.readlink(path)
            os.unlink(path)
            os.symlink(bytes([self.random.randrange(97, 123)]) + old[1:], path)

    def delete(self) -> None:
        """A file or a whole folder."""
        for path in self.some():
            self.away(path)

    def rename(self) -> None:
        """A file or a whole folder, to a new name."""
        for path in self.some():
            target = self.fresh()
            if not (target + b"/").startswith(path + b"/"):
                os.rename(path, target)

    def chmod(self) -> None:
        """Another mode for a file."""
        for path in self.some("file"):
            os.chmod(path, self.random.choice(MODES))

    def chmod_folder(self) -> None:
        """Another mode for a folder, also for the workspace itself."""
        for path in [*self.some("folder"), self.root][:1]:
            os.chmod(path, self.random.choice(FOLDER_MODES))

    def swap(self) -> None:
        """Something else under the same name: a file, a link, a folder with a file."""
        for path in self.some():
            self.away(path)
            # What an ignore file said is asked of git with that file in its place.
            roll = self.random.randrange(2 if path.endswith(b"/.gitignore") else 3)
            if roll == 0:
                self.fill(path)
            elif roll == 1:
                os.symlink(b"a", path)
            else:
                os.mkdir(path)
                self.fill(path + b"/" + self.random.choice(NAMES))

    def ignore(self) -> None:
        """An ignore file that says something else."""
        path = self.random.choice(self.folders()) + b"/.gitignore"
        if not os.path.isdir(path) and not os.path.islink(path):
            with suppress(PermissionError), open(path, "wb") as file:
                file.write(self.random.choice(IGNORES))

    def fifo(self) -> None:
        """A pipe."""
        os.mkfifo(self.fresh())

    def hard_link(self) -> None:
        """A second name for a file."""
        for path in self.some("file"):
            os.link(path, self.fresh())

    def nest(self) -> None:
        """A repository in the workspace, with a commit or without."""
        path = self.fresh()
        os.mkdir(path)
        self.git(path, "init", "-q")
        self.fill(path + b"/inner")
        if self.random.random() < 0.5:
            self.git(path, "add", "-A")
            self.git(path, *COMMIT)

    def commit(self) -> None:
        """What a user does: a commit, or a stash, or a clean checkout."""
        if os.path.isdir(self.root + b"/.git"):
            args = self.random.choice([["add", "-A"], ["stash", "-q"], ["checkout", "-q", "."]])
            self.git(self.root, *args)

    def wipe(self) -> None:
        """What a bad rollback does."""
        if os.path.isdir(self.root + b"/.git") and self.random.random() < 0.3:
            self.git(self.root, "clean", "-fdq")
        elif self.random.random() < 0.2:
            for path in [each for each in self.paths() if os.path.dirname(each) == self.root]:
                if not path.endswith(b"/.git"):
                    self.away(path)

    def fill(self, path: bytes) -> None:
        """Write a new file; what is there and is none stays."""
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
            return
        if os.path.lexists(path) and self.random.random() < 0.5:
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(self.random.randbytes(self.random.choice([0, 1, 20, 20, 5000])))
        os.chmod(path, self.random.choice(MODES))

    def away(self, path: bytes) -> None:
        """Remove whatever is there."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def fresh(self) -> bytes:
        """Return a path that is not there, in a folder that is."""
        folder = self.random.choice(self.folders())
        free = [n for n in NAMES if not os.path.lexists(folder + b"/" + n)]
        return (
            folder
            + b"/"
            + (self.random.choice(free) if free else self.random.randbytes(9).hex().encode())
        )

    def some(self, kind: str = "") -> list[bytes]:
        """Return one random path of a kind, if there is any."""
        fits: Callable[[bytes], bool] = {
            "": os.path.lexists,
            "file": lambda p: os.path.isfile(p) and not os.path.islink(p),
            "link": os.path.islink,
            "folder": lambda p: os.path.isdir(p) and not os.path.islink(p),
        }[kind]
        found = [path for path in self.paths() if fits(path)]
        return [self.random.choice(found)] if found else []

    def paths(self) -> list[bytes]:
        """Return all paths but git's own, sorted."""
        found = []
        for at, folders, files in os.walk(self.root):
            folders[:] = sorted(each for each in folders if each != b".git")
            found += [os.path.join(at, each) for each in sorted((*folders, *files))]
        return found

    def folders(self) -> list[bytes]:
        """Return all folders, the workspace itself several times: most things are near."""
        found = [p for p in self.paths() if os.path.isdir(p) and not os.path.islink(p)]
        return [self.root] * (1 + len(found) // 3) + [
            p for p in found if p.count(b"/") < self.root.count(b"/") + 5
        ]

    def git(self, folder: bytes, *args: str) -> None:
        """Run git there; that it may refuse is a user's life too."""
        subprocess.run(["git", *args], cwd=folder, env=QUIET, capture_output=True, check=False)
