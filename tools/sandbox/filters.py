"""The seccomp filters of the two levels: what no command needs, and what would lead out."""

import platform
from errno import EACCES, EAFNOSUPPORT, ENOMEM, ENOSYS, EPERM
from typing import Final

from daruma.tools.sandbox.bpf import (
    Deny,
    DenyFlags,
    DenyLarge,
    DenyOthers,
    DenyValue,
    Rule,
    assembled,
)
from daruma.tools.sandbox.syscalls import ARCHITECTURES, NUMBERS

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # address families, linux/socket.h
NAMESPACES: Final = 0x7E020000  # every CLONE_NEW* but NEWTIME, linux/sched.h
NEW_TIME: Final = 0x80  # of unshare; in clone these bits are a signal
WITHOUT_CONNECTION: Final = 2  # the bit of SOCK_DGRAM and SOCK_RAW
PUSH_INPUT, LINUX_CONSOLE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX

SHARED_SEGMENT: Final = 64 * 1024
"""Bytes: 4096 segments can be made, which no limit of memory sees while they are not attached."""

_NEVER: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
    "mount", "umount2", "pivot_root", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "chroot", "setns", "open_by_handle_at",
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "fanotify_init",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "acct", "quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "iopl", "ioperm", "syslog",
    "vhangup",
)  # fmt: skip

_COMMON: Final[tuple[Rule, ...]] = (
    *(Deny(call, EPERM) for call in _NEVER),
    *(Deny(f"io_uring_{part}", ENOSYS) for part in ("setup", "enter", "register")),
    Deny("memfd_create", ENOSYS),  # no limit of memory sees it; programs take a temporary file
    Deny("clone3", ENOSYS),  # its flags lie in memory, out of a filter's sight; libc uses clone
    DenyFlags("clone", 0, NAMESPACES, EPERM),
    DenyFlags("unshare", 0, NAMESPACES | NEW_TIME, EPERM),
    DenyValue("ioctl", 1, PUSH_INPUT, EPERM),
    DenyValue("ioctl", 1, LINUX_CONSOLE, EPERM),
)

_NAMESPACE: Final[tuple[Rule, ...]] = (
    *_COMMON,
    DenyOthers("socket", 0, (UNIX, INET, INET6, NETLINK), EAFNOSUPPORT),
    DenyLarge("shmget", 1, SHARED_SEGMENT, ENOMEM),
)

# A datagram socket can be sent anywhere, so that a pair of them would reach the host's sockets.
_PAIRS: Final[tuple[Rule, ...]] = (
    DenyOthers("socketpair", 0, (UNIX,), EAFNOSUPPORT),
    DenyFlags("socketpair", 1, WITHOUT_CONNECTION, EACCES),
)

# They belong to the host, where they outlive the command, and hold what other programs share.
_SHARED: Final[tuple[Rule, ...]] = tuple(
    Deny(call, EACCES)
    for call in (
        "shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop",
        "msgget", "msgctl", "msgsnd", "msgrcv", "mq_open", "mq_unlink",
    )
)  # fmt: skip
_LANDLOCK: Final[tuple[Rule, ...]] = (
    *_COMMON,
    *_PAIRS,
    *_SHARED,
    *(Deny(call, EACCES) for call in ("socket", "connect", "bind", "listen")),
)
_LANDLOCK_WITH_NETWORK: Final[tuple[Rule, ...]] = (
    *_COMMON,
    *_PAIRS,
    *_SHARED,
    DenyOthers("socket", 0, (INET, INET6, NETLINK), EACCES),
)


def supported(machine: str | None = None) -> bool:
    """Return whether there is a table for this processor; without a filter there is no level."""
    return (machine or platform.machine()) in ARCHITECTURES


def namespace_filter(machine: str | None = None) -> bytes:
    """Return the program for commands that have a network namespace of their own."""
    return _assembled(_NAMESPACE, machine)


def landlock_filter(machine: str | None = None, *, network: bool) -> bytes:
    """Return the program for commands that share the host's network stack and sockets."""
    return _assembled(_LANDLOCK_WITH_NETWORK if network else _LANDLOCK, machine)


def _assembled(rules: tuple[Rule, ...], machine: str | None) -> bytes:
    machine = machine or platform.machine()
    return assembled(rules, ARCHITECTURES[machine], NUMBERS[machine])
