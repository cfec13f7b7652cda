"""A sandbox runs commands to the end of all of them, within limits, and says how it went.

A FIFO tells who is alive: its reader sees the end when the last process that writes to it is gone.
"""

import asyncio
import os
import resource
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.life import Life
from tests.sandboxes import CONFINED, LEVELS, sandbox_at

from daruma.tools.commands.process import Limits
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox.sandbox import Level

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
    """One line, no traceback; and nothing is left open."""
    with pytest.raises(CommandRefused, match="gone can not be entered"):
        await sandbox_at(level).run("true", workspace=tmp_path, cwd=tmp_path / "gone", timeout=10)


@pytest.mark.parametrize("level", CONFINED)
async def test_the_whole_system_is_no_workspace(level: Level) -> None:
    """Nothing would be left to protect; the level would promise what it does not hold."""
    with pytest.raises(CommandRefused, match="choose a folder"):
        await sandbox_at(level).run("true", workspace=Path("/"), timeout=10)


@pytest.mark.parametrize("level", CONFINED)
async def test_a_daemon_ends_with_its_command(level: Level, tmp_path: Path, life: Life) -> None:
    """SA-01: in another session, with another parent, of a command that passed."""
    done = await sandbox_at(level).run(daemon_in(), workspace=tmp_path, timeout=20)

    assert (done.passed, done.stderr) == (True, "")
    assert life.said() == b"up"
    assert os.read(life.fd, 1) == b""  # raises BlockingIOError while someone could write


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


@pytest.mark.parametrize("level", CONFINED)
def test_daemons_die_with_a_killed_process(level: Level, tmp_path: Path, life: Life) -> None:
    """SIGKILL for us ends the command and all it started, wherever that went."""
    sandbox_at(level)  # skips where there is none
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from daruma.tools.commands.process import Limits\n"
        "from daruma.tools.sandbox.opening import prepared\n"
        "sandbox = prepared(sys.argv[1], network=False, limits=Limits(1 << 30, 100))\n"
        "asyncio.run(sandbox.run(sys.argv[2], workspace=Path.cwd(), timeout=60))\n"
    )
    argv = [sys.executable, "-c", script, level, f"{daemon_in()}; {LONG}"]
    with subprocess.Popen(argv, cwd=tmp_path) as process:
        assert life.said() == b"up"
        process.kill()

    assert life.said() == b""


@pytest.mark.parametrize("level", LEVELS)
async def test_too_much_memory_ends_a_command(level: Level, tmp_path: Path) -> None:
    """SA-01: of all its processes together."""
    hog = f"{sys.executable} -I -S -c 'x = bytes(1) * 160_000_000; import time; time.sleep(60)'"
    done = await sandbox_at(level).run(f"{hog} & {hog}", workspace=tmp_path, timeout=30)

    assert (done.stopped_by, done.exit_code, done.timed_out) == ("memory", None, False)


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


def open_files() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("level", LEVELS)
async def test_many_open_files_of_ours_are_no_hindrance(level: Level, tmp_path: Path) -> None:
    """Descriptors above 1023, which select(2) does not take, serve as well; none is lost."""
    sandbox = sandbox_at(level)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.dup(0) for _ in range(1100)]
    try:
        before = open_files()
        done = await sandbox.run("echo out", workspace=tmp_path, timeout=10)
        after = open_files()
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (done.stdout, done.exit_code) == ("out\n", 0)
    assert after <= before
