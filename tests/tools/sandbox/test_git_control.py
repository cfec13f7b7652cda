"""What git runs later, outside of the sandbox, can not be left behind by a command inside."""

from pathlib import Path
from subprocess import run

import pytest
from tests.sandboxes import sandbox_at

from daruma.tools.commands.command import CommandResult
from daruma.tools.sandbox.git_control import git_control

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


async def test_a_repository_can_not_be_moved_aside(work: Path) -> None:
    """Else another one could be put in its place, with hooks of its own."""
    done = await inside("mv .git old", work)

    assert not done.passed
    assert (work / ".git" / "HEAD").exists()


async def test_configuration_can_not_be_borrowed(work: Path) -> None:
    """By `commondir` git would read it from elsewhere: what a command makes of it is removed."""
    await inside("mkdir evil; echo ../evil > .git/commondir", work)

    assert not (work / ".git" / "commondir").exists()


async def test_committing_works(work: Path) -> None:
    """The rest of the repository can be written."""
    done = await inside(f"echo a > a && git add a && {IDENTITY} commit -qm a && git log -1", work)

    assert done.passed, done.stderr


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
    with git_control(tree) as pinned:
        assert pinned == []


def test_hooks_are_made_where_there_are_none(tmp_path: Path) -> None:
    """What is not there can not be made read-only."""
    (tmp_path / ".git").mkdir()
    with git_control(tmp_path) as pinned:
        found = [(str(each.path.relative_to(tmp_path)), each.writable) for each in pinned]

    assert found == [(".git", True), (".git/hooks", False)]


def test_the_control_files_of_submodules_are_found(work: Path) -> None:
    """Their repositories lie in that of the one around them."""
    module = work / ".git" / "modules" / "sub"
    (module / "hooks").mkdir(parents=True)
    (module / "config").touch()
    with git_control(work) as pinned:
        found = {str(each.path.relative_to(work)): each.writable for each in pinned}

    assert found[".git/modules/sub/hooks"] is False
    assert found[".git/modules/sub/config"] is False
    assert found["lib/inner/.git/config"] is False
