"""Shell lines: taken apart into the commands they may run, and whether a rule names one. Pure."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Final

from daruma.state.calls import ASSIGNMENT, plain_words
from daruma.state.settings import PolicyKey

# --- The tokens of a shell line, each by its kind: the names of the groups.

_TICKS = r"(?P<ticks>`(?:[^`\\]|\\.)*`)"
_VARIABLE = r"(?P<variable>\$(?:\{#?|[\w@*#?$!-])?)"
TOKEN: Final = re.compile(
    r"(?P<continued>\\\n)|(?P<escaped>\\.)|(?P<single>'[^']*')|(?P<refused><<|&>|\$')"
    rf"|(?P<opening>\$\(|[<>]\()|{_TICKS}|{_VARIABLE}|(?P<quote>\")|(?P<redirect>[<>][>&|]?)"
    r"|(?P<group>\()|(?P<close>\))|(?P<end>&&|\|\||[;&|\n])|(?P<blank>[ \t]+)|(?P<comment>#[^\n]*)"
    r"|(?P<pattern>[*?]|\[(?!\[?(?:[ \t\n]|$))|\{(?![ \t\n}]|$))"
    r"|(?P<plain>[{\[]|[^\\'\"$`<>();&|\n \t*?\[{#][^\\'\"$`<>();&|\n \t*?\[{]*)",
    re.DOTALL,
)
TOKEN_IN_QUOTES: Final = re.compile(
    rf"(?P<continued>\\\n)|(?P<escaped>\\[$`\"\\])|(?P<opening>\$\()|{_TICKS}|{_VARIABLE}"
    r"|(?P<quote>\")|(?P<literal>\\|[^\\\"$`]+)",
    re.DOTALL,
)


# --- A shell line taken apart into the simple commands that it may run. Pure; nothing is expanded.
#
# This reads for those who want to refuse: a line that can not be read with certainty is
# :class:`Unclear`, never guessed.

UNKNOWN_WORD: Final = "\0"
"""Stands in a word for what only the shell will know: a variable, a pattern, a command's output."""

MOST_TEXT: Final = 20_000
"""Characters; a longer line is unclear."""

_MOST_NESTED: Final = 100
"""Parentheses within parentheses; the text of what is in more is not kept."""

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command: its words, its text, and the lines whose output it takes."""

    words: Words
    text: str
    taken: tuple["Line", ...]


Line = tuple["str | Simple | Line", ...]
"""The commands of a line, what stands between them, and the lines in parentheses."""


class Unclear(Exception):
    """Raised for a line whose commands can not be told with certainty."""


def simple_commands(line: str) -> list[Words]:
    """Return the words of each simple command, quotes removed, those inside others too.

    Redirections are left out; assignments, reserved words and ``UNKNOWN_WORD`` parts are kept.
    Raises :class:`Unclear`, for example for here-documents, open quotes, ``case`` and control
    characters.
    """
    if len(line) > MOST_TEXT:
        raise Unclear
    reader = _read(line)
    if reader.differs:
        raise Unclear
    return reader.commands


def line_of(text: str) -> Line:
    """Return a line as POSIX has it, however long it is; there ``a &> b`` is ``a & > b``.

    Raises :class:`Unclear`, as :func:`simple_commands` does.
    """
    return tuple(_read(text).stack[0].line)


def _read(line: str) -> "_Reader":
    if re.search(r"[\0-\x08\x0b-\x1f\x7f]", line):
        raise Unclear
    reader = _Reader(line)
    reader.read()
    if any("case" in words for words in reader.commands):
        raise Unclear  # its patterns end in a parenthesis that was never opened
    return reader


@dataclass
class _Command:
    """A simple command as far as it was read.

    ``word`` is the one being read, in pieces: ``quoted`` if inside double quotes, a ``target`` if
    it follows a redirection, ``bare`` if nothing of it was quoted. ``line`` stands before it.
    """

    start: int = 0
    line: list[str | Simple | Line] = field(default_factory=list)
    taken: list[Line] = field(default_factory=list)
    redirects: bool = False
    words: list[str] = field(default_factory=list)
    word: list[str] | None = None
    quoted: bool = False
    target: bool = False
    bare: bool = False


class _Reader:
    """Reads a line once, from left to right; a method per kind of token.

    Its stack holds the command being read, last, and those in whose parentheses it stands.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.commands: list[Words] = []
        self.stack = [_Command()]
        self.differs = False
        """Whether shells read the line in different ways."""

    def read(self) -> None:
        while self.at < len(self.line):
            found = (TOKEN_IN_QUOTES if self.now.quoted else TOKEN).match(self.line, self.at)
            if found is None or found.lastgroup is None:
                raise Unclear
            getattr(self, found.lastgroup)(found[0])
            self.at = found.end()
        if len(self.stack) > 1 or self.now.quoted:
            raise Unclear
        self.end()

    @property
    def now(self) -> _Command:
        return self.stack[-1]

    def literal(self, text: str) -> None:
        self.now.word = self.now.word or []
        self.now.word.append(text)
        self.now.bare = False

    def plain(self, text: str) -> None:
        bare = self.now.word is None
        self.literal(text)
        self.now.bare = bare

    def continued(self, _: str) -> None:
        """The backslash and the line feed are nothing, not even the end of a word."""

    def escaped(self, text: str) -> None:
        self.literal(text[1:])

    def single(self, text: str) -> None:
        self.literal(text[1:-1])

    def quote(self, _: str) -> None:
        self.literal("")
        self.now.quoted = not self.now.quoted

    def refused(self, text: str) -> None:
        if text != "&>":
            raise Unclear
        self.differs = True
        self.end("&")
        self.redirect(">")

    def variable(self, _: str) -> None:
        self.literal(UNKNOWN_WORD)

    pattern = variable

    def opening(self, text: str) -> None:
        if text[0] != "$":
            self.blank()
        self.literal(UNKNOWN_WORD)
        self.stack.append(_Command(self.at + 2))

    def ticks(self, text: str) -> None:
        if self.now.quoted and '\\"' in text:
            raise Unclear  # shells differ
        self.literal(UNKNOWN_WORD)
        inner = _read(re.sub(r"\\([$`\\])", r"\1", text[1:-1]))
        self.commands += inner.commands
        self.differs |= inner.differs
        self.now.taken.append(tuple(inner.stack[0].line))

    def redirect(self, _: str) -> None:
        word = "".join(self.now.word or ())
        if word.startswith(UNKNOWN_WORD) and word.endswith("}"):
            raise Unclear  # {name}> is a redirection in bash
        if self.now.bare and re.fullmatch("[0-9]+", word):
            self.now.word = None
        self.blank()
        self.now.target = self.now.redirects = True

    def group(self, _: str) -> None:
        self.end()
        self.stack.append(_Command(self.at + 1))

    def close(self, _: str) -> None:
        self.end()
        line = tuple(self.stack.pop().line)
        if not self.stack:
            raise Unclear
        if self.now.word is not None or self.now.words:
            self.now.taken.append(line)
        else:
            self.now.line.append(line)
            self.now.start = self.at + 1

    def comment(self, _: str) -> None:
        if self.now.word is not None:
            raise Unclear  # inside a word it is no comment
        self.end()

    def end(self, joint: str = "") -> None:
        self.blank()
        now = self.now
        alone = now.redirects and not (now.line and isinstance(now.line[-1], tuple))
        if now.words or alone:
            shallow = len(self.stack) <= _MOST_NESTED
            text = self.line[now.start : self.at].strip() if shallow else ""
            now.line.append(Simple(tuple(now.words), text, tuple(now.taken)))
        self.commands += [tuple(now.words)] if now.words else []
        now.line += [joint] if joint else []
        now.start = self.at + len(joint)
        now.words, now.taken, now.target, now.redirects = [], [], False, False

    def blank(self, _: str = "") -> None:
        if self.now.word is None:
            return
        if not self.now.target:
            self.now.words.append("".join(self.now.word))
        self.now.word, self.now.target = None, False


# --- The commands that a shell line may start, also through programs that start others. Pure.

_PLAIN = re.compile(r"[\w./:=@%+,-]*")

_RESERVED: Final = frozenset({
    "!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while",
})  # fmt: skip
_SHELLS: Final = frozenset({
    "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "pwsh", "rbash",
    "rksh", "sh", "tcsh", "yash", "zsh",
})  # fmt: skip
_TAKE_LINES: Final = _SHELLS | {
    "capsh", "doas", "entr", "env", "eval", "flock", "hyperfine", "parallel", "runuser", "screen",
    "script", "sg", "ssh", "su", "sudo", "tmux", "trap", "watch", "watchexec",
}  # fmt: skip
_TAKE_COMMANDS: Final = _TAKE_LINES | {
    ".", "arch", "builtin", "bundle", "bwrap", "caffeinate", "cgexec", "choom", "chronic", "chroot",
    "chrt", "command", "conda", "dbus-run-session", "direnv", "eatmydata", "exec", "fakechroot",
    "fakeroot", "faketime", "fd", "find", "firejail", "gdb", "gtimeout", "hatch", "i386", "i686",
    "ionice", "ip", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2", "ld-linux.so.2",
    "ld-musl-x86_64.so.1", "ld.so", "linux32", "linux64", "lldb", "ltrace", "nice", "nohup", "npx",
    "nsenter", "numactl", "pdm", "perf", "pipenv", "pkexec", "poetry", "prlimit", "proot", "rr",
    "setarch", "setpriv", "setsid", "source", "start-stop-daemon", "stdbuf", "strace",
    "systemd-run", "taskset", "time", "timeout", "tini", "toybox", "uname26", "unbuffer", "unshare",
    "uv", "uvx", "valgrind", "x86_64", "xargs", "xvfb-run",
}  # fmt: skip
_TAKE_SOME: Final = frozenset({"bun", "git", "npm", "pnpm", "yarn"})
_TAKE_BEHIND = frozenset({"bisect", "dlx", "exec", "filter-branch", "foreach", "rebase", "x"})

_FILL_IN: Final = frozenset({"parallel", "xargs"})
_ONLY_TELL: Final = frozenset({("command", "-v"), ("command", "-V")})
_HIDE: Final = frozenset({"alias", "at", "batch", "enable", "hash"})
"""What a name means after them, or what they are given to read, is not in the line."""
_GIT_ALIAS = re.compile(r" (?:-c|--config-env)[ =]?alias\.", re.IGNORECASE)

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
        for start in (0, *(at for at, word in enumerate(words, 1) if word in _RESERVED)):
            if command := unassigned(words[start:]):
                yield command
                yield from _behind(command, depth)


def program_of(word: str) -> str:
    """Return the name of the program that a word calls; some file systems fold case."""
    return word.rpartition("/")[2].casefold()


def _behind(command: Words, depth: int) -> Iterator[Words]:
    program = program_of(command[0])
    if program in _HIDE or _GIT_ALIAS.search(" ".join(command)):
        raise Unclear
    takes = program in _TAKE_COMMANDS or _takes_lines(program, command)
    if not takes or command[:2] in _ONLY_TELL:
        return
    if len(command) > MOST_WORDS or _reads_input(command):
        raise Unclear
    rests = (unassigned(command[at:]) for at in range(1, len(command)))
    # What ``xargs`` and ``parallel`` read is put behind the rest, or into it.
    fills = _FILL_IN & set(map(program_of, command))
    anywhere = any(word == "parallel" or _REPLACES.match(word) for word in command)
    for rest in filter(None, rests):
        put = (rest[0], UNKNOWN_WORD, *rest[1:]) if anywhere else (*rest, UNKNOWN_WORD)
        yield put if fills else rest
    if any(_takes_lines(program_of(word), command) for word in command):
        # An argument may be read as a line, all of them, or an option's with all behind.
        whole = " ".join(command[1:])
        lines = [text for text in (*command[1:], whole) if not _PLAIN.fullmatch(text)]
        glued = ((at, _GLUED.fullmatch(word)) for at, word in enumerate(command, 1))
        lines += [" ".join([found[1] or found[2], *command[at:]]) for at, found in glued if found]
        for text in sorted(lines):
            yield from commands_started(text, depth - 1)


def _takes_lines(program: str, command: Words) -> bool:
    """Whether a program takes lines, if only as `git rebase` and `npm exec` do."""
    some = program in _TAKE_SOME and not _TAKE_BEHIND.isdisjoint(command)
    return some or program in _TAKE_LINES


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


def unassigned(words: Words) -> Words:
    """Return a command without the assignments before it."""
    first = next((at for at, word in enumerate(words) if not ASSIGNMENT.match(word)), len(words))
    return words[first:]


# --- Whether a shell line is, or may run, a command that a rule of the policy names. Pure.
#
# Two questions with two answers when in doubt: :func:`is_one_command` says no, :func:`may_run` says
# yes. What a script or program does by itself is not seen here: that is the sandbox's affair.


def is_one_command(line: str, key: PolicyKey) -> bool:
    """Whether a line is one simple command, with nothing of the shell's, that the key names."""
    words = plain_words(line)
    if not words:
        return False
    named = key.words or ()
    enough = len(words) >= len(named) if key.open_end else len(words) == len(named)
    for word, name in zip(words, named, strict=False):
        up = word.split("/").count("..") - name.split("/").count("..")
        if not fnmatchcase(word, name) or (up and name != "*"):
            return False  # what a star stands for does not lead out of the folder before it
    return enough


def may_run(line: str, key: PolicyKey) -> bool:
    """Whether any command of a line may be one that the key names, with anything behind it.

    Quotes, paths to the program, assignments and options in between change nothing, nor do programs
    that start others. A line that can not be read with certainty may run anything.
    """
    try:
        return any(_may_be(each, key.words or ()) for each in commands_started(line))
    except Unclear:
        return True


def may_start(line: str, glob: str) -> bool:
    """Whether any command of a line may fit a pattern, its words without quotes in between."""
    try:
        started = [" ".join(words) for words in commands_started(line)]
    except Unclear:
        return True
    return any(UNKNOWN_WORD in words or fnmatchcase(words, glob) for words in started)


def _may_be(command: Words, named: Words) -> bool:
    if not named or UNKNOWN_WORD in command[0]:
        return True
    program, dash, word = program_of(command[0]).partition("-")
    if dash and _may_be((program, word, *command[1:]), named):
        return True  # git has a program `git-push` in a folder of its own
    if not fnmatchcase(program_of(command[0]), program_of(named[0])):
        return False
    options = [name for name in named[1:] if name.startswith("-")]
    names = [name for name in named[1:] if not name.startswith("-")]
    return all(_has_option(command, option) for option in options) and _has_words(command, names)


def _has_words(command: Words, names: Sequence[str]) -> bool:
    """Whether the names follow each other; options and their values may come before each."""
    reached = {1}
    for name in names:
        within: set[int] = set()
        for start in reached:
            for at in range(start, len(command)):
                within.add(at)
                if not (command[at].startswith("-") or (at > 1 and command[at - 1][:1] == "-")):
                    break
        if any(UNKNOWN_WORD in command[at] for at in within):
            return True
        reached = {at + 1 for at in within if _may_mean(command[at], name)}
    return bool(reached)


def _may_mean(word: str, name: str) -> bool:
    meanings = {word, word[2:] if word.startswith("-") else word, word.rpartition("=")[2]}
    return any(fnmatchcase(meaning.casefold(), name.casefold()) for meaning in meanings)


def _has_option(command: Words, option: str) -> bool:
    options = [word for word in command[1:] if word.startswith("-") or UNKNOWN_WORD in word]
    if any(UNKNOWN_WORD in word or fnmatchcase(word, option) for word in options):
        return True
    if option.startswith("--"):
        names = {word.partition("=")[0] for word in options if word.startswith("--")}
        return any(len(name) > 2 and option.startswith(name) for name in names)
    letters = {word[2:3] if word.startswith("--") else word for word in options}
    return set(option[1:]) <= set("".join(letters))


# --- Whether a shell line leads out of a folder. Pure: only its words are read.

_ROOTS: Final = frozenset({
    "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt", "opt",
    "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var", "Applications", "Library",
    "System", "Users", "Volumes", "private",
})  # fmt: skip
"""What lies at the top of a disk: other words that begin with a slash are patterns and routes."""

_HARMLESS: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd"})
_REDIRECT_TARGET = re.compile(r"(?:[<>][>&|]?|&>)\s*(?![<>&(])[\"']?([^\s\"';|&<>()]+)")
_HOME = re.compile(r"(?:^|[\s=:'\"])~(?:[/\w]|\s|$)|\$\{?(?:HOME|OLDPWD)\b")


def place_outside(line: str, workspace: Path) -> str:
    """Return what of a shell line leads out of the workspace, empty if nothing does (VE-06).

    What is read: words, targets of redirections, ``cd``; programs may lie where systems keep them.
    What a program does by itself is not seen: that is the sandbox's affair.
    """
    if found := _HOME.search(line):
        return found[0].strip() or "~"
    targets = (_escape((), each, workspace) for each in _REDIRECT_TARGET.findall(line))
    try:
        return next(filter(None, (*targets, *_escapes(line, workspace))), "")
    except Unclear:
        words = re.split(r"[\s\"'`;|&<>()=]+", line)
        return next(filter(None, (_escape((), each, workspace) for each in words)), "")


def _escapes(line: str, workspace: Path) -> Iterator[str]:
    at: tuple[str, ...] = ()
    for words in commands_started(line):
        program = words[0]
        if not (program.startswith("/") and "bin" in program.split("/")[:-1]):
            yield _escape(at, program, workspace)
        if program_of(program) in {"cd", "pushd", "chdir"}:
            to = next((each for each in words[1:] if not each.startswith("-")), "")
            if not to and "-" not in words[1:]:
                yield program
            yield _escape(at, to, workspace)
            at = path_parts(to, at)
            continue
        for word in words[1:]:
            yield _escape(at, word, workspace)
            yield _escape(at, word.partition("=")[2], workspace)


def _escape(at: tuple[str, ...], word: str, workspace: Path) -> str:
    if not word or word.startswith(UNKNOWN_WORD) or re.search(r"\s", word):
        return ""
    if word.startswith("/"):
        path = os.path.normpath("/" + word.lstrip("/"))
        known = Path(path).parts[1:2]
        real = {*_ROOTS, *workspace.parts[1:2]}
        outside = not Path(path).is_relative_to(workspace)
        harmless = path in _HARMLESS or os.path.dirname(path) in _HARMLESS  # noqa: PTH120 - text
        return word if outside and not harmless and {*known} <= real else ""
    return word if ".." in path_parts(word, at) else ""


def path_parts(word: str, at: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the pieces of a path without empty ones, ``.``, and ``..`` where it can be undone."""
    parts = [*at]
    for part in word.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return tuple(parts)
