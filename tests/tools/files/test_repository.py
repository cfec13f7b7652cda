"""The index of a repository is read without git, as git reads it."""

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.git_ground import git

from daruma.tools.files import Index, content_of, read_index

NAMES = [
    "a",
    "b/c",
    "b/d e",
    "b/" + "long" * 60,
    "é",
    "x" * 200 + "/y",
    "z/" * 40 + "z",
    "new\nline",
]


def made(work: Path, *how: str) -> Path:
    work.mkdir()
    git(work, "init", "-q", *how)
    for name in NAMES:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    return work


@pytest.mark.parametrize("how", [(), ("--object-format=sha256",)])
@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("threads", ["1", "4"])
def test_it_says_what_git_says(
    threads: str, version: str, how: tuple[str, ...], tmp_path: Path
) -> None:
    """In all versions, for both kinds of digests, and with tables of where its blocks begin."""
    work = made(tmp_path / "work", *how)
    git(work, "config", "index.version", version)
    git(work, "config", "index.threads", threads)
    git(work, "add", "-A")
    git(work, "add", "-N", "a") if version == "3" else None
    told = {os.fsdecode(each) for each in git(work, "ls-files", "-z").split(b"\0") if each}

    assert (b"IEOT" in (work / ".git/index").read_bytes()) == (threads == "4")
    assert read_index(work / ".git") == Index(frozenset(told))


@pytest.mark.parametrize(
    "extensions",
    [
        [(b"EOIE", (100).to_bytes(4, "big") + bytes(20))],
        [(b"IEOT", (1).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(4))],
        [(b"link", bytes(20)), (b"link", b"1" * 20)],
    ],
)
def test_tables_that_lead_elsewhere_are_told(
    extensions: list[tuple[bytes, bytes]], tmp_path: Path
) -> None:
    """SE-05: git goes by them, and would find other entries than those that stand in a row."""
    parts = [name + len(data).to_bytes(4, "big") + data for name, data in extensions]
    head = b"DIRC" + (2).to_bytes(4, "big") + bytes(4)
    for more, whole in ((b"", True), (b"".join(parts), False)):
        (tmp_path / "index").write_bytes(head + more + bytes(20))
        assert read_index(tmp_path) == Index(whole=whole)


def test_both_parts_of_a_split_index_count(tmp_path: Path) -> None:
    """What is new is in the one part, the rest in the other.

    Repositories in it are told apart: git walks into them; a name that leads elsewhere is none.
    """
    work = made(tmp_path / "work")
    git(work, "add", "-A")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub/mod")
    git(work, "update-index", "--split-index")
    (work / "late").touch()
    git(work, "add", "late")

    assert read_index(work / ".git") == Index(frozenset({*NAMES, "late"}), frozenset({"sub/mod"}))


def test_a_folder_of_a_sparse_index_is_no_file(tmp_path: Path) -> None:
    """C1: git would fetch what is in it, by a program that the repository names."""
    work = made(tmp_path / "work")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a")
    git(work, "sparse-checkout", "set", "--cone", "--sparse-index", "z")
    found = read_index(work / ".git").files

    assert "a" in found
    assert not any(each.startswith("b") for each in found)


def test_a_file_that_names_the_folder_is_followed(tmp_path: Path) -> None:
    """As in a worktree or a submodule; a pipe would hang whoever opens it."""
    work = made(tmp_path / "work")
    git(work, "init", "-q", "--separate-git-dir", str(tmp_path / "kept"))
    git(work, "add", "a")
    os.mkfifo(tmp_path / "index")

    assert read_index(work / ".git").files == {"a"}
    assert content_of(tmp_path / "index") == b""
    assert read_index(tmp_path) == Index(whole=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An index in the version that shares the beginnings of names."""
    work = made(tmp_path_factory.mktemp("whole") / "work")
    git(work, "config", "index.version", "4")
    git(work, "add", "-A")
    return (work / ".git" / "index").read_bytes()


@pytest.mark.long
@settings(max_examples=70, deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_a_damaged_index_ends(
    chance: Random, whole: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It says less or nothing, and is no error."""
    data = bytearray(whole)
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    (folder / "index").write_bytes(data[: chance.randint(0, len(data))])

    assert isinstance(read_index(folder), Index)


def test_names_do_not_grow_without_end(tmp_path: Path) -> None:
    """SE-07: each takes over all of the one before it, and adds a letter."""
    entry = bytes(60) + b"\0\x01" + b"\0" + b"x" + b"\0"
    (tmp_path / "index").write_bytes(
        b"DIRC" + (4).to_bytes(4, "big") + (1 << 31).to_bytes(4, "big") + entry * 40_000
    )

    assert read_index(tmp_path) == Index(whole=False)
