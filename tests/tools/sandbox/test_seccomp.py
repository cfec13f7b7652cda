"""The filter says what its rules say: its program is run here as the kernel would run it."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daruma.tools.sandbox._seccomp import (
    ALLOW,
    ANY_OF,
    ARCHITECTURES,
    AT_LEAST,
    EQUAL,
    ERRNO,
    KILL,
    LOAD,
    NUMBERS,
    RETURN,
    Rule,
    assemble_filter,
    deny_both,
    deny_flags,
    deny_large,
    deny_others,
    deny_value,
    ignore,
    landlock_filter,
    namespace_filter,
)

ARCH = 0xC000003E
SHARED_MEMORY = {
    "shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop",
    "msgget", "msgctl", "msgsnd", "msgrcv", "mq_open", "mq_unlink",
}  # fmt: skip
CALLS = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}
RULES = (
    Rule("a", 7),
    deny_flags("b", 0, 0x30, 8),
    deny_others("c", 1, (5, 6), 9),
    deny_value("d", 2, 4, 10),
    deny_large("e", 1, 0x20, 12),
    ignore("f", 1, 3, 4),
    deny_both("g", 2, 0x30, 13, 0, 0x11),
    Rule("not there", 11),
)


def ran(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the program returns for a call."""
    given_ = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, arch, 0, *given_)
    steps: list[tuple[int, int, int, int]] = list(struct.iter_unpack("=HBBI", program))
    value = at = 0
    while True:
        code, yes, no, k = steps[at]
        if code == RETURN:
            return k
        if code == LOAD:
            value = struct.unpack_from("=I", data, k)[0]
            at += 1
            continue
        holds = {EQUAL: value == k, AT_LEAST: value >= k, ANY_OF: bool(value & k)}[code]
        at += 1 + (yes if holds else no)


def meant(number: int, arguments: tuple[int, ...]) -> int:
    """What the rules mean."""
    first, second, third = (each & 0xFFFFFFFF for each in arguments)
    if number >= 0x40000000:
        return KILL
    denied = {
        1: (True, 7),
        2: (bool(first & 0x30), 8),
        3: (second not in (5, 6), 9),
        4: (third == 4, 10),
        5: (arguments[1] >= 0x20, 12),
        6: ((second, third) == (3, 4), 0),
        7: (bool(third & 0x30 and first & 0x11), 13),
    }
    hit, errno = denied.get(number, (False, 0))
    return ERRNO | errno if hit else ALLOW


ARGUMENT = st.integers(0, 7) | st.sampled_from([0x10, 0x20, 0x40]) | st.integers(0, 2**64 - 1)


@example(0x40000000, (0, 0, 0))
@example(2, (3, 9, 0))
@example(5, (0, 0x1F, 0))
@example(5, (0, 0x20, 0))
@example(5, (0, 1 << 32, 0))
@example(6, (0, 3, 4))
@example(6, (0, 3, 3))
@example(6, (0, 4, 4))
@example(7, (1, 0, 0x20))
@example(7, (2, 0, 0x20))
@example(7, (1, 0, 0x40))
@given(st.integers(0, 8) | st.integers(0, 2**32 - 1), st.tuples(ARGUMENT, ARGUMENT, ARGUMENT))
def test_the_program_does_what_the_rules_mean(number: int, arguments: tuple[int, ...]) -> None:
    """Whatever the call and its arguments; a rule for an unknown call changes nothing."""
    program = assemble_filter(RULES, ARCH, CALLS)

    assert ran(program, ARCH, number, *arguments) == meant(number, arguments)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_another_architecture_is_killed(machine: str) -> None:
    """Its numbers mean other calls."""
    for program in (namespace_filter(machine), landlock_filter(machine, network=False)):
        for arch in {0x40000003, *ARCHITECTURES.values()} - {ARCHITECTURES[machine]}:
            assert ran(program, arch, 0) == KILL


def refused(program: bytes, machine: str) -> Iterator[str]:
    """The calls that fail with every argument zero."""
    for name, number in NUMBERS[machine].items():
        if ran(program, ARCHITECTURES[machine], number) != ALLOW:
            yield name


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_both_architectures_refuse_the_same(machine: str) -> None:
    """But for what only one of them has."""
    only = {"iopl", "ioperm", "kexec_file_load"}
    modes = {"chmod", "fchmod", "fchmodat", "fchmodat2", "mknodat", "openat"}
    by_arguments = {
        "setsockopt",
        "ioctl",
        "clone",
        "unshare",
        "socketpair",
        "connect",
        "bind",
        "listen",
        "prlimit64",
    }
    by_arguments |= (SHARED_MEMORY - {"msgget"}) | modes
    program = namespace_filter(machine)

    assert set(refused(program, machine)) - only == set(NUMBERS["aarch64"]) - by_arguments - only
    network = landlock_filter(machine, network=False)
    assert {"socket", "connect", "bind", "listen", *SHARED_MEMORY} <= set(refused(network, machine))
    assert "connect" not in set(refused(landlock_filter(machine, network=True), machine))
