"""A skill's files are read as the workspace's are: nothing outside of its folder."""

import os
from pathlib import Path

import pytest

from daruma.tools.errors import ToolError
from daruma.tools.skills import Skill, files_of, read_text, skill_named


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    """A skill with some files, a hostile link of each kind, and a neighbour."""
    at = tmp_path / "skills" / "pdf"
    (at / "parts").mkdir(parents=True)
    (at / "SKILL.md").write_text("Fills forms.")
    (at / "parts" / "form.md").write_text("The form.")
    (at / "inside").symlink_to("parts/form.md")
    (at / "outside").symlink_to("/etc/hostname")
    (at / "up").symlink_to("../..")
    os.mkfifo(at / "fifo")
    (at / "binary").write_bytes(b"a\0")
    (at / "latin").write_bytes("café".encode("latin-1"))
    (at / "huge").write_text("x" * (4 * 1024 * 1024 + 1))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "skills" / "other").mkdir()
    (tmp_path / "skills" / "other" / "SKILL.md").write_text("Other.")
    return skill_named("pdf", [str(tmp_path / "skills")])


@pytest.mark.parametrize("path", ["parts/form.md", "./parts/form.md", "parts//form.md"])
def test_its_files_are_read(skill: Skill, path: str) -> None:
    """CX-05: by the path that its instructions name."""
    assert read_text(skill, path) == "The form."


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../other/SKILL.md", "'..' is not allowed"),
        ("parts/../../../secret", "'..' is not allowed"),
        ("/etc/hostname", "name a file by its path in the skill's folder"),
        ("", "name a file by its path in the skill's folder"),
        ("outside", "a link leads out of the skills' folder"),
        ("up/secret", "a link leads out of the skills' folder"),
        ("parts", "is a directory"),
        ("fifo", "is not a regular file"),
        ("binary", "a binary file"),
        ("latin", "neither UTF-8 nor UTF-16 text"),
        ("huge", "files over 4194304 bytes"),
        ("gone", "no such file or directory"),
        ("a\0b", "a path can not hold a NUL character"),
        (".git/config", "git's own files"),
        ("~/x", "no such file"),
    ],
)
def test_hostile_paths_are_refused_in_a_line(skill: Skill, path: str, why: str) -> None:
    """In words of skills, not of the workspace."""
    with pytest.raises(ToolError, match=why) as refused:
        read_text(skill, path)

    assert "\n" not in str(refused.value)
    assert "workspace" not in str(refused.value)


def test_its_files_are_listed(skill: Skill) -> None:
    """Links and special files by their names, not what they lead to; no more than asked for."""
    found = files_of(skill, 50)

    assert found == [
        "binary", "fifo", "huge", "inside", "latin", "outside", "up", "parts/form.md",
    ]  # fmt: skip
    assert len(files_of(skill, 3)) == 3
