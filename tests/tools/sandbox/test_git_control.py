"""What git runs later, outside of the sandbox, can not be left behind by a command inside."""

import os
import resource
from pathlib import Path
from subprocess import run

import pytest
from tests.sandboxes import sandbox_at

from daruma.tools.commands import CommandResult
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox._repositories import Repositories, git_control

IDENTITY = "git -c user.name=me -c user.email=me@example.org"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with another one in it."""
    work = tmp_path / "work"
    for place in (work, work / "lib" / "inner"):
        place.mkdir(parents=True)
        run(["git", "init", "-q", str(place)], check=True)
    return work


async def inside(command: str, work: Path) -> CommandResult:
    return await sandbox_at("namespace").run(command, workspace=work, timeout=20)


def kept(work: Path) -> dict[str, bytes]:
    """What is to stay as it is, by its path."""
    parts = [*work.rglob(".git/hooks/**/*"), *work.rglob(".git/config"), *work.rglob(".git/info/*")]
    return {str(path): path.read_bytes() for path in parts if path.is_file()}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("place", [".", "lib/inner"])
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "mv .git/hooks .git/old; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "echo '[core] fsmonitor = evil' >> .git/config",
        "git config core.hooksPath /evil",
        "echo x > c; mv c .git/config; ln -sf c .git/config; rm .git/config",
        "echo '* filter=evil' > .git/info/attributes",
        "mv .git old; cp -r old .git; echo x > .git/hooks/pre-commit",
    ],
)
async def test_control_files_stay_as_they_are(work: Path, place: str, command: str) -> None:
    """Whatever way is tried, in the repository and in one nested in it."""
    before = kept(work)
    await inside(f"cd {place}; {command}; true", work)

    assert kept(work) == before


async def test_committing_works_and_nothing_else_is_moved_aside(work: Path) -> None:
    """The rest of the repository can be written.

    Else another one could be put in its place, with hooks of its own; by `commondir` git would read
    settings from elsewhere: what a command makes of it is removed.
    """
    done = await inside(f"echo a > a && git add a && {IDENTITY} commit -qm a && git log -1", work)
    moved = await inside("mkdir evil; echo ../evil > .git/commondir; mv .git old", work)

    assert done.passed, done.stderr
    assert not moved.passed
    assert (work / ".git" / "HEAD").exists()
    assert not (work / ".git" / "commondir").exists()


async def test_the_file_that_points_to_a_repository_stays(work: Path, tmp_path: Path) -> None:
    """Of a worktree, `.git` is a file; with another one git would read another configuration."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {work}/.git\n")
    await inside("echo 'gitdir: evil' > .git; rm -f .git; mv .git x", tree)

    assert (tree / ".git").read_text() == f"gitdir: {work}/.git\n"


async def test_a_link_in_place_of_a_repository_is_not_followed(tmp_path: Path) -> None:
    """What a command left there must not open the place it leads to."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "beside").mkdir()
    (tree / ".git").symlink_to(tmp_path / "beside")
    await inside("echo x > .git/x", tree)

    assert list((tmp_path / "beside").iterdir()) == []
    with git_control(tree, [Path(".git")]) as pinned:
        assert pinned == []


def test_hooks_are_made_where_there_are_none(tmp_path: Path) -> None:
    """What is not there can not be made read-only."""
    (tmp_path / ".git").mkdir()
    with git_control(tmp_path, [Path(".git")]) as pinned:
        found = {str(each.path.relative_to(tmp_path)): each.writable for each in pinned}

    assert found[".git"] is True
    assert found[".git/hooks"] is False


def test_placeholders_are_gone_in_the_end(work: Path) -> None:
    """Nothing of ours stays in a repository; the last of several commands removes it."""
    before = sorted((work / ".git").iterdir())
    repositories = Repositories().of(work)
    with git_control(work, repositories):
        with git_control(work, repositories):
            pass
        during = {path.name for path in (work / ".git").iterdir()}
    after = sorted((work / ".git").iterdir())

    assert {"commondir", "config.worktree"} <= during
    assert after == before


def test_placeholders_of_a_killed_process_are_harmless_and_removed(work: Path) -> None:
    """Git works with them as without; the next command takes them for ours."""
    (work / ".git" / "commondir").write_text(".\n")
    (work / ".git" / "config.worktree").touch()
    status = run(["git", "-C", str(work), "status", "-s"], capture_output=True, check=False)
    with git_control(work, Repositories().of(work)):
        pass

    assert (status.returncode, status.stderr) == (0, b"")
    assert not (work / ".git" / "commondir").exists()
    assert not (work / ".git" / "config.worktree").exists()


def test_what_can_not_be_protected_is_refused(work: Path) -> None:
    """Without descriptors nothing would be pinned: then no command is run."""
    repositories = Repositories().of(work)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = os.dup(0)
    os.close(top)
    for room in range(6):
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + room, hard))
        try:
            with pytest.raises(CommandRefused), git_control(work, repositories):
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "command",
    [
        "mv lib old; cp -r old lib; echo x > lib/inner/.git/hooks/pre-commit",
        "mv lib/inner old; cp -r old lib/inner; echo x > lib/inner/.git/hooks/pre-commit",
        "rm -rf lib; git init -q lib/inner; echo x > lib/inner/.git/hooks/pre-commit",
    ],
)
async def test_a_folder_around_a_repository_can_not_be_moved_aside(
    work: Path, command: str
) -> None:
    """Else another repository could be put where one was."""
    await inside(command, work)

    assert (work / "lib/inner/.git/config").exists()
    assert not (work / "lib/inner/.git/hooks/pre-commit").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees into the folders of others")
async def test_a_repository_in_a_folder_of_another_user_is_no_hindrance(work: Path) -> None:
    """Root without capabilities, as commands are, can not enter it: there is nothing to protect."""
    os.chown(work / "lib", 65534, 65534)
    (work / "lib").chmod(0o700)
    done = await inside("echo out; echo x > lib/inner/.git/config", work)

    assert done.stdout == "out\n"
    assert "Permission denied" in done.stderr


async def test_many_folders_do_not_hide_a_repository(work: Path) -> None:
    """A command can make more folders, and repositories, than are looked at the next time."""
    sandbox = sandbox_at("namespace")
    hide = "mkdir $(seq -f a%04g 700); for n in $(seq 70); do git init -q a$n; done"
    await sandbox.run(hide, workspace=work, timeout=20)
    done = await sandbox.run("echo x > lib/inner/.git/config", workspace=work, timeout=20)

    assert "Read-only" in done.stderr


async def test_the_repository_of_a_worktree_can_not_be_exchanged(work: Path) -> None:
    """By `commondir` and `gitdir` the worktree would read the configuration of another."""
    own = work / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    for name in ("HEAD", "commondir", "gitdir"):
        (own / name).write_text("as it was\n")
    attack = "cd .git; echo x > worktrees/tree/commondir; mv worktrees w; rm -rf worktrees/tree"
    await inside(attack + "; echo x > worktrees/tree/config.worktree", work)

    assert {path.name: path.read_text() for path in own.iterdir()} == dict.fromkeys(
        ("commondir", "gitdir"), "as it was\n"
    )


@pytest.mark.parametrize("name", ["config", "config.worktree", "commondir", "info", "hooks"])
async def test_a_repository_with_links_for_control_files_is_read_only(
    work: Path, name: str
) -> None:
    """A link can be replaced by a command, and can not be mounted over."""
    if (work / ".git" / name).exists():
        (work / ".git" / name).rename(work / "elsewhere")
    (work / ".git" / name).symlink_to("../elsewhere")
    done = await inside(f"rm .git/{name}", work)

    assert "Read-only" in done.stderr


@pytest.fixture(params=["kept", "."])
def own(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository by another name in a workspace, or in its place."""
    own = tmp_path / str(request.param)
    how = ["--bare"] if own == tmp_path else ["--separate-git-dir", str(own)]
    run(["git", "init", "-q", *how, str(tmp_path)], check=True)
    return own


async def test_a_repository_by_another_name_is_protected(own: Path, tmp_path: Path) -> None:
    """A workspace that is a bare one; what `git init --separate-git-dir` makes in it."""
    before = (own / "config").read_bytes()
    attack = f"echo x >> {own}/config; echo x > {own}/hooks/post-update; mv {own} k"
    await inside(f"{attack}; rm -f {own}/config", tmp_path)

    assert (own / "config").read_bytes() == before
    assert not (own / "hooks" / "post-update").exists()


def test_the_control_files_of_submodules_are_found(work: Path) -> None:
    """Their repositories lie in that of the one around them, also under names with a slash."""
    for name in ("sub", "deep/sub"):
        module = work / ".git" / "modules" / name
        for folder in ("hooks", "objects", "refs"):
            (module / folder).mkdir(parents=True)
        for file in ("config", "HEAD"):
            (module / file).touch()
    with git_control(work, Repositories().of(work)) as pinned:
        found = {str(each.path.relative_to(work)): each.writable for each in pinned}

    for name in ("sub", "deep/sub"):
        assert found[f".git/modules/{name}/hooks"] is False
        assert found[f".git/modules/{name}/config"] is False
    assert found[".git/modules/deep"] is True
    assert found["lib/inner/.git/config"] is False
    assert found["lib"] is True
