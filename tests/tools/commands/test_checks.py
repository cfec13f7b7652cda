"""The checks of a workspace follow from what lies in it, and all of them are run."""

import shutil
from pathlib import Path

import pytest
from tests.parts import unconfined

from daruma.state.verification import Check
from daruma.tools.checks import CTEST, PYTEST, commands_for, recognised_commands
from daruma.tools.verification import Checking, run_checks

PYTHON = ("pytest -x -q",)
RUFF = "ruff check"
NPM = "npm run test --if-present --silent"
NO_TEST = '{"scripts": {"test": "echo no test specified && exit 1"}}'
WITH_TEST = '{"scripts": {"test": "node test.js"}}'

TABLE: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({"pyproject.toml": ""}, PYTHON),
    ({"a.py": ""}, PYTHON),
    ({"pyproject.toml": "", "a.py": ""}, PYTHON),
    ({"pyproject.toml": "[tool.ruff]\nline-length = 100"}, (*PYTHON, RUFF)),
    ({"pyproject.toml": "[tool.ruff.lint]"}, (*PYTHON, RUFF)),
    ({"pyproject.toml": "# [tool.ruff] is not used"}, PYTHON),
    ({"pyproject.toml": "[tool.ruffian]"}, PYTHON),
    ({"a.py": "", "ruff.toml": ""}, (*PYTHON, RUFF)),
    ({"a.py": "", ".ruff.toml": ""}, (*PYTHON, RUFF)),
    ({"package.json": WITH_TEST}, (NPM,)),
    ({"package.json": "{}"}, ()),
    ({"package.json": "not json"}, ()),
    ({"package.json": '["scripts"]'}, ()),
    ({"package.json": NO_TEST}, ()),
    ({"Cargo.toml": ""}, ("cargo test --quiet",)),
    ({"go.mod": ""}, ("go test ./...",)),
    ({"pom.xml": ""}, ("mvn --quiet test",)),
    ({"build.gradle.kts": ""}, ("gradle --quiet test",)),
    ({"mix.exs": ""}, ("mix test",)),
    ({"Makefile": "all:\n\ttrue\ntest: all\n\t./run"}, ("make test",)),
    ({"Makefile": "test := x\ntests:\n"}, ()),
    ({"Makefile": "test:\n\tpytest -q\n", "a.py": ""}, PYTHON),
    ({"Makefile": "test:\n\t./run\n", "a.py": ""}, (*PYTHON, "make test")),
    ({"Gemfile": "", "spec/": ""}, ("bundle exec rspec",)),
    ({"Gemfile": "", ".rspec": "", "Rakefile": "task :test"}, ("bundle exec rspec",)),
    ({"Gemfile": "", "Rakefile": "Rake::TestTask.new"}, ("bundle exec rake test",)),
    ({"Gemfile": ""}, ()),
    ({"CMakeLists.txt": "enable_testing()"}, (CTEST,)),
    ({"CMakeLists.txt": "  add_test(NAME a COMMAND a)"}, (CTEST,)),
    ({"CMakeLists.txt": "project(x)"}, ()),
    ({"a.sln": "", "b.csproj": ""}, ("dotnet test",)),
    ({"composer.json": '{"scripts": {"test": "phpunit"}}'}, ("composer test",)),
    ({"composer.json": '{"require-dev": {"phpunit/phpunit": "*"}}'}, ("vendor/bin/phpunit",)),
    ({"composer.json": "{}"}, ()),
    ({"Package.swift": ""}, ("swift test",)),
    ({"deno.json": ""}, ("deno test",)),
    ({"package.json": WITH_TEST, "tool.py": ""}, (*PYTHON, NPM)),
    ({"README.md": "", "py": "", "a.pyc": ""}, ()),
    ({}, ()),
]


@pytest.mark.parametrize(("files", "commands"), TABLE)
def test_files_tell_the_checks(files: dict[str, str], commands: tuple[str, ...]) -> None:
    """VE-02: by manifest and what it says of tests; Python by any of its files."""
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
    (tmp_path / "Cargo.toml").symlink_to("nowhere")

    assert "cargo test --quiet" not in await recognised_commands(tmp_path)


async def run(root: Path, *commands: str, seconds: float = 60) -> list[Check]:
    """Run commands as if they were declared."""
    declared = frozenset(commands)
    checking = Checking(root, seconds, await unconfined(), declared=declared)
    return [await checking.check(each) for each in commands]


async def test_all_checks_are_run(tmp_path: Path) -> None:
    """One that is red does not hide the next; the model is told all that is wrong."""
    first, second, third = await run(
        tmp_path, "echo out; echo err >&2; exit 3", "true", "sleep 9", seconds=0.3
    )

    assert (first.passed, first.exit_code, first.output) == (False, 3, "out\nerr")
    assert (second.passed, second.exit_code, second.output) == (True, 0, "")
    assert (third.passed, third.exit_code, third.timed_out) == (False, None, True)


async def test_no_tests_are_neither_passed_nor_failed(tmp_path: Path) -> None:
    """VE-02: pytest's exit code 5 is no failure; that of another command is one."""
    empty, other, plain = await run(tmp_path, "pytest() { exit 5; }; pytest", "exit 5", PYTEST)

    assert (other.outcome, other.exit_code) == ("failed", 5)
    assert (empty.outcome, empty.note) == ("none", "there are no tests")
    assert (plain.outcome, plain.note) == ("none", "there are no tests")


async def test_a_toolchain_that_is_missing_says_nothing_and_is_named(tmp_path: Path) -> None:
    """VE-02: of a recognised command; a declared one is what somebody wants to see run."""
    sandbox, missing = await unconfined(), "swift test"
    (recognised,) = await run_checks([missing], tmp_path, 60, sandbox)
    (phpunit,) = await run_checks(["vendor/bin/phpunit"], tmp_path, 60, sandbox)
    (declared,) = await run(tmp_path, missing)

    assert (recognised.outcome, recognised.note) == ("none", "swift is not there")
    assert phpunit.outcome == "none"
    assert (declared.outcome, declared.exit_code) == ("failed", 127)
    assert declared.note == "the program is not there"


CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(it NONE)
enable_testing()
add_test(NAME it COMMAND grep -q yes ${CMAKE_SOURCE_DIR}/it)
"""
TOOLCHAINS: dict[str, tuple[str, str, str, str, str]] = {
    "make": ("Makefile", "test:\n\tgrep -q yes it\n", "it", "yes", "no"),
    "npm": ("package.json", '{"scripts": {"test": "node it.js"}}', "it.js", "0", "throw 1"),
    "cmake": (
        "CMakeLists.txt",
        CMAKE,
        "it",
        "yes",
        "no",
    ),
}


@pytest.mark.parametrize("program", TOOLCHAINS)
async def test_each_runner_tells_green_from_red(program: str, tmp_path: Path) -> None:
    """VE-02: where its toolchain is there."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    manifest, text, name, green, red = TOOLCHAINS[program]
    (tmp_path / manifest).write_text(text)
    (command,) = await recognised_commands(tmp_path)
    outcomes = []
    for content in (green, red):
        (tmp_path / name).write_text(content)
        (check,) = await run_checks([command], tmp_path, 120, await unconfined())
        outcomes.append(check.outcome)

    assert outcomes == ["passed", "failed"]
