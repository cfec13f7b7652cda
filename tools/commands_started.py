"""The commands that a shell line may start, also through programs that start others. Pure."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from daruma.tools.shell_line import UNKNOWN, Unclear, Words, simple_commands

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_PLAIN = re.compile(r"[\w./:=@%+,-]*")

_RESERVED: Final = frozenset({
    "!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while",
})  # fmt: skip
_SHELLS: Final = frozenset({"ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"})
_TAKE_LINES: Final = _SHELLS | {
    "doas", "env", "eval", "flock", "parallel", "runuser", "script", "sg", "ssh", "su", "sudo",
    "trap", "watch",
}  # fmt: skip
_TAKE_COMMANDS: Final = _TAKE_LINES | {
    ".", "arch", "builtin", "bwrap", "caffeinate", "chroot", "chrt", "command", "entr", "exec",
    "fakeroot", "fd", "find", "firejail", "gtimeout", "ionice", "linux32", "linux64", "ltrace",
    "nice", "nohup", "npx", "nsenter", "numactl", "pipenv", "pkexec", "poetry", "prlimit", "proot",
    "setarch", "setpriv", "setsid", "source", "stdbuf", "strace", "systemd-run", "taskset", "time",
    "timeout", "toybox", "unbuffer", "unshare", "uv", "uvx", "xargs",
}  # fmt: skip

_FILL_IN: Final = frozenset({"parallel", "xargs"})
_ONLY_TELL: Final = frozenset({("command", "-v"), ("command", "-V")})
_HIDE: Final = frozenset({"alias", "at", "batch", "enable", "hash"})
"""What a name means after them, or what they are given to read, is not in the line."""

_VALUED: Final = frozenset({"-o", "+o", "-O", "+O", "-j", "--init-file", "--rcfile"})
_REPLACES = re.compile(r"-\w*[IiJ]|--repl")
_INPUT = re.compile(r"/dev/(?:stdin|fd/.*)|/proc/[^/]+/fd/.*")
_GLUED = re.compile(r"--[\w-]+=(.+)|-\w*?[cS](.+)", re.DOTALL)

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
    if program in _HIDE:
        raise Unclear
    if program not in _TAKE_COMMANDS or command[:2] in _ONLY_TELL:
        return
    if len(command) > MOST_WORDS or _reads_input(command):
        raise Unclear
    rests = (_unassigned(command[at:]) for at in range(1, len(command)))
    yield from (_filled(rest, command) for rest in rests if rest)
    if any(program_of(word) in _TAKE_LINES for word in command):
        for text in sorted(_lines_in(command)):
            yield from commands_started(text, depth - 1)


def _filled(rest: Words, command: Words) -> Words:
    """Return a command with a place for what ``xargs`` and ``parallel`` read and put into it."""
    if not _FILL_IN & set(map(program_of, command)):
        return rest
    anywhere = any(word == "parallel" or _REPLACES.match(word) for word in command)
    return (rest[0], UNKNOWN, *rest[1:]) if anywhere else (*rest, UNKNOWN)


def _lines_in(command: Words) -> Iterator[str]:
    """Yield what may be read as a line: an argument, all of them, an option's with all behind."""
    yield from (text for text in (*command[1:], " ".join(command[1:])) if not _is_plain(text))
    for at, word in enumerate(command):
        if glued := _GLUED.fullmatch(word):
            yield " ".join([glued[1] or glued[2], *command[at + 1 :]])


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None


def _reads_input(command: Words) -> bool:
    """Whether commands come from elsewhere: a shell without a script, or ``xargs`` of a shell."""
    programs = [program_of(word) for word in command]
    if any(map(_INPUT.fullmatch, command)):
        return True
    fills_in = next((at for at, name in enumerate(programs) if name in _FILL_IN), len(programs))
    if _TAKE_COMMANDS & set(programs[fills_in + 1 :]):
        return True
    started = (at for at, name in enumerate(programs) if name in _SHELLS)
    return any(_has_no_script(command[at:]) for at in started)


def _has_no_script(shell: Words) -> bool:
    for before, word in pairwise(shell):
        if word.startswith(("-", "+")):
            if re.fullmatch("-[a-z]*s[a-z]*", word):
                return True
        elif before not in _VALUED:
            return False
    return True


def _unassigned(words: Words) -> Words:
    first = next((at for at, word in enumerate(words) if not ASSIGNMENT.match(word)), len(words))
    return words[first:]
