"""The keys of the policy: which calls a rule is about, by the tool's name and its arguments."""

import re
import shlex
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

SHELL_TOOL = "run_command"
"""The tool whose rules may name the beginning of a command."""

_KEY = re.compile(r"([^\s()]+)(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w-]*)\s*=\s*(\S.*?)\s*", re.DOTALL)
_COMMA = re.compile(r",(?![^{]*\})")  # not the commas of {a,b}
_COMMAND_HAS = frozenset({"command", "cwd", "timeout"})


@dataclass(frozen=True)
class PolicyKey:
    """A key that was read. ``words`` begin a command, ``globs`` are patterns by argument.

    ``open_end`` says that a command may go on behind its words. ``bare`` keys speak of every call.
    """

    name: str
    words: tuple[str, ...] | None = None
    open_end: bool = False
    globs: tuple[tuple[str, str], ...] = ()

    @property
    def bare(self) -> bool:
        """Whether the key says nothing of a call's arguments."""
        return self.words is None and not self.globs

    @property
    def exact(self) -> bool:
        """Whether the name is one tool's, not a pattern."""
        return not set("*?[") & set(self.name)


@lru_cache(maxsize=1024)
def policy_key(text: str) -> PolicyKey:
    """Read ``NAME``, ``run_command(words of a command *)`` or ``NAME(argument=pattern, ...)``.

    Raises ValueError, saying what can not be read.
    """
    found = _KEY.fullmatch(text)
    if found is None:
        raise ValueError("a key is NAME, run_command(COMMAND *) or NAME(argument=pattern)")
    name, inner = found.groups()
    _refuse_broken(name)
    if inner is None:
        return PolicyKey(name)
    arguments = [_ARGUMENT.fullmatch(part) for part in _COMMA.split(inner)]
    globs = tuple((each[1], each[2]) for each in arguments if each)
    if len(globs) == len(arguments) and (name != SHELL_TOOL or {*dict(globs)} <= _COMMAND_HAS):
        for _, glob in globs:
            _refuse_broken(glob)
        return PolicyKey(name, globs=globs)
    return _command_key(name, inner)


def checked_policy_key(text: str) -> str:
    """Return a key that can be read as it is. Raises ValueError for another one."""
    policy_key(text)
    return text


def _command_key(name: str, inner: str) -> PolicyKey:
    if name != SHELL_TOOL:
        raise ValueError(
            f"not argument=pattern, and only {SHELL_TOOL} takes the beginning of a command"
        )
    try:
        words = shlex.split(inner)
    except ValueError as error:
        raise ValueError(f"the command can not be read: {str(error).lower()}") from None
    if not words or re.match(r"\w+=", words[0]):
        raise ValueError("no command is named: write it as in run_command(git push *)")
    open_end = words[-1] == "*"
    kept = tuple(words[:-1] if open_end else words)
    for word in kept:
        _refuse_broken(word)
    return PolicyKey(name, words=kept, open_end=open_end)


def _refuse_broken(glob: str) -> None:
    try:
        re.compile(translate(glob))
    except re.error as error:
        raise ValueError(f"{glob!r} is no pattern: {error}") from None
