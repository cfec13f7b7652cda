"""Commands end in their time, with all that they started, and nothing is left behind.

A FIFO tells who is alive: its reader sees the end when the last process that writes to it is gone.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.life import Life

from daruma.tools.commands import CommandResult, command_environment, run_in_group
from daruma.tools.commands._command import ALLOWED, FIXED, start
from daruma.tools.errors import CommandRefused

LONG = "sleep 600"


async def test_a_command_tells_how_it_ended(tmp_path: Path) -> None:
    """Both streams, the exit code, and what was run; one that was killed has not passed."""
    run = partial(run_in_group, cwd=tmp_path, timeout=10)
    result = await run("echo out; echo err >&2; exit 3")
    killed = await run("kill -TERM $$")

    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert (result.passed, result.timed_out, result.truncated) == (False, False, False)
    assert (result.command, result.sandbox) == ("echo out; echo err >&2; exit 3", "none")
    assert (killed.exit_code, killed.passed) == (-signal.SIGTERM, False)


async def test_a_command_gets_its_arguments_and_its_directory_and_no_input(tmp_path: Path) -> None:
    """A list is not read by a shell, and is shown quoted; reading input ends at once."""
    run = partial(run_in_group, cwd=tmp_path, timeout=10)
    result = await run(["echo", "$HOME;", "a b"])

    assert result.passed
    assert result.stdout == "$HOME; a b\n"
    assert result.command == "echo '$HOME;' 'a b'"
    assert (await run("cat; pwd")).stdout == f"{tmp_path}\n"


async def test_what_a_command_left_behind_is_killed(tmp_path: Path, life: Life) -> None:
    """After a normal end too, nothing of the group survives (SA-01)."""
    command = f"exec 3> life; {LONG} >&3 & echo done"  # before it is left, it is there
    result = await run_in_group(command, cwd=tmp_path, timeout=2)

    assert (result.passed, result.stdout) == (True, "done\n")
    assert life.said() == b""


async def test_a_timeout_kills_the_whole_group_and_keeps_the_output(
    tmp_path: Path, life: Life
) -> None:
    """The shell's children die with it, also those that ignore other signals."""
    child = f"(trap '' TERM INT HUP; {LONG}; {LONG}) > life"
    result = await run_in_group(f"echo begun; {child} & {LONG}", cwd=tmp_path, timeout=0.3)

    assert (result.timed_out, result.exit_code, result.passed) == (True, None, False)
    assert result.stdout == "begun\n"
    assert life.said() == b""


async def test_a_cancellation_waits_for_the_end_of_the_group(tmp_path: Path, life: Life) -> None:
    """When the caller goes on, the command and its children are not dying but dead."""
    command = f"exec 3> life; echo up >&3; {LONG} & {LONG}"
    task = asyncio.ensure_future(run_in_group(command, cwd=tmp_path, timeout=60))
    assert await asyncio.to_thread(life.said) == b"up\n"
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert os.read(life.fd, 1) == b""  # raises BlockingIOError while someone could write


async def test_a_child_that_left_the_group_can_not_hold_us(tmp_path: Path, life: Life) -> None:
    """A daemon in a session of its own that holds the pipes open is not waited for."""
    os.mkfifo(tmp_path / "up")
    daemon = (
        """import os; os.setsid(); open("up", "w").write("x"); os.execlp("sleep", "sleep", "60")"""
    )
    start = f"{sys.executable} -c '{daemon}' 3> life & echo $! ; read -r x < up; exit 0"
    result = await run_in_group(f"exec 2>&1; {start}", cwd=tmp_path, timeout=30)
    os.kill(int(result.stdout), signal.SIGKILL)

    assert result.exit_code == 0
    assert life.said() == b""


async def test_output_is_bounded_clean_text(tmp_path: Path) -> None:
    """The beginning and the end are kept, and the cut is told.

    Bytes that are no UTF-8, encoded surrogates and NUL are replaced.
    """
    run = partial(run_in_group, cwd=tmp_path)
    endless = await run("echo first; yes", timeout=0.3, limit=1000)
    odd = await run(r"printf 'a\000b\377\355\240\200c'", timeout=10)

    assert (endless.timed_out, endless.truncated) == (True, True)
    assert endless.stdout.startswith("first\ny\n")
    assert "bytes left out]" in endless.stdout
    assert len(endless.stdout) < 1100
    assert odd.stdout == "a\ufffdb\ufffd\ufffd\ufffd\ufffdc"


async def test_secrets_of_this_process_do_not_reach_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives no environment gets the clean one, not ours."""
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("DARUMA_POSTGRES_URL", "s3cret")
    result = await run_in_group("env; cat /proc/$$/environ", cwd=tmp_path, timeout=10)

    assert "PATH=" in result.stdout
    assert "s3cret" not in result.stdout


async def test_a_given_environment_is_the_whole_one(tmp_path: Path) -> None:
    """Nothing is added to it; but a program of the host is not looked for on its PATH (SE-01)."""
    (tmp_path / "tool").write_text("#!/bin/sh\necho $ONE$HOME\n")
    (tmp_path / "tool").chmod(0o755)
    env = {"PATH": str(tmp_path), "ONE": "1"}
    whole = [str(tmp_path / "tool")]

    assert (await run_in_group(whole, cwd=tmp_path, timeout=10, env=env)).stdout == "1\n"
    with pytest.raises(CommandRefused, match="tool can not be started"):
        await run_in_group(["tool"], cwd=tmp_path, timeout=10, env=env)


@pytest.mark.parametrize(
    ("command", "directory", "said"),
    [
        (["no-such-program"], ".", "no-such-program can not be started: No such file"),
        ("true", "gone", "gone can not be entered: No such file"),
        ("true", "file", "file can not be entered: Not a directory"),
        (["./file"], ".", "file can not be started: No such file"),
        ("a\0b", ".", "a character that commands can not hold"),
        ("a\ud800b", ".", "a character that commands can not hold"),
        (["true", "x" * 3_000_000], ".", "true can not be started: Argument list too long"),
        (" \n", ".", "the command is empty"),
        ([], ".", "the command is empty"),
    ],
)
async def test_what_can_not_be_started_is_one_line(
    tmp_path: Path, command: str | list[str], directory: str, said: str
) -> None:
    """A missing program or directory is told, not raised as a bug."""
    (tmp_path / "file").touch()

    with pytest.raises(CommandRefused, match=said) as caught:
        await run_in_group(command, cwd=tmp_path / directory, timeout=10)
    assert "\n" not in str(caught.value)


def test_any_loop_in_any_thread_will_do(tmp_path: Path) -> None:
    """Loops in threads that are not the main one run commands too, several at once."""
    results: list[CommandResult] = []

    async def some() -> None:
        runs = [run_in_group(f"echo {n}", cwd=tmp_path, timeout=10) for n in range(3)]
        results.extend(await asyncio.gather(*runs))

    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(each.stdout for each in results) == sorted(["0\n", "1\n", "2\n"] * 3)


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


async def test_no_descriptor_is_leaked(tmp_path: Path) -> None:
    """After commands that passed, failed to start and ran out of time, all is closed."""
    await run_in_group("true", cwd=tmp_path, timeout=10)
    before = open_descriptors()
    await run_in_group("true", cwd=tmp_path, timeout=10)
    await run_in_group(LONG, cwd=tmp_path, timeout=0.05)
    with pytest.raises(CommandRefused):
        await run_in_group(["no-such-program"], cwd=tmp_path, timeout=10)

    assert open_descriptors() <= before  # what earlier tests forgot may be collected meanwhile


def test_an_interruption_of_the_start_leaves_the_closing_to_the_thread() -> None:
    """Else the descriptor would be closed twice, and the second time be another's (Ctrl-C)."""
    inside, outside = os.pipe()

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    future: Future[CommandResult] = Future()
    with pytest.raises(KeyboardInterrupt):
        start(Interrupted(target=lambda: None), future, inside)

    os.fstat(inside)  # raises OSError if it is closed
    os.close(inside)
    os.close(outside)


async def test_too_many_open_files_are_one_line(tmp_path: Path) -> None:
    """A process that has no descriptor left can not run commands, and says so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    await run_in_group("true", cwd=tmp_path, timeout=10)
    for room in range(8):
        top = os.dup(0)
        os.close(top)
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + room, hard))
        try:
            with pytest.raises(CommandRefused, match="Too many open files"):
                await run_in_group("true", cwd=tmp_path, timeout=10)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_commands_die_with_a_killed_process(tmp_path: Path, life: Life) -> None:
    """SIGKILL for us ends the command and its children too."""
    command = f"exec 3> life; echo up >&3; {LONG} & {LONG}"
    script = (
        "import sys; from pathlib import Path\n"
        "from daruma.tools.commands._process import ProcessGroup\n"
        f"group = ProcessGroup(['/bin/sh', '-c', '{command}'], Path.cwd(), {{}})\n"
        "print('guarded', flush=True); sys.stdin.read()"
    )
    argv, pipe = [sys.executable, "-c", script], subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"guarded\n"
        assert life.said() == b"up\n"
        process.kill()

    assert life.said() == b""


# --- Commands get what they need to work, and none of our secrets.

HERE = Path("/opt/daruma/bin")
NOWHERE = Path("/nowhere")


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*sorted(ALLOWED), "PATH", "LC_ALL"]) | st.text(), st.text())
)
def test_only_allowed_variables_pass(base: dict[str, str]) -> None:
    """Whatever the environment holds, only names on the list come through (SA-01)."""
    names = command_environment(base, NOWHERE, HERE).keys() - FIXED.keys() - {"PATH"}

    assert all(name in ALLOWED or name.startswith("LC_") for name in names)


def test_secrets_stay_behind() -> None:
    """Keys, tokens, proxies with passwords and our own settings are not passed on.

    Python writes no bytecode that could hide a fix, does not buffer, and colours are off, whatever
    was set before.
    """
    names = (
        "OPENAI_API_KEY ANTHROPIC_API_KEY AWS_SECRET_ACCESS_KEY GITHUB_TOKEN DARUMA_POSTGRES_URL "
        "OPENAI_BASE_URL PGPASSWORD HTTPS_PROXY SSH_AUTH_SOCK PYTHONPATH PYTHONSTARTUP LD_PRELOAD "
        "BASH_ENV ENV GIT_ASKPASS LCX"
    )
    secrets = dict.fromkeys(names.split(), "s3cret")
    own = {"HOME": "/home/me", "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": ""}

    env = command_environment({**secrets, **own}, NOWHERE, HERE)
    assert "s3cret" not in " ".join(env.values())
    assert (env["HOME"], env["LC_ALL"]) == ("/home/me", "C")
    assert {name: env[name] for name in FIXED} == FIXED
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"


def test_programs_are_found_nearest_first(tmp_path: Path) -> None:
    """The workspace's environment, the active one, Daruma's own, then the rest.

    An empty or relative entry of PATH would run programs that lie in the workspace.
    """
    odd = os.pathsep.join(["", ".", "bin", "/bin"])
    base = {"PATH": "/usr/bin:/bin:/usr/bin", "VIRTUAL_ENV": "/active"}
    for name in ("venv", ".venv"):  # with both there, the latter is taken
        own = tmp_path / name
        (own / "bin").mkdir(parents=True)
        env = command_environment(base, tmp_path, HERE)

        assert env["PATH"] == f"{own}/bin:/active/bin:{HERE}:/usr/bin:/bin"
        assert env["VIRTUAL_ENV"] == str(own)
    assert command_environment({"PATH": odd}, NOWHERE, HERE)["PATH"] == f"{HERE}:/bin"
