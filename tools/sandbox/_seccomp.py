"""The seccomp filters of the two levels, as BPF programs."""

import os
import platform
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EACCES, EAFNOSUPPORT, ENOMEM, ENOSYS, EPERM
from typing import Final

from daruma.tools.files import closing_fd

# --- The numbers of the system calls that the filters name, by architecture.

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH values (linux/audit.h) by what ``platform.machine()`` says."""

_SHARED_NUMBERS: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
"""Since Linux 5.1 a new call has the same number everywhere."""

_X86_64: Final = {
    "ioctl": 16, "socket": 41, "connect": 42, "bind": 49, "listen": 50, "socketpair": 53,
    "clone": 56, "ptrace": 101, "syslog": 103, "vhangup": 153, "pivot_root": 155, "chroot": 161,
    "acct": 163, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "memfd_create": 319,
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66,
    "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "mq_open": 240, "mq_unlink": 241, "setsockopt": 54, "prlimit64": 302,
    "open": 2, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133, "openat": 257, "mknodat": 259,
    "fchmodat": 268,
}  # fmt: skip

_AARCH64: Final = {
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "vhangup": 58,
    "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "socket": 198,
    "socketpair": 199, "bind": 200, "listen": 201, "connect": 203, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
    "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, "memfd_create": 279,
    "shmget": 194, "shmctl": 195, "shmat": 196, "semget": 190, "semctl": 191, "semtimedop": 192,
    "semop": 193, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189,
    "mq_open": 180, "mq_unlink": 181, "setsockopt": 208, "prlimit64": 261,
    "mknodat": 33, "fchmod": 52, "fchmodat": 53, "openat": 56,
}  # fmt: skip

NUMBERS: Final = {"x86_64": _X86_64 | _SHARED_NUMBERS, "aarch64": _AARCH64 | _SHARED_NUMBERS}


# --- Assembling a seccomp filter: rules about system calls, turned into a BPF program.

# linux/bpf_common.h, linux/seccomp.h; offsets in struct seccomp_data.
LOAD, EQUAL, AT_LEAST, ANY_OF, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
X32: Final = 0x40000000
"""Numbers from here on are calls of x86-64's second, 32-bit ABI, which the rules do not name."""

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A call that fails with ``errno``, unless its ``test`` jumps over the failure behind it."""

    call: str
    errno: int
    test: tuple[Instruction, ...] = ()


def deny_flags(call: str, argument: int, mask: int, errno: int) -> Rule:
    """Deny a call if its argument has any bit of ``mask`` (the low 32 are looked at)."""
    return Rule(call, errno, (_half(argument), (ANY_OF, 0, 1, mask)))


def deny_both(call: str, argument: int, mask: int, errno: int, other: int, other_mask: int) -> Rule:
    """Deny a call if its argument has a bit of ``mask``, and the other one of ``other_mask``.

    That is for modes, which say nothing where no file is made.
    """
    test = (_half(other), (ANY_OF, 0, 3, other_mask), _half(argument), (ANY_OF, 0, 1, mask))
    return Rule(call, errno, test)


def deny_others(call: str, argument: int, values: Sequence[int], errno: int) -> Rule:
    """Deny a call unless its argument's low 32 bits are one of ``values``."""
    skips = ((EQUAL, len(values) - at, 0, value) for at, value in enumerate(values))
    return Rule(call, errno, (_half(argument), *skips))


def deny_value(call: str, argument: int, value: int, errno: int) -> Rule:
    """Deny a call if its argument is ``value`` (the low 32 bits are looked at)."""
    return Rule(call, errno, (_half(argument), (EQUAL, 0, 1, value)))


def deny_large(call: str, argument: int, least: int, errno: int) -> Rule:
    """Deny a call if its argument, all 64 bits of it, is ``least`` or more."""
    high, low = _half(argument, 1), _half(argument)
    return Rule(call, errno, (high, (EQUAL, 0, 2, 0), low, (AT_LEAST, 0, 1, least)))


def ignore(call: str, argument: int, first: int, second: int) -> Rule:
    """Let a call do nothing, and succeed, if its arguments from ``argument`` on are these two."""
    low, next_ = _half(argument), _half(argument + 1)
    return Rule(call, 0, (low, (EQUAL, 0, 3, first), next_, (EQUAL, 0, 1, second)))


def assemble_filter(rules: Iterable[Rule], architecture: int, numbers: Mapping[str, int]) -> bytes:
    """Return the program. Calls of another architecture kill the process; others are allowed.

    A rule for a call that the architecture does not have is left out.
    """
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, KILL),
    ]
    for rule in rules:
        if rule.call in numbers:
            again = ((LOAD, 0, 0, NUMBER),) if rule.test else ()
            inside = (*rule.test, (RETURN, 0, 0, ERRNO | rule.errno), *again)
            program += [(EQUAL, 0, len(inside), numbers[rule.call]), *inside]
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _half(index: int, upper: int = 0) -> Instruction:
    # both architectures are little-endian
    return (LOAD, 0, 0, ARGUMENTS + 8 * index + 4 * upper)


# --- The seccomp filters of the two levels: what no command needs, and what would lead out.

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # address families, linux/socket.h
NAMESPACES: Final = 0x7E020000  # every CLONE_NEW* but NEWTIME, linux/sched.h
NEW_TIME: Final = 0x80  # of unshare; in clone these bits are a signal
WITHOUT_CONNECTION: Final = 2  # the bit of SOCK_DGRAM and SOCK_RAW
PUSH_INPUT, LINUX_CONSOLE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX

SOCKET_LEVEL: Final = 1  # SOL_SOCKET, asm-generic/socket.h
BUFFER_SIZES: Final = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF, and what privileges force
"""Each socket keeps the size that the system gives it, by which its memory is counted (SE-09)."""

SHARED_SEGMENT: Final = 64 * 1024
"""Bytes: 4096 segments can be made, which no limit of memory sees while they are not attached."""

SET_USER_ID: Final = 0o4000  # S_ISUID
MAKES: Final = 0o100 | 0o20000000  # O_CREAT and the bit of O_TMPFILE's own, asm-generic/fcntl.h

SEMAPHORE_SET: Final = 33
"""Semaphores of one set: 32,000 sets can be made, and no limit of memory sees any of them."""

_NEVER: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
    "mount", "umount2", "pivot_root", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "chroot", "setns", "open_by_handle_at",
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "fanotify_init",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "acct", "quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "iopl", "ioperm", "syslog",
    "vhangup",
)  # fmt: skip

# A program that a command leaves in the workspace never runs with its owner's rights: those of the
# person, or of root (SE-05). The bit that gives a group's stays: folders need it.
_MODES: Final = (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1),
                 ("mknod", 1), ("mknodat", 2))  # fmt: skip
_NO_OWNERS_RIGHTS: Final[tuple[Rule, ...]] = (
    *(deny_flags(call, at, SET_USER_ID, EPERM) for call, at in _MODES),
    deny_both("open", 2, SET_USER_ID, EPERM, 1, MAKES),
    deny_both("openat", 3, SET_USER_ID, EPERM, 2, MAKES),
    Rule("openat2", ENOSYS),  # its mode lies in memory; programs take openat then
)

_COMMON: Final[tuple[Rule, ...]] = (
    *(Rule(call, EPERM) for call in _NEVER),
    *_NO_OWNERS_RIGHTS,
    *(Rule(f"io_uring_{part}", ENOSYS) for part in ("setup", "enter", "register")),
    Rule("memfd_create", ENOSYS),  # no limit of memory sees it; programs take a temporary file
    Rule("memfd_secret", ENOSYS),  # likewise
    Rule("clone3", ENOSYS),  # its flags lie in memory, out of a filter's sight; libc uses clone
    deny_others("prlimit64", 0, (0,), EPERM),  # with another's limits its supervisor is disabled
    deny_flags("clone", 0, NAMESPACES, EPERM),
    deny_flags("unshare", 0, NAMESPACES | NEW_TIME, EPERM),
    *(ignore("setsockopt", 1, SOCKET_LEVEL, option) for option in BUFFER_SIZES),
    deny_value("ioctl", 1, PUSH_INPUT, EPERM),
    deny_value("ioctl", 1, LINUX_CONSOLE, EPERM),
)

_NAMESPACE: Final[tuple[Rule, ...]] = (
    *_COMMON,
    deny_others("socket", 0, (UNIX, INET, INET6, NETLINK), EAFNOSUPPORT),
    deny_large("shmget", 1, SHARED_SEGMENT, ENOMEM),
    deny_large("semget", 1, SEMAPHORE_SET, ENOMEM),
    Rule("msgget", EACCES),  # half a gigabyte of messages, which no limit of memory sees
)

_LANDLOCK_SHARED: Final[tuple[Rule, ...]] = (
    *_COMMON,
    # A datagram socket can be sent anywhere, so that a pair of them would reach the host's sockets.
    deny_others("socketpair", 0, (UNIX,), EAFNOSUPPORT),
    deny_flags("socketpair", 1, WITHOUT_CONNECTION, EACCES),
    # They belong to the host, where they outlive the command, and hold what other programs share.
    *(
        Rule(call, EACCES)
        for call in (
            "shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop",
            "msgget", "msgctl", "msgsnd", "msgrcv", "mq_open", "mq_unlink",
        )
    ),
)  # fmt: skip
_LANDLOCK: Final = {
    False: tuple(Rule(call, EACCES) for call in ("socket", "connect", "bind", "listen")),
    True: (deny_others("socket", 0, (INET, INET6, NETLINK), EACCES),),
}
"""What comes to that, by whether commands may use the network."""


def is_supported(machine: str | None = None) -> bool:
    """Return whether there is a table for this processor; without a filter there is no level."""
    return (machine or platform.machine()) in ARCHITECTURES


def namespace_filter(machine: str | None = None) -> bytes:
    """Return the program for commands that have a network namespace of their own."""
    return _assembled(_NAMESPACE, machine)


def landlock_filter(machine: str | None = None, *, network: bool) -> bytes:
    """Return the program for commands that share the host's network stack and sockets."""
    return _assembled((*_LANDLOCK_SHARED, *_LANDLOCK[network]), machine)


def _assembled(rules: tuple[Rule, ...], machine: str | None) -> bytes:
    machine = machine or platform.machine()
    return assemble_filter(rules, ARCHITECTURES[machine], NUMBERS[machine])


# --- A file in memory that a child process reads by its descriptor.


@contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    """Yield the descriptor, at the file's beginning."""
    with closing_fd(os.memfd_create("daruma")) as fd:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
