"""The checks of a workspace follow from what lies in it, and all of them are run."""

from pathlib import Path

import pytest
from tests.parts import unconfined

from daruma.tools.checks import commands_for, recognised_commands, run_checks

PYTHON = ("pytest -x -q", "ruff check")


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (["pyproject.toml"], PYTHON),
        (["a.py"], PYTHON),
        (["pyproject.toml", "a.py"], PYTHON),
        (["package.json"], ("npm run test --if-present --silent",)),
        (["Cargo.toml"], ("cargo test --quiet",)),
        (["go.mod"], ("go test ./...",)),
        (["pom.xml"], ("mvn --quiet test",)),
        (["build.gradle.kts"], ("gradle --quiet test",)),
        (["mix.exs"], ("mix test",)),
        (["package.json", "tool.py"], ("npm run test --if-present --silent", *PYTHON)),
        (["README.md", "py", "a.pyc"], ()),
        ([], ()),
    ],
)
def test_files_tell_the_checks(files: list[str], commands: tuple[str, ...]) -> None:
    """VE-02: by manifest, and Python by any of its files."""
    assert commands_for(files) == commands


async def test_a_python_file_at_any_depth_counts(tmp_path: Path) -> None:
    """VE-02."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert await recognised_commands(tmp_path) == ()
    (tmp_path / "src" / "deep" / "a.py").touch()

    assert await recognised_commands(tmp_path) == PYTHON


@pytest.mark.parametrize("folder", ["node_modules/x", "venv/lib", ".venv/lib", ".git", "x/.tox"])
async def test_files_of_others_do_not_count(tmp_path: Path, folder: str) -> None:
    """What is installed or hidden says nothing about the workspace itself."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "a.py").touch()

    assert await recognised_commands(tmp_path) == ()


async def test_a_folder_named_like_a_manifest_is_none(tmp_path: Path) -> None:
    """Only files count; a broken link is none."""
    (tmp_path / "pyproject.toml").mkdir()
    (tmp_path / "a.py").symlink_to("nowhere")
    (tmp_path / "package.json").symlink_to("nowhere")

    assert "npm run test --if-present --silent" not in await recognised_commands(tmp_path)


async def test_all_checks_are_run(tmp_path: Path) -> None:
    """One that is red does not hide the next; the model is told all that is wrong."""
    first, second, third = await run_checks(
        ("echo out; echo err >&2; exit 3", "true", "sleep 9"), tmp_path, 0.3, await unconfined()
    )

    assert (first.passed, first.exit_code, first.output) == (False, 3, "out\n\nerr\n")
    assert (second.passed, second.exit_code, second.output) == (True, 0, "")
    assert (third.passed, third.exit_code, third.timed_out) == (False, None, True)


async def test_no_tests_pass_and_are_told(tmp_path: Path) -> None:
    """VE-02: pytest's exit code 5 is no failure; that of another command is one."""
    (tmp_path / "bin").mkdir()
    pytest_, other = await run_checks(
        ("pytest() { exit 5; }; pytest", "exit 5"), tmp_path, 5, await unconfined()
    )

    assert (other.passed, other.exit_code) == (False, 5)
    assert (pytest_.passed, pytest_.note) == (True, "there are no tests")


async def test_a_runner_that_is_not_there_is_explained(tmp_path: Path) -> None:
    """VE-02: exit code 127 says nothing about the work; nobody can make it green by working."""
    (check,) = await run_checks(("no-such-runner-anywhere test",), tmp_path, 5, await unconfined())

    assert check.exit_code == 127
    assert check.note
