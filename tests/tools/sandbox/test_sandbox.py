"""A sandbox runs commands to the end of all of them, within limits, and says how it went.

A FIFO tells who is alive: its reader sees the end when the last process that writes to it is gone.
"""

import asyncio
import os
import resource
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from tests.life import Life
from tests.sandboxes import CONFINED, LEVELS, sandbox_at

from daruma.tools.commands import CommandResult, Limits, command_run, kill_reason
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox import sandbox_hint
from daruma.tools.sandbox._sandbox import SECRETS, Level, open_in

LONG = "sleep 600"


def daemon_in() -> str:
    """Shell text that leaves a process in a session of its own, which holds the FIFO open."""
    code = (
        "import os, time\n"
        "fd, (up, tell) = os.open('life', os.O_WRONLY), os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        [os.close(n) for n in (0, 1, 2)]\n"
        "        os.write(fd, b'up')\n"
        "        os.write(tell, b'x')\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "os.wait(); os.read(up, 1)\n"
    )
    return shlex.join([sys.executable, "-I", "-S", "-c", code])


@pytest.mark.parametrize("level", LEVELS)
async def test_a_command_tells_how_it_ended(level: Level, tmp_path: Path) -> None:
    """Both streams, the code, and at which level it ran, with what that leaves open."""
    sandbox = sandbox_at(level)
    done = await sandbox.run("echo out; echo err >&2; exit 3", workspace=tmp_path, timeout=10)

    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 3)
    assert (done.sandbox, done.not_covered) == (level, sandbox.not_covered)
    assert (done.stopped_by, done.timed_out) == ("", False)


async def test_a_sandbox_that_can_not_be_set_up_is_no_exit_code_of_the_command(
    tmp_path: Path,
) -> None:
    """Bubblewrap ends with 1 then, as red tests do: that must never be taken for these."""
    for name in ("workspace", "hidden"):
        (tmp_path / name).mkdir()
    run = sandbox_at("namespace").run
    with pytest.raises(CommandRefused, match="could not be set up, and nothing was run: bwrap: "):
        await run("touch ran", workspace=tmp_path / "workspace", cwd=tmp_path / "hidden", timeout=9)
    own = await run("touch ran; exit 1", workspace=tmp_path / "workspace", timeout=9)

    assert own.exit_code == 1


@pytest.mark.parametrize("level", LEVELS)
async def test_a_command_runs_where_it_was_asked_to(level: Level, tmp_path: Path) -> None:
    """In the workspace, or beneath it; arguments arrive as they are."""
    (tmp_path / "sub dir").mkdir()
    run = sandbox_at(level).run
    here = await run(["pwd"], workspace=tmp_path, timeout=10)
    there = await run("pwd", workspace=tmp_path, cwd=tmp_path / "sub dir", timeout=10)
    odd = await run(["printf", "%s|", "$HOME", "a b", "'"], workspace=tmp_path, timeout=10)

    assert here.stdout == f"{tmp_path}\n"
    assert there.stdout == f"{tmp_path}/sub dir\n"
    assert odd.stdout == "$HOME|a b|'|"


@pytest.mark.parametrize("level", LEVELS)
async def test_a_folder_that_is_not_there_is_refused(level: Level, tmp_path: Path) -> None:
    """One line, no traceback; and nothing is left open.

    In the whole system nothing would be left to protect; a level promises only what it holds.
    """
    run = sandbox_at(level).run
    with pytest.raises(CommandRefused, match="gone can not be entered"):
        await run("true", workspace=tmp_path, cwd=tmp_path / "gone", timeout=10)
    if level in CONFINED:
        with pytest.raises(CommandRefused, match="choose a folder"):
            await run("true", workspace=Path("/"), timeout=10)


@pytest.mark.parametrize("level", CONFINED)
async def test_a_daemon_ends_with_its_command(level: Level, tmp_path: Path, life: Life) -> None:
    """SA-01: in another session, with another parent, of a command that passed."""
    done = await sandbox_at(level).run(daemon_in(), workspace=tmp_path, timeout=20)

    assert (done.passed, done.stderr) == (True, "")
    assert life.said() == b"up"
    assert os.read(life.fd, 1) == b""  # raises BlockingIOError while someone could write


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", CONFINED)
async def test_a_timeout_ends_daemons_too(level: Level, tmp_path: Path, life: Life) -> None:
    """And keeps what was said until then."""
    command = f"{daemon_in()}; echo begun; {LONG}"
    done = await sandbox_at(level).run(command, workspace=tmp_path, timeout=1)

    assert (done.timed_out, done.stdout) == (True, "begun\n")
    assert life.said() == b"up"
    assert os.read(life.fd, 1) == b""


@pytest.mark.parametrize("level", CONFINED)
async def test_a_cancellation_ends_daemons_too(level: Level, tmp_path: Path, life: Life) -> None:
    """Before the caller goes on."""
    run = sandbox_at(level).run(f"{daemon_in()}; {LONG}", workspace=tmp_path, timeout=60)
    task = asyncio.ensure_future(run)
    assert await asyncio.to_thread(life.said) == b"up"
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert os.read(life.fd, 1) == b""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", CONFINED)
def test_daemons_die_with_a_killed_process(level: Level, tmp_path: Path, life: Life) -> None:
    """SIGKILL for us ends the command and all it started, wherever that went."""
    sandbox_at(level)  # skips where there is none
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from daruma.tools.commands import Limits\n"
        "from daruma.tools.sandbox._opening import prepare_level\n"
        "sandbox = prepare_level(sys.argv[1], network=False, limits=Limits(1 << 30, 100))\n"
        "asyncio.run(sandbox.run(sys.argv[2], workspace=Path.cwd(), timeout=60))\n"
    )
    argv = [sys.executable, "-c", script, level, f"{daemon_in()}; {LONG}"]
    with subprocess.Popen(argv, cwd=tmp_path) as process:
        assert life.said() == b"up"
        process.kill()

    assert life.said() == b""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
async def test_too_much_memory_ends_a_command(level: Level, tmp_path: Path) -> None:
    """SA-01: of all its processes together."""
    hog = f"{sys.executable} -I -S -c 'x = bytes(1) * 160_000_000; import time; time.sleep(60)'"
    done = await sandbox_at(level).run(f"{hog} & {hog}", workspace=tmp_path, timeout=30)

    assert (done.stopped_by, done.exit_code, done.timed_out) == ("memory", None, False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
async def test_shared_memory_counts_once(level: Level, tmp_path: Path) -> None:
    """Children that share what their parent read are no hogs."""
    script = (
        "import os, time\n"
        "x = bytes(1) * 100_000_000\n"
        "for _ in range(4):\n"
        "    os.fork() or (time.sleep(0.5), os._exit(0))\n"
        "for _ in range(4):\n"
        "    os.wait()\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script]
    done = await sandbox_at(level).run(argv, workspace=tmp_path, timeout=30)

    assert (done.stopped_by, done.exit_code) == ("", 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
async def test_a_fork_bomb_is_ended_whole(level: Level, tmp_path: Path, life: Life) -> None:
    """SA-01: however fast it grows; this one would end itself after half a second."""
    script = (
        "import os, time\n"
        "fd = os.open('life', os.O_WRONLY)\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end:\n"
        "    try:\n"
        "        os.fork() or time.sleep(0.005)\n"
        "    except OSError:\n"
        "        time.sleep(0.005)\n"
        "time.sleep(60)\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script]
    done = await sandbox_at(level).run(argv, workspace=tmp_path, timeout=20)

    assert done.stopped_by == "processes"
    assert life.said() == b""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
async def test_endless_output_is_cut_in_its_middle(level: Level, tmp_path: Path) -> None:
    """The beginning and the end are kept, also on a timeout."""
    run = sandbox_at(level).run
    done = await run("echo first; yes", workspace=tmp_path, timeout=0.5, limit=1000)

    assert (done.timed_out, done.truncated) == (True, True)
    assert done.stdout.startswith("first\ny\n")
    assert len(done.stdout) < 1100


def there(*paths: str) -> list[str]:
    return [path for path in paths if os.path.lexists(path)]


@pytest.mark.parametrize("level", CONFINED)
async def test_temporary_files_are_the_commands_own(level: Level, tmp_path: Path) -> None:
    """They can be made, and are gone for the next command and for us."""
    command = 'd=$(mktemp -d); echo hi > "$d/f"; mkdir "$HOME/h"; cat "$d/f"; echo "$d" >&2'
    done = await sandbox_at(level).run(command, workspace=tmp_path, timeout=10)

    assert (done.exit_code, done.stdout) == (0, "hi\n")
    assert done.stderr.startswith("/")
    assert there(done.stderr.strip(), f"{Path(done.stderr).parent}/h") == []


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize("level", LEVELS)
async def test_no_descriptor_is_leaked(level: Level, tmp_path: Path) -> None:
    """After commands that passed, ran out of time and failed to start, all is closed."""
    sandbox = sandbox_at(level)
    await sandbox.run("true", workspace=tmp_path, timeout=10)
    before = open_descriptors()
    await sandbox.run("true", workspace=tmp_path, timeout=10)
    await sandbox.run(LONG, workspace=tmp_path, timeout=0.05)
    with pytest.raises(CommandRefused):
        await sandbox.run("true", workspace=tmp_path, cwd=tmp_path / "gone", timeout=10)

    assert open_descriptors() == before


@pytest.mark.parametrize("level", LEVELS)
async def test_commands_run_side_by_side(level: Level, tmp_path: Path) -> None:
    """In one workspace, each with its own output."""
    run = sandbox_at(level).run
    results = await asyncio.gather(
        *(run(f"echo {n}", workspace=tmp_path, timeout=20) for n in range(8))
    )

    assert [each.stdout for each in results] == [f"{n}\n" for n in range(8)]


def test_the_line_says_level_mechanism_and_gaps() -> None:
    """What doctor and people read."""
    whole = replace(sandbox_at("none"), level="namespace", mechanism="x 1", not_covered=())

    assert whole.line == "namespace (x 1)"
    assert replace(whole, not_covered=("a", "b")).line == "namespace (x 1); not covered: a, b"
    assert replace(whole, limits=Limits(1, 1)).limits == Limits(1, 1)


@pytest.mark.parametrize("level", LEVELS)
async def test_many_open_files_of_ours_are_no_hindrance(level: Level, tmp_path: Path) -> None:
    """Descriptors above 1023, which select(2) does not take, serve as well; none is lost."""
    sandbox = sandbox_at(level)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.dup(0) for _ in range(1100)]
    try:
        before = open_descriptors()
        done = await sandbox.run("echo out", workspace=tmp_path, timeout=10)
        after = open_descriptors()
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (done.stdout, done.exit_code) == ("out\n", 0)
    assert after <= before


# --- What developers' commands do all day works in every sandbox, or is known not to.

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
    "files among the temporary ones": "echo a > /tmp/daruma-test-a && rm /tmp/daruma-test-a",
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
        "files among the temporary ones",
    },
}
"""What does not work at a level, and can not without opening it."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
def test_tests_pass_inside(level: Level, tmp_path: Path) -> None:
    """The workspace's own tests, as verification runs them."""
    for number, text in enumerate(TESTS.values()):
        (tmp_path / f"test_{number}.py").write_text(text)
    command = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -q -rA -p no:cacheprovider"
    done = asyncio.run(sandbox_at(level).run(command, workspace=tmp_path, timeout=120))
    failed = {name for n, name in enumerate(TESTS) if f"PASSED test_{n}.py" not in done.stdout}

    assert failed == KNOWN[level] & TESTS.keys(), done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
async def test_commands_work_inside(level: Level, tmp_path: Path) -> None:
    """Tools, temporary files, names and shells; npm where it is there."""
    package = """echo '{"scripts": {"test": "node -e 0"}}' > package.json"""
    npm = {"npm": f"{package}; npm run test --silent"} if shutil.which("npm") else {}
    ended = dict[str, CommandResult]()
    for name, text in (COMMANDS | npm).items():
        (tmp_path / name).mkdir()
        run = sandbox_at(level).run(text, workspace=tmp_path / name, timeout=60)
        ended[name] = await run
    failed = {name: done.stderr for name, done in ended.items() if not done.passed}

    assert failed.keys() == KNOWN[level] & ended.keys(), failed


# --- What one workspace leaves open beyond its level is said, not guessed (SA-01).


async def test_what_a_workspace_leaves_open_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an ordinary one nothing: neither a program of ours nor a secret lies in it.

    A home folder, keys and all, can be read where Landlock lets it be written: every result says
    so, beside what the level leaves open anywhere.
    """
    sandbox = sandbox_at("landlock")
    assert [open_in(tmp_path, level) for level in CONFINED] == [()] * len(CONFINED)
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    done = await sandbox.run("true", workspace=tmp_path, timeout=10)

    assert open_in(tmp_path, "landlock") == (SECRETS,)
    assert open_in(tmp_path, "namespace") == ()
    assert done.not_covered == (*sandbox.not_covered, SECRETS)


# --- The model is told of the sandbox when that may be what was in the way, and only then.

RESULT = CommandResult(
    command="x", exit_code=1, stdout="", stderr="touch: /x: Read-only file system\n",
    timed_out=False, truncated=False, seconds=0.1, sandbox="namespace",
)  # fmt: skip


OPEN: dict[str, Any] = {"not_covered": ("the network, which the settings allow",)}


def test_a_refusal_is_explained_and_other_failures_are_left_alone() -> None:
    """SA-02: in one line, with the level and what it forbids; what can not be told is not guessed.

    An open network is not called closed.
    """
    changes: Any
    for changes, said in (
        ({}, "level namespace"),
        ({}, "no network"),
        ({"sandbox": "landlock", "stderr": "", "stdout": "Permission denied"}, "$TMPDIR"),
    ):
        assert said in sandbox_hint(replace(RESULT, **changes))
        assert "\n" not in sandbox_hint(replace(RESULT, **changes))
    for changes in ({"exit_code": 0}, {"sandbox": "none"}, {"stderr": "1 failed"}):
        assert sandbox_hint(replace(RESULT, **changes)) == ""
    assert "no network" not in sandbox_hint(replace(RESULT, **OPEN))


MISSED = [
    "curl: (6) Could not resolve host: example.org",
    "wget: unable to resolve host address 'example.org'",
    "<urlopen error [Errno -3] Temporary failure in name resolution>",
    "OSError: [Errno 101] Network is unreachable",
    "connect: network is unreachable",
    "getaddrinfo EAI_AGAIN registry.npmjs.org",
    "dial tcp: lookup proxy.golang.org on 10.0.0.1:53: no such host",
    "failed to lookup address information: Try again",
    "ssh: Could not resolve hostname x: Name or service not known",
    "NameResolutionError(\"HTTPSConnection(host='pypi.org')\")",
]


def test_a_blocked_network_is_a_violation_whatever_the_exit_code() -> None:
    """SA-02: told to the model and audited, as far as the command's own words tell.

    Without a sandbox, or with the network open, a missing host is nobody's doing.
    """
    told = "sandbox_violation: the network is blocked (sandbox.network"
    for said, exit_code in product(MISSED, (0, 1, 6)):
        for result in (
            replace(RESULT, exit_code=exit_code, stderr=f"x\n{said}\n"),
            replace(RESULT, exit_code=exit_code, stderr="", stdout=said, sandbox="landlock"),
        ):
            assert sandbox_hint(result).startswith(told)
            assert command_run("tool", result).violation == sandbox_hint(result).partition(": ")[2]
    changes: Any
    for changes, exit_code in product(
        (
            {"sandbox": "none"},
            OPEN,
            {"stderr": "curl: (22) The requested URL returned error: 404"},
            {"stderr": "1 failed: test_network"},
        ),
        (0, 1),
    ):
        result = replace(RESULT, **{"stderr": MISSED[0], "exit_code": exit_code} | changes)
        assert "sandbox_violation" not in sandbox_hint(result)
        assert command_run("tool", result).violation == ""


def test_what_ended_a_command_is_named() -> None:
    """SA-02: a filter ends what makes a forbidden call; a limit is named by its setting."""
    for exit_code in (-31, 159):
        result = replace(RESULT, exit_code=exit_code, stderr="")

        assert "system call" in kill_reason(result)
        assert kill_reason(replace(result, sandbox="none")) == ""
    assert kill_reason(RESULT) == ""
    assert "sandbox.memory_mb" in kill_reason(replace(RESULT, stopped_by="memory"))
    assert "sandbox.processes" in kill_reason(replace(RESULT, stopped_by="processes"))
