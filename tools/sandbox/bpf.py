"""Assembling a seccomp filter: rules about system calls, turned into a BPF program."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

# linux/bpf_common.h, linux/seccomp.h; offsets in struct seccomp_data.
LOAD, EQUAL, AT_LEAST, ANY_OF, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
X32: Final = 0x40000000
"""Numbers from here on are calls of x86-64's second, 32-bit ABI, which the rules do not name."""

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Deny:
    """A call that always fails with ``errno``."""

    call: str
    errno: int


@dataclass(frozen=True, slots=True)
class DenyFlags:
    """A call that fails if its argument has any bit of ``mask`` (the low 32 are looked at)."""

    call: str
    argument: int
    mask: int
    errno: int


@dataclass(frozen=True, slots=True)
class DenyOthers:
    """A call that fails unless its argument's low 32 bits are one of ``values``."""

    call: str
    argument: int
    values: tuple[int, ...]
    errno: int


@dataclass(frozen=True, slots=True)
class DenyValue:
    """A call that fails if its argument is ``value`` (the low 32 bits are looked at)."""

    call: str
    argument: int
    value: int
    errno: int


@dataclass(frozen=True, slots=True)
class DenyLarge:
    """A call that fails if its argument, all 64 bits of it, is ``least`` or more."""

    call: str
    argument: int
    least: int
    errno: int


Rule = Deny | DenyFlags | DenyOthers | DenyValue | DenyLarge


def assembled(rules: Iterable[Rule], architecture: int, numbers: Mapping[str, int]) -> bytes:
    """Return the program. Calls of another architecture kill the process; others are allowed.

    A rule for a call that the architecture does not have is left out.
    """
    known = (rule for rule in rules if rule.call in numbers)
    body = chain.from_iterable(_one(rule, numbers[rule.call]) for rule in known)
    program = [*_head(architecture), *body, _return(ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _head(architecture: int) -> list[Instruction]:
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        _return(KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32),
        _return(KILL),
    ]


def _one(rule: Rule, number: int) -> list[Instruction]:
    if isinstance(rule, Deny):
        return [(EQUAL, 0, 1, number), _failure(rule)]
    inside = [*_test(rule), _failure(rule), (LOAD, 0, 0, NUMBER)]
    return [(EQUAL, 0, len(inside), number), *inside]


def _test(rule: DenyFlags | DenyOthers | DenyValue | DenyLarge) -> list[Instruction]:
    """Jump over the failure that follows when the argument is harmless."""
    low = _half(rule.argument, 0)
    if isinstance(rule, DenyFlags):
        return [low, (ANY_OF, 0, 1, rule.mask)]
    if isinstance(rule, DenyValue):
        return [low, (EQUAL, 0, 1, rule.value)]
    if isinstance(rule, DenyLarge):
        high = _half(rule.argument, 1)
        return [high, (EQUAL, 0, 2, 0), low, (AT_LEAST, 0, 1, rule.least)]
    last = len(rule.values)
    return [low, *((EQUAL, last - at, 0, value) for at, value in enumerate(rule.values))]


def _half(index: int, upper: int) -> Instruction:
    # both architectures are little-endian
    return (LOAD, 0, 0, ARGUMENTS + 8 * index + 4 * upper)


def _failure(rule: Rule) -> Instruction:
    return _return(ERRNO | rule.errno)


def _return(action: int) -> Instruction:
    return (RETURN, 0, 0, action)
