"""The model lists, loads and reads skills, a page at a time."""

from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_context, a_task, settings

from daruma.tools.calls.tool import Surroundings
from daruma.tools.calls.visible import offer_of
from daruma.tools.errors import ToolError
from daruma.tools.skills import PAGE, SKILL_TOOLS

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

    assert set(offer_of(a_task(), a_context(given=given), reading=False).names) == set(TOOLS)
    assert offer_of(a_task(), a_context(), reading=False).names == ()
