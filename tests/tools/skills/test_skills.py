"""Skills are found in folders; one that is broken hides no other."""

import os
from pathlib import Path

import pytest

from daruma.tools.skills import SkillRefused, listed, missing_in, skill_named, usable_in


def make(folder: Path, at: str, text: str = "What it is for.") -> Path:
    """A skill in a sub-folder."""
    (folder / at).mkdir(parents=True, exist_ok=True)
    (folder / at / "SKILL.md").write_text(text)
    return folder


def names(*folders: Path) -> list[str]:
    return [skill.name for skill in usable_in([str(folder) for folder in folders])]


def test_each_sub_folder_with_a_skill_file_is_a_skill(tmp_path: Path) -> None:
    """CX-05: others, and files, are none."""
    make(tmp_path, "pdf", "---\nname: pdf-forms\ndescription: Fills forms.\n---\n")
    make(tmp_path, "plain")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("notes")

    assert listed([str(tmp_path)]).splitlines() == [
        "pdf-forms: Fills forms.",
        "plain: What it is for.",
    ]


def test_folders_are_taken_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of team templates are; one that is not there holds none, and the list says so."""
    make(tmp_path / "skills", "pdf")
    monkeypatch.chdir(tmp_path)

    assert [skill.name for skill in usable_in(["skills", "gone"])] == ["pdf"]
    assert missing_in(["skills", "gone"]) == ["gone"]
    assert listed(["gone"]) == "[the skills' folder gone is not there]"
    assert listed([]) == "there are no skills"


def test_of_one_name_the_first_folder_wins_and_it_is_said(tmp_path: Path) -> None:
    """By the name that they give themselves."""
    make(tmp_path / "a", "pdf", "From a.")
    make(tmp_path / "b", "other", "---\nname: pdf\n---\nFrom b.")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]

    assert skill_named("pdf", folders).description == "From a."
    assert listed(folders).splitlines() == [
        "pdf: From a.",
        f"pdf: can not be used: hidden by {tmp_path}/a/pdf, which has the same name",
    ]


def test_a_broken_one_takes_no_name_away(tmp_path: Path) -> None:
    """A good one of a later folder is used."""
    make(tmp_path / "a", "pdf", "---\nname: [\n---")
    make(tmp_path / "b", "pdf", "Good.")

    assert skill_named("pdf", [str(tmp_path / "a"), str(tmp_path / "b")]).description == "Good."


def test_broken_ones_are_listed_with_why(tmp_path: Path) -> None:
    """Whatever is wrong with them; those that are right stay."""
    make(tmp_path, "good")
    make(tmp_path, "open", "---\nname: x\n")
    make(tmp_path, "binary").joinpath("binary", "SKILL.md").write_bytes(b"\0\1")
    make(tmp_path, "huge").joinpath("huge", "SKILL.md").write_text("x" * (4 * 1024 * 1024 + 1))
    for name in ("fifo", "folder", "link"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "fifo" / "SKILL.md")
    (tmp_path / "folder" / "SKILL.md").mkdir()
    (tmp_path / "link" / "SKILL.md").symlink_to("/etc/hostname")
    (tmp_path / "dangling").symlink_to("nowhere")

    told = dict(line.split(": ", 1) for line in listed([str(tmp_path)]).splitlines())

    assert told.pop("good") == "What it is for."
    assert {name: why.removeprefix("can not be used: ") for name, why in told.items()} == {
        "binary": "binary/SKILL.md: a binary file (it holds NUL bytes)",
        "dangling": "dangling: no such file or directory: list the directory to see what is there",
        "fifo": "fifo/SKILL.md: is not a regular file",
        "folder": "folder/SKILL.md: is a directory",
        "huge": "huge/SKILL.md: 4194305 bytes: files over 4194304 bytes are not read or written",
        "link": "link/SKILL.md: a link leads out of the skills' folder",
        "open": "its front matter has no end: close it with a line ---",
    }


def test_a_name_that_is_none_is_told_the_nearest(tmp_path: Path) -> None:
    """As is one that can not be used."""
    make(tmp_path, "pdf-forms")
    make(tmp_path, "broken", "---\n")

    with pytest.raises(SkillRefused, match="did you mean 'pdf-forms'"):
        skill_named("pdf-form", [str(tmp_path)])
    with pytest.raises(SkillRefused, match="skills_list shows"):
        skill_named("../etc", [str(tmp_path)])
    with pytest.raises(SkillRefused, match="'broken' can not be used: its front matter"):
        skill_named("broken", [str(tmp_path)])


def test_a_linked_skill_outside_of_the_folder_is_no_skill(tmp_path: Path) -> None:
    """A task that can write the folder could else read anything on the disk."""
    make(tmp_path / "elsewhere", "pdf")
    make(tmp_path / "skills", "own")
    (tmp_path / "skills" / "pdf").symlink_to(tmp_path / "elsewhere" / "pdf")

    assert names(tmp_path / "skills") == ["own"]
