"""The tools that run a shell command and that search in the workspace's files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.parts import unconfined

from daruma.state.events import Event
from daruma.tools.commands import Limits
from daruma.tools.errors import PathRefused, SearchRefused, ToolError
from daruma.tools.files import Workspace
from daruma.tools.workspace_tools import RunCommandArgs, SearchArgs, run_command, search

# --- The model is told how its command went, and can not leave the workspace by its directory.


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with a directory in it and a link that leads out."""
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "out").symlink_to("..")
    return Workspace(tmp_path / "work")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo hi", "exit code: 0\nstdout:\nhi"),
        ("echo no >&2; exit 2", "exit code: 2\nstderr:\nno"),
        ("echo a; echo b >&2", "exit code: 0\nstdout:\na\nstderr:\nb"),
        ("true", "exit code: 0\n(no output)"),
        ("kill -SEGV $$", "killed by signal 11 (SIGSEGV)\n(no output)"),
    ],
)
async def test_the_outcome_is_told(work: Workspace, command: str, text: str) -> None:
    """Code or signal first, then what there is of both streams; a failure is no error."""
    assert await run_command(RunCommandArgs(command=command), work, 10, await unconfined()) == text


async def test_a_timeout_is_told_with_the_output(work: Workspace) -> None:
    """The default time holds where the model names none."""
    said = await run_command(
        RunCommandArgs(command="echo begun; sleep 600"), work, 0.2, await unconfined()
    )

    assert said.startswith("timed out after 0.")
    assert said.endswith("stdout:\nbegun")


async def test_the_models_own_time_is_used(work: Workspace) -> None:
    """A shorter time than the default ends the command earlier."""
    said = await run_command(
        RunCommandArgs(command="sleep 600", timeout=0.1), work, 600, await unconfined()
    )

    assert said.startswith("timed out")


async def test_a_cut_is_seen(work: Workspace) -> None:
    """Long output has a line where its middle was left out."""
    said = await run_command(RunCommandArgs(command="seq 100000"), work, 10, await unconfined())

    assert "bytes left out]" in said
    assert said.endswith("\n100000")


async def test_a_directory_beneath_the_workspace_is_used(work: Workspace) -> None:
    """The workspace itself by default, else what is named."""
    assert await run_command(RunCommandArgs(command="pwd"), work, 10, await unconfined()) == (
        f"exit code: 0\nstdout:\n{work.root}"
    )
    assert await run_command(
        RunCommandArgs(command="pwd", cwd="sub"), work, 10, await unconfined()
    ) == (f"exit code: 0\nstdout:\n{work.root}/sub")
    with pytest.raises(ToolError, match="gone: no such file or directory"):
        await run_command(RunCommandArgs(command="true", cwd="gone"), work, 10, await unconfined())


@pytest.mark.parametrize("cwd", ["..", "/", "out", "out/work", "sub/../.."])
async def test_a_directory_outside_is_refused(work: Workspace, cwd: str) -> None:
    """Traversal, absolute paths and links that lead out (ED-02)."""
    with pytest.raises(PathRefused):
        await run_command(
            RunCommandArgs(command="touch hit", cwd=cwd), work, 10, await unconfined()
        )


@pytest.mark.parametrize("timeout", [0, -1, 601])
def test_a_time_beyond_ten_minutes_is_refused(timeout: float) -> None:
    """The schema allows more than 0 and at most 600 seconds."""
    with pytest.raises(ValidationError):
        RunCommandArgs(command="true", timeout=timeout)


async def test_a_limit_is_told_as_a_violation(work: Workspace) -> None:
    """SA-02: structured, with the setting that would change it."""
    sandbox = replace(await unconfined(), limits=Limits(1 << 40, 1))
    events: list[Event] = []
    line = "echo begun; sleep 60 & sleep 60"
    said = r"(?s)^sandbox_violation: killed, it had more processes than sandbox\.proc.*begun"
    with pytest.raises(ToolError, match=said):
        await run_command(RunCommandArgs(command=line), work, 10, sandbox, events.append)

    (told,) = [event.to_dict() for event in events if event.type == "command_run"]
    assert told["violation"].startswith("killed, it had more processes")


@pytest.mark.parametrize(("network", "told"), [(False, True), (True, False)])
async def test_a_blocked_network_is_told_beside_a_success(
    work: Workspace, *, network: bool, told: bool
) -> None:
    """SA-02: the exit code stays what it was, the result says what was blocked, as the event."""
    left = ("the network, which the settings allow",) if network else ()
    sandbox = replace(await unconfined(), level="namespace", not_covered=left)
    events: list[Event] = []
    line = "echo 'curl: (6) Could not resolve host: x' >&2; true"
    said = await run_command(RunCommandArgs(command=line), work, 10, sandbox, events.append)

    assert said.startswith("exit code: 0\n")
    assert ("\nsandbox_violation: the network is blocked" in said) is told
    (event,) = [event.to_dict() for event in events if event.type == "command_run"]
    assert bool(event["violation"]) is told


# --- A search finds text and names, bounded in time and in what it answers.


@pytest.fixture
def work_search(tmp_path: Path) -> Workspace:
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
    work_search: Workspace, args: dict[str, object], lines: list[str]
) -> None:
    """Expressions, plain text, globs and names; whole paths (CX-06); no caches, no `.git`."""
    assert (await search(SearchArgs.model_validate(args), work_search)).splitlines() == lines


async def test_a_long_answer_is_cut_and_says_so(work_search: Workspace) -> None:
    """At most 100 results, each line at most 200 characters around what was found."""
    (work_search.root / "many.txt").write_text("hit\n" * 101)
    (work_search.root / "wide.txt").write_text("x" * 500 + "needle" + "y" * 500)

    lines = (await search(SearchArgs(pattern="hit"), work_search)).splitlines()
    assert len(lines) == 101
    assert lines[-1].startswith("[cut after 100 results")
    (work_search.root / "many.txt").write_text("hit\n" * 100)  # all of them, and no part
    assert "cut" not in await search(SearchArgs(pattern="hit"), work_search)
    line = await search(SearchArgs(pattern="needle"), work_search)
    assert "needle" in line
    assert len(line) < 230


async def test_what_is_no_text_is_left_out_and_counted(
    work_search: Workspace, tmp_path: Path
) -> None:
    """Binary and oversized files are skipped, links are not followed, a FIFO does not hang."""
    (work_search.root / "binary").write_bytes(b"needle\0")
    (work_search.root / "huge").write_bytes(b"needle" + b"x" * (4 * 1024 * 1024))
    (tmp_path / "secret").write_text("needle")
    (work_search.root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(work_search.root / "fifo")

    assert (await search(SearchArgs(pattern="needle"), work_search)).splitlines() == [
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
    work_search: Workspace, args: dict[str, object], said: str
) -> None:
    """One line says what was wrong."""
    with pytest.raises(ToolError, match=said) as caught:
        await search(SearchArgs.model_validate(args), work_search)

    assert "\n" not in str(caught.value)


async def test_a_catastrophic_expression_is_ended(work_search: Workspace) -> None:
    """Backtracking for years is killed at the time limit, and the model is told what to change."""
    (work_search.root / "bait").write_text("a" * 64 + "!\n")

    with pytest.raises(SearchRefused, match=r"over 0.3 s: narrow"):
        await search(SearchArgs(pattern="(a+)+$"), work_search, seconds=0.3)


async def test_nothing_in_the_workspace_is_imported(work_search: Workspace) -> None:
    """A module of the workspace can not take the place of one that the search uses."""
    for name in ("re.py", "json.py", "sitecustomize.py"):
        (work_search.root / name).write_text("raise SystemExit('taken over')\n")

    assert "taken over" not in await search(SearchArgs(pattern="import os"), work_search)
