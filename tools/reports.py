"""What a check came to: by a known program's exit code, and by the report that tests wrote."""

import json
import re
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

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
from daruma.tools.files import content_of

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


# --- What a report of pytest says: each test by its key, the same wherever it lies on the disk.

Key = tuple[str, str]
"""Module and class, and name: as JUnit reports have them. A file that was not collected has an
empty first part."""

CaseOutcome = Literal["passed", "failed", "skipped"]
_WORST: Final[tuple[CaseOutcome, ...]] = ("passed", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class Case:
    """One test, or one file that could not be collected. ``file`` is relative to pytest's root.

    ``said`` is what its failure says, or where it was skipped and why.
    """

    key: Key
    file: str
    outcome: CaseOutcome
    said: str = ""

    @property
    def function(self) -> Key:
        """The key without parameters, and without the group that xdist writes behind a name."""
        return self.key[0], re.split(r"[\[@]", self.key[1], maxsplit=1)[0]

    @property
    def id(self) -> str:
        """The name as pytest writes it, ``tests/test_a.py::TestB::test_c[1]``."""
        if not self.key[0]:
            return self.file
        classes = self.classes.replace(".", "::")
        return "::".join(part for part in (self.file, classes, self.key[1]) if part)

    @property
    def classes(self) -> str:
        """The names of the classes that it is in, with dots between them."""
        return self.key[0].removeprefix(_module(self.file)).strip(".")


Report = Mapping[Key, Case]


def read_report(text: str) -> Report | None:
    """Return the tests of a JUnit report; None for one that is not whole."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None  # pytest writes none: in what it quotes, both are escaped
    try:
        root = ET.fromstring(text.strip())  # noqa: S314 - without entities nothing can grow
    except ET.ParseError:
        return None
    cases: dict[Key, Case] = {}
    for each in root.iter("testcase"):
        case = _case(each)
        known = cases.get(case.key)
        if known is None or _WORST.index(case.outcome) > _WORST.index(known.outcome):
            cases[case.key] = case
    return cases


_NOT_PASSED: Final = frozenset({"failure", "error", "skipped"})


def _case(element: ET.Element) -> Case:
    classname, name = element.get("classname", ""), element.get("name", "")
    kinds = {child.tag for child in element}
    outcome: CaseOutcome = "skipped" if "skipped" in kinds else "passed"
    if kinds & {"failure", "error"}:
        outcome = "failed"
    said = "\n".join(each.text or "" for each in element if each.tag in _NOT_PASSED)
    if not classname and (listed := _listed(name)):  # so is what lies in a folder with a bracket
        return replace(listed, outcome=outcome, said=said)
    file = (element.get("file") or f"{name.replace('.', '/')}.py").removeprefix("./")
    written = file.replace("::", ".")  # so is a folder with colons
    if written != file and f"{classname}.".startswith(f"{written}."):
        classname = _module(file) + classname.removeprefix(written)
    if classname and not f"{classname}.".startswith(f"{_module(file)}."):
        # The other is where the test was inherited from; classes begin with a capital letter.
        file = re.sub(r"\.[A-Z].*", "", classname).replace(".", "/") + ".py"
    return Case((classname, name), file, outcome, said)


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


_NODE = re.compile(r"(?P<file>\S.*?\.\w+)::(?P<inner>.+)")


def _listed(node: str) -> Case | None:
    """Return the test that pytest lists so; None for a line that names none."""
    if (found := _NODE.fullmatch(node)) is None:
        return None
    names, bracket, rest = found["inner"].partition("[")
    *classes, name = names.split("::")
    key = (".".join((_module(found["file"]), *classes)), name + bracket + rest)
    return Case(key, found["file"], "passed")


def collected_tests(text: str) -> dict[Key, Case]:
    """Return the tests that ``pytest --collect-only --verbosity=-1`` lists."""
    lines = takewhile(lambda line: not line.startswith("====="), text.splitlines())
    return {case.key: case for case in map(_listed, lines) if case}


def _below(report: Report, folder: str) -> Report:
    """Return tests of a folder below pytest's root as if that were the root."""
    module = folder.replace("/", ".") + "."
    cases = (
        replace(
            case,
            key=(case.key[0].removeprefix(module), case.key[1])
            if case.key[0]
            else ("", case.key[1].removeprefix(module)),
            file=case.file.removeprefix(f"{folder}/"),
        )
        for case in report.values()
    )
    return {case.key: case for case in cases}


def named_from(folder: Path, report: Report) -> Report:
    """Return tests as they are named from a folder on, if pytest's root lies above it."""
    files = {each.file for each in report.values()}
    parts = folder.parts[1:]
    for depth in range(len(parts) + 1):
        above = "/".join(parts[len(parts) - depth :])
        if any((folder / each.removeprefix(f"{above}/")).is_file() for each in files):
            return _below(report, above) if above else report
    return report


def of(report: Report, outcome: CaseOutcome) -> tuple[Case, ...]:
    """Return the tests of a report that ended so."""
    return tuple(case for case in report.values() if case.outcome == outcome)


# --- Judging: what the task broke, what was red before it, and what it has made vanish.


# A test whose parameters differ, as a task has changed them or since they do in every run, is
# compared by its function: by how many cases of it, of those that are on one side only, end so.


def red_before(cases: Iterable[Case], now: Report, before: Report) -> tuple[Case, ...]:
    """Return which tests were red at the task's beginning: themselves, or their file (VE-07)."""
    broken = {each.file for each in before.values() if not each.key[0] and each.outcome == "failed"}
    red = _functions(case for case in of(before, "failed") if case.key not in now)
    still = _functions(case for case in of(now, "failed") if case.key not in before)

    def was_red(case: Case) -> bool:
        if case.file in broken:
            return True
        if case.key in before:
            return before[case.key].outcome == "failed"
        more = case.outcome != "failed"  # one that is green now was red if fewer are than were
        return red[case.function] >= max(still[case.function] + more, 1)

    return tuple(filter(was_red, cases))


def _functions(cases: Iterable[Case]) -> Counter[Key]:
    return Counter(case.function for case in cases if case.key[0])


def hidden_tests(now: Report, before: Report) -> tuple[Case, ...]:
    """Return the tests that are skipped now and were not at the task's beginning (VE-08)."""
    files = {each.file for each in before.values()}
    ran = _functions(c for c in before.values() if c.key not in now and c.outcome != "skipped")
    run = _functions(c for c in now.values() if c.key not in before and c.outcome != "skipped")

    def is_hidden(case: Case) -> bool:
        if case.key in before:
            return before[case.key].outcome != "skipped"
        return not case.key[0] or ran[case.function] > run[case.function]

    return tuple(case for case in of(now, "skipped") if case.file in files and is_hidden(case))


def lost_tests(now: Report, before: Report) -> tuple[Case, ...]:
    """Return the tests that were there at the task's beginning and are not any more (VE-08).

    Of a function with other parameters, as many as it has fewer.
    """
    fewer = _functions(before.values()) - _functions(now.values())
    return tuple(_taken((case for key, case in before.items() if key not in now), fewer))


def without_moved(lost: Iterable[Case], now: Report, before: Report) -> tuple[Case, ...]:
    """Return which of the lost tests no new one in another place bears the name of."""
    known = {case.function for case in before.values()}
    new = Counter(c.function[1] for c in of(now, "passed") if c.function not in known)
    return tuple(case for case in lost if not any(_taken([case], new, lambda c: c.function[1])))


def _taken(
    cases: Iterable[Case], left: Counter[Any], name: Callable[[Case], Any] = lambda c: c.function
) -> Iterator[Case]:
    """Yield cases as long as some of their name are left."""
    for case in cases:
        if left[name(case)] > 0:
            left[name(case)] -= 1
            yield case


_FINDING = re.compile(r"^(?P<file>.+?):\d+:\d+: (?P<what>.+)", re.MULTILINE)


def findings(text: str) -> Counter[tuple[str, str]]:
    """Return how often each finding stands in a linter's concise output, wherever in its file."""
    return Counter((each["file"], each["what"]) for each in _FINDING.finditer(text))


def json_at(text: str, *keys: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def read_text(path: Path) -> str:
    """Return what a manifest says; nothing where it is no plain file, or too large (SE-07)."""
    return content_of(path).decode(errors="replace")


_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing"})

_TEST_FILE = re.compile(
    r"test_.+\.py|.+_test\.(?:py|go|exs|dart|ts|js)|tests?\.(?:py|rs)|conftest\.py|.+_spec\.rb"
    r"|.+\.(?:test|spec)\.[cm]?[jt]sx?|.+Tests?\.(?:java|kt|cs|php|swift)"
)

_SAYS_HOW: Final = frozenset({
    "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
    "pyproject.toml", "sitecustomize.py", "usercustomize.py", "pytest.py", "_pytest", "noxfile.py",
    "ruff.toml", ".ruff.toml", "Makefile", "makefile", "GNUmakefile", "package.json", ".rspec",
    "Rakefile", "CMakeLists.txt", "composer.json", "phpunit.xml", "phpunit.xml.dist", "deno.json",
    "deno.jsonc", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle",
    "settings.gradle.kts", "gradle.properties", "Cargo.toml", "mix.exs", "gradlew", "mvnw",
    "Gemfile", "Package.swift", "Directory.Build.props", "Directory.Build.targets", ".runsettings",
})  # fmt: skip

_SAYS_HOW_NAMED = re.compile(
    r"(?:jest|vitest|vite|karma|playwright|cypress|ava|wdio)\.(?:config|conf|workspace)"
    r"\.(?:[cm]?[jt]s|json)|\.mocharc(?:\.(?:[cm]?js|jsonc?|ya?ml))?"
    r"|.+\.(?:csproj|fsproj|vbproj|sln|slnx|runsettings)"
    r"|.+\.mk|CTest\w+\.cmake|.+\.pth"
)
"""Files that are named for a runner, or for a project whose manifest says what is run."""

_INI_SECTION = re.compile(r"^\[([^\]\n]*)\]\s*$", re.MULTILINE)

_OF_TESTS = re.compile(r"pytest|ruff|coverage|tox|nox")


def is_test_file(path: str, known: Iterable[str] = ()) -> bool:
    """Whether a file holds tests, stands beside them, or is ``known`` to hold some."""
    parts = path.split("/")
    in_folder = not _TEST_FOLDERS.isdisjoint(parts[:-1])
    return in_folder or path in known or _TEST_FILE.fullmatch(parts[-1]) is not None


RUNS_TESTS: Final = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"),
    *(f"{place}/bin/{name}" for place in (".venv", "venv") for name in ("pytest", "make", "ruff")),
    *(f"node_modules/.bin/{name}" for name in ("jest", "vitest", "mocha", "ava", "karma", "tap")),
    *("vendor/bin/phpunit", "gradlew", "mvnw", "package.json", "Makefile"),
)
"""What runs and configures tests, and may lie where snapshots do not look."""


def says_how(path: str) -> bool:
    """Whether a file may say which tests there are, or how they are run."""
    name = path.rpartition("/")[2]
    named = name in _SAYS_HOW or _SAYS_HOW_NAMED.fullmatch(name) is not None
    return named or path.startswith("_pytest/")


def about_tests(path: str, text: str) -> str:
    """Return what of a file says which tests there are and how they are run."""
    name = path.rpartition("/")[2]
    if name in {"pyproject.toml", "Cargo.toml"}:
        return _tables(name, text)
    if name in {"setup.cfg", "tox.ini"}:
        pieces = _INI_SECTION.split(text)
        sections = zip(pieces[1::2], pieces[2::2], strict=True)
        return "\n".join(f"[{n}]{body.rstrip()}" for n, body in sections if _OF_TESTS.search(n))
    if name in {"package.json", "composer.json"}:
        return json.dumps([json_at(text, key) for key in ("scripts", "jest", "mocha", "vitest")])
    return text


def _tables(name: str, text: str) -> str:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    if name == "Cargo.toml":
        about = ("test", "bench", "lib", "bin", "features", "workspace", "profile")
        return repr([tables.get(each) for each in about])
    tools = tables.get("tool", {})
    named = tools.items() if isinstance(tools, dict) else ()
    return repr(sorted((name, body) for name, body in named if _OF_TESTS.search(name)))
