"""What a command leaves in repositories is told, and runs nothing when a person's git walks in."""

from hashlib import sha256
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.git_ground import git, repository
from tests.sandboxes import CONFINED, LEVELS, sandbox_at

from daruma.tools.commands import CommandResult
from daruma.tools.sandbox._repositories import harmless_settings
from daruma.tools.sandbox._sandbox import Level

IDENTITY = "-c user.name=me -c user.email=me@example.org"
NESTED = (
    f"git init -q nested && cd nested && echo a > a && git add a && git {IDENTITY} commit -qm a"
)
LINKED = "git add nested 2>/dev/null"
"""The repository around takes it for a part of its own: its `git status` walks in."""
APART = (
    "mkdir ../a && mv .git/HEAD .git/index ../a && mv .git ../shared && echo gitdir: ../a > .git"
)


def hidden(how: str, add: str = "git add -f node_modules/nested 2>/dev/null") -> str:
    """Plant a nested repository where no repositories are looked for, and do more to it."""
    return (
        f"mkdir node_modules && cd node_modules && ({NESTED}"
        f" && git config core.fsmonitor $PWD/../../evil) && cd .. && {add};"
        f" cd node_modules/nested && {how}"
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's repository, in which a task works."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "a.py").write_text("a = 1\n")
    repository(work)
    evil = work / "evil"  # what it leaves when it is run is no part of the workspace
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    evil.chmod(0o755)
    return work


async def run(level: Level, command: str, work: Path) -> CommandResult:
    return await sandbox_at(level).run(command, workspace=work, timeout=30)


def walk_in(work: Path) -> bool:
    """Do what people and their prompts do in every folder; return whether the canary was run."""
    found = (each.parent for name in (".git", "HEAD") for each in work.rglob(name))
    for folder in {work, *(each for each in found if ".git" not in each.parts)}:
        for asked in (("status",), ("diff",), ("checkout", "-q")):
            try:
                git(folder, *asked)
            except CalledProcessError:
                continue
    return (work.parent / "canary").exists()


PLANTED = {
    "a monitor in a nested repository": (
        f"({NESTED} && git config core.fsmonitor $PWD/../evil); {LINKED}"
    ),
    "a monitor in a file that is included": (
        f"({NESTED} && printf '[core]\\nfsmonitor = %s/../evil\\n' $PWD > .git/more"
        f" && git config include.path more); {LINKED}"
    ),
    "hooks in a folder of files": (
        f"({NESTED} && mkdir h && cp ../evil h/post-checkout && git config core.hooksPath h);"
        f" {LINKED}"
    ),
    "a hook": f"({NESTED} && cp ../evil .git/hooks/post-checkout); {LINKED}",
    "a hook that is a link": (
        f"({NESTED} && ln -s ../../../evil .git/hooks/post-checkout); {LINKED}"
    ),
    "a filter": (
        f"({NESTED} && git config filter.x.clean ../evil && echo '* filter=x' > .gitattributes"
        f" && touch -d 2001-01-01 a); {LINKED}"
    ),
    "a differ": f"({NESTED} && git config diff.external ../evil && echo b > a); {LINKED}",
    "a worktree's own settings": (
        f"({NESTED} && git config extensions.worktreeConfig true"
        f" && git config --worktree core.fsmonitor $PWD/../evil); {LINKED}"
    ),
    "a folder of git's elsewhere": (
        f"({NESTED} && mv .git ../kept && echo 'gitdir: ../kept' > .git"
        f" && git config core.fsmonitor $PWD/../evil); {LINKED}"
    ),
    "a shared folder elsewhere": (
        f"({NESTED} && cp -r .git ../shared && echo ../../shared > .git/commondir"
        f" && printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = %s/evil\\n' $PWD/.."
        f" > ../shared/config); {LINKED}"
    ),
    "a link to a folder of git's": (
        f"({NESTED} && git config core.fsmonitor $PWD/../evil && mv .git ../kept"
        f" && ln -s ../kept .git); {LINKED}"
    ),
    "one in one": (
        f"({NESTED} && {NESTED} && git config core.fsmonitor $PWD/../../evil;"
        f" cd .. && {LINKED}); {LINKED}"
    ),
    "one deep in many folders": (
        "mkdir -p $(seq -f d%04g 400) node_modules && cd node_modules"
        f" && ({NESTED} && git config core.fsmonitor $PWD/../../evil);"
        " cd .. && git add -f node_modules/nested 2>/dev/null"
    ),
    "one without work": (
        "git init -q --bare bare && cd bare && git config core.bare false"
        " && git config core.worktree .. && git config core.fsmonitor $PWD/../evil"
    ),
    "settings in another folder than its head": (
        "git init -q --bare shared && git -C shared config core.fsmonitor $PWD/evil"
        " && git -C shared config extensions.worktreeConfig true && git -C shared config"
        " core.repositoryFormatVersion 1 && git -C shared config --unset core.bare"
        " && mkdir docs && mv shared/HEAD docs && echo ../shared > docs/commondir"
        " && printf '[core]\nbare = false\nworktree = .\n' > docs/config.worktree"
    ),
    "a folder that ends in a blank": hidden("mv .git '../a ' && printf 'gitdir: ../a ' > .git"),
    "a name that C ends": hidden(r"mv .git ../a && printf 'gitdir: ../a\0/b' > .git"),
    "a shared folder that ends in a blank": hidden(
        f"{APART} && mv ../shared '../shared ' && printf '../shared ' > ../a/commondir"
    ),
    "a shared folder that ends by C": hidden(rf"{APART} && printf '../shared\0b' > ../a/commondir"),
    "a shared folder by a long way": hidden(
        f"{APART} &&"
        " (printf ..; head -c 1100000 /dev/zero | tr '\\0' /; echo shared) > ../a/commondir"
    ),
    "on the line of the section": (
        f"({NESTED} && printf '[core]fsmonitor = %s/../evil\\n' $PWD >> .git/config); {LINKED}"
    ),
    "very long": (
        f"({NESTED} && git config core.fsmonitor $PWD/../evil"
        " && yes '# padding padding padding' | head -c 2000000 >> .git/config); " + LINKED
    ),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("level", CONFINED)
@pytest.mark.parametrize("planted", PLANTED)
async def test_what_a_command_planted_is_not_run_by_a_persons_git(
    planted: str, level: Level, work: Path
) -> None:
    """SE-05, H8: `git status` in the repository, and in what was left in it."""
    result = await run(level, PLANTED[planted], work)
    assert not walk_in(work)
    assert "left repositories behind" in " ".join(result.notes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("planted", PLANTED)
async def test_the_attack_works_where_nothing_is_swept(planted: str, work: Path) -> None:
    """Else the test above would show nothing."""
    await run("none", PLANTED[planted], work)
    assert walk_in(work)


def entry(name: str, *, mode: int = 0o160000) -> bytes:
    """Return an entry of an index, by default a submodule's."""
    data = bytes(24) + mode.to_bytes(4, "big") + bytes(12) + b"1" * 20
    data += len(name).to_bytes(2, "big") + name.encode()
    return data + bytes(8 - len(data) % 8)


def index(*entries: bytes, more: bytes = b"", version: int = 2) -> bytes:
    head = b"DIRC" + version.to_bytes(4, "big") + len(entries).to_bytes(4, "big")
    return head + b"".join(entries) + more + bytes(20)


def _shared_names(last: str) -> list[bytes]:
    """Return entries of version 4, which say of a long name only what is another's."""
    long = b"/".join([b"x" * 100] * 38)
    files = [long, *(b"%03d" % number for number in range(100))]
    dropped = [b"\0", b"\0", *[b"\3"] * 99]
    of_file = bytes(24) + 0o100644.to_bytes(4, "big") + bytes(32) + b"\x0f\xff"
    found = [of_file + back + end + b"\0" for back, end in zip(dropped, files, strict=True)]
    all_of_it = len(long) + 3 - 128  # written as a number of variable length
    back = bytes([0x80 | (all_of_it >> 7), all_of_it & 0x7F])
    return [*found, entry(last)[:60] + len(last).to_bytes(2, "big") + back + last.encode() + b"\0"]


PLACE = "node_modules/nested"
_PADDING = index(entry(PLACE), more=b"ZZZZ" + (32).to_bytes(4, "big") + bytes(20))[:-20]
ODD = {
    "two slashes": index(entry("node_modules//nested")),
    "a dot": index(entry(f"./{PLACE}")),
    "the folder above": index(entry(f"../work/{PLACE}")),
    "a slash at the end": index(entry(f"{PLACE}/")),
    "a digest of another kind": _PADDING + sha256(_PADDING).digest(),
    "names that share": index(*_shared_names(PLACE), version=4),
    "too long": index(entry(PLACE), more=b"ZZZZ" + (300 << 20).to_bytes(4, "big"))[:-20],
}
"""Indexes that git reads, and in which a submodule stands."""


@pytest.mark.sampled(7)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("odd", ODD)
async def test_an_index_hides_no_repository(odd: str, level: Level, work: Path) -> None:
    """SE-05: git checks neither its digest nor its names, and walks into what it names."""
    (work / "odd").write_bytes(ODD[odd])
    longer = "truncate -s +314572820 odd;" if odd == "too long" else ""
    result = await run(level, f"{longer} {hidden('mv ../../odd ../../.git/index', 'true')}", work)

    git(work, "status")

    assert (work.parent / "canary").exists() == (level == "none")
    assert level == "none" or result.notes


def settings_of(work: Path) -> bytes:
    """Return the repository's settings; none where it is another one now."""
    return (work / ".git/config").read_bytes() if not (work / "old").exists() else b""


CHANGED = {
    "settings": "git config core.fsmonitor $PWD/evil",
    "a hook": "cp evil .git/hooks/post-checkout",
    "a hook behind many": (
        "cp evil .git/hooks/post-checkout;"
        " for n in $(seq -f %04g 700); do : > .git/hooks/a$n || break; done"
    ),
    "hooks that are a link": (
        "rm -rf .git/hooks; mkdir h; cp evil h/post-checkout; ln -s ../h .git/hooks"
    ),
    "another repository in its place": (
        "mv .git old; cp -r old .git; git config core.fsmonitor $PWD/evil"
    ),
    "a file in its place": (
        "cp -r .git other; git -C . --git-dir=other config core.fsmonitor $PWD/evil; mv .git old;"
        " echo 'gitdir: other' > .git"
    ),
    "settings from elsewhere": (
        "cp -r .git other; git --git-dir=other config core.fsmonitor $PWD/evil;"
        " echo ../other > .git/commondir"
    ),
    "settings of the worktree": "git config extensions.worktreeConfig true;"
    " git config --worktree core.fsmonitor $PWD/evil",
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("level", CONFINED)
@pytest.mark.parametrize("changed", CHANGED)
async def test_a_repository_that_was_there_is_as_it_was(
    changed: str, level: Level, work: Path
) -> None:
    """SE-05: kept from the command, or put back after it, where the level can not keep it."""
    before = settings_of(work)
    await run(level, CHANGED[changed], work)
    assert not walk_in(work)
    assert settings_of(work) in (before, b"")


@pytest.mark.parametrize("level", CONFINED)
async def test_the_next_command_finds_no_way_either(level: Level, work: Path) -> None:
    """What was made harmless stays so."""
    await run(level, f"({NESTED}); {LINKED}", work)
    await run(level, "cd nested; git config core.fsmonitor $PWD/../evil", work)
    assert not walk_in(work)


@pytest.mark.parametrize("level", CONFINED)
async def test_a_plain_repository_is_left_as_it_was_made(level: Level, work: Path) -> None:
    """Told, for a person may wonder; its settings and its history are the command's."""
    made = f"({NESTED}); git clone -q nested copy; git -C copy config user.name me"
    result = await run(level, made, work)
    listed = git(work / "copy", "config", "--local", "--list").decode()

    assert "nested/.git" in result.notes[0]
    assert "taken out" not in result.notes[0]
    assert "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*" in listed
    assert "user.name=me" in listed
    assert git(work / "copy", "log", "--format=%s") == b"a\n"


@pytest.mark.parametrize("level", CONFINED)
async def test_where_no_repository_is_left_nothing_is_told(level: Level, work: Path) -> None:
    """Committing is what a task may do."""
    result = await run(level, f"echo b > b; git add b; git {IDENTITY} commit -qm b", work)

    assert (result.exit_code, result.notes) == (0, ())


LINES = st.sampled_from([
    "[core]", "[CORE]", "[include]", '[remote "x"]', '[filter "x"]', "[core]fsmonitor=/x", "[a",
    "]", "\tfsmonitor = /x", "bare = false\\", "fsmonitor=/x", "FsMonitor = /x", "hooksPath = h",
    "url = ext::x", "uploadpack = /x", 'worktree = "a', "; c", "# c \\", "path = x", "filemode",
    "name = a # b", "\ufeff[core]", "[core] ; c", "\x0bfsmonitor = /x", "sshCommand = x",
    '[core "a"]', "", " ", "clean = x\r", "[core]\r",
])  # fmt: skip


@given(st.lists(LINES, max_size=12))
def test_no_line_runs_anything(lines: list[str]) -> None:
    """What is kept holds no name that is not known to run nothing, and is kept as it is again."""
    kept, _ = harmless_settings("\n".join(lines))
    low = kept.lower()

    assert not any(name in low for name in ("fsmonitor", "hookspath", "uploadpack", "sshcommand"))
    assert not any(name in low for name in ("[include", "[filter", "ext::", "\\\n"))
    assert harmless_settings(kept) == (kept, [])
