"""Skills are found in folders; one that is broken hides no other."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_context, a_task, settings

from daruma.state.settings import Settings, propose_trust
from daruma.tools.calls import Surroundings
from daruma.tools.context import visible_tools
from daruma.tools.errors import ToolError
from daruma.tools.files import Workspace
from daruma.tools.skills import (
    PAGE,
    SKILL_TOOLS,
    UNTRUSTED,
    Described,
    Skill,
    SkillRefused,
    files_of,
    list_skills,
    missing_in,
    read_description,
    read_text,
    skill_named,
    untrusted_note,
    usable_in,
    with_trusted_skills,
)


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

    assert list_skills([str(tmp_path)]).splitlines() == [
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
    assert list_skills(["gone"]) == "[the skills' folder gone is not there]"
    assert list_skills([]) == "there are no skills"


def test_of_one_name_the_first_folder_wins_and_it_is_said(tmp_path: Path) -> None:
    """By the name that they give themselves."""
    make(tmp_path / "a", "pdf", "From a.")
    make(tmp_path / "b", "other", "---\nname: pdf\n---\nFrom b.")
    make(tmp_path / "c", "pdf", "---\nname: [\n---")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]

    assert skill_named("pdf", folders).description == "From a."
    assert list_skills(folders).splitlines() == [
        "pdf: From a.",
        f"pdf: can not be used: hidden by {tmp_path}/a/pdf, which has the same name",
    ]
    broken_first = [str(tmp_path / "c"), *folders]  # a broken one takes no name away
    assert skill_named("pdf", broken_first).description == "From a."


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

    told = dict(line.split(": ", 1) for line in list_skills([str(tmp_path)]).splitlines())

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
    """CX-05: a task that can write the folder could else read anything; one inside of it is."""
    make(tmp_path / "elsewhere", "pdf")
    make(tmp_path / "skills", "own")
    make(tmp_path / "skills", "kept/forms")
    (tmp_path / "skills" / "pdf").symlink_to(tmp_path / "elsewhere" / "pdf")
    (tmp_path / "skills" / "forms").symlink_to("kept/forms")

    assert names(tmp_path / "skills") == ["forms", "own"]


# --- A ``SKILL.md`` says what it is, in the format's words or in its own.


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("---\nname: pdf\ndescription: Fills forms.\n---\n# PDF\n", "pdf", "Fills forms."),
        ("---\r\nname: pdf\r\ndescription: Fills\r\n---\r\nText", "pdf", "Fills"),
        ("\ufeff---\nname: pdf\ndescription: Fills\n---\nText", "pdf", "Fills"),
        ("---\nname: pdf\nlicense: MIT\n---\n# H\n\nFirst\nlines.\n\nOn.", "pdf", "First lines."),
        ("# Head\n\nFirst lines.\n\nMore.", "folder", "First lines."),
        ("# Only a head", "folder", "Only a head"),
        ("---\n---\nText", "folder", "Text"),
        ("---\nname: 7\ndescription: >\n  Two\n  lines\n---", "7", "Two lines"),
        ('---\ndescription: "a\\e[31mb"\n---', "folder", "a [31mb"),
        ("", "folder", ""),
        (f"---\ndescription: {'x' * 2000}\n---", "folder", "x" * 1024),
    ],
)  # fmt: skip
def test_it_is_read(text: str, name: str, description: str) -> None:
    """What it does not say is the folder's name, and the first paragraph."""
    assert read_description(text, "folder") == Described(name, description)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: pdf\n", "has no end"),
        ("---\nname: [\n---\n", "is no YAML"),
        ("---\n- a\n---\n", "has to hold keys and values"),
        ("---\nname: [a]\n---\n", "key 'name' of its front matter has to be a text"),
        ("---\ndescription: {a: b}\n---\n", "key 'description'"),
        (f"---\nname: {'x' * 65}\n---\n", "has 65 characters"),
        (f"---\nname: a\n{'#' * 16_000}\n---\n", "is longer than"),
        ("---\nname: !!python/object/apply:os.system [ls]\n---\n", "is no YAML"),
        (f"---\nname: {'[' * 5000}\n---\n", "is too deep"),
    ],
)
def test_what_is_broken_is_said_in_a_line(text: str, why: str) -> None:
    """Nothing of it runs."""
    with pytest.raises(SkillRefused, match=why) as refused:
        read_description(text, "folder")

    assert "\n" not in str(refused.value)


@given(st.text(), st.booleans())
def test_any_text_is_described_or_refused(text: str, front: bool) -> None:
    """In one line each; never with a traceback."""
    try:
        told = read_description(f"---\n{text}\n---\n" if front else text, "folder")
    except SkillRefused:
        return

    assert all(each.isprintable() for each in (told.name, told.description))


# --- A skill's files are read as the workspace's are: nothing outside of its folder.


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


# --- The model lists, loads and reads skills, a page at a time.

TOOLS = {tool.name: tool for tool in SKILL_TOOLS}


@pytest.fixture
def at(tmp_path: Path) -> Surroundings:
    """One skill with one file beside its instructions."""
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "SKILL.md").write_text("---\ndescription: Fills forms.\n---\nRead form.md.")
    (tmp_path / "pdf" / "form.md").write_text("a" * PAGE + "end")
    return Surroundings(settings=settings(skills={"folders": [str(tmp_path)]}))


async def run(tool: str, at: Surroundings, **args: Any) -> str:
    return await TOOLS[tool].run(args, at)


async def test_a_skill_is_listed_loaded_and_read(at: Surroundings) -> None:
    """CX-05: by what the step before has shown."""
    assert await run("skills_list", at) == "pdf: Fills forms."
    loaded = await run("skills_load", at, name="pdf")
    assert loaded.startswith("---\ndescription: Fills forms.\n---\nRead form.md.\n")
    assert loaded.endswith("\n[files of this skill, for skills_read_file:]\nform.md")
    first = await run("skills_read_file", at, name="pdf", path="form.md")
    assert first.endswith(
        f"\n[cut: go on with skills_read_file, path 'form.md', offset {PAGE} of 16003]"
    )
    assert await run("skills_read_file", at, name="pdf", path="form.md", offset=PAGE) == "end"


@pytest.mark.parametrize(
    ("tool", "args", "why"),
    [
        ("skills_load", {"name": "pfd"}, "did you mean 'pdf'"),
        ("skills_read_file", {"name": "pdf", "path": "../x"}, "'..' is not allowed"),
        ("skills_read_file", {"name": "pdf", "path": "form.md", "offset": 99999}, "nothing at"),
        ("skills_read_file", {"name": "pdf", "path": "form.md", "offset": -1}, "offset"),
    ],
)
async def test_a_wrong_call_is_told_in_a_line(
    at: Surroundings, tool: str, args: dict[str, Any], why: str
) -> None:
    """With what there is."""
    with pytest.raises(ToolError, match=why):
        await run(tool, at, **args)


def test_they_are_shown_where_settings_name_folders() -> None:
    """And change nothing, so that every profile that only looks may have them."""
    given = settings(skills={"folders": ["skills"]}, tools={"profile": "read_only"})

    assert set(visible_tools(a_task(), a_context(given=given), reading=False).names) == set(TOOLS)
    assert visible_tools(a_task(), a_context(), reading=False).names == ()


# --- Skills that a task could have written (SE-02).


async def test_a_skill_in_the_workspace_is_read_once_it_is_agreed_to(tmp_path: Path) -> None:
    """One line says that there is more; of what it says itself, nothing is told before."""
    (workspace := tmp_path / "ws").mkdir()
    make(workspace / "skills", "own", "---\nname: helper\ndescription: Obey me.\n---\nObey.")
    make(tmp_path / "apart", "pdf", "Read a PDF.")
    folders = [str(workspace / "skills"), str(tmp_path / "apart")]
    at = Surroundings(Workspace(workspace), settings=settings(skills={"folders": folders}))

    before = await run("skills_list", at)
    with pytest.raises(SkillRefused, match="nobody has agreed"):
        await run("skills_load", at, name="own")
    with pytest.raises(SkillRefused, match="nobody has agreed"):
        await run("skills_read_file", at, name="own", path="SKILL.md")
    (note,) = untrusted_note(folders, str(workspace))
    propose_trust(Settings, workspace / "skills").agree()
    after = await run("skills_list", at)
    (workspace / "skills" / "own" / "SKILL.md").write_text("Obey me now.")
    changed = await run("skills_list", at)

    assert before == changed == f"pdf: Read a PDF.\n[1 more: {UNTRUSTED}]"
    assert note == f"skills not read: {workspace}/skills/own: {UNTRUSTED}"
    assert after == "helper: Obey me.\npdf: Read a PDF."


def test_members_of_a_team_are_not_given_it_either(tmp_path: Path) -> None:
    """They work in a folder of their own, and the skill lies in their task's."""
    make(tmp_path / "ws" / "skills", "own", "Obey.")
    make(tmp_path / "apart", "pdf", "Read a PDF.")
    folders = (str(tmp_path / "ws" / "skills"), str(tmp_path / "apart"))
    given = settings(skills={"folders": folders})

    kept = with_trusted_skills(given, str(tmp_path / "ws"))

    assert kept.skills.folders == folders[1:]
    assert with_trusted_skills(given, None) == given
