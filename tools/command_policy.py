"""Whether a shell line is, or may run, a command that a rule of the policy names. Pure.

Two questions with two answers when in doubt: :func:`is_plainly` says no, :func:`may_run` says yes.
What a script or program does by itself is not seen here: that is the sandbox's affair.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from daruma.state.policy_key import PolicyKey
from daruma.tools.commands_started import ASSIGNMENT, commands_started, program_of
from daruma.tools.shell_line import UNKNOWN, Unclear, Words

_PLAIN_LINE = re.compile(
    r"""(?:[\w@%+=:,./^-]|(?<=\w)~|[ \t]|'[^'\x00-\x1f\x7f]*'|"[^"$`\\\x00-\x1f\x7f]*")+"""
)
"""One simple command, with quotes at most: nothing that a shell expands, joins or redirects."""


def is_plainly(line: str, key: PolicyKey) -> bool:
    """Whether a line is one simple command, with nothing of the shell's, that the key names."""
    words = shlex.split(line) if _PLAIN_LINE.fullmatch(line) else []
    if not words or ASSIGNMENT.match(words[0]):
        return False
    named = key.words or ()
    enough = len(words) >= len(named) if key.open_end else len(words) == len(named)
    return enough and all(map(_plainly_fits, words, named))


def _plainly_fits(word: str, name: str) -> bool:
    """Whether a word fits; what a star stands for does not lead out of the folder before it."""
    up = word.split("/").count("..") - name.split("/").count("..")
    return fnmatchcase(word, name) and (up == 0 or name == "*")


def may_run(line: str, key: PolicyKey) -> bool:
    """Whether any command of a line may be one that the key names, with anything behind it.

    Quotes, paths to the program, assignments and options in between change nothing, nor do programs
    that start others. A line that can not be read with certainty may run anything.
    """
    try:
        started = (way for each in commands_started(line) for way in _ways_to_say(each))
        return any(_may_be(each, key.words or ()) for each in started)
    except Unclear:
        return True


def may_start(line: str, glob: str) -> bool:
    """Whether any command of a line may fit a pattern, its words without quotes in between."""
    try:
        started = [" ".join(words) for words in commands_started(line)]
    except Unclear:
        return True
    return any(UNKNOWN in words or fnmatchcase(words, glob) for words in started)


def _ways_to_say(command: Words) -> Iterator[Words]:
    """Yield a command, and ``git push`` for the program ``git-push`` in git's own folder."""
    yield command
    program, dash, word = program_of(command[0]).partition("-")
    if dash:
        yield (program, word, *command[1:])


def _may_be(command: Words, named: Words) -> bool:
    if not named or UNKNOWN in command[0]:
        return True
    if not fnmatchcase(program_of(command[0]), program_of(named[0])):
        return False
    options = [name for name in named[1:] if name.startswith("-")]
    names = [name for name in named[1:] if not name.startswith("-")]
    return all(_has_option(command, option) for option in options) and _has_words(command, names)


def _has_words(command: Words, names: Sequence[str]) -> bool:
    reached = {1}
    for name in names:
        within = {at for start in reached for at in _within_reach(command, start)}
        if any(UNKNOWN in command[at] for at in within):
            return True
        reached = {at + 1 for at in within if _may_mean(command[at], name)}
    return bool(reached)


def _within_reach(command: Words, start: int) -> Iterator[int]:
    """Yield where the next word of a name may stand: options and their values may come before."""
    for at in range(start, len(command)):
        yield at
        skipped = command[at].startswith("-") or (at > 1 and command[at - 1].startswith("-"))
        if not skipped:
            return


def _may_mean(word: str, name: str) -> bool:
    meanings = {word, word[2:] if word.startswith("-") else word, word.rpartition("=")[2]}
    return any(fnmatchcase(meaning.casefold(), name.casefold()) for meaning in meanings)


def _has_option(command: Words, option: str) -> bool:
    options = [word for word in command[1:] if word.startswith("-") or UNKNOWN in word]
    if any(UNKNOWN in word or fnmatchcase(word, option) for word in options):
        return True
    if option.startswith("--"):
        names = {word.partition("=")[0] for word in options if word.startswith("--")}
        return any(len(name) > 2 and option.startswith(name) for name in names)
    letters = {word[2:3] if word.startswith("--") else word for word in options}
    return set(option[1:]) <= set("".join(letters))
