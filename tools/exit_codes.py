"""Whether a shell line can fail at all, whatever its programs do. Pure.

The line is taken apart into a tree, and the tree is walked with all ends that its commands may
have. A line that can not be read with certainty counts as one that can fail.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from daruma.tools.calls.policy.shell import (
    ASSIGNMENT,
    UNKNOWN,
    Line,
    Simple,
    Subshell,
    Unclear,
    Words,
    line_of,
    program_of,
)

# --- What is known of commands, as data.

_EITHER: Final = frozenset({False, True})
"""The ends of a command that may fail: whether it has failed."""

_WELL: Final = frozenset({False})

_CONSTANT: Final = {
    ":": r".*",
    "true": r".*",
    "echo": r".*",
    "pwd": r"",
    "wait": r"",
    "exec": r"",
    "date": r"( -u| \+\S*)*",
    "sleep": r" [\d.]+[smhd]?",
    "printf": r" (?!-)(%[^%\w]*[%s]|[^%])+",
    "export": r"( [A-Za-z_]\w*(=.*)?)+",
}
"""Commands that end well, with the arguments with which they surely do."""

_SETS_UP: Final = re.compile(r"(cd|pushd|popd)( .*)?|(\.|source) .*/activate")
"""What only makes ready for the commands behind it: that it may fail makes no check."""

_FILTERS: Final = frozenset({
    "cat", "column", "cut", "fmt", "fold", "head", "less", "more", "nl", "sed", "sort", "tail",
    "tee", "tr", "ts", "uniq", "wc",
})  # fmt: skip
"""Programs that end well whatever they are given to read."""

_QUITS: Final = re.compile(r"[qQ]\s*[1-9]")
"""How ``sed`` ends with a code of its own."""

_TELL: Final = r"--version|--help|-V|-h"
_ANYWHERE: Final = {
    "pytest": rf"{_TELL}|--collect-only|--co|--fixtures(-per-test)?|--markers|--setup-plan",
    "ruff": rf"{_TELL}|--exit-zero|-e",
    "flake8": rf"{_TELL}|--exit-zero",
    "pylint": rf"{_TELL}|--exit-zero",
    "make": r"--version|--help|-v|-h|-n|--dry-run|--just-print|--recon",
    "ctest": rf"{_TELL}|-N|--show-only",
    "jest": rf"{_TELL}|--listTests|--showConfig",
    **dict.fromkeys(("mypy", "rspec", "phpunit", "vitest", "mocha", "eslint", "tsc", "mvn"), _TELL),
}
"""Runners, and the options with which they check nothing, wherever these stand."""

_FIRST: Final = frozenset({
    "bundle", "cargo", "cmake", "composer", "deno", "dotnet", "go", "gradle", "mix", "node", "nox",
    "npm", "npx", "python", "python3", "rake", "ruby", "swift", "tox", "uv",
})  # fmt: skip
"""Programs that only tell of themselves if they are asked to by their first word."""

_SAYS_NOTHING: Final = re.compile(r"pass|print\((\d*|'[^'\\]*'|\"[^\"\\]*\")\)")
"""What ``python -c`` may be given that can not fail."""

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"})
_NOT_READ: Final = frozenset({
    "[[", "break", "continue", "coproc", "do", "done", "exec", "function", "return", "select",
    "until", "while",
})  # fmt: skip
_KEYWORDS: Final = frozenset({"!", "do", "done", "elif", "else", "fi", "if", "then", "{", "}"})
_THROUGH: Final = frozenset({"builtin", "command", "env", "nice", "nohup", "time"})
"""Programs that end as the command behind them does."""

_OPTIONS: Final = {"errexit": "e", "nounset": "u", "pipefail": "pipefail", "e": "e", "u": "u"}
_SIGNAL: Final = re.compile(r"\d+|(SIG)?(HUP|INT|QUIT|TERM|USR1|USR2|PIPE|ALRM|EXIT)")
_DEEPEST: Final = 60
_MOST_LOOPS: Final = 3


# --- The tree of a line.


@dataclass(slots=True)
class _Leaf:
    """A simple command. ``ends`` is empty for one that ends as the command before it did."""

    text: str
    words: Words
    ends: frozenset[bool]
    leaves: bool = False
    sets_up: bool = False


@dataclass(slots=True)
class _Set:
    text: str
    on: frozenset[str]
    off: frozenset[str]


@dataclass(slots=True)
class _Trap:
    """What is run at the end of the shell."""

    text: str
    body: "_Node | None"


@dataclass(slots=True)
class _Shell:
    """A shell of its own; with the options of the one around it, or with others."""

    body: "_Node"
    options: frozenset[str] | None = None


@dataclass(slots=True)
class _Not:
    body: "_Node"


@dataclass(slots=True)
class _Pipe:
    """``filtered`` where tests end in a program that passes over what they said."""

    stages: "list[_Node]"
    filtered: bool


@dataclass(slots=True)
class _Chain:
    """Commands with ``&&`` and ``||`` before each but the first."""

    links: "list[tuple[str, _Node]]"


@dataclass(slots=True)
class _List:
    """Commands with what ends the one before, and whether they run in the background."""

    items: "list[tuple[str, _Node, bool]]"


@dataclass(slots=True)
class _If:
    condition: "_Node"
    then: "_Node"
    otherwise: "_Node | None"


@dataclass(slots=True)
class _For:
    body: "_Node"


_Node = _Leaf | _Set | _Trap | _Shell | _Not | _Pipe | _Chain | _List | _If | _For


def _tokens(line: Line) -> Iterable[str | Simple | Subshell]:
    for each in line:
        if not isinstance(each, Simple):
            yield each
            continue
        words, text = each.words, each.text
        while words and words[0] in _KEYWORDS:
            yield words[0]
            words, text = words[1:], text.removeprefix(words[0]).lstrip()
        if words:
            yield replace(each, words=words, text=text)


@dataclass
class _Known:
    """What was met in a line: its commands, and its traps. ``tests`` tells a runner of tests."""

    tests: Callable[[str], bool]
    leaves: list[_Leaf] = field(default_factory=list)
    traps: list[_Trap] = field(default_factory=list)


class _Parser:
    """Reads the tokens of a line into a tree. Raises Unclear."""

    def __init__(self, line: Line, known: _Known, depth: int, loops: int = 0) -> None:
        self.tokens = list(_tokens(line))
        self.at = 0
        self.known = known
        self.depth = depth
        self.loops = loops

    @property
    def next(self) -> str | Simple | Subshell | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *wanted: str) -> str:
        found = self.next
        if not isinstance(found, str) or found not in wanted:
            return ""
        self.at += 1
        return found

    def need(self, word: str) -> None:
        if not self.take(word):
            raise Unclear

    def whole(self) -> _Node:
        found = self.commands()
        if self.next is not None:
            raise Unclear
        return found

    def commands(self, *stops: str) -> _Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unclear
        items: list[tuple[str, _Node, bool]] = []
        joint = "\n"
        self.skip_lines()
        while self.next is not None and self.next not in stops:
            if not joint:
                raise Unclear
            node, before = self.chain(), joint
            joint = self.take(";", "&", "\n")
            items.append((before, node, joint == "&"))
            self.skip_lines()
        if stops and not items:
            raise Unclear
        self.depth -= 1
        return _List(items)

    def skip_lines(self) -> None:
        while self.take("\n"):
            pass

    def chain(self) -> _Node:
        links = [("", self.pipe())]
        while joint := self.take("&&", "||"):
            self.skip_lines()
            links.append((joint, self.pipe()))
        return _Chain(links) if len(links) > 1 else links[0][1]

    def pipe(self) -> _Node:
        negated = bool(self.take("!"))
        first = before = len(self.known.leaves)
        stages = [self.command()]
        while self.take("|"):
            self.skip_lines()
            before = len(self.known.leaves)
            stages.append(self.command())
        said = "\n".join(each.text for each in self.known.leaves[first:before])
        filtered = _is_filter(stages[-1]) and self.known.tests(said)
        node = _Pipe(stages, filtered) if len(stages) > 1 else stages[0]
        return _Not(node) if negated else node

    def command(self) -> _Node:
        found = self.next
        self.at += 1
        if isinstance(found, Simple):
            return self.loop(found) if found.words[0] == "for" else self.simple(found)
        if isinstance(found, Subshell) and not found.doubled:
            return _Shell(self.inner(found.line))
        if found == "if":
            return self.branch()
        if found != "{":
            raise Unclear
        body = self.commands("}")
        self.need("}")
        return body

    def inner(self, line: Line | str) -> _Node:
        taken = line_of(line) if isinstance(line, str) else line
        return _Parser(taken, self.known, self.depth + 1, self.loops).whole()

    def branch(self) -> _Node:
        condition = self.commands("then")
        self.need("then")
        then = self.commands("elif", "else", "fi")
        otherwise = None
        stop = self.take("elif", "else", "fi")
        if stop == "elif":
            otherwise = self.branch()
        elif stop == "else":
            otherwise = self.commands("fi")
            self.need("fi")
        return _If(condition, then, otherwise)

    def loop(self, head: Simple) -> _Node:
        self.loops += 1
        if self.loops > _MOST_LOOPS or head.open:
            raise Unclear
        self.take(";")
        self.skip_lines()
        self.need("do")
        body = self.commands("done")
        self.need("done")
        self.loops -= 1
        return _For(body)

    def simple(self, command: Simple) -> _Node:
        words = _bare(command.words)
        if not words and command.taken and not command.open:
            return _Shell(self.inner(command.taken[-1]))
        if words and not command.open and UNKNOWN not in words[0]:
            if words[0] in _NOT_READ and words != ("exec",):
                raise Unclear
            if node := self.special(words, command.text):
                return node
        leaf = _Leaf(command.text, words, _EITHER if command.open else _ends(words))
        leaf.leaves = leaf.words[:1] == ("exit",)
        leaf.sets_up = _SETS_UP.fullmatch(" ".join(words)) is not None
        self.known.leaves.append(leaf)
        return leaf

    def special(self, words: Words, text: str) -> _Node | None:
        """Return what reads words as a line, or changes how the shell goes on."""
        if words[0] in _SHELLS:
            return self.script(words)
        if words[0] == "eval":
            if UNKNOWN in "".join(words):
                raise Unclear
            return self.inner(" ".join(words[1:]))
        if words[0] == "set":
            on, off, _ = _options(words[1:])
            return _Set(text, on, off)
        return self.trap(words, text) if words[0] == "trap" else None

    def script(self, words: Words) -> _Node | None:
        on, _, rest = _options(words[1:])
        if "c" not in on or not rest or UNKNOWN in rest[0]:
            return None
        met = len(self.known.leaves)
        try:
            return _Shell(self.inner(rest[0]), on)
        except Unclear:
            del self.known.leaves[met:]
            return None

    def trap(self, words: Words, text: str) -> _Node | None:
        args = words[2:] if words[1:2] == ("--",) else words[1:]
        if len(args) < 2 or not all(map(_SIGNAL.fullmatch, args[1:])):
            return None
        if not {"EXIT", "0"} & {each.removeprefix("SIG") for each in args[1:]}:
            return _Set(text, frozenset(), frozenset())
        if UNKNOWN in args[0]:
            raise Unclear
        known = self.known
        met = len(known.leaves)
        trap = _Trap(text, None if args[0] in {"-", ""} else self.inner(args[0]))
        del known.leaves[met:]  # these say nothing about the checks
        known.traps.append(trap)
        return trap


def _bare(words: Words) -> Words:
    """Return a command without assignments and programs that end as it does."""
    start = 0
    while start < len(words) and (
        ASSIGNMENT.match(words[start])
        or (words[start] in _THROUGH and not "".join(words[start + 1 : start + 2]).startswith("-"))
    ):
        start += 1
    return words[start:]


def _options(words: Words) -> tuple[frozenset[str], frozenset[str], Words]:
    """Return the options of a shell that are set, and unset, and the words behind them."""
    changed: dict[str, set[str]] = {"-": set(), "+": set()}
    at = 0
    while at < len(words) and words[at][:1] in changed and len(words[at]) > 1:
        sign, letters = words[at][0], words[at][1:]
        at += 1
        if letters == "-":
            break
        if letters.startswith("-"):
            continue
        names = [*letters, *(words[at : at + 1] if "o" in letters else ())]
        at += "o" in letters
        changed[sign] |= {_OPTIONS.get(name, name) for name in names}
    return frozenset(changed["-"]), frozenset(changed["+"]), words[at:]


def _ends(words: Words) -> frozenset[bool]:
    """Return how a simple command may end; nothing if as the one before it did."""
    if not words:
        return _WELL
    first, rest = words[0], words[1:]
    folder, _, name = first.rpartition("/")
    if name == "exit" and not folder:
        if not rest:
            return frozenset()
        return frozenset({int(rest[0]) & 255 != 0}) if rest[0].isdecimal() else _EITHER
    if folder in {"", "/bin", "/usr/bin"}:
        if name == "false":
            return frozenset({True})
        args = "".join(f" {each}" for each in rest)
        if name in _CONSTANT and re.fullmatch(_CONSTANT[name], args, re.DOTALL):
            return _WELL
    return _WELL if _checks_nothing(words) else _EITHER


def _checks_nothing(words: Words) -> bool:
    """Whether a runner is only asked about itself, or told to let everything pass."""
    program = program_of(words[0])
    args = words[1 : words.index("--") if "--" in words else None]
    if program in {"python", "python3"} and args[:1] == ("-c",):
        return len(args) > 1 and _SAYS_NOTHING.fullmatch(args[1].strip()) is not None
    if program in {"python", "python3"} and args[:1] == ("-m",) and len(args) > 1:
        program, args = args[1], args[2:]
    program = {"py.test": "pytest"}.get(program, program)
    if program in _FIRST:
        return bool(args) and re.fullmatch(rf"{_TELL}|version|help", args[0]) is not None
    tells = _ANYWHERE.get(program)
    return tells is not None and any(re.fullmatch(tells, each) for each in args)


def _is_filter(stage: _Node) -> bool:
    if not isinstance(stage, _Leaf) or not stage.words:
        return False
    program = program_of(stage.words[0])
    quits = program == "sed" and any(map(_QUITS.search, stage.words[1:]))
    return program in _FILTERS and not quits


# --- Walking the tree with all ends that may be.


class _End(NamedTuple):
    """How the commands so far may have ended: ``left`` if the shell has, by ``exit`` or ``-e``.

    ``trap`` is how the shell ends by what is run at its end; None if that changes nothing.
    """

    failed: bool = False
    left: bool = False
    options: frozenset[str] = frozenset()
    trap: bool | None = None


_Ends = frozenset[_End]


def _walk(node: _Node, ends: _Ends, *, tested: bool = False) -> _Ends:
    """Return how a node may end, after each of some ends. Where it is ``tested``, ``-e`` rests."""
    walk: Callable[..., _Ends] = _WALKS[type(node)]
    done = frozenset(each for each in ends if each.left)
    return done | (walk(node, ends - done, tested=tested) if ends - done else done)


def _walk_leaf(node: _Leaf, ends: _Ends, *, tested: bool) -> _Ends:
    found: set[_End] = set()
    wants = any(UNKNOWN in word for word in node.words)
    for each in ends:
        failed = node.ends or frozenset({each.failed})
        if wants and "u" in each.options:
            found.add(each._replace(failed=True, left=True))
        found |= {each._replace(failed=one, left=node.leaves) for one in failed}
    return _stopped(found, tested=tested)


def _stopped(ends: Iterable[_End], *, tested: bool) -> _Ends:
    return frozenset(
        each._replace(left=True) if each.failed and "e" in each.options and not tested else each
        for each in ends
    )


def _walk_set(node: _Set, ends: _Ends, **_: object) -> _Ends:
    return frozenset(
        each._replace(failed=False, options=(each.options | node.on) - node.off) for each in ends
    )


def _walk_trap(node: _Trap, ends: _Ends, **_: object) -> _Ends:
    found = set()
    for each in ends:
        trap = None
        if node.body is not None:
            begun = {_End(failed=one, options=each.options) for one in _EITHER}
            after = _walk(node.body, frozenset(begun))
            fails = any(one.left and one.failed for one in after)
            trap = fails if fails or all(one.left for one in after) else None
        found.add(each._replace(failed=False, trap=trap))
    return frozenset(found)


def _walk_shell(node: _Shell, ends: _Ends, *, tested: bool) -> _Ends:
    found: set[_End] = set()
    for each in ends:
        own = node.options is not None
        options = each.options if node.options is None else node.options
        begun = frozenset({_End(failed=each.failed and not own, options=options)})
        after = _finish(_walk(node.body, begun, tested=tested and not own))
        found |= {each._replace(failed=one) for one in after}
    return _stopped(found, tested=tested)


def _finish(ends: _Ends) -> frozenset[bool]:
    """Return how a shell may end, that is whether it has failed."""
    return frozenset(each.failed if each.trap is None else each.trap for each in ends)


def _walk_not(node: _Not, ends: _Ends, **_: object) -> _Ends:
    after = _walk(node.body, ends, tested=True)
    return frozenset(each if each.left else each._replace(failed=not each.failed) for each in after)


def _walk_pipe(node: _Pipe, ends: _Ends, *, tested: bool) -> _Ends:
    found: set[_End] = set()
    for each in ends:
        begun = frozenset({each._replace(trap=None)})
        stages = [_finish(_walk(stage, begun, tested=tested)) for stage in node.stages]
        failed = _WELL if node.filtered else stages[-1]
        if "pipefail" in each.options:
            fails = any(True in stage for stage in stages)
            failed = frozenset({True} if fails else ()) | (
                _WELL if all(False in stage for stage in stages) else frozenset()
            )
        found |= {each._replace(failed=one) for one in failed}
    return _stopped(found, tested=tested)


def _walk_chain(node: _Chain, ends: _Ends, *, tested: bool) -> _Ends:
    for at, (joint, link) in enumerate(node.links):
        passed_over = frozenset(each for each in ends if joint and each.failed == (joint == "&&"))
        last = at == len(node.links) - 1
        ends = passed_over | _walk(link, ends - passed_over, tested=tested or not last)
    return ends


def _walk_list(node: _List, ends: _Ends, *, tested: bool) -> _Ends:
    for _, item, behind in node.items:
        if behind:
            ends = frozenset(e if e.left else e._replace(failed=False) for e in ends)
        else:
            ends = _walk(item, ends, tested=tested)
    return ends


def _walk_if(node: _If, ends: _Ends, *, tested: bool) -> _Ends:
    after = _walk(node.condition, ends, tested=True)
    left = frozenset(each for each in after if each.left)
    no = frozenset(each for each in after - left if each.failed)
    then = _walk(node.then, after - left - no, tested=tested)
    if node.otherwise is None:
        return left | then | frozenset(each._replace(failed=False) for each in no)
    return left | then | _walk(node.otherwise, no, tested=tested)


def _walk_for(node: _For, ends: _Ends, *, tested: bool) -> _Ends:
    found: _Ends = frozenset(each._replace(failed=False) for each in ends)
    new = ends
    while new:
        new = _walk(node.body, new, tested=tested) - found
        found |= new
    return found


_WALKS: Final[dict[type[_Node], Callable[..., _Ends]]] = {
    _Leaf: _walk_leaf,
    _Set: _walk_set,
    _Trap: _walk_trap,
    _Shell: _walk_shell,
    _Not: _walk_not,
    _Pipe: _walk_pipe,
    _Chain: _walk_chain,
    _List: _walk_list,
    _If: _walk_if,
    _For: _walk_for,
}


def find_hidden_exit(text: str, tests: Callable[[str], bool]) -> str:
    """Return what of a shell line keeps it from failing; empty where it can fail (VE-08).

    ``tests`` tells whether a text names a runner of tests. What makes ready for other commands, as
    ``cd`` does, is taken to go well there.
    """
    known = _Known(tests)
    try:
        tree = _Parser(line_of(text), known, 0).whole()
    except Unclear:
        return ""
    if _can_fail(tree):
        for leaf in known.leaves[:-1]:
            leaf.ends = _WELL if leaf.sets_up else leaf.ends
        runs = any(leaf.ends == _EITHER and not leaf.sets_up for leaf in known.leaves)
        if not runs or _can_fail(tree):
            return ""
    for trap in known.traps:
        trap.body = None
    return "trap" if known.traps and _can_fail(tree) else _name(tree) or "#"


def _can_fail(tree: _Node) -> bool:
    return True in _finish(_walk(tree, frozenset({_End()})))


_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)


def _name(node: _Node, joint: str = "") -> str:
    """Return what stands last in a tree, and what joins it to that before."""
    match node:
        case _List(items):
            before, last, behind = items[-1] if items else ("", None, False)
            inner = joint if len(items) == 1 else before
            return "&" if behind else _name(last, inner) if last else ""
        case _Chain(links):
            return _name(links[-1][1], links[-1][0])
        case _Pipe(stages):
            last = stages[-1]
            return f"| {last.words[0]}" if isinstance(last, _Leaf) else _name(last, "|")
        case _Leaf(text) | _Set(text) | _Trap(text):
            bare = _QUOTED.sub("", text).strip() or text
            return f"{joint} {bare}".strip()
        case _Shell(body) | _Not(body) | _For(body):
            return _name(body, joint)
    return "if"
