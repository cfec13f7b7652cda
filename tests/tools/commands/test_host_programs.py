"""No workspace decides which program is run outside of the sandbox (SE-01)."""

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

from daruma.tools.commands import find_program, run_git, run_program, search_path
from daruma.tools.commands._host_programs import git_environment

ROOT = Path(__file__).parents[3]

# --- Where programs are looked for.


def program(at: Path, text: str = "true") -> Path:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(f"#!/bin/sh\n{text}\n")
    at.chmod(0o755)
    return at


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with programs, and a workspace in a project."""
    for name in (".local/bin", "bin", "work/project/task/.venv/bin", "work/project/.venv/bin"):
        program(tmp_path / name / "tool")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


NOT_SEARCHED = {
    "the current folder": ".",
    "an empty entry": "",
    "a relative folder": "task/.venv/bin",
    "the workspace": "{home}/work/project/task",
    "its environment": "{home}/work/project/task/.venv/bin",
    "the environment of the folder around": "{home}/work/project/.venv/bin",
    "another folder of the folder around": "{home}/work/project/tools",
    "an environment by another name": "{home}/envs/one/bin",
    "programs of a project": "{home}/other/node_modules/.bin",
    "a link into the workspace": "{home}/link",
    "a folder that everybody may write": "{home}/open",
    "worktrees of team members": "{home}/data/worktrees/1/bin",
    "what is not there": "{home}/gone",
    "a file": "{home}/bin/tool",
}


@pytest.mark.parametrize("what", NOT_SEARCHED)
def test_what_a_command_can_write_is_not_searched(
    what: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-01, C2."""
    task = home / "work" / "project" / "task"
    for name in ("envs/one/bin", "other/node_modules/.bin", "open", "data/worktrees/1/bin"):
        program(home / name / "tool")
    program(home / "work/project/tools/tool")
    (home / "envs/one/pyvenv.cfg").touch()
    (home / "link").symlink_to(task / ".venv" / "bin")
    (home / "open").chmod(0o777)
    monkeypatch.chdir(home / "work" / "project")
    monkeypatch.setenv("PATH", f"{NOT_SEARCHED[what].format(home=home)}:/usr/bin")

    assert search_path(task) == ["/usr/bin"]
    assert find_program("tool", task) is None


def test_a_persons_own_programs_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the system's: `~/.local/bin` is nothing that a task in a project can write.

    Not where the home folder is the workspace; without one the current folder counts as one. By a
    relative path it would be another program in another folder.
    """
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{home}/bin:/usr/bin:/bin")
    task = home / "work" / "project" / "task"

    assert search_path(task) == ["/usr/bin", "/bin", f"{home}/.local/bin", f"{home}/bin"]
    assert find_program("tool", task) == f"{home}/.local/bin/tool"
    monkeypatch.chdir(task.parent)
    for name in ("task/.venv/bin/tool", "./tool", "../tool"):
        assert find_program(name, home / "elsewhere") is None
    monkeypatch.chdir(home)
    assert find_program("tool", home) is find_program("tool") is None
    assert find_program("sh", home)


def test_a_whole_path_counts_but_into_the_workspace(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it only leads there; such a link does not hide the programs that come next."""
    task = home / "work" / "project" / "task"
    (home / "bin" / "linked").symlink_to(task / ".venv" / "bin" / "tool")

    assert find_program(f"{home}/bin/tool", task) == f"{home}/bin/tool"
    assert find_program(f"{task}/.venv/bin/tool", task) is None
    assert find_program(f"{home}/bin/linked", task) is None
    assert find_program(sys.executable, Path(sys.prefix).parent) == sys.executable
    program(home / ".local/bin/linked")
    monkeypatch.setenv("PATH", f"{home}/bin:{home}/.local/bin")
    assert find_program("linked", task) == f"{home}/.local/bin/linked"


def test_what_is_started_without_a_path_is_looked_for_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on the PATH of the variables that it gets."""
    monkeypatch.chdir(home / "work" / "project" / "task")
    monkeypatch.setenv("PATH", f"{home}/work/project/task/.venv/bin")

    with pytest.raises(FileNotFoundError):
        run_program(["tool"], env={"PATH": os.environ["PATH"]})


# --- Git.


def test_git_gets_no_variable_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not one that names a program or a key."""
    for name in ("GIT_SSH", "GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "evil")
    given = git_environment(tmp_path)

    assert "evil" not in given.values()
    assert given["GIT_NO_LAZY_FETCH"] == "1"
    assert given["GIT_CONFIG_GLOBAL"] == os.devnull


@pytest.mark.parametrize(
    "setting",
    ["core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.pager", "diff.external"],
)
def test_git_runs_nothing_that_settings_name(setting: str, tmp_path: Path) -> None:
    """Ours go before those of a repository."""
    work = tmp_path / "work"
    work.mkdir()
    evil = program(tmp_path / "h" / "post-index-change", f"touch {tmp_path}/canary")
    (work / "a").touch()
    run(["git", "init", "-q"], cwd=work, check=True)
    run(["git", "add", "a"], cwd=work, check=True)
    value = evil.parent if setting == "core.hooksPath" else evil
    run(["git", "config", setting, str(value)], cwd=work, check=True)
    (work / "a").write_text("b")
    for arguments in (("status",), ("--paginate", "diff"), ("add", "a"), ("fetch", "ssh://x/y")):
        run_git(*arguments, folder=work)

    assert not (tmp_path / "canary").exists()


# --- No other way to start or find a program: by reading the code.

HOME = "tools/commands/_host_programs.py"
INSIDE = {
    # It becomes the confined command, or a server that HOME has found.
    "tools/sandbox/supervisor.py": {"os.fork", "os.execvp", "os.execv"},
    "tools/sandbox/probe.py": {"os.fork"},  # what is run in the sandbox to prove it
}
MODULES = frozenset({"subprocess", "pty", "multiprocessing", "webbrowser", "pydoc", "runpy", "sh"})
NAMES = frozenset({
    "system", "popen", "fork", "forkpty", "startfile", "which", "create_subprocess_exec",
    "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "ProcessPoolExecutor",
    "echo_via_pager", "launch", "pager", "open_process", "get_pager", "StdioServerParameters",
    "stdio_client",
})  # fmt: skip
STARTS = ("spawn", "posix_spawn", "exec")
OF_OS = ("os", "posix", "asyncio", "shutil", "click", "typer", "anyio", "console", "loop")


def starters(tree: ast.AST) -> Iterator[str]:
    """Yield what in a module could start a program or find one."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                inner = {each.name for each in names}
                if module.partition(".")[0] in MODULES:
                    yield module
                yield from (f"{module}.{each}" for each in inner if is_starter(module, each))
            case ast.Attribute(attr=name, value=ast.Name(id=owner)):
                if is_starter(owner, name):
                    yield f"{owner}.{name}"
            case ast.Call(func=ast.Name(id="__import__")):
                yield "__import__"


def is_starter(owner: str, name: str) -> bool:
    if owner in {"os", "posix"} and name.startswith(STARTS):
        return True
    if owner in {"click", "typer"} and name == "edit":
        return True
    return name in NAMES and (owner.partition(".")[0] in OF_OS or "concurrent" in owner)


def test_there_is_no_other_way_to_start_a_program() -> None:
    """SE-01: all others go through one module."""
    found = {}
    for folder in ("graph", "nodes", "state", "tools", ".src/daruma"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            used = {*starters(ast.parse(path.read_text(encoding="utf-8")))}
            if used - INSIDE.get(name, set()):
                found[name] = used

    assert {*found} == {HOME}


WAYS = (
    "import subprocess",
    "from subprocess import run",
    "import multiprocessing.pool",
    "import os; os.system('x')",
    "import os; os.posix_spawn('x', [], {})",
    "from os import execv",
    "import shutil; shutil.which('x')",
    "from shutil import which",
    "import asyncio; asyncio.create_subprocess_exec('x')",
    "import click; click.edit('x')",
    "import typer; typer.launch('x')",
    "from concurrent.futures import ProcessPoolExecutor",
    "import pty",
    "loop.subprocess_exec(x)",
)


def test_another_way_would_be_seen() -> None:
    """The test above can fail."""
    assert [code for code in WAYS if not [*starters(ast.parse(code))]] == []
