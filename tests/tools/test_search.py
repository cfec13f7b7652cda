"""A search finds text and names, bounded in time and in what it answers."""

import os
from pathlib import Path

import pytest

from daruma.tools.commands_tool import SearchArgs, search
from daruma.tools.errors import SearchRefused, ToolError
from daruma.tools.files.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A small project with things that are not to be searched."""
    (tmp_path / "work").mkdir()
    work = Workspace(tmp_path / "work")
    for path, text in {
        "src/app.py": "import os\r\n\tprint('a.b')\r\n",
        "src/deep/test_app.py": "# aXb\n",
        "readme.md": "a.b\n",
        ".git/config": "a.b\n",
        "node_modules/x/index.js": "a.b\n",
        ".venv/lib/x.py": "a.b\n",
    }.items():
        (work.root / path).parent.mkdir(parents=True, exist_ok=True)
        (work.root / path).write_bytes(text.encode())
    return work


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            {"pattern": "a.b"},
            ["readme.md:1: a.b", "src/app.py:2: print('a.b')", "src/deep/test_app.py:1: # aXb"],
        ),
        (
            {"pattern": "a.b", "literal": True},
            ["readme.md:1: a.b", "src/app.py:2: print('a.b')"],
        ),
        ({"pattern": "(?i)AXB$", "path": "src"}, ["src/deep/test_app.py:1: # aXb"]),
        ({"pattern": "os$", "path": "src/app.py"}, ["src/app.py:1: import os"]),
        ({"pattern": "a.b", "glob": "src/*.py"}, ["src/app.py:2: print('a.b')"]),
        ({"glob": "*.py"}, ["src/app.py", "src/deep/test_app.py"]),
        ({"glob": "**/test_*"}, ["src/deep/test_app.py"]),
        ({"pattern": "nowhere"}, ["nothing found"]),
    ],
)
async def test_what_fits_is_found(
    work: Workspace, args: dict[str, object], lines: list[str]
) -> None:
    """Expressions, plain text, globs and names; whole paths (CX-06); no caches, no `.git`."""
    assert (await search(SearchArgs.model_validate(args), work)).splitlines() == lines


async def test_a_long_answer_is_cut_and_says_so(work: Workspace) -> None:
    """At most 100 results, each line at most 200 characters around what was found."""
    (work.root / "many.txt").write_text("hit\n" * 101)
    (work.root / "wide.txt").write_text("x" * 500 + "needle" + "y" * 500)

    lines = (await search(SearchArgs(pattern="hit"), work)).splitlines()
    assert len(lines) == 101
    assert lines[-1].startswith("[cut after 100 results")
    line = await search(SearchArgs(pattern="needle"), work)
    assert "needle" in line
    assert len(line) < 230


async def test_exactly_as_many_results_as_allowed_are_not_cut(work: Workspace) -> None:
    """A hundred results are all of them, and are not called a part."""
    (work.root / "many.txt").write_text("hit\n" * 100)

    assert "cut" not in await search(SearchArgs(pattern="hit"), work)


async def test_what_is_no_text_is_left_out_and_counted(work: Workspace, tmp_path: Path) -> None:
    """Binary and oversized files are skipped, links are not followed, a FIFO does not hang."""
    (work.root / "binary").write_bytes(b"needle\0")
    (work.root / "huge").write_bytes(b"needle" + b"x" * (4 * 1024 * 1024))
    (tmp_path / "secret").write_text("needle")
    (work.root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(work.root / "fifo")

    assert (await search(SearchArgs(pattern="needle"), work)).splitlines() == [
        "nothing found",
        "[2 binary, oversized or unreadable files left out]",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"pattern": "a("}, "no regular expression"),
        ({}, "give a pattern"),
        ({"pattern": ""}, "give a pattern"),
        ({"pattern": "a", "path": "../"}, "not allowed"),
        ({"pattern": "a", "path": "/etc"}, "outside the workspace"),
        ({"pattern": "a", "path": "gone"}, "no such file"),
        ({"pattern": "a", "path": ".git"}, "git's own files"),
    ],
)
async def test_a_search_that_can_not_be_done_is_refused(
    work: Workspace, args: dict[str, object], said: str
) -> None:
    """One line says what was wrong."""
    with pytest.raises(ToolError, match=said) as caught:
        await search(SearchArgs.model_validate(args), work)

    assert "\n" not in str(caught.value)


async def test_a_catastrophic_expression_is_ended(work: Workspace) -> None:
    """Backtracking for years is killed at the time limit, and the model is told what to change."""
    (work.root / "bait").write_text("a" * 64 + "!\n")

    with pytest.raises(SearchRefused, match=r"over 0.3 s: narrow"):
        await search(SearchArgs(pattern="(a+)+$"), work, seconds=0.3)


async def test_nothing_in_the_workspace_is_imported(work: Workspace) -> None:
    """A module of the workspace can not take the place of one that the search uses."""
    for name in ("re.py", "json.py", "sitecustomize.py"):
        (work.root / name).write_text("raise SystemExit('taken over')\n")

    assert "taken over" not in await search(SearchArgs(pattern="import os"), work)
