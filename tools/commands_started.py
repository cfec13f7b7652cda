"""The commands that a shell line may start, also through programs that start others. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from daruma.tools.shell_line import Unclear, Words, simple_commands

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_PLAIN = re.compile(r"[\w./:=@%+,-]*")

_RESERVED: Final = frozenset({
    "!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while",
})  # fmt: skip
_SHELLS: Final = frozenset({"ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"})
_TAKE_LINES: Final = _SHELLS | {
    "doas", "env", "eval", "flock", "parallel", "runuser", "script", "ssh", "su", "sudo", "trap",
    "watch",
}  # fmt: skip
_TAKE_COMMANDS: Final = _TAKE_LINES | {
    ".", "arch", "builtin", "bwrap", "caffeinate", "chroot", "chrt", "command", "entr", "exec",
    "fd", "find", "firejail", "gtimeout", "ionice", "linux32", "linux64", "ltrace", "nice", "nohup",
    "nsenter", "pkexec", "proot", "setarch", "setpriv", "setsid", "source", "stdbuf", "strace",
    "systemd-run", "taskset", "time", "timeout", "toybox", "unbuffer", "unshare", "xargs",
}  # fmt: skip

MOST_WORDS: Final = 300
"""Words behind a program that starts others; more are unclear."""

DEEPEST: Final = 4
"""Lines within lines, as in ``sh -c "sh -c ..."``; more are unclear."""


def commands_started(line: str, depth: int = DEEPEST) -> Iterator[Words]:
    """Yield every command that a line may start, assignments before it left out.

    Behind ``sudo``, ``xargs`` and their like each word may be a command's first; what a shell or
    ``eval`` is given is read as a line of its own. Raises :class:`Unclear`.
    """
    if depth == 0:
        raise Unclear
    for words in simple_commands(line):
        starts = [0, *(at for at, word in enumerate(words, 1) if word in _RESERVED)]
        for start in starts:
            if command := _unassigned(words[start:]):
                yield command
                yield from _behind(command, depth)


def program_of(word: str) -> str:
    """Return the name of the program that a word calls; some file systems fold case."""
    return word.rpartition("/")[2].casefold()


def _behind(command: Words, depth: int) -> Iterator[Words]:
    program = program_of(command[0])
    if program == "alias" or (program in _SHELLS and _reads_input(command)):
        raise Unclear
    if program not in _TAKE_COMMANDS:
        return
    if len(command) > MOST_WORDS:
        raise Unclear
    yield from (rest for at in range(1, len(command)) if (rest := _unassigned(command[at:])))
    if any(program_of(word) in _TAKE_LINES for word in command):
        texts = {*command[1:], " ".join(command[1:])}
        for text in sorted(text for text in texts if not _PLAIN.fullmatch(text)):
            yield from commands_started(text, depth - 1)


def _reads_input(command: Words) -> bool:
    """Whether a shell is started without a script, or told to read its commands from elsewhere."""
    return "-s" in command or all(word.startswith("-") for word in command[1:])


def _unassigned(words: Words) -> Words:
    first = next((at for at, word in enumerate(words) if not ASSIGNMENT.match(word)), len(words))
    return words[first:]
