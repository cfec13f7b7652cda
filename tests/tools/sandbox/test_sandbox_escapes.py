"""Ways out that the self-test does not try, most of them by a system call of their own."""

import json
import os
import platform
import secrets
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import CONFINED, sandbox_at

from daruma.tools.sandbox._sandbox import Level
from daruma.tools.sandbox._seccomp import NUMBERS

pytestmark = pytest.mark.parametrize("level", CONFINED)

NUMBER = NUMBERS.get(platform.machine(), {})
NEEDED = {"socket", "connect", "bind", "listen", "socketpair", "clone", "unshare", "ioctl"}
NEEDED |= {"setsockopt", "prlimit64", "open", "openat", "creat", "mknod", "mknodat"}
NEEDED |= {name for name in NUMBER if "chmod" in name}
NEEDED |= {name for name in NUMBER if name.startswith(("shm", "sem", "msg", "mq_"))}
"""Calls that are not denied as such, but for some of their arguments, or at one level only."""


async def within(level: Level, workspace: Path, script: str, *args: object) -> Any:
    """Run a Python script in the sandbox and return what it prints as JSON."""
    prelude = "import ctypes, errno, json, os, socket, sys\n"
    prelude += "libc = ctypes.CDLL(None, use_errno=True)\n"
    argv = [sys.executable, "-I", "-S", "-c", prelude + script, *map(str, args)]
    done = await sandbox_at(level).run(argv, workspace=workspace, timeout=20)
    assert done.passed, done.stderr
    return json.loads(done.stdout)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_calls_that_no_command_needs_are_refused(level: Level, tmp_path: Path) -> None:
    """Mounting, tracing, keys, BPF, io_uring and the like: with EPERM or ENOSYS, all of them."""
    script = """
said = {}
for name, number in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    said[name] = errno.errorcode.get(ctypes.get_errno(), "none") if result == -1 else "came through"
print(json.dumps(said))
"""
    numbers = {name: number for name, number in NUMBER.items() if name not in NEEDED}
    said = await within(level, tmp_path, script, json.dumps(numbers))

    assert {n: e for n, e in said.items() if e not in {"EPERM", "ENOSYS"}} == {}
    assert len(said) == len(numbers)


async def test_no_namespace_can_be_made(level: Level, tmp_path: Path) -> None:
    """Neither by unshare nor by clone: in a new user namespace a command would have all rights."""
    script = """
kinds = [0x10000000, 0x10000000 | 0x00020000, 0x00020000, 0x20000000, 0x40000000, 0x80]
said = [libc.unshare(kind) for kind in kinds]
said += [libc.syscall(int(sys.argv[1]), kind | 17, 0, 0, 0, 0) for kind in kinds[:-1]]
print(json.dumps(said))
"""
    assert set(await within(level, tmp_path, script, NUMBER["clone"])) == {-1}


async def test_memory_is_not_had_where_no_limit_sees_it(level: Level, tmp_path: Path) -> None:
    """Neither as a file without a name nor as large shared segments, semaphores, messages."""
    script = """
libc.syscall.restype = ctypes.c_long
said = [libc.syscall(int(sys.argv[1]), b"x", 0), libc.syscall(int(sys.argv[2]), 0)]
said += [libc.shmget(0, ctypes.c_size_t(size), 0o1600) for size in (1 << 16, 1 << 32, 1 << 40)]
said += [libc.semget(0, 32_000, 0o1600), libc.msgget(0, 0o1600)]
print(json.dumps(said))
"""
    numbers = NUMBER["memfd_create"], NUMBER["memfd_secret"]
    assert await within(level, tmp_path, script, *numbers) == [-1] * 7


async def test_the_limits_of_other_processes_stay(level: Level, tmp_path: Path) -> None:
    """SE-05: one that may open no file any more can not end what the command leaves behind."""
    script = """
import resource
said = []
for pid in (os.getppid(), int(sys.argv[1])):
    try:
        said.append(resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)))
    except OSError as error:
        said.append(errno.errorcode[error.errno])
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
print(json.dumps([said, resource.prlimit(0, resource.RLIMIT_NOFILE)]))
"""
    said = await within(level, tmp_path, script, os.getpid())

    assert said == [["EPERM", "EPERM"], [20, 20]]


def keys_of_the_host() -> set[int]:
    """The keys of all segments, semaphores and queues."""
    tables = [Path("/proc/sysvipc", name).read_text() for name in ("shm", "sem", "msg")]
    return {int(line.split()[0]) for table in tables for line in table.splitlines()[1:]}


async def test_nothing_is_shared_with_other_programs(level: Level, tmp_path: Path) -> None:
    """A segment, semaphore or queue of System V is not the host's, where it would stay (SA-01)."""
    key = secrets.randbelow(1 << 30) + 1
    script = """
key = int(sys.argv[1])
said = [libc.shmget(key, 56, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600)]
print(json.dumps(said))
"""
    said = await within(level, tmp_path, script, key)

    assert key not in keys_of_the_host()
    assert said == [-1, -1, -1] or level == "namespace"


async def test_odd_sockets_are_refused(level: Level, tmp_path: Path) -> None:
    """Families that few programs use and much of the kernel hangs on."""
    script = """
came = []
for family in (*range(3, 10), 15, 17, *range(18, 46)):
    for kind in (1, 2, 3):
        try:
            socket.socket(family, kind).close()
            came.append(family)
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EACCES):
                came.append((family, error.errno))
print(json.dumps(came))
"""
    assert await within(level, tmp_path, script) == []


async def test_a_terminal_can_not_be_typed_into(level: Level, tmp_path: Path) -> None:
    """TIOCSTI and TIOCLINUX are refused before the device is asked."""
    script = """
import fcntl
said = []
for request in (0x5412, 0x541C):
    try:
        fcntl.ioctl(0, request, b"x")
    except OSError as error:
        said.append(errno.errorcode[error.errno])
print(json.dumps(said))
"""
    assert await within(level, tmp_path, script) == ["EPERM", "EPERM"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the second ABI is x86-64's")
async def test_a_call_of_another_abi_kills(level: Level, tmp_path: Path) -> None:
    """Its numbers mean other calls than those that the rules name."""
    script = """
child = os.fork()
if child == 0:
    libc.syscall(0x40000000 + 39)
    os._exit(0)
print(json.dumps(os.WTERMSIG(os.waitpid(child, 0)[1])))
"""
    assert await within(level, tmp_path, script) == signal.SIGSYS


async def test_a_command_has_no_rights_and_no_way_to_gain_any(level: Level, tmp_path: Path) -> None:
    """No capabilities, no new privileges by other programs, a filter, and no open files of ours."""
    script = """
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
names = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
names += ["CapBnd"] if sys.argv[1] == "0" else []  # without rights it can not be emptied
said = [int(status[name], 16) for name in names]
said += [int(status["NoNewPrivs"]), int(status["Seccomp"])]
print(json.dumps([said, sorted(map(int, os.listdir("/proc/self/fd")))]))
"""
    rights, files = await within(level, tmp_path, script, os.geteuid())

    assert rights[:4] == [0, 0, 0, 0]
    assert rights[4:] in ([0, 1, 2], [1, 2])
    assert files == [0, 1, 2, 3]  # the last is the list itself


async def test_no_file_is_left_that_runs_with_its_owners_rights(
    level: Level, tmp_path: Path
) -> None:
    """SE-05: whoever ran it would be the person, or root; other modes are a command's own."""
    script = """
numbers, (WRITE, CREATE, UNNAMED, HERE) = json.loads(sys.argv[1]), (1, 0o100, 0o20200000, -100)
def call(name, *args):
    if name in numbers:
        libc.syscall(numbers[name], *args)
for name in ("a", "b", "c", "d"):
    open(name, "w").close()
call("chmod", b"a", 0o4755)
call("fchmod", os.open("b", WRITE), 0o6755)
call("fchmodat", HERE, b"c", 0o4755, 0)
call("fchmodat2", HERE, b"d", 0o4755, 0)
call("open", b"e", WRITE | CREATE, 0o4755)
call("openat", HERE, b"f", WRITE | CREATE, 0o4755)
call("openat2", HERE, b"g", (ctypes.c_uint64 * 3)(WRITE | CREATE, 0o4755, 0), 24)
call("creat", b"h", 0o4755)
call("mknod", b"i", 0o104755, 0)
call("mknodat", HERE, b"j", 0o104755, 0)
fd = libc.syscall(numbers["openat"], HERE, b".", UNNAMED | 2, 0o4755)
libc.linkat(HERE, b"/proc/self/fd/%d" % fd, HERE, b"k", 0x400)
os.mkdir("folder")
os.chmod("folder", 0o2775)  # what is made in it has its group
os.close(os.open("a", WRITE, 0o4755))  # a mode that says nothing: there is nothing to make
os.chmod("a", 0o1755)
print(json.dumps(os.stat("folder").st_mode & 0o7777))
"""
    assert await within(level, tmp_path, script, json.dumps(NUMBER)) == 0o2775
    modes = {name: (tmp_path / name).stat().st_mode for name in names(tmp_path)}
    assert [name for name, mode in modes.items() if mode & stat.S_ISUID] == []
    assert stat.S_IMODE(modes["a"]) == 0o1755


async def test_secrets_are_out_of_reach(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in our environment, ours and a parent's, and those of the system."""
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    script = """
found = []
paths = ["/etc/shadow", "/etc/gshadow", f"/proc/{sys.argv[1]}/environ", "/proc/self/environ"]
paths += [f"/proc/{os.getppid()}/environ", "/proc/1/environ", f"/proc/{sys.argv[1]}/mem"]
for path in paths:
    try:
        text = open(path, "rb").read(65536)
        if b"s3cret" in text or (path.startswith("/etc") and text):
            found.append(path)
    except OSError:
        pass
print(json.dumps(found))
"""
    assert await within(level, tmp_path, script, os.getpid()) == []


async def test_the_interpreter_and_the_system_can_not_be_changed(
    level: Level, tmp_path: Path
) -> None:
    """What Daruma itself runs later, the kernel's settings, and folders above the workspace."""
    script = """
came = []
for folder in (*sys.argv[1:], "/", "/etc", "/usr/bin", "/proc/sys/kernel", "/sys", "/dev"):
    try:
        open(folder + "/daruma-was-here", "w").close()
        came.append(folder)
    except OSError:
        pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        came.append(path)
    except OSError:
        pass
print(json.dumps(came))
"""
    assert await within(level, tmp_path, script, sys.prefix, sys.base_prefix) == []


async def test_a_folder_beside_the_workspace_is_closed(level: Level, tmp_path: Path) -> None:
    """Also one whose name begins with the workspace's, and through links and the parent."""
    for name in ("work", "work_other"):
        (tmp_path / name).mkdir()
    (tmp_path / "work_other" / "secret").write_text("s3cret")
    (tmp_path / "work" / "link").symlink_to("../work_other")
    command = "cat ../work_other/secret link/secret; echo x > ../new; echo x > link/new"
    done = await sandbox_at(level).run(command, workspace=tmp_path / "work", timeout=10)

    assert "s3cret" not in done.stdout
    assert names(tmp_path) == ["work", "work_other"]
    assert names(tmp_path / "work_other") == ["secret"]
