"""From a worktree into the workspace: snapshots, a merge, and its goal applied, with real files."""

from dataclasses import dataclass
from pathlib import Path

from tests.worktrees import git

from daruma.tools.snapshots.outcome import Restored
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store, store_of
from daruma.tools.team.merging import Merge, flat, merged, with_markers
from daruma.tools.team.worktree import make, worktree_folder


@dataclass
class Member:
    """One that works in a worktree of its own, and whose work is brought in."""

    workspace: Path
    phase: str

    async def begin(self) -> Path:
        self.ours = Snapshots(self.workspace, "t", Store(store_of(self.workspace)))
        self.before = self.ours.take("before", by="work", fresh=True).snapshot
        folder = worktree_folder(self.workspace, "t", self.phase)
        tree = await make(self.workspace, self.before.id, folder, self.ours)
        own = Store(store_of(tree.folder))
        self.theirs = Snapshots(tree.folder, f"t/{self.phase}", own)
        self.base = self.theirs.take("base", by="work", fresh=True).snapshot
        assert own.path == self.ours.store.path
        return tree.folder

    def bring(self, *, markers: bool = False) -> tuple[Merge, Restored]:
        mine = self.ours.take("mine", by="work").snapshot.root
        theirs = self.theirs.take("theirs", by="work").snapshot.root
        with self.ours.store.locked() as contents:
            base, here, there = (flat(contents.tree, r) for r in (self.base.root, mine, theirs))
            if markers:
                done = with_markers(base, here, there, contents.blob, self.phase)
            else:
                done = merged(base, here, there, contents.blob)
            for data in done.contents.values():
                contents.put_blob(data)
        return done, self.ours.apply(done.goal, "merge", by="work")


def files(top: Path) -> dict[str, str]:
    kept = (path for path in top.rglob("*") if ".git" not in path.parts and path.is_file())
    return {str(path.relative_to(top)): path.read_text() for path in kept}


async def test_the_work_of_two_members_comes_together(workspace: Path) -> None:
    """PL-06: new, changed and deleted files, a folder, a text that both have changed, a program."""
    text = "".join(f"{number}\n" for number in range(9))
    (workspace / "text").write_text(text)
    members = [Member(workspace, phase) for phase in ("p1", "p2")]
    one, two = [await each.begin() for each in members]
    (one / "text").write_text(f"one\n{text}")
    (one / "b.txt").unlink()
    (one / "deep" / "er").mkdir(parents=True)
    (one / "deep" / "er" / "x").write_text("x\n")
    (two / "text").write_text(f"{text}two\n")
    (two / "src" / "a.py").chmod(0o755)
    (two / "src" / "b.py").write_text("b\n")
    (workspace / "user.txt").write_text("the user's\n")
    before = files(workspace)
    done = [each.bring() for each in members]

    assert [merge.conflicts for merge, _ in done] == [(), ()]
    assert [restored.exact for _, restored in done] == [True, True]
    expected = before | {
        "text": f"one\n{text}two\n", "deep/er/x": "x\n", "src/b.py": "b\n"
    }  # fmt: skip
    del expected["b.txt"]
    assert files(workspace) == expected
    assert (workspace / "src" / "a.py").stat().st_mode & 0o777 == 0o755
    assert git(workspace, "diff", "--cached", "--name-only") == "staged.txt\n"


async def test_a_conflict_leaves_the_workspace_as_it_is_until_it_is_settled(
    workspace: Path,
) -> None:
    """PL-06: all of the work stays out; with markers it can be seen, in a worktree as here."""
    members = [Member(workspace, phase) for phase in ("p1", "p2")]
    one, two = [await each.begin() for each in members]
    (one / "c.txt").write_text("one\n")
    (two / "c.txt").write_text("two\n")
    (two / "also.txt").write_text("also\n")
    members[0].bring()
    before = files(workspace)
    done, _ = members[1].bring()

    assert [each.path for each in done.conflicts] == ["c.txt"]
    assert files(workspace) == before
    members[1].bring(markers=True)
    assert files(workspace) == before | {
        "c.txt": "<<<<<<< the workspace\none\n=======\ntwo\n>>>>>>> phase p2\n",
        "also.txt": "also\n",
    }


async def test_what_is_ignored_is_neither_brought_along_nor_missed(workspace: Path) -> None:
    """Also a file that is staged in spite of the rules, which a worktree's git does not know."""
    (workspace / ".gitignore").write_text("*.log\n.venv/\n")
    (workspace / ".venv").mkdir()
    for name in (".venv/x", "a.log", "forced.log"):
        (workspace / name).write_text("user\n")
    git(workspace, "add", "-f", "forced.log")
    member = Member(workspace, "p1")
    folder = await member.begin()
    (folder / "b.log").write_text("member\n")
    (folder / "new").write_text("new\n")
    before = files(workspace)
    done, restored = member.bring()

    assert not (folder / ".venv").exists()
    assert list(done.goal) == ["new"]
    assert restored.exact
    assert files(workspace) == before | {"new": "new\n"}
