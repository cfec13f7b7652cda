"""Limits hold for what the kernel holds for a command, with a control group and without one."""

import os
import shlex
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.sandboxes import CONFINED, LEVELS, sandbox_at

from daruma.tools.commands import CommandRequest, Limits, command_environment
from daruma.tools.commands._command import watch
from daruma.tools.commands._process import NO_GROUP, ProcessGroup, Watchdog, control_group, sweep
from daruma.tools.sandbox import Sandbox
from daruma.tools.sandbox._sandbox import Level

MB = 1024 * 1024

SOCKETS = """
import os, socket, time
held, total = [], 0
while total < 200_000_000:
    for each in (pair := socket.socketpair()):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        each.setblocking(False)
        try:
            while True:
                total += each.send(bytes(1 << 16))
        except BlockingIOError:
            pass
    held.append(pair)
print("held", flush=True); time.sleep(60)
"""
FILES = """
import os, time
os.chdir("/tmp")
for number in range(150_000):
    if number % 10_000 == 0:
        os.mkdir(folder := f"d{number}")
    os.close(os.open(f"{folder}/{number}", os.O_CREAT))
print("held", flush=True); time.sleep(60)
"""
CONTENT = """
import os, time
for at in ("/tmp", "/var/tmp", "/dev/shm", os.environ["HOME"]):
    with open(f"{at}/x", "wb") as file:
        for _ in range(40):
            file.write(bytes(1 << 20))
print("held", flush=True); time.sleep(60)
"""
TABLES = """
import mmap, time
held = []
for _ in range(2):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # nothing is kept free for it
    held.append(mmap.mmap(-1, 1 << 37, flags=flags, prot=mmap.PROT_READ))
    for at in range(0, 1 << 37, 1 << 21):
        held[-1][at]
print("held", flush=True); time.sleep(60)
"""
ATTACKS = {
    "sockets": SOCKETS,
    "many files": FILES,
    "large files": CONTENT,
    "page tables": TABLES,
}
"""Each takes more than 64 MB of the kernel's memory, and a few of its own."""

CASES = [
    (level, name)
    for level in CONFINED
    for name in ATTACKS
    if level == "namespace" or not name.endswith("files")  # at landlock these lie on the disk
]


def ending(
    sandbox: Sandbox, code: str, workspace: Path, *, grouped: bool, memory: int = 64 * MB
) -> str:
    """Run Python code as a command, with a control group or without, and say how it ended."""
    argv, limits = (sys.executable, "-I", "-S", "-c", code), Limits(memory, 48)
    env = command_environment(os.environ, workspace, Path(sys.executable).parent)
    with ExitStack() as stack:
        own = stack.enter_context(control_group(memory, 1000)) if grouped else NO_GROUP
        if grouped and own.memory is None:
            pytest.skip("no control group can be made here")
        launch = stack.enter_context(
            sandbox.launcher(workspace, CommandRequest(argv, workspace, env))
        )
        inside = own.entered(launch.argv)
        group = stack.enter_context(ProcessGroup(inside, workspace, launch.env, launch))
        stop = os.pipe()
        for each in stop:
            stack.callback(os.close, each)
        watchdog = Watchdog(group.pid, limits, own)
        seen = watch(group, stop[0], time.monotonic() + 60, 1000, watchdog)
        return "memory" if own.ran_out() else seen.ending


@pytest.mark.sampled(2)
@pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
@pytest.mark.parametrize(("level", "name"), CASES)
def test_what_the_kernel_holds_counts(
    level: Level, name: str, grouped: bool, tmp_path: Path
) -> None:
    """SE-09: a command that holds more than its limit in the kernel is ended."""
    assert ending(sandbox_at(level), ATTACKS[name], tmp_path, grouped=grouped) == "memory"


USUAL = """
import os, socket
pairs = [socket.socketpair() for _ in range(40)]
with open(os.path.join(os.environ.get("TMPDIR", "/tmp"), "x"), "wb") as file:
    file.write(bytes(8 << 20))
for number in range(500):
    os.close(os.open(f"{number}", os.O_CREAT))
"""


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
@pytest.mark.parametrize("level", LEVELS)
def test_usual_sockets_and_files_are_no_excess(level: Level, grouped: bool, tmp_path: Path) -> None:
    """Though a socket is counted with all that it could hold."""
    assert ending(sandbox_at(level), USUAL, tmp_path, grouped=grouped) == "ended"


def test_a_group_goes_with_its_command() -> None:
    """And that of a process that was killed, with the next command of another."""
    with control_group(64 * MB, 100) as own:
        if not own.folders:
            pytest.skip("no control group can be made here")
        left = own.folders[0].parent / "daruma-4194305-left"  # no process has such a number
        left.mkdir()
    sweep.cache_clear()
    with control_group(64 * MB, 100) as another:
        both = (*own.folders, left)

    assert another.folders
    assert not any(each.exists() for each in both)


@pytest.mark.parametrize("level", LEVELS)
async def test_memory_that_comes_at_once_is_told(level: Level, tmp_path: Path) -> None:
    """The kernel kills where a look would come too late, and the rest of the command may go on."""
    code = "x = bytes(1) * 600_000_000"
    command = f"{shlex.quote(sys.executable)} -I -S -c '{code}' || true"
    done = await sandbox_at(level).run(command, workspace=tmp_path, timeout=60)

    assert (done.stopped_by, done.exit_code) == ("memory", None)
