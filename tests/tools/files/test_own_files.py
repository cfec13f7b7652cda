"""Neither the editor nor a command writes what Daruma itself runs from (SE-05)."""

import shutil
import sys
from pathlib import Path
from subprocess import run

import pytest
from tests.sandboxes import CONFINED, sandbox_at

import daruma
from daruma.tools.errors import CommandRefused, PathRefused
from daruma.tools.files import FilesBeneath, add_own, own_around, own_in
from daruma.tools.sandbox._sandbox import Level

ROOT = Path(daruma.__file__).resolve().parents[2]
"""Of the checkout: modules that are run lie in it, and tests that are not."""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose environment is the one that Daruma runs from."""
    work = (tmp_path / "work").resolve()
    run([sys.executable, "-m", "venv", "--without-pip", work / "tools/env"], check=True)
    monkeypatch.setattr(sys, "prefix", str(work / "tools" / "env"))
    monkeypatch.setattr(sys, "executable", str(work / "tools" / "env" / "bin" / "python"))
    return work


EDITS = [
    "tools/env/lib/evil.pth",
    "tools/env/bin/git",
    "tools/env/pyvenv.cfg",
    "tools/env/new/deep/evil.py",
    "alias/evil.pth",
]


@pytest.mark.parametrize("path", EDITS)
def test_the_editor_writes_nothing_there(path: str, environment: Path) -> None:
    """H7: a `.pth` would be run by the next Daruma; by a link neither."""
    (environment / "alias").symlink_to("tools/env/lib")
    files = FilesBeneath(environment)
    change = files.replace if (environment / path).exists() else files.create

    with pytest.raises(PathRefused, match="is part of Daruma's own program"):
        change(path, b"import evil")
    with pytest.raises(PathRefused, match="is part of Daruma's own program"):
        files.delete("tools/env/pyvenv.cfg")
    files.create("tools/a.py", b"a")  # all else is the task's
    assert (environment / "tools" / "a.py").read_bytes() == b"a"


ATTACKS = [
    "echo 'import evil' > tools/env/lib/evil.pth",
    "cp /bin/true tools/env/bin/git",
    "echo home = . > tools/env/pyvenv.cfg",
    "mv tools/env old; cp -r old tools/env; touch tools/env/evil.pth",
    "mv tools old; cp -r old tools; touch tools/env/evil.pth",
    "rm -rf tools/env/lib; mkdir -p tools/env/lib; touch tools/env/evil.pth",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_command_writes_nothing_there(attack: str, environment: Path) -> None:
    """H7: namespaces keep it; what is beside it can be written."""
    before = listed(environment / "tools" / "env")
    sandbox = sandbox_at("namespace")
    await sandbox.run(f"{attack}; true", workspace=environment, timeout=20)
    after = await sandbox.run("touch tools/beside", workspace=environment, timeout=20)

    assert listed(environment / "tools" / "env") == before
    assert after.passed, after


def listed(folder: Path) -> dict[str, bytes]:
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


async def test_where_it_can_not_be_kept_no_command_is_run(environment: Path) -> None:
    """Landlock can deny nothing in a folder that may be written: one line says so.

    Without a sandbox, which was chosen by name, nothing is promised.
    """
    sandbox = sandbox_at("landlock")
    with pytest.raises(CommandRefused, match="Daruma's own program lies in it, ") as refused:
        await sandbox.run("true", workspace=environment, timeout=20)

    assert "\n" not in str(refused.value)
    assert (await sandbox_at("none").run("true", workspace=environment, timeout=20)).passed


@pytest.mark.parametrize("level", CONFINED)
@pytest.mark.parametrize("inside", [".", "tools"])
async def test_a_workspace_in_it_is_no_workspace(inside: str, level: Level) -> None:
    """Everything in there is run by Daruma."""
    package = Path(daruma.__file__).parent / "tools"
    with pytest.raises(CommandRefused, match="which is Daruma's own program"):
        await sandbox_at(level).run("true", workspace=(package / inside).resolve(), timeout=20)
    with pytest.raises(PathRefused):
        FilesBeneath(package).create("evil.py", b"")


def test_a_checkout_that_daruma_runs_from_can_be_worked_in() -> None:
    """But for what is run of it."""
    kept = {str(each.relative_to(ROOT)) for each in own_in(ROOT)}

    assert {"graph", "nodes", "state", "tools", ".src"} <= kept
    assert not {"tests", "README.md"} & kept
    assert own_around(ROOT) == ""


def test_a_workspace_beside_the_systems_python_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prefix such as /usr holds more than an environment."""
    for name in ("bin", "lib", "src/app"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    work = tmp_path / "src" / "app"

    assert (own_around(work), own_in(work)) == ("", {})
    FilesBeneath(work).create("a.py", b"")


async def test_an_environment_behind_a_link_can_not_be_kept(environment: Path) -> None:
    """The link could be made to lead elsewhere."""
    shutil.move(environment / "tools", environment.parent / "elsewhere")
    (environment / "tools").symlink_to("../elsewhere")

    with pytest.raises(CommandRefused, match="reached through a link"):
        await sandbox_at("namespace").run("true", workspace=environment, timeout=20)


async def test_files_of_servers_are_kept_too(tmp_path: Path) -> None:
    """H6: what is beside a server's script would be run with it."""
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "server.py").touch()
    add_own([tmp_path / "server"], "the MCP server 'notes'")
    with pytest.raises(PathRefused, match="is part of the MCP server 'notes'"):
        FilesBeneath(tmp_path).create("server/json.py", b"")
    await sandbox_at("namespace").run("touch server/json.py", workspace=tmp_path, timeout=20)

    assert listed(tmp_path) == {"server/server.py": b""}


# --- A repository by another name.


WHOLE = ("HEAD", "objects/x", "refs/heads/main")
SHARED = ("HEAD", "commondir")
"""The rest lies in the folder that is named, where settings are read, too."""


@pytest.mark.parametrize(
    ("parts", "last"), [(parts, last) for parts in (WHOLE, SHARED) for last in parts]
)
def test_the_editor_makes_no_repository(parts: tuple[str, ...], last: str, tmp_path: Path) -> None:
    """SE-05: git takes a folder with these for one, and runs what its settings name.

    Nor does it edit one that was there, or that a command has made.
    """
    files = FilesBeneath(tmp_path)
    for part in parts:
        if part != last:
            files.create(f"evil/{part}", b"x")
    files.create("evil/config", b"x")

    with pytest.raises(PathRefused, match="git's own files"):
        files.create(f"evil/{last}", b"x")
    run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(PathRefused, match="git's own files"):
        files.replace("bare/config", b"[core]\nfsmonitor = evil\n")
    with pytest.raises(PathRefused, match="git's own files"):
        files.create("bare/hooks/post-update", b"evil")
