"""Whether a shell line can fail at all, whatever its programs do. Pure.

A line is read once, from left to right, with all ends that its commands so far may have. One that
can not be read with certainty, such as a loop or a function, counts as one that can fail.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from daruma.tools.calls.policy import (
    UNKNOWN_WORD,
    Line,
    Simple,
    Unclear,
    Words,
    line_of,
    program_of,
    unassigned,
)

# --- What is known of commands, as data.

_CONSTANT: Final = re.compile(
    r"((/usr)?/bin/|command |env |time )?(|(:|true|echo)( .*)?|pwd|wait|exec|date( -u| \+\S*)*"
    r"|sleep [\d.]+[smhd]?|printf (?!-)(%[^%\w]*[%s]|[^%])+|export( [A-Za-z_]\w*(=.*)?)+"
    r"|python3? -c\s+(pass|print\((\d*|'[^'\\]*'|\"[^\"\\]*\")\))\s*)",
    re.DOTALL,
)
"""Commands that surely end well."""

_SETS_UP: Final = re.compile(r"(cd|pushd|popd)( .*)?|(\.|source) .*/activate", re.DOTALL)
"""What only makes ready for the commands behind it: that it may fail makes no check."""

_FILTER: Final = re.compile(
    r"(\S*/)?(cat|column|cut|head|less|more|nl|sort|tail|tee|tr|wc|sed(?!.*[qQ]\s*[1-9]))( .*)?",
    re.DOTALL,
)
"""Programs that end well whatever they are given to read."""

_TELL: Final = {
    **dict.fromkeys(("bundle", "cargo", "cmake", "composer", "deno", "dotnet"), "version help"),
    **dict.fromkeys(("go", "gradle", "mix", "node", "npm", "npx", "rake", "ruby"), "version help"),
    **dict.fromkeys(("swift", "tox", "uv", "python", "python3"), "-V version help"),
    **dict.fromkeys(("rspec", "phpunit", "vitest", "mocha", "eslint", "tsc", "mvn"), ""),
    **dict.fromkeys(("flake8", "pylint", "ruff"), "--exit-zero"),
    "pytest": "-V --collect-only --co --fixtures --markers --setup-plan",
    "mypy": "-V",
    "make": "-v -n --dry-run --just-print",
    "ctest": "-N --show-only",
    "jest": "--listTests --showConfig",
}
"""Runners, and the words with which they check nothing, beside ``--help`` and ``--version``.

Those that know ``help`` only look at their first word for it."""

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_NOT_READ: Final = frozenset({"[[", "coproc", "eval", "exec", "for", "return", "until", "while"})
_KEYWORDS: Final = frozenset({"!", "elif", "else", "fi", "if", "then", "{", "}"})
_OPTIONS: Final = {"errexit": "e", "nounset": "u", "pipefail": "p", "c": "c", "e": "e", "u": "u"}
_RISK: Final = re.compile(r"<|\$\(\(|\$\{\w+:?\?")
"""What may fail before anything is run: a file to read, arithmetic, a variable that is wanted."""

_NOT_NAMED: Final = re.compile(
    r"\A(?:(?:[!{]|if|then|elif|else)\s+)+|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL
)
_DEEPEST: Final = 50
_Ends = frozenset[bool]
"""How commands may have ended: whether they have failed. Empty for what is never reached."""

_EITHER: Final = frozenset({False, True})
_WELL: Final = frozenset({False})
_NEVER: Final = _Ends()
_Modes = frozenset[str]
_Token = str | Simple | Line


@dataclass
class _Met:
    """What was met last of a line: a joint, and what stood behind it."""

    joint: str = ""
    name: str = ""


class _Shell:
    """Reads what one shell runs. Each method takes the ends that may be, and returns those after.

    What has left the shell is in ``left``. The ``modes`` are its options, and ``trap`` if an
    ``exit 0`` is run at its end. Where commands are ``tested``, as behind ``if``, ``-e`` rests.
    """

    def __init__(self, line: Line, met: _Met, depth: int, modes: _Modes, *, tested: bool) -> None:
        self.tokens, self.at = _tokens(line), 0
        self.joints = _joints_behind(self.tokens)
        self.met, self.depth, self.modes, self.tested = met, depth, modes, tested
        self.left = _NEVER

    def take(self, *wanted: str) -> str:
        found = self.tokens[self.at]
        if not isinstance(found, str) or found not in wanted:
            return ""
        self.at, self.met.joint = self.at + 1, found.strip()
        return found

    def leave(self, ends: _Ends) -> _Ends:
        """Note how the shell may end here; return all ways in which it may so far."""
        if "trap" in self.modes and True in ends:
            self.met.name, ends = "trap", _WELL
        self.left |= ends
        return self.left

    def commands(self, ends: _Ends, *stops: str) -> _Ends:
        self.depth += 1
        if self.depth > _DEEPEST or (stops[0] and self.tokens[self.at] in stops):
            raise Unclear
        while self.tokens[self.at] not in stops:
            before = self.left, self.modes
            after = self.chain(ends)
            joint = self.take(";", "&", "\n")
            if joint == "&":
                (self.left, self.modes), self.met.name, after = before, "&", ends and _WELL
            elif not joint and self.tokens[self.at] not in stops:
                raise Unclear
            ends = after
        self.depth -= 1
        return ends

    def chain(self, ends: _Ends) -> _Ends:
        ends = self.pipe(ends)
        while joint := self.take("&&", "||"):
            modes = self.modes
            passed_over = ends & {joint == "&&"}
            ends = passed_over | self.pipe(ends - passed_over)
            if passed_over and self.modes != modes:
                raise Unclear
        return ends

    def pipe(self, ends: _Ends) -> _Ends:
        tested, negated = self.tested, self.tokens[self.at] == "!"
        self.at += negated
        joint, piped = self.joints[self.at]
        self.tested = tested or negated or joint in {"&&", "||"}
        after = self.stages(ends) if piped else self.command(ends)
        self.tested = tested
        return frozenset(each != negated for each in after)

    def stages(self, ends: _Ends) -> _Ends:
        left, modes = self.left, self.modes
        stages: list[_Ends] = []
        while not stages or self.take("|"):
            self.left, self.modes = _NEVER, modes - {"trap"}
            last = self.tokens[self.at]
            stages.append(self.leave(self.command(ends)))
        self.left, self.modes, failed = left, modes, stages[-1]
        if isinstance(last, Simple) and _FILTER.fullmatch(" ".join(last.words)):
            failed = _WELL
        return self.ended(ends, _NEVER.union(*stages) if "p" in modes else failed)

    def ended(self, ends: _Ends, after: _Ends) -> _Ends:
        """Return the ends after a command, without those at which ``-e`` leaves the shell."""
        if not ends or not after & {True} or "e" not in self.modes or self.tested:
            return ends and after
        self.leave(after & {True})
        return after & {False}

    def command(self, ends: _Ends) -> _Ends:
        found = self.tokens[self.at]
        self.at += 1
        if isinstance(found, Simple):
            return self.simple(found, ends)
        if isinstance(found, tuple) and found and not isinstance(found[0], tuple):
            return self.subshell(found, ends, self.modes - {"trap"}, tested=self.tested)
        if found == "if":
            return self.branches(ends)
        if found != "{":
            raise Unclear  # or a function, or what may be arithmetic
        after = self.commands(ends, "}")
        self.at += 1
        return after

    def subshell(self, line: Line, ends: _Ends, modes: _Modes, *, tested: bool = False) -> _Ends:
        inner = _Shell(line, self.met, self.depth + 1, modes, tested=tested)
        return self.ended(ends, inner.leave(inner.commands(ends, "")))

    def branches(self, ends: _Ends) -> _Ends:
        tested, modes, done, stop = self.tested, self.modes, _NEVER, "if"
        while stop in {"if", "elif"}:
            self.tested = True
            ends = self.commands(ends, "then")
            self.at, self.tested = self.at + 1, tested
            done |= self.commands(ends & {False}, "elif", "else", "fi")
            ends &= {True}
            stop = self.take("elif", "else", "fi")
        ends = self.commands(ends, "fi") if stop == "else" else ends and _WELL
        self.at += stop == "else"
        self.met.name = "if"
        if self.modes != modes:
            raise Unclear
        return done | ends

    def simple(self, command: Simple, ends: _Ends) -> _Ends:
        words, text = unassigned(command.words), _NOT_NAMED.sub("", command.text).strip()
        name = words[0] if words and self.met.joint == "|" else text or command.text
        self.met.name = f"{self.met.joint} {name}".strip()
        first = words[0] if words else ""
        wants = "u" in self.modes and re.search(r"\$[\w{!]", command.text)
        if wants or (first in _NOT_READ and words != ("exec",)):
            raise Unclear
        if _RISK.search(text) or UNKNOWN_WORD in first:
            return self.ended(ends, _EITHER)
        if not words and command.taken:
            return self.subshell(command.taken[-1], ends, self.modes - {"trap"}, tested=self.tested)
        special = {"exit": self.exit, "set": self.set, "trap": self.trap}
        return special.get(first, self.program)(words, ends)

    def exit(self, words: Words, ends: _Ends) -> _Ends:
        if len(words) == 1 and "at end" in self.modes:
            return ends  # the code from before the trap
        known = re.fullmatch(r"exit [0-9]{1,3}", " ".join(words[:2]))
        code = frozenset({int(words[1]) & 255 != 0}) if known else _EITHER
        self.leave(ends and code if len(words) > 1 else ends)
        return _NEVER

    def set(self, words: Words, ends: _Ends) -> _Ends:
        on, off, _ = _options(words[1:])
        self.modes = (self.modes | on) - off
        return ends and _WELL

    def trap(self, words: Words, ends: _Ends) -> _Ends:
        """Read what is run at the end of the shell; only an ``exit 0`` in it changes something."""
        args = [each for each in words[1:] if each != "--"]
        if len(args) < 2 or not all(each.isdigit() or each.isupper() for each in args[1:]):
            return self.ended(ends, _EITHER)
        if not {"EXIT", "0"}.isdisjoint(args[1:]):
            line, met = line_of(args[0].replace(UNKNOWN_WORD, "$_")), _Met()
            inner = _Shell(line, met, self.depth + 1, frozenset({"at end"}), tested=False)
            goes_on = inner.commands(_EITHER, "")
            if True in inner.left:
                raise Unclear
            self.modes = self.modes - {"trap"} if goes_on else self.modes | {"trap"}
        return ends and _WELL

    def program(self, words: Words, ends: _Ends) -> _Ends:
        options, _, rest = _options(words[1:])
        if (
            _SHELLS.issuperset(words[:1])
            and "c" in options
            and rest
            and UNKNOWN_WORD not in rest[0]
        ):
            with suppress(Unclear):
                return self.subshell(line_of(rest[0]), ends and _WELL, options)
        text = " ".join(words)
        well = _CONSTANT.fullmatch(text) or (self.tokens[self.at] and _SETS_UP.fullmatch(text))
        fails = frozenset({True}) if text == "false" else _EITHER
        return self.ended(ends, _WELL if well or _checks_nothing(words) else fails)


def _tokens(line: Line) -> list[_Token]:
    """Return what a line consists of, keywords for themselves, and "" as the last."""
    found: list[_Token] = []
    for each in line:
        if isinstance(each, Simple):
            keywords = [*takewhile(_KEYWORDS.__contains__, each.words)]
            words = each.words[len(keywords) :]
            found += keywords
            found += [replace(each, words=words)] if words or not keywords else []
        elif each != "\n" or (
            found and (found[-1] in ("fi", "}") or not isinstance(found[-1], str))
        ):
            found.append(each)
    return [*found, ""]


def _joints_behind(tokens: Sequence[_Token]) -> list[tuple[str, bool]]:
    """Return for each token the joint behind its pipe, and whether it stands before a ``|``."""
    found, around = [], [("", False)]
    for each in reversed(tokens):
        match each:
            case "fi" | "}":
                around.append(("", False))
            case "if" | "{":
                around = around[:-1] or around
            case "|":
                around[-1] = (around[-1][0], True)
            case str() if each != "!":
                around[-1] = (each, False)
        found.append(around[-1])
    return found[::-1]


def _options(words: Words) -> tuple[frozenset[str], frozenset[str], Words]:
    """Return the options of a shell that are set, and unset, and the words behind them."""
    changed: dict[str, set[str]] = {"-": set(), "+": set()}
    sign, at = "-", 0
    for word in (*words, ""):
        if word == "--" or (word[:1] not in changed and word not in _OPTIONS):
            break
        names = [word] if word in _OPTIONS else [] if word[1:2] == "-" else [*word[1:]]
        sign = word[0] if word[0] in changed else sign
        changed[sign] |= {_OPTIONS[name] for name in names if name in _OPTIONS}
        at += 1
    return frozenset(changed["-"]), frozenset(changed["+"]), words[at:]


def _checks_nothing(words: Words) -> bool:
    """Whether a runner is only asked about itself, or told to let everything pass."""
    program = program_of("".join(words[:1]))
    args = words[1 : words.index("--") if "--" in words else None]
    if program in {"python", "python3"} and args[:1] == ("-m",):
        program, args = "".join(args[1:2]), args[2:]
    tells = {"--help", "--version", "-h", *_TELL.get(program, "").split()}
    return program in _TELL and not tells.isdisjoint(args[:1] if "help" in tells else args)


_MOST_QUOTED: Final = 1_000
"""Backquotes in a shell line; one with more is not read, which might take long (SE-07)."""


def find_hidden_exit(text: str) -> str:
    """Return what of a shell line keeps it from failing; empty where it can fail (VE-08).

    What makes ready for other commands, as ``cd`` does, is taken to go well there.
    """
    if text.count("`") > _MOST_QUOTED:
        return f"{text[:40]}... (too many backquotes)"
    met = _Met()
    try:
        outer = _Shell(line_of(text), met, 0, frozenset(), tested=False)
        failed = outer.leave(outer.commands(_WELL, ""))
    except Unclear:
        return ""
    return "" if True in failed else met.name or "#"
