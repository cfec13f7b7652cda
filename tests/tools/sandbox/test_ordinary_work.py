"""What developers' commands do all day works in every sandbox, or is known not to."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

import pytest
from tests.sandboxes import LEVELS, sandbox_at

from daruma.tools.sandbox.sandbox import Level

GIT: Final = "git -c user.name=me -c user.email=me@example.org"

SERVER: Final = """
import socket, threading
def test_it():
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: server.accept()[0].sendall(b"hi"))
    thread.start()
    with socket.create_connection(server.getsockname()) as client:
        assert client.recv(2) == b"hi"
    thread.join()
    server.close()
"""

TESTS: Final = {
    "a folder of pytest's": "def test_it(tmp_path): (tmp_path / 'a').write_text('x')",
    "a child process": """
import subprocess, sys
def test_it(): assert subprocess.check_output([sys.executable, "-c", "print(1)"]) == b"1\\n"
""",
    "an asyncio child process": """
import asyncio
async def go():
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await child.communicate(b"x"))[0]
def test_it(): assert asyncio.run(go()) == b"x"
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
def test_it():
    with ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, -2])) == [1, 2]
""",
    "a process pool": """
from concurrent.futures import ProcessPoolExecutor
def test_it():
    with ProcessPoolExecutor(2) as pool: assert list(pool.map(abs, [-1, -2])) == [1, 2]
""",
    "multiprocessing with a pipe": """
import multiprocessing as mp
def child(end): end.send(1)
def test_it():
    here, there = mp.get_context("fork").Pipe()
    one = mp.get_context("fork").Process(target=child, args=(there,)); one.start()
    assert here.recv() == 1; one.join()
""",
    "sqlite": """
import sqlite3
def test_it():
    with sqlite3.connect("a.db") as db:
        db.execute("pragma journal_mode=wal"); db.execute("create table t (x)")
""",
    "shared memory": """
from multiprocessing.shared_memory import SharedMemory
def test_it():
    memory = SharedMemory(create=True, size=10); memory.close(); memory.unlink()
""",
    "a server on loopback": SERVER,
    "a temporary file": "import tempfile\ndef test_it(): tempfile.NamedTemporaryFile().close()",
}

COMMANDS: Final = {
    "git init, commit and status": (
        f"git init -q new && cd new && echo a > a && {GIT} add a && "
        f"{GIT} commit -qm a && git status --short && git log --oneline"
    ),
    "ruff": "echo 'x = 1' > a.py && ruff check a.py && ruff format --check a.py",
    "a virtual environment": "python -m venv --without-pip .venv && .venv/bin/python -c pass",
    "pip": "python -m pip --version",
    "files in /tmp": "echo a > /tmp/daruma-test-a && rm /tmp/daruma-test-a",
    "files in the home folder": 'echo a > "$HOME/daruma-test-a" && rm "$HOME/daruma-test-a"',
    "odd names": "mkdir 'ü b' && echo a > 'ü b/日本' && ln -s 'ü b/日本' l && cat l && rm -r *",
    "a pipeline": "seq 1000 | sort -n | tail -1 | grep -q 1000 && echo a > f && chmod +x f",
    "a heredoc and job control": "cat <<X > f\na\nX\nsleep 0.01 & wait $! && test -s f",
}

KNOWN: Final[dict[Level, set[str]]] = {
    "none": set(),
    "namespace": set(),
    "landlock": {
        "a process pool",  # semaphores of POSIX live in /dev/shm
        "shared memory",
        "a server on loopback",
        "files in /tmp",
    },
}
"""What does not work at a level, and can not without opening it."""


@pytest.fixture(scope="module", params=LEVELS)
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Level, dict[str, bool]]:
    """Run all tests inside a level, at once: which of them passed."""
    level, work = request.param, tmp_path_factory.mktemp("work")
    for number, text in enumerate(TESTS.values()):
        (work / f"test_{number}.py").write_text(text)
    command = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -q -rA -p no:cacheprovider"
    done = asyncio.run(sandbox_at(level).run(command, workspace=work, timeout=120))
    return level, {
        name: f"PASSED test_{number}.py" in done.stdout for number, name in enumerate(TESTS)
    }


@pytest.mark.parametrize("what", TESTS)
def test_a_test_passes_inside(ran: tuple[Level, dict[str, bool]], what: str) -> None:
    """The workspace's own tests, as verification runs them."""
    level, passed = ran

    assert passed[what] == (what not in KNOWN[level])


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("level", LEVELS)
async def test_a_command_works_inside(level: Level, what: str, tmp_path: Path) -> None:
    """Tools, temporary files, names and shells."""
    done = await sandbox_at(level).run(COMMANDS[what], workspace=tmp_path, timeout=60)

    assert done.passed == (what not in KNOWN[level]), done.stderr


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
@pytest.mark.parametrize("level", LEVELS)
async def test_npm_works_inside(level: Level, tmp_path: Path) -> None:
    """Another language's runner."""
    (tmp_path / "package.json").write_text('{"scripts": {"test": "node -e 0"}}')
    run = sandbox_at(level).run
    done = await run("npm run test --silent", workspace=tmp_path, timeout=60)

    assert done.passed, done.stderr
