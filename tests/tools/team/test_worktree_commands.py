"""Commands work in a worktree at every level, though it lies in a folder that they must not see."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandboxes import CONFINED, LEVELS, sandbox_at
from tests.worktrees import made

from daruma.tools.sandbox._mounts import Seen, look_at_host, mounts
from daruma.tools.sandbox._sandbox import Level
from daruma.tools.snapshots import Snapshots, Store, store_of
from daruma.tools.team import worktree_folder
from daruma.tools.team._worktree import make


@pytest.mark.long
@pytest.mark.parametrize("level", LEVELS)
async def test_commands_work_in_a_worktree(level: Level, workspace: Path) -> None:
    """They read, write, start programs and use git, in the files of a snapshot."""
    snapshots = Snapshots(workspace, "t", Store(store_of(workspace)))
    snapshot = snapshots.take("before", by="work", fresh=True).snapshot
    folder = worktree_folder(workspace, "t", "p1")
    tree = await make(workspace, snapshot.id, folder, snapshots.materialise)
    command = (
        "cat src/a.py && echo three > src/b.py && python -c 'import src.b' ; git status --short"
    )
    done = await sandbox_at(level).run(command, workspace=tree.folder, timeout=30)

    assert tree.note == ""
    assert done.stdout.startswith("one\ntwo\n")
    assert "NameError" in done.stderr
    changed = {line[3:] for line in done.stdout.splitlines() if line[2:3] == " "}
    assert changed == {"src/a.py", "src/b.py", "new.txt", "staged.txt"}
    assert (folder / "src" / "b.py").read_text() == "three\n"
    assert not (workspace / "src" / "b.py").exists()


@pytest.fixture(params=["in a hidden place", "in an open one"])
def data(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A data folder that is hidden with what is around it, and one that is hidden by itself."""
    if request.param == "in a hidden place":
        monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
        yield tmp_path / "data"
        return
    if os.geteuid() != 0:
        pytest.skip("a folder outside of hidden places takes root")
    place = Path(tempfile.mkdtemp(prefix="daruma-test-", dir="/opt"))
    monkeypatch.setenv("DARUMA_DATA_DIR", str(place))
    yield place
    shutil.rmtree(place)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", CONFINED)
async def test_other_members_and_the_data_are_out_of_sight(
    level: Level, workspace: Path, data: Path
) -> None:
    """Nothing of the data folder but the member's own files: no store, no mark, nobody else's."""
    one, other = [await made(workspace, phase) for phase in ("p1", "p2")]
    store = store_of(workspace)
    store.parent.mkdir(parents=True)
    store.write_text("s3cret")
    mark = one.folder.with_name(f".{one.folder.name}.made")
    hidden = (store, mark, other.folder / "new.txt", workspace / "new.txt")
    before = {path: path.read_bytes() for path in hidden}
    run = sandbox_at(level).run
    reading = [await run(["cat", str(path)], workspace=one.folder, timeout=30) for path in hidden]
    for path in hidden:
        await run(f"mkdir -p {path.parent}; echo x >> {path}", workspace=one.folder, timeout=30)
    own = await run("cat new.txt", workspace=one.folder, timeout=30)
    listed = await run(["ls", str(data)], workspace=one.folder, timeout=30)

    assert [(done.stdout, done.exit_code) for done in reading] == [("", 1)] * len(hidden)
    assert {path: path.read_bytes() for path in hidden} == before
    assert own.stdout == "n\n"
    assert "snapshots" not in listed.stdout


def test_a_data_folder_that_is_made_later_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this host was seen to hold is remembered, but not for ever."""
    place = tmp_path / "later"
    monkeypatch.setenv("DARUMA_DATA_DIR", str(place))
    before = look_at_host({"PATH": os.defpath}).hidden
    place.mkdir()
    after = look_at_host({"PATH": os.defpath}).hidden

    assert place not in before
    assert place in after


def test_exactly_one_folder_of_the_data_is_opened() -> None:
    """It is mounted after, and on top of, the place that is hidden."""
    data = Path("/var/lib/daruma")
    folder = data / "worktrees" / "w" / "t" / "p1"
    found = mounts(Seen(hidden=(data,), shown=(), home=Path("/root")), folder)

    assert [each for each in found if each[0].is_relative_to(data)] == [
        (data, "hidden"),
        (folder, "workspace"),
    ]
