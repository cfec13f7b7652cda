"""Which checks a workspace has, how they are run, and what a goal asks of them. All pure."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Final

from daruma.state.settings import SHELL_TOOL, PolicyKey
from daruma.tools.calls.policy import is_one_command
from daruma.tools.commands import find_in
from daruma.tools.reports import Case, Key, find_hidden_exit, json_at, read_text
from daruma.tools.threads import to_thread

# --- The checks of a workspace, recognised by the files that lie at its top (VE-02).

PYTEST: Final = "pytest -x -q"
RUFF: Final = "ruff check"
CTEST: Final = (
    'b=$(mktemp -d) && cmake -S . -B "$b" && cmake --build "$b"'
    ' && ctest --test-dir "$b" --output-on-failure'
)
"""Built in a folder of its own, outside of the workspace."""

_PHPUNIT: Final = "vendor/bin/phpunit"

_NOT_SEARCHED: Final = frozenset({"node_modules", "venv", "site-packages", "__pycache__"})
_MOST: Final = 100_000
"""Names at the top of a workspace, and folders below it, that are looked at."""

_NO_NPM_TEST: Final = "no test specified"
"""What `npm init` writes as the test script: it always fails."""

_RECIPE: Final = r"^test[ ]*::?(?!=)([^\n#]*+).*+\n((?:\t.*\n?|[ ]*\n)*)"
_TEST_TARGET: Final = r"^(?=[\w./ -]++::?(?!=))(?:[\w./-]+ +)*?test(?![\w./-])"

Files = Mapping[str, str]
"""Names of what lies at the top of a workspace, folders with a slash at the end, to their text."""


def _has(*patterns: str) -> Callable[[str, Files], bool]:
    found = [re.compile(each, re.MULTILINE) for each in patterns]
    return lambda text, _: any(each.search(text) for each in found)


def _always(_: str, __: Files) -> bool:
    return True


def _npm_tests(text: str, _: Files) -> bool:
    script = json_at(text, "scripts", "test")
    return isinstance(script, str) and _NO_NPM_TEST not in script and not find_hidden_exit(script)


def _composer_tests(text: str, _: Files) -> bool:
    return json_at(text, "scripts", "test") is not None


def _phpunit(text: str, files: Files) -> bool:
    configured = "phpunit.xml" in files or "phpunit.xml.dist" in files
    return not _composer_tests(text, files) and (configured or "phpunit/phpunit" in text)


def _make_tests(text: str, _: Files) -> bool:
    """Whether there is a test to make, and a line of its recipe, if it has one, that can fail."""
    if not re.search(_TEST_TARGET, text, re.MULTILINE):
        return False
    found = re.search(_RECIPE, text, re.MULTILINE)
    lines = re.sub(r"\\\n\t?", " ", found[2]).splitlines() if found else []
    commands = [each.strip() for each in lines if each.strip(" \t@+")]
    needs = found is not None and found[1].strip() != ""
    can_fail = (each for each in commands if not _ends_well(each))
    return needs or not commands or any(can_fail)


def _ends_well(line: str) -> bool:
    prefix, command = re.fullmatch(r"([-@+\s]*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    return "-" in prefix or find_hidden_exit(command.replace("$$", "$")) != ""


def _rspec(_: str, files: Files) -> bool:
    return ".rspec" in files or "spec/" in files


def _rake(_: str, files: Files) -> bool:
    rakefile = files.get("Rakefile", "")
    return not _rspec("", files) and re.search(r"TestTask|task\W+test\b", rakefile) is not None


_BY_MANIFEST: Final[tuple[tuple[str, Callable[[str, Files], bool], str], ...]] = (
    ("pyproject.toml", _always, PYTEST),
    ("*.py", _always, PYTEST),
    ("pyproject.toml", _has(r"^[ \t]*\[+tool\.ruff\b"), RUFF),
    ("ruff.toml", _always, RUFF),
    (".ruff.toml", _always, RUFF),
    ("package.json", _npm_tests, "npm run test --if-present --silent"),
    ("Cargo.toml", _always, "cargo test --quiet"),
    ("go.mod", _always, "go test ./..."),
    ("pom.xml", _always, "mvn --quiet test"),
    ("build.gradle", _always, "gradle --quiet test"),
    ("build.gradle.kts", _always, "gradle --quiet test"),
    ("mix.exs", _always, "mix test"),
    ("Gemfile", _rspec, "bundle exec rspec"),
    ("Gemfile", _rake, "bundle exec rake test"),
    ("CMakeLists.txt", _has(r"(?i)^[ \t]*(?:enable_testing|add_test|include *\( *CTest)\b"), CTEST),
    ("*.sln", _always, "dotnet test"),
    ("*.csproj", _always, "dotnet test"),
    ("composer.json", _composer_tests, "composer test"),
    ("composer.json", _phpunit, _PHPUNIT),
    ("Package.swift", _always, "swift test"),
    ("deno.json", _always, "deno test"),
    ("deno.jsonc", _always, "deno test"),
    ("Makefile", _make_tests, "make test"),
    ("makefile", _make_tests, "make test"),
    ("GNUmakefile", _make_tests, "make test"),
)
"""A manifest, whether it has tests, and the command that runs them."""

_PROGRAMS: Final = {CTEST: ("cmake", "ctest"), _PHPUNIT: ("php", _PHPUNIT)}


def commands_for(files: Files) -> tuple[str, ...]:
    """Return the checks for a workspace with these files at its top, and any ``.py`` below it.

    A Makefile whose ``test`` only calls what is recognised by another manifest adds nothing.
    """
    found: list[str] = []
    for manifest, fits, command in _BY_MANIFEST:
        names = [each for each in files if fnmatchcase(each, manifest)]
        wrapped = command == "make test" and _wraps(files, found)
        if not wrapped and any(fits(files[name], files) for name in names):
            found.append(command)
    return tuple(dict.fromkeys(found))


def _wraps(files: Files, found: Iterable[str]) -> bool:
    texts = (files.get(name, "") for name in ("Makefile", "makefile", "GNUmakefile"))
    recipe = re.search(r"^test\s*:.*\n((?:\t.*\n?)*)", "\n".join(texts), re.MULTILINE)
    return recipe is not None and any(
        re.search(rf"\b{re.escape(runner)}\b", recipe[1])
        for command in found
        if command != RUFF
        for runner in programs_of(command)
    )


_NONE_RAN: Final = (
    r"^(?:\S+ )?tests 0$|^Ran 0 tests\b|^No test(?:s| files) found, exiting|^[ \t]*0 passing\b"
    r"|^0 (?:examples|runs|tests), 0 \w+|^There are no tests to run|^No tests executed!"
    r"|^No test is available in|Executed 0 (?:tests\b|of (?:0|\d+ \(skipped))"
    r"|^[ \t]*Tests:?[ \t]+(?:\d+ (?:skipped|todo)[ ,|]+)+(?:\d+ total|\(\d+\))"
)
_SOME_RAN: Final = (
    r"^(?:\S+ )?tests [1-9]|^Ran [1-9]|Executed [1-9]|Passed: +[1-9]|^OK \([1-9]"
    r"|\b[1-9]\d* (?:passed\b|passing\b|examples?\b|runs\b|tests?(?:,| passed\b))"
)
"""What runners say that any line may call, as npm's and make's scripts do."""

_RAN_NOTHING: Final = tuple(
    (re.compile(command), re.compile(nothing, re.MULTILINE), re.compile(some, re.MULTILINE))
    for command, nothing, some in (
        (re.escape(CTEST), r"No tests were found", r"(?!)"),
        (r"go test", r"no test files", r"^ok\s"),
        (r"cargo test", r"", r"running [1-9]"),
        (
            r"make\b",
            r"^make: (?:\Wtest\W is up to date|Nothing to be done for \Wtest\W|.*test\] E.*ored\))",
            r"(?!)",
        ),
        (r"", _NONE_RAN, _SOME_RAN),
    )
)
"""A command, what it says where nothing was run, and what where something was all the same."""


def ran_nothing(command: str, said: str) -> bool:
    """Whether a runner that ended well says that there was nothing to run."""
    return any(
        each.match(command) and nothing.search(said) and not some.search(said)
        for each, nothing, some in _RAN_NOTHING
    )


def programs_of(command: str) -> tuple[str, ...]:
    """Return the programs that a recognised command needs; without them it says nothing."""
    return _PROGRAMS.get(command, (command.split(maxsplit=1)[0],))


async def recognised_commands(workspace: Path) -> tuple[str, ...]:
    """Look into a workspace and return the checks that fit it (VE-02)."""
    return commands_for(await to_thread(telling_files, workspace))


def telling_files(workspace: Path) -> dict[str, str]:
    """Return the files that tell the checks of a workspace. Blocks."""
    read = {manifest for manifest, _, _ in _BY_MANIFEST} | {"Rakefile"}
    with os.scandir(workspace) as listed:
        entries = sorted(islice(listed, _MOST), key=lambda each: each.name)
    folders = [f"{each.name}/" for each in entries if _leads_to(each.is_dir)]
    names = [each.name for each in entries if _leads_to(each.is_file)]
    files = {name: read_text(workspace / name) if name in read else "" for name in names}
    return files | dict.fromkeys([*folders, *_first_python_file(workspace)], "")


def _leads_to(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError:  # a link that leads to itself, or to where nobody may look
        return False


def _first_python_file(workspace: Path) -> list[str]:
    for _, folders, files in islice(os.walk(workspace), _MOST):
        folders[:] = [f for f in folders if f not in _NOT_SEARCHED and not f.startswith(".")]
        if python := [name for name in files if name.endswith(".py")]:
            return python[:1]
    return []


def runs_tests(line: str) -> bool:
    """Whether a line seems to run one of the test runners that are known."""
    runners = "|".join(
        sorted({program for _, _, each in _BY_MANIFEST for program in programs_of(each)})
    )
    return re.search(rf"\b(?:{runners}|unittest|tox|nox)\b", line) is not None


# --- pytest: the plugins that a workspace declares, and the line that also writes a report.

_PYTEST_LINES: Final = tuple(
    PolicyKey(SHELL_TOOL, words=words, open_end=True)
    for words in (
        ("pytest",),
        ("py.test",),
        ("python", "-m", "pytest"),
        ("python3", "-m", "pytest"),
    )
)
_OWN_REPORT = re.compile(r"--(?:junit|co\b|collect-only|help|version|fixtures|markers)|\s-h\b")


def runs_pytest(line: str) -> bool:
    """Whether a line is one plain call of pytest that runs tests, so that it can write a report."""
    return any(is_one_command(line, key) for key in _PYTEST_LINES) and not _OWN_REPORT.search(line)


_HINTS: Final = {
    "pytest-asyncio": re.compile(r"\basyncio_(?:mode|default)"),
    "pytest-xdist": re.compile(r"(?m)^(?>.*?addopts).*(?:\s|['\"])(?:-n|--dist|--numprocesses)\b"),
}
"""Options of pytest that only these know."""

OWN_PLUGINS: Final = frozenset(
    {"anyio", "hypothesis", "langsmith", "platformdirs", "pytest-asyncio", "pytest-xdist"}
)
"""Distributions with a plugin for pytest that are there since Daruma, or its tests, need them."""


def plugins_to_load(known: Iterable[tuple[str, str]], manifests: str) -> tuple[str, ...]:
    """Return which of the plugins (name, distribution) beside Daruma a workspace wants (VE-09).

    Those that are there for Daruma's own sake only where a manifest names the distribution, as a
    requirement, or uses an option of pytest that it alone has.
    """
    text = _plain_name(manifests)
    found = (
        name
        for name, package in known
        if _plain_name(package) not in OWN_PLUGINS
        or re.search(rf"(?<![\w-]){re.escape(_plain_name(package))}(?![\w-])", text)
        or (package in _HINTS and _HINTS[package].search(manifests))
    )
    return tuple(dict.fromkeys(found))


def _plain_name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text.casefold())


_MANIFESTS: Final = (
    "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", ".pytest.ini",
    "pytest.toml", "Pipfile", "requirements*.txt", "requirements/*.txt", "environment.y*ml",
)  # fmt: skip
"""Where a Python workspace says what it needs."""
_MOST_ALIKE: Final = 20
"""Files that are read of each of these names."""


def declared_plugins(root: Path, path: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether pytest is Daruma's own, and then the plugins that the workspace declares.

    A pytest of the workspace's own environment loads what is installed there (VE-09).
    """
    found = find_in(path, "pytest")
    own = Path(sys.executable).parent
    if found is None or Path(found).parent != own or own.is_relative_to(root):
        return False, ()
    texts = [
        read_text(each)
        for pattern in _MANIFESTS
        for each in sorted(islice(root.glob(pattern), _MOST_ALIKE))
    ]
    known = [(each.name, each.dist.name) for each in entry_points(group="pytest11") if each.dist]
    return True, plugins_to_load(known, "\n".join(texts))


def pytest_line(line: str, *, alone: bool, plugins: Iterable[str] = ()) -> str:
    """Return a pytest line that, ``alone``, loads no plugins but those that are named."""
    if not alone:
        return line
    named = "".join(f" -p {shlex.quote(each)}" for each in plugins)
    return f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {line}{named}"


def with_report(
    line: str, mark: str, *, alone: bool, plugins: Iterable[str] = (), remove: bool = True
) -> str:
    """Return shell text that runs a pytest line, and writes its report behind a mark on stderr.

    The report lies meanwhile among temporary files, under the mark, which nobody can guess. It has
    to be removed where these outlive the command. What the workspace's configuration says of
    reports does not hold for this one.
    """
    line = pytest_line(line, alone=alone, plugins=plugins)
    report = f'"${{TMPDIR:-/tmp}}/{mark}"'
    removed = f"; rm -f {report}" if remove else ""
    return (
        f"{line} -o junit_family=xunit1 -o junit_logging=no --junitprefix= --junitxml={report}\n"
        f"code=$?\n"
        f"{{ echo; echo {mark}; cat {report} 2>/dev/null; }} >&2{removed}; exit $code"
    )


def without_stopping(line: str) -> str:
    """Return a pytest line that goes on after a failure, and after a file that is broken."""
    words = [each for each in shlex.split(line) if each not in {"-x", "--exitfirst"}]
    return shlex.join([*words, "--maxfail=0", "--continue-on-collection-errors"])


# --- What the goal and the plan ask for, as they say it.

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[。！？；])")
_EXCUSED = re.compile(
    r"\b(?:ignore|known to|(?:is|are) known|already (?:red|broken|fail\w*)|regardless|except|"
    r"unrelated|out of scope)\b|忽略",
    re.IGNORECASE,
)
"""What excuses a whole sentence; a negation only its clause."""

_NEGATED = re.compile(
    r"\b(?:leave|never|without|not|cannot|\w+n't)\b|不要|不用",
    re.IGNORECASE,
)
_LET_BE = re.compile(
    r"\b(?:leave|(?:not|never|\w+n't)\s+(?:fix|touch|mend|repair|change|worry about|care about))"
    r"\s+(?:it|them|these|those)\b",
    re.IGNORECASE,
)
"""A negation that speaks of what was said before it."""

_CLAUSE = re.compile(
    r"([,:;](?=\s|$)|[，：、；]|\s[-–—]+\s|—|\b(?:but|and|so that|because|since|which|that|while|"
    r"until|unless)\b|但是?)",
    re.IGNORECASE,
)
_ANEW = re.compile(r"but|until|unless|so that|[:;：；]|但是?", re.IGNORECASE)
_ASKS_ANEW = re.compile(
    r"\W*(?:(?:please|then|also|just|instead|only)\s+)*(?:make|get|fix|repair|mend|implement|write|"
    r"ensure|run|correct|resolve|solve|see|remove|delete|drop|rename|move)\b"
    r"|\b(?:must|should|ha(?:s|ve) to|needs? to)\b",
    re.IGNORECASE,
)
_TESTS = r"(?:tests?|test[- ]suite|suite|specs?|checks|pytest|ci|build)"
_SOME = r"(?:(?:the|all|every|any|our|my|these|those|this|that|of|failing|red|broken|remaining|\
unit|integration|existing|current|whole|full|entire|python|failed)\s+)"
_MENDS = r"(?:fix|repair|mend|unbreak|correct|resolve|solve|address|debug)"
_RED = r"(?:red|broken|failing|not green)"
_TO_PASS = re.compile(
    rf"\b{_TESTS}\b[^,:]{{0,40}}\b(?:pass(?:es|ed|ing)?|green|succeeds?)\b"
    rf"|\b{_TESTS}\b[^,:]{{0,30}}\b(?:exits?|returns?|ends?)\b[^,:]{{0,20}}\b(?:0|zero|well)\b"
    rf"|\b(?:make|get)\s+{_SOME}{{0,5}}{_TESTS}\b[^,:]{{0,20}}\bwork(?:s|ing)?\b"
    rf"|\b{_TESTS}\s+(?:\w+\s+){{0,3}}?(?:fails?|failed|(?:is|are|went|turned)(?: \w+)? {_RED})\b"
    rf"|\b{_TESTS}\W\s+fails?\b"
    rf"|\b(?:{_MENDS}|pass)\s+{_SOME}{{0,5}}{_TESTS}\b"
    rf"|\b(?:{_MENDS}|rid of|clear)\s+{_SOME}{{0,5}}{_TESTS}\s+(?:failures?|errors?)\b"
    rf"|\b(?:failures?|errors?)\s+(?:in|of|from)\s+{_SOME}{{0,5}}{_TESTS}\b"
    rf"|\b{_MENDS}\s+(?:what|everything|anything|all)\b[^,:]{{0,30}}\b(?:{_RED}|fails?)\b"
    r"|\b(?:everything|it all|all)\s+(?:(?:is|be|are|turns?|to)\s+){0,2}(?:green|pass(?:es)?)\b"
    rf"|\b(?:green|passing)\s+{_TESTS}\b|\b(?:failing|red|broken)\s+(?:unit\s+)?{_TESTS}\b"
    r"|测试[^，。]{0,10}(?:通过|变绿)|修复[^，。]{0,10}测试",
    re.IGNORECASE,
)
_LINT = re.compile(r"\b(?:lint\w*|ruff|findings)\b", re.IGNORECASE)
_REMOVES = re.compile(
    r"\b(?:remov|delet|drop|renam|mov|merg|split|replac|rewrit|skip|disabl|xfail|mark|deselect|"
    r"omit|exclud|restructur|reorgani[sz]|consolidat|parametri[sz]|convert|simplif|combin|migrat|"
    r"port|refactor|rework|dedup\w*|collaps|prun|retir)\w*|\brid of\b|\b(?:put|give|clean)\b"
    r"|删除|移除|重命名|跳过|移动|合并",
    re.IGNORECASE,
)
_HIDES = re.compile(
    r"\b(?:remov|delet|drop|skip|disabl|xfail|mark|deselect|omit|exclud|renam|mov)\w*|\brid of\b"
    r"|删除|移除|跳过|重命名|移动",
    re.IGNORECASE,
)
_ALL_TESTS = re.compile(
    rf"(?:{_REMOVES.pattern})\s+"
    r"(?!(?:\w+ )?(?:the|an?) [\w-]+ (?:\w+ )?(?:the|our|its|each) tests?\b)"
    r"(?:(?!(?:from|in|to|into|of|with|before|after|then|and|until|for|that|by)\b)[\w-]+\s+){0,4}"
    r"tests?\b(?!\s+(?:data|output|log|file|folder|case|runner|"
    r"(?:use|need|import|call|expect|rely|depend|require)s?\b))"
    r"|\b(?:also|even|including)\s+(?:in\s+)?(?:all|the|its|their)\s+(?:unit\s+)?tests\b"
    r"|(?:删除|移除|重命名|移动|合并)[^，。]{0,6}测试",
    re.IGNORECASE,
)
_LOSES = r"(?:remov|delet|drop|los|skip|disabl|touch|chang|modif|edit|alter)\w*"
_SPARED = re.compile(
    rf"(?:(?:\b(?:not|never|without)|n't)\s+(?:\w+\s+)?{_LOSES}"
    r"|(?<!not )(?<!need to )(?<!have to )\b(?:keep|leave))"
    r"\s+(?:(?!other|unrelated|remaining|in\b|to\b)[\w-]+\s+){0,4}tests?\b"
    r"(?=\W*$|\s*[.,:;!?]|\s+(?:and|but|or|as|alone|intact|untouched|unchanged)\b)"
    rf"|\b(?:no\s+(?:\w+\s+)?tests?\s+\w+|tests?\s+\w+\s+not)\s+be\s+{_LOSES}"
    r"|(?:(?:不要|不得|不能|别|勿)[^，。；]{0,4}(?:删|移除|改|动)|保留)[^，。；]{0,6}测试",
    re.IGNORECASE | re.MULTILINE,
)
"""Tests are to stay, unless a sentence takes some away all the same."""
_TAKES = re.compile(
    rf"(?:{_HIDES.pattern})(?:(?!\b(?:keep|leave)\b|保留).){{0,99}}?(?:\btests?\b|测试)",
    re.IGNORECASE,
)
_GOES = re.compile(
    r"(?:\b(?:remov|delet|drop|renam|replac|merg|inlin|prun|retir)\w*|\brid of\b|删除|移除|重命名)"
    r"(?P<what>(?:(?!\b(?:from|in|inside|within|into|to|by|with|on|at|about|above|near|behind|"
    r"before|after|and\s+(?:then\s+)?(?:fix|mend|repair|make|add|write|run)\s)\b).)+)",
    re.IGNORECASE | re.DOTALL,
)
"""Something goes or gets another name: its tests go with it."""


def asks_to_pass(words: str, case: Case | None = None) -> bool:
    """Whether the goal or the plan asks for a test to pass: it names it, or speaks of the tests.

    A sentence that excuses what is red does not ask (VE-07).
    """
    return any(
        _TO_PASS.search(sentence) or (case is not None and _names(sentence, case))
        for sentence in _asking(words)
    )


_FIXES = re.compile(
    r"\b(?:fix\w*|repair\w*|mend\w*|bugs?|broken|wrong\w*|incorrect\w*|regress\w*|crash\w*|"
    r"fail\w*|correct|debug\w*)\b|修复|错误",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"[\w/.-]+\.\w+|\w+(?=\()|(?<=`)[^`\n]+(?=`)|\w+_\w+")
_QUOTING = re.compile(
    r"^(?:E {7}| {4}|>|ImportError while|.*\btest_\w+\.py:\d+: in ).*$", re.MULTILINE
)
_LACKS = re.compile(r"cannot import name '(\w+)'.*|No module named '(?:\w+\.)*(\w+)'.*")
_OF_IMPORTS = re.compile(
    r"\b(?:import\w*|modules?|packages?|missing|ModuleNotFoundError)\b", re.IGNORECASE
)
_SAY_NOTHING: Final = frozenset({
    "test", "tests", "fix", "fixe", "bug", "error", "that", "this", "with", "from", "when", "then",
    "into", "code", "file", "function", "class", "method", "module", "wrong", "make", "should",
    "work", "please", "what", "where", "have", "does", "broken", "repair", "correct", "right",
})  # fmt: skip


def asks_to_fix(words: str) -> bool:
    """Whether the goal or the plan is to mend something: then a test may be red for just that."""
    return any(_FIXES.search(each) or _BUILDS.search(each) for each in _asking(words))


_BUILDS = re.compile(
    r"\b(?:implement\w*|write|add|create|build|finish|complete|provide)"
    r"(?=\s+(?!(?:and|or|in|to|so|from|of|that|is|does|by|please)\b)\S)"  # a name, not the verb
    r"(?!\s+(?:[\w-]+\s+){0,3}(?:tests?|specs?|docs?|docstrings?|documentation|comments?|notes?|"
    r"changelog|readme|logging|types?|annotations?|hints?|examples?)\b)|实现",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:bugs|errors|failures|problems|issues|mistakes|functions|everything|all|whatever)\b",
    re.IGNORECASE,
)


def is_to_be_fixed(words: str, case: Case, mended: frozenset[Key] = frozenset()) -> bool:
    """Whether a test is about what the goal or the plan is to mend, or to build.

    Where tests of the functions ``mended`` have turned green, others may be red for another reason:
    unless they are named by what they are about, or several things are to be mended there.
    """
    return any(
        _is_about(sentence, case)
        or (
            _FIXES.search(sentence) is not None
            and (not mended or case.function in mended or _SEVERAL.search(sentence) is not None)
            and _is_mentioned(sentence, case)
        )
        for sentence in _asking(words)
        if _FIXES.search(sentence) or _BUILDS.search(sentence)
    )


def _is_about(sentence: str, case: Case) -> bool:
    """Whether a sentence names what a test is about: by all words of its name, or as missing."""
    sentence = _BUILDS.sub("", sentence)
    if not case.key[0]:
        lacks = _LACKS.search(_QUOTING.sub("", case.said))
        name = lacks and (lacks[1] or lacks[2])
        meant = lacks and (lacks[1] or _BUILDS.search(sentence) or _OF_IMPORTS.search(sentence))
        return bool(name and meant) and re.search(rf"(?<!\w){name}(?!\w)", sentence) is not None
    if _says_all(sentence, case.function[1]):
        return True
    files = (re.escape(each) for each in _CODE_NAME.findall(sentence) if each.endswith(".py"))
    unwritten = re.search(rf"(?<!\w)(?:{'|'.join(files) or '(?!)'}):\d+: NotImpl", case.said)
    return unwritten is not None


def _is_mentioned(sentence: str, case: Case) -> bool:
    """Whether the name of a test shares a word with a sentence, or its failure speaks of it.

    Of a file that can not be collected, only the error counts, and where it was raised: not lines
    that are quoted, and of an import that fails only the name that was not found.
    """
    said, failure = _topics(case.id), case.said
    if not case.key[0]:
        said, failure = frozenset(), _LACKS.sub("", _QUOTING.sub("", case.said))
    if said & _topics(sentence):
        return True
    names = [re.escape(each) for each in _CODE_NAME.findall(sentence) if len(each) > 2]
    if names and re.search(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)", failure):
        return True
    stem = _tested(case.file)
    return bool(case.key[0] and stem) and f"{stem}.py" in sentence.split()


def _tested(file: str) -> str:
    stem = file.rpartition("/")[2].removesuffix(".py")
    return stem.removeprefix("test_").removesuffix("_test")


def _says_all(sentence: str, name: str) -> bool:
    """Whether a sentence has all words of a test's name, or of its file's."""
    wanted = frozenset(re.split(r"[\W_]+", name.casefold())) - {"", "test", "tests"}
    told = {each for each in wanted if len(each) > 1} - _SAY_NOTHING - {"it", "is", "the", "all"}
    return bool(told) and wanted <= frozenset(re.split(r"[\W_]+", sentence.casefold()))


def _topics(text: str) -> frozenset[str]:
    words = (each.rstrip("s") for each in re.split(r"[\W\d_]+", text.casefold()) if len(each) > 3)
    return frozenset(words) - {each.rstrip("s") for each in _SAY_NOTHING}


def asks_for_lint(words: str) -> bool:
    """Whether the goal or the plan speaks of a linter's findings."""
    return any(_LINT.search(each) for each in _asking(words))


def asks_to_remove(words: str, case: Case, *, with_file: bool = True) -> bool:
    """Whether the goal or plan says that a test goes, or what it tests, or tests at all (VE-08).

    What it tests may be named by all words of its name, or of its file's, if it goes ``with_file``.
    """
    names = [case.function[1], *([_tested(case.file)] if with_file else ())]
    told = _affirmative(words)
    sure = [each for each in told if _TAKES.search(each)] if _SPARED.search(words) else told
    gone = [each["what"] for sentence in sure for each in _GOES.finditer(sentence)]
    return (
        any(_REMOVES.search(each) and _names(each, case) for each in told)
        or any(_ALL_TESTS.search(each) for each in sure)
        or any(_says_all(each, name) for each in gone for name in names)
    )


def asks_to_drop(words: str, command: str) -> bool:
    """Whether the goal or the plan says that a recognised check goes: its manifest or program."""
    known = ((each, programs_of(line)[0]) for each, _, line in _BY_MANIFEST if line == command)
    return any(asks_to_remove(words, Case(("", name), file, "passed")) for file, name in known)


def asks_to_hide(words: str, case: Case) -> bool:
    """Whether the goal or the plan says that a test is not to run any more (VE-08)."""
    return any(_HIDES.search(each) and _names(each, case) for each in _affirmative(words))


_MOVES = re.compile(
    r"\b(?:mov|split|merg|restructur|reorgani[sz]|consolidat|extract|relocat|renam)\w*"
    r"|重命名|移动|合并|拆分",
    re.IGNORECASE,
)


def asks_to_move(words: str) -> bool:
    """Whether the goal or the plan moves things, so that tests may lie elsewhere (VE-08)."""
    return any(_MOVES.search(each) for each in _asking(words))


def _asking(words: str) -> list[str]:
    """Return the sentences, without their negated clauses and without those that excuse."""
    found: list[str] = []
    for sentence in _SENTENCE.split(words):
        if _LET_BE.search(sentence):
            if not _LET_BE.split(sentence)[0].strip(" ,.") or len(sentence.split()) < 6:
                found = found[:-1]
        elif not _EXCUSED.search(sentence):
            found.append(_affirmed(sentence))
    return [each for each in found if each.strip()]


def _affirmative(words: str) -> list[str]:
    return [_affirmed(each) for each in _SENTENCE.split(words)]


def _affirmed(sentence: str) -> str:
    """Return a sentence without its clauses that are negated, and what is listed in them."""
    first, *more = _CLAUSE.split(sentence)
    negated = _NEGATED.search(first) is not None
    kept = "" if negated else first
    for joint, clause in zip(more[::2], more[1::2], strict=True):
        anew = not negated or _ANEW.fullmatch(joint) or _ASKS_ANEW.search(clause)
        negated = _NEGATED.search(clause) is not None or not anew
        kept += "" if negated else f"{joint}{clause}"
    return kept


def _names(sentence: str, case: Case) -> bool:
    path = case.file.split("/")
    names = {case.file, path[-1], path[-1].removesuffix(".py")}
    names |= {"/".join(path[:depth]) + "/" for depth in range(1, len(path))}
    names |= {"/".join(path[:depth]) for depth in range(2, len(path))}
    if case.key[0]:
        name = case.function[1]
        names |= {name, name.rpartition(".")[2], case.id}  # a doctest's has its module before it
        names |= {case.classes.rpartition(".")[2]} - {""}
    return any(
        re.search(rf"(?<![\w/.]){re.escape(each)}(?!\w)", sentence) is not None for each in names
    )


# --- Which files are tests, or say how they are run: what changed of them is told (VE-08).
