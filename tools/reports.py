"""What the reports of two runs of a check say, and how their tests compare. All pure."""

import json
import re
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from daruma.tools.files import content_of

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


_TELL: Final = frozenset({"failure", "error", "skipped"})


def _case(element: ET.Element) -> Case:
    classname, name = element.get("classname", ""), element.get("name", "")
    kinds = {child.tag for child in element}
    outcome: CaseOutcome = "skipped" if "skipped" in kinds else "passed"
    if kinds & {"failure", "error"}:
        outcome = "failed"
    said = "\n".join(each.text or "" for each in element if each.tag in _TELL)
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


def may_be_hidden(now: Report, changed: Iterable[str]) -> tuple[Case, ...]:
    """Return the skipped tests that are in a changed file, or were skipped by one."""
    paths = tuple(changed)
    return tuple(
        case
        for case in of(now, "skipped")
        if case.file in paths or any(each in case.said for each in paths)
    )


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
