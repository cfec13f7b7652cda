"""Which paths of a workspace git ignores, as git itself says, by the rules of one moment."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH103, PTH118, PTH120, PTH123

import os
import subprocess
from pathlib import Path

from tests.snapshot_fuzz.reading import State, parents

QUIET = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


class Hidden:
    """The ignore rules of a workspace as they were when this was made.

    A later state is asked about in a folder of empty files beside it, which has the ignore files of
    that moment and no other content.
    """

    def __init__(self, workspace: Path, state: State, scratch: Path) -> None:
        self.root = os.fsencode(workspace)
        self.scratch = scratch
        self.repositories = {p for p in state if p.split(b"/")[-1] == b".git" and whole(p)}
        self.homes = sorted({os.path.dirname(p) for p in self.repositories} | {b""})
        self.rules = {
            path: self._bytes(path)
            for path, thing in state.items()
            if thing[0] == "file"
            and (path.split(b"/")[-1] == b".gitignore" or path.endswith(b".git/info/exclude"))
        }
        self.tracked = {each for home in self.homes for each in self._tracked(home)}
        self.above_tracked = {above for each in self.tracked for above in parents(each)}
        self.known: dict[tuple[bytes, bool], bool] = {}

    def same_as(self, other: "Hidden") -> bool:
        """Say whether these are the rules of another moment too."""
        ours = (self.rules, set(self.tracked), self.repositories)
        return ours == (other.rules, set(other.tracked), other.repositories)

    def visible(self, state: State) -> State:
        """Return what of a state is not left alone; of git's own only that it is there."""
        self._ask(state)
        seen: State = {}
        for path in sorted(state):
            above = parents(path)
            if any(each not in seen and each not in self.above_tracked for each in above):
                continue
            if any(each in self.repositories for each in above):
                continue
            if path in self.repositories:
                seen[path] = ("repository", 0, "")
            elif not self._left_alone(path, state):
                seen[path] = state[path]
        return seen

    def _left_alone(self, path: bytes, state: State) -> bool:
        tracked = self.above_tracked if state[path][0] == "directory" else self.tracked
        if path in tracked or path == b".":
            return False
        chain = [(each, True) for each in parents(path)]
        return any(self.known[each] for each in (*chain, (path, state[path][0] == "directory")))

    def _ask(self, state: State) -> None:
        open_ = {
            (path, thing[0] == "directory")
            for path, thing in state.items()
            if path != b"." and not self._gits(path)
        }
        new = {each for each in open_ if each not in self.known}
        for home in self.homes if new else ():
            mine = {each for each in new if self._home(each[0]) == home}
            ignored = self._ignored(home, mine, state) if mine else set()
            self.known |= {each: each[0] in ignored for each in mine}

    def _gits(self, path: bytes) -> bool:
        return any(each in self.repositories for each in (*parents(path), path))

    def _home(self, path: bytes) -> bytes:
        return max(each for each in self.homes if not each or path.startswith(each + b"/"))

    def _ignored(self, home: bytes, asked: set[tuple[bytes, bool]], state: State) -> set[bytes]:
        shadow = os.fsencode(self.scratch) + b"/shadow"
        subprocess.run(["rm", "-rf", shadow], check=True)
        for each in (b".git/objects", b".git/refs", b".git/info"):
            os.makedirs(shadow + b"/" + each)
        _put(shadow + b"/.git/HEAD", b"ref: refs/heads/main\n")
        lead = home + b"/" if home else b""
        for path, directory in sorted(asked):
            if any(each in self.rules for each in (*parents(path), path)):
                continue  # an ignore file then, a directory or in one now
            _lay(shadow + b"/" + path[len(lead) :], directory=directory)
        for path, content in self.rules.items():
            inside = path[len(lead) :]
            folder = os.path.dirname(path)
            exclude = inside == b".git/info/exclude"
            there = state.get(folder or b".", ("", 0, ""))[0] == "directory"
            if path.startswith(lead) and (exclude or (there and self._home(path) == home)):
                os.makedirs(os.path.dirname(shadow + b"/" + inside), exist_ok=True)
                _put(shadow + b"/" + inside, content)
        text = b"\0".join(path[len(lead) :] for path, _ in asked) + b"\0"
        done = subprocess.run(
            ["git", "check-ignore", "--no-index", "-z", "--stdin"],
            cwd=shadow,
            input=text,
            capture_output=True,
            check=False,
            env=QUIET,
        )
        assert done.returncode in (0, 1), done.stderr
        return {lead + each for each in done.stdout.split(b"\0") if each}

    def _tracked(self, home: bytes) -> list[bytes]:
        lead = home + b"/" if home else b""
        if lead + b".git" not in self.repositories:
            return []
        done = subprocess.run(
            ["git", "ls-files", "-ci", "--exclude-standard", "-z"],
            cwd=os.path.join(self.root, home),
            capture_output=True,
            check=True,
            env=QUIET,
        )
        return [lead + each for each in done.stdout.split(b"\0") if each]

    def _bytes(self, path: bytes) -> bytes:
        with open(self.root + b"/" + path, "rb") as file:
            return file.read()


def whole(path: bytes) -> bool:
    """Say whether a path does not lie in git's own files."""
    return b".git" not in path.split(b"/")[:-1]


def _put(path: bytes, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _lay(path: bytes, *, directory: bool) -> None:
    if directory:
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _put(path, b"")
