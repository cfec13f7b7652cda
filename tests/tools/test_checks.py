"""The checks of a workspace follow from what lies in it, and all of them are run."""

import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from tests.parts import unconfined

from daruma.state.verification import Check
from daruma.tools.calls.policy import place_outside
from daruma.tools.checks import (
    CTEST,
    OWN_PLUGINS,
    PYTEST,
    asks_to_pass,
    asks_to_remove,
    commands_for,
    is_to_be_fixed,
    plugins_to_load,
    ran_nothing,
    recognised_commands,
    runs_pytest,
)
from daruma.tools.reports import (
    Case,
    about_tests,
    collected_tests,
    find_hidden_exit,
    is_test_file,
    read_report,
    says_how,
)
from daruma.tools.verification import Checking, run_checks

PYTHON = ("pytest -x -q",)
RUFF = "ruff check"
NPM = "npm run test --if-present --silent"
NO_TEST = '{"scripts": {"test": "echo no test specified && exit 1"}}'
WITH_TEST = '{"scripts": {"test": "node test.js"}}'

TABLE: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({"pyproject.toml": ""}, PYTHON),
    ({"a.py": ""}, PYTHON),
    ({"pyproject.toml": "", "a.py": ""}, PYTHON),
    ({"pyproject.toml": "[tool.ruff]\nline-length = 100"}, (*PYTHON, RUFF)),
    ({"pyproject.toml": "[tool.ruff.lint]"}, (*PYTHON, RUFF)),
    ({"pyproject.toml": "# [tool.ruff] is not used"}, PYTHON),
    ({"pyproject.toml": "[tool.ruffian]"}, PYTHON),
    ({"a.py": "", "ruff.toml": ""}, (*PYTHON, RUFF)),
    ({"a.py": "", ".ruff.toml": ""}, (*PYTHON, RUFF)),
    ({"package.json": WITH_TEST}, (NPM,)),
    ({"package.json": "{}"}, ()),
    ({"package.json": "not json"}, ()),
    ({"package.json": '["scripts"]'}, ()),
    ({"package.json": NO_TEST}, ()),
    ({"package.json": '{"scripts": {"test": "echo none"}}'}, ()),
    ({"package.json": '{"scripts": {"test": "jest || true"}}'}, ()),
    ({"package.json": '{"scripts": {"test": "exit 0"}}'}, ()),
    ({"Cargo.toml": ""}, ("cargo test --quiet",)),
    ({"go.mod": ""}, ("go test ./...",)),
    ({"pom.xml": ""}, ("mvn --quiet test",)),
    ({"build.gradle.kts": ""}, ("gradle --quiet test",)),
    ({"mix.exs": ""}, ("mix test",)),
    ({"Makefile": "all:\n\ttrue\ntest: all\n\t./run"}, ("make test",)),
    ({"Makefile": "test := x\ntests:\n"}, ()),
    ({"Makefile": "test:\n\t@echo no tests\n"}, ()),
    ({"Makefile": "test:\n\t-./run\n"}, ()),
    ({"Makefile": "test:\n\t./run || true\n\n\t@true\nall:\n\t./all\n"}, ()),
    ({"Makefile": "test:\n\t@echo so\n\t@./run\n"}, ("make test",)),
    ({"Makefile": "test: unit\n\t@echo done\n"}, ("make test",)),
    ({"Makefile": ".PHONY: test\ntest:\n\tif true; then \\\n\t./run; fi\n"}, ("make test",)),
    ({"Makefile": "test:\n\tpytest -q\n", "a.py": ""}, PYTHON),
    ({"Makefile": "test:\n\t./run\n", "a.py": ""}, (*PYTHON, "make test")),
    ({"Gemfile": "", "spec/": ""}, ("bundle exec rspec",)),
    ({"Gemfile": "", ".rspec": "", "Rakefile": "task :test"}, ("bundle exec rspec",)),
    ({"Gemfile": "", "Rakefile": "Rake::TestTask.new"}, ("bundle exec rake test",)),
    ({"Gemfile": ""}, ()),
    ({"CMakeLists.txt": "enable_testing()"}, (CTEST,)),
    ({"CMakeLists.txt": "  add_test(NAME a COMMAND a)"}, (CTEST,)),
    ({"CMakeLists.txt": "project(x)"}, ()),
    ({"a.sln": "", "b.csproj": ""}, ("dotnet test",)),
    ({"composer.json": '{"scripts": {"test": "phpunit"}}'}, ("composer test",)),
    ({"composer.json": '{"require-dev": {"phpunit/phpunit": "*"}}'}, ("vendor/bin/phpunit",)),
    ({"composer.json": "{}"}, ()),
    ({"Package.swift": ""}, ("swift test",)),
    ({"deno.json": ""}, ("deno test",)),
    ({"package.json": WITH_TEST, "tool.py": ""}, (*PYTHON, NPM)),
    ({"README.md": "", "py": "", "a.pyc": ""}, ()),
    ({}, ()),
]


@pytest.mark.parametrize(("files", "commands"), TABLE)
def test_files_tell_the_checks(files: dict[str, str], commands: tuple[str, ...]) -> None:
    """VE-02: by manifest and what it says of tests; Python by any of its files."""
    assert commands_for(files) == commands


NOWHERE = {"loop": "loop", "Cargo.toml": "Cargo.toml", "long": "x" * 300}


@pytest.mark.parametrize(
    ("files", "links", "commands"),
    [
        ([], {}, ()),
        (["src/deep/a.py"], {}, PYTHON),
        (["a.py"], NOWHERE, PYTHON),
        ([], {"Cargo.toml": "nowhere"}, ()),
        (["pyproject.toml/x"], {}, ()),
        *(
            ([f"{folder}/a.py"], {}, ())
            for folder in ("node_modules/x", "venv/lib", ".venv/lib", ".git", "x/.tox")
        ),
    ],
)
async def test_only_files_of_the_workspace_itself_count(
    tmp_path: Path, files: list[str], links: dict[str, str], commands: tuple[str, ...]
) -> None:
    """VE-02, SE-07: at any depth, not those of others, nor folders, nor links that lead nowhere."""
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)

    assert await recognised_commands(tmp_path) == commands


async def run(root: Path, *commands: str, seconds: float = 60) -> list[Check]:
    """Run commands as if they were declared."""
    declared = frozenset(commands)
    checking = Checking(root, seconds, await unconfined(), declared=declared)
    return [await checking.check(each) for each in commands]


async def test_all_checks_are_run(tmp_path: Path) -> None:
    """One that is red does not hide the next; the model is told all that is wrong."""
    first, second, third = await run(
        tmp_path, "echo out; echo err >&2; exit 3", "true", "sleep 9", seconds=0.3
    )

    assert (first.passed, first.exit_code, first.output) == (False, 3, "out\nerr")
    assert (second.passed, second.exit_code, second.output) == (True, 0, "")
    assert (third.passed, third.exit_code, third.timed_out) == (False, None, True)


async def test_no_tests_are_neither_passed_nor_failed(tmp_path: Path) -> None:
    """VE-02: pytest's exit code 5 is no failure; that of another command is one."""
    empty, other, plain = await run(tmp_path, "pytest() { exit 5; }; pytest", "exit 5", PYTEST)

    assert (other.outcome, other.exit_code) == ("failed", 5)
    assert (empty.outcome, empty.note) == ("none", "there are no tests")
    assert (plain.outcome, plain.note) == ("none", "there are no tests")


async def test_a_toolchain_that_is_missing_says_nothing_and_is_named(tmp_path: Path) -> None:
    """VE-02: of a recognised command; a declared one is what somebody wants to see run."""
    sandbox, missing = await unconfined(), "swift test"
    (recognised,) = await run_checks([missing], tmp_path, 60, sandbox)
    (phpunit,) = await run_checks(["vendor/bin/phpunit"], tmp_path, 60, sandbox)
    (declared,) = await run(tmp_path, missing)

    assert (recognised.outcome, recognised.note) == ("none", "swift is not there")
    assert phpunit.outcome == "none"
    assert (declared.outcome, declared.exit_code) == ("failed", 127)
    assert declared.note == "the program is not there"


CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(it NONE)
enable_testing()
add_test(NAME it COMMAND grep -q yes ${CMAKE_SOURCE_DIR}/it)
"""
TOOLCHAINS: dict[str, tuple[str, str, str, str, str]] = {
    "make": ("Makefile", "test:\n\tgrep -q yes it\n", "it", "yes", "no"),
    "npm": ("package.json", '{"scripts": {"test": "node it.js"}}', "it.js", "0", "throw 1"),
    "cmake": (
        "CMakeLists.txt",
        CMAKE,
        "it",
        "yes",
        "no",
    ),
}


@pytest.mark.parametrize("program", TOOLCHAINS)
async def test_each_runner_tells_green_from_red(program: str, tmp_path: Path) -> None:
    """VE-02: where its toolchain is there."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    manifest, text, name, green, red = TOOLCHAINS[program]
    (tmp_path / manifest).write_text(text)
    (command,) = await recognised_commands(tmp_path)
    outcomes = []
    for content in (green, red):
        (tmp_path / name).write_text(content)
        (check,) = await run_checks([command], tmp_path, 120, await unconfined())
        outcomes.append(check.outcome)

    assert outcomes == ["passed", "failed"]


# --- Shell lines, reports and goals are read the same way whoever wrote them.

WORKSPACE = Path("/srv/project")

LEAVES = {
    "cat ../../etc/passwd": "../../etc/passwd",
    "cat /etc/passwd": "/etc/passwd",
    "cd .. && make": "..",
    "cd /": "/",
    "cd": "cd",
    "cat ~/.ssh/id_rsa": "~/",
    "cat $HOME/.netrc": "$HOME",
    "cat ${HOME}/.netrc": "${HOME",
    "sh -c 'cat ../x'": "../x",
    "pytest --rootdir=/etc": "/etc",
    "pytest --rootdir=../other": "../other",
    "echo x > ../out": "../out",
    "echo x >/tmp/out": "/tmp/out",  # noqa: S108 - a line that is refused
    "cat <../in": "../in",
    "cat src/../../x": "src/../../x",
    "cd src && cat ../../x": "../../x",
    "../tool.sh": "../tool.sh",
    "/home/me/tool.sh": "/home/me/tool.sh",
    "cat /srv/other/file": "/srv/other/file",
    "cat <<EOF\n../x\nEOF": "../x",
}
STAYS = [
    "pytest -q tests/test_a.py::test_b",
    "cd src && cat ../README.md",
    "cat src/../README.md",
    "/usr/bin/python3 -m pytest",
    "make test > /dev/null 2>&1",
    "grep -rq '/users/' src",
    "sed -n '/a/,/b/p' file",
    "curl -fs http://localhost/../x",
    "cat /srv/project/src/a.py",
    "ruff check .",
    "git diff HEAD~1 --stat",
    "git log HEAD..main",
    "test -e a && test ! -e b",
    "npm run test --if-present --silent",
    "cat .../x",
    "go test ./...",
]


@pytest.mark.parametrize("line", LEAVES)
def test_a_line_that_leaves_the_workspace_is_found(line: str) -> None:
    """VE-06: with the place that it leads to."""
    assert place_outside(line, WORKSPACE) == LEAVES[line]


@pytest.mark.parametrize("line", STAYS)
def test_a_line_that_stays_is_let_be(line: str) -> None:
    """VE-06: what looks like a path and is none does not count."""
    assert place_outside(line, WORKSPACE) == ""


HIDDEN = {
    "pytest || true": "|| true",
    "pytest; true": "; true",
    "pytest\ntrue": "true",
    "pytest || exit 0": "|| exit 0",
    "pytest | tee log": "| tee",
    "make test | cat": "| cat",
    "pytest": "",
    "true": "true",
    "pytest && true": "",
    "echo '|| true'": "echo",
    "pytest | grep -q passed": "",
    "ls | wc -l": "| wc",
    "./run_tests.sh | tee log": "| tee",
    "set -o pipefail; ./run_tests.sh | tee log": "",
    "pytest # || true": "",
    "pytest || true;# so": "|| true",
    "pytest || true # it's so": "|| true",
    "cd src || exit 1; pytest || true": "|| true",
    "cd src || exit 1; pytest; true": "; true",
    "grep -q x a && exit 1 || true": "",
    "set -e; pytest; true": "",
    "pytest; set -e; true": "; true",
    "trap 'rm -rf build' EXIT; pytest": "",
    "trap 'exit 0' EXIT; pytest": "trap",
    "trap 'rm -rf build; exit 0' 0; pytest": "trap",
    "trap 'exit 0' INT; pytest": "",
    "date-check.sh": "",
    "echo-server --selftest": "",
    "./true": "",
    "date -d nonsense": "",
    "pytest; export-check": "",
    "pytest || echo red 2>&1": "|| echo red 2>&1",
    "pytest &> log": "& > log",
    "pytest; > log": "; > log",
    "(pytest) > log": "",
    "{ pytest; } > log": "",
    "pytest > log 2>&1": "",
    "pytest 2>&1": "",
    "make test & wait $!": "",
    "cd src && echo ok": "&& echo ok",
    "pytest || env true": "|| env true",
    "trap 'rm -rf build; exit' EXIT; pytest": "",
    "set -eu; pytest || true": "|| true",
    "for each in a b; do pytest $each; done; true": "",
    """sh -c "sh -c 'pytest || true'" """: "|| true",
    """sh -c "sh -c 'pytest'" """: "",
    "bash -euo pipefail -c 'pytest; echo done'": "",
}


@pytest.mark.parametrize("line", HIDDEN)
def test_what_hides_an_exit_code_is_named(line: str) -> None:
    """VE-08: in whatever way."""
    assert find_hidden_exit(line) == HIDDEN[line]


LONG = {
    "redirections": "a; echo " + "2>&1 " * 5_000 + "|x",
    "blanks": "a; echo" + " " * 50_000 + "|x",
    "lines": "a" + "\n" * 50_000 + "x",
    "traps": "trap " * 10_000,
    "traps and quotes": "trap 'exit 0' " * 5_000,
    "branches": "if a; then " + "echo a; then " * 5_000,
    "ends": "a" + " ; ) }" * 10_000 + "x",
}


@pytest.mark.parametrize("line", LONG.values(), ids=LONG)
def test_a_long_line_is_read_in_linear_time(line: str) -> None:
    """SE-07: a plan may name any line; one that is read in square time would not end here."""
    assert find_hidden_exit(line) in {"", "| x"}


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("pytest -x -q", True),
        ("pytest tests/unit -k 'a or b'", True),
        ("python -m pytest", True),
        ("pytest --co", False),
        ("pytest --collect-only", False),
        ("pytest --junitxml=a.xml", False),
        ("pytest && true", False),
        ("A=1 pytest", False),
        ("make test", False),
    ],
)
def test_a_plain_call_of_pytest_is_known(line: str, runs: bool) -> None:
    """VE-08: only such a line is asked for a report."""
    assert runs_pytest(line) == runs


OLD = Case(("tests.test_old.TestA", "test_legacy[1]"), "tests/test_old.py", "failed", "x = load()")

ASKING = [
    "Make test_legacy pass",
    "Look at tests/test_old.py",
    "Look at test_old.py, please",
    "See TestA",
    "All tests should pass",
    "It is done when pytest passes",
    "Get the test suite green",
    "Fix the failing tests",
    "fix all broken unit tests",
    "让测试通过",
    "Make the failing tests pass, but do not modify the tests.",
    "Do not stop until all tests pass.",
    "Fix the broken tests and leave the rest as it is.",
    "Never skip a test and make the tests pass",
    "CI is red. Please look into it.",
    "Make everything green again.",
    "`pytest` must exit with 0.",
    "Make the tests work",
    "The tests fail. Fix the code.",
    "pytest fails, please fix",
    "Get rid of the test failures",
    "Resolve the test failures.",
    "Run the tests and fix what is red.",
    "The test suite is broken",
    "The build fails",
]
NOT_ASKING = [
    "Do it",
    "Add a test for the parser",
    "Fix the parser and add a test",
    "Fix a typo",
    "Pass the options to the tests folder",
    "Ignore the failing tests",
    "Leave test_old.py as it is",
    "tests/test_older.py is of interest",
    "Speed it up. Don't fix the broken tests.",
    "Don't fix the broken tests",
    "Do not touch calc.py and test_old.py.",
    "The tests fail. Don't fix them.",
    "The broken tests are known, leave them.",
    "Get rid of the tests",
]


@pytest.mark.parametrize("goal", ASKING)
def test_a_goal_asks_for_tests(goal: str) -> None:
    """VE-07: by a test's name, its file's, or in general."""
    assert asks_to_pass(goal, OLD)


@pytest.mark.parametrize("goal", NOT_ASKING)
def test_a_goal_that_speaks_of_something_else_does_not_ask(goal: str) -> None:
    """VE-07: nor one that excuses what is red."""
    assert not asks_to_pass(goal, OLD)


@pytest.mark.parametrize(
    ("goal", "meant"),
    [
        ("Fix the legacy mode", True),
        ("Repair load()", True),
        ("`load` is broken", True),
        ("Extend the legacy mode", False),
        ("Fix the colours", False),
        ("Fix the colours. Do not touch the legacy mode.", False),
        ("Fix load(), but do not modify the tests.", True),
        ("Fix load(): it does not load.", True),
        ("Fix load() so that it doesn't fail.", True),
        ("Fix load() and leave the rest as it is.", True),
        ("Fix legacy: it never returns", True),
        ("Implement legacy in calc.py", True),
        ("Add legacy to calc.py", True),
        ("Add a note to legacy", False),
        ("Write a test for legacy", False),
        ("Add a mode", False),
    ],
)
def test_a_red_test_may_be_what_is_to_be_mended(goal: str, meant: bool) -> None:
    """VE-07: a goal names a test by what it is about."""
    assert is_to_be_fixed(goal, OLD) == meant


SUM = Case(("test_m", "test_add"), "test_m.py", "failed", "assert 1 == 3")


@pytest.mark.parametrize(
    ("goal", "meant"),
    [
        ("Fix add() in calc.py: it does not add.", True),
        ("Fix add: it never returns the sum", True),
        ("Fix add and sub", True),
        ("Fix the bugs in m.py", True),
        ("Fix the bug in m.py", False),
        ("Implement add in calc.py.", True),
        ("Add a README", False),
        ("Speed up add", False),
        ("Write a note about the sums", False),
    ],
)
def test_a_test_is_named_by_what_it_is_about(goal: str, *, meant: bool) -> None:
    """VE-07: also one that has not turned green with another, where it is named or all are."""
    assert is_to_be_fixed(goal, SUM, frozenset({("test_m", "test_sub")})) == meant


@pytest.mark.parametrize(
    ("goal", "removes"),
    [
        ("Remove test_legacy", True),
        ("Delete tests/test_old.py", True),
        ("Move tests/ to checks/", True),
        ("Rename TestA", True),
        ("Skip test_old.py for now", True),
        ("Remove the cache", False),
        ("Look at test_legacy", False),
        ("Remove the deprecated function legacy and its tests.", True),
        ("Delete the module old.py, nothing uses it any more.", True),
        ("Rename the function legacy to plus everywhere, also in the tests.", True),
        ("Convert the unittest tests in tests/test_old.py to plain pytest functions.", True),
        ("Simplify the tests: use one parametrized test instead of the copies.", True),
        ("Give the tests in test_old.py better names", True),
        ("Put the tests into a tests folder", True),
        ("Never delete test_legacy", False),
        ("Fix load(), but do not remove tests.", False),
        ("Remove the print from legacy()", False),
        ("Remove the prints before you run the tests", False),
        ("Delete the comment in old.py", False),
        ("Delete the test data", False),
        ("Rename legacy to plus; do not delete any test", False),
        ("Rename legacy to plus. Keep all tests.", False),
        ("Rename legacy to plus and leave the tests as they are", False),
        ("Rename legacy to plus. No tests may be removed.", False),
        ("Rename legacy to plus. The tests must not be deleted.", False),
        ("Rename legacy to plus without changing the tests", False),
        ("Rename legacy to plus\n\nDon't touch our unit tests.", False),
        ("不要删除测试。重命名 legacy", False),
        ("重命名 legacy，保留所有测试", False),
        ("Refactor the tests. Never delete a test.", False),
        ("Replace the slow loop our tests rely on", False),
        ("Simplify the API the tests use", False),
        ("Put the constants the tests need into config.py", False),
        ("Remove helpers unit tests depend on", False),
        ("Rename legacy to plus. Do not delete other tests.", True),
        ("Rename legacy to plus and keep the tests green", True),
        ("Rename legacy to plus. You need not keep the tests.", True),
        ("Remove legacy and its tests. Do not change the tests of the API.", True),
        ("Remove legacy. Don't write new tests.", True),
        ("Remove legacy and its tests\nDo not change tests", True),
        ("Do not delete any test but test_legacy: remove test_legacy", True),
        ("Clean up all the tests", True),
        ("Rewrite the tests using pytest", True),
        ("Give all our tests better names", True),
    ],
)
def test_a_goal_may_take_tests_away(goal: str, removes: bool) -> None:
    """VE-08: where it names them."""
    assert asks_to_remove(goal, OLD) == removes


LISTED = """\
tests/test_a.py::TestA::test_p[c::d/e.py f]
tests/test_a.py::test_f

3 tests collected in 0.1s
"""
WRITTEN = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestA" name="test_p[c::d/e.py f]" file="tests/test_a.py"/>
<testcase classname="tests.test_a" name="test_f" file="tests/test_a.py"><failure>no</failure>
<skipped/></testcase>
<testcase classname="" name="tests.test_b" file="tests/test_b.py"><error>no</error></testcase>
</testsuite></testsuites>"""


def test_a_list_and_a_report_name_tests_alike() -> None:
    """VE-08: else none could be missed."""
    report = read_report(WRITTEN) or {}

    assert collected_tests(LISTED).keys() == {key for key in report if key[0]}
    assert [(case.id, case.outcome) for case in report.values()] == [
        ("tests/test_a.py::TestA::test_p[c::d/e.py f]", "passed"),
        ("tests/test_a.py::test_f", "failed"),
        ("tests/test_b.py", "failed"),
    ]


@pytest.mark.parametrize(
    "text", ["", "no xml", "<testsuites>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>']
)
def test_a_report_that_is_none_is_not_read(text: str) -> None:
    """VE-08: nor one that could grow while it is read."""
    assert read_report(text) is None


KNOWN = [
    ("asyncio", "pytest-asyncio"),
    ("xdist", "pytest-xdist"),
    ("xdist.looponfail", "pytest-xdist"),
    ("anyio", "anyio"),
]
MOCK = ("mock", "pytest_mock")


@pytest.mark.parametrize(
    ("manifest", "plugins"),
    [
        ("", ()),
        ('dependencies = ["pytest_asyncio>=1"]', ("asyncio",)),
        ("PyTest-XDist", ("xdist", "xdist.looponfail")),
        ('asyncio_mode = "auto"', ("asyncio",)),
        ('addopts = "-q -n auto"', ("xdist", "xdist.looponfail")),
        ('dependencies = ["anyio-extras", "not-anyio"]', ()),
    ],
)
def test_only_declared_plugins_are_loaded(manifest: str, plugins: tuple[str, ...]) -> None:
    """VE-09: by requirement, or by an option that only one of them knows."""
    assert plugins_to_load(KNOWN, manifest) == plugins
    assert plugins_to_load([MOCK], manifest) == ("mock",)


def test_all_plugins_that_come_with_daruma_are_known() -> None:
    """VE-09: what this environment has is there for Daruma and its tests."""
    found = {each.dist.name for each in entry_points(group="pytest11") if each.dist}

    assert found <= OWN_PLUGINS


@pytest.mark.parametrize(
    ("command", "said", "nothing"),
    [
        (CTEST, "No tests were found!!!", True),
        (CTEST, "100% tests passed", False),
        ("go test ./...", "?   x [no test files]", True),
        ("go test ./...", "?   x [no test files]\nok  \ty 0.1s", False),
        ("cargo test --quiet", "running 0 tests\n\nrunning 0 tests", True),
        ("cargo test --quiet", "running 0 tests\n\nrunning 2 tests", False),
        ("make test", "", False),
        ("make test", "make: 'test' is up to date.\n", True),
        ("make test", "make: Nothing to be done for 'test'.\n", True),
        ("make test", "make: [Makefile:2: test] Error 1 (ignored)\n", True),
        ("make test", "make: 'lib' is up to date.\n./run\n", False),
        ("make test", "the cache is up to date.\n3 tests\n", False),
        ("node --test", "ok\n# tests 0\n# pass 0\n", True),
        (NPM, "\u2139 tests 0\n\u2139 pass 0\n", True),
        (NPM, "# tests 10\n# pass 10\n", False),
        ("python -m unittest", "\nRan 0 tests in 0.000s\n\nOK\n", True),
        ("python -m unittest", "\nRan 10 tests in 0.000s\n\nOK\n", False),
        ("make test", "Ran 0 tests in 0.0s\nRan 2 tests in 0.1s\n", False),
        (NPM, "No tests found, exiting with code 0\n", True),
        (NPM, "No tests found, exiting with code 0\nTests:       2 passed, 2 total\n", False),
        (NPM, "Test Suites: 1 skipped, 0 of 1 total\nTests:       3 skipped, 3 total\n", True),
        (NPM, "Tests:       1 skipped, 2 passed, 3 total\n", False),
        (NPM, "include: *.test.js\n\nNo test files found, exiting with code 0\n", True),
        (NPM, " Test Files  1 skipped (1)\n      Tests  2 skipped | 1 todo (3)\n", True),
        (NPM, " Test Files  1 passed (1)\n      Tests  2 passed | 1 skipped (3)\n", False),
        (NPM, "\n  0 passing (1ms)\n  3 pending\n", True),
        (NPM, "\n  10 passing (1ms)\n", False),
        (NPM, "Executed 0 of 0 SUCCESS (0.001 secs / 0 secs)\n", True),
        (NPM, "Executed 0 of 2 SUCCESS\nExecuted 2 of 2 SUCCESS\n", False),
        ("bundle exec rspec", "No examples found.\n\n0 examples, 0 failures\n", True),
        ("bundle exec rspec", "10 examples, 0 failures\n", False),
        ("bundle exec rake test", "0 runs, 0 assertions, 0 failures\n", True),
        ("bundle exec rake test", "0 runs, 0 assertions\n20 runs, 20 assertions\n", False),
        ("mix test", "There are no tests to run\n", True),
        ("mix test", "There are no tests to run\n==> b\n1 test, 0 failures\n", False),
        ("dotnet test", "No test is available in /w/bin/x.dll. Make sure that\n", True),
        ("dotnet test", "No test is available in x.dll.\nPassed!  - Passed:     3\n", False),
        ("composer test", "PHPUnit 10.5\n\nNo tests executed!\n", True),
        ("composer test", "No tests executed!\nOK (1 test, 1 assertion)\n", False),
        ("swift test", "\t Executed 0 tests, with 0 failures in 0.0 seconds\n", True),
        ("swift test", "Executed 0 tests\nTest run with 3 tests passed\n", False),
    ],
)
def test_a_runner_that_had_nothing_to_run_is_told(command: str, said: str, nothing: bool) -> None:
    """VE-02: it ends well, and nothing was checked."""
    assert ran_nothing(command, said) == nothing


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("test_a.py", True),
        ("src/a_test.go", True),
        ("tests/data.json", True),
        ("pkg/conftest.py", True),
        ("web/a.spec.ts", True),
        ("src/ATest.java", True),
        ("src/contest.py", False),
        ("latest.py", False),
        ("checks/known.py", True),
    ],
)
def test_files_of_tests_are_told_by_name_and_folder(path: str, is_one: bool) -> None:
    """VE-08: or since tests were found in them."""
    assert is_test_file(path, {"checks/known.py"}) == is_one


@pytest.mark.parametrize(
    "path",
    [
        *("pom.xml", "build.gradle", "app/build.gradle.kts", "settings.gradle", "Cargo.toml"),
        *("mix.exs", "Gemfile", "A.csproj", "a.sln", "Package.swift", "jest.config.js", "rules.mk"),
        *("vitest.config.mts", "vite.config.ts", ".mocharc.yml", "karma.conf.js", "a.pth"),
    ],
)
def test_every_manifest_says_how_tests_are_run(path: str) -> None:
    """VE-08: also what configures a runner, or is included by what names one."""
    assert says_how(path)
    assert not says_how(f"{path}.md")


@pytest.mark.parametrize(
    ("line", "can_fail"),
    [
        ("pytest --version", False),
        ("python -m pytest --collect-only -q", False),
        ("python -c pass", False),
        ("python -c 'print(1)'", False),
        ("ruff --version && ruff check --exit-zero .", False),
        ("npm --version", False),
        ("ctest -V", True),
        ("mvn -V test", True),
        ("make -n test", False),
        ("python -c 'print(x)'", True),
        ("python tool.py --version", True),
        ("pytest -k version", True),
        ("pytest --collect-only && pytest", True),
        ("npm test -- --help", True),
        ("go run . --help", True),
        ("cargo test -- --version", True),
    ],
)
def test_a_runner_that_is_only_asked_about_itself_checks_nothing(
    line: str, *, can_fail: bool
) -> None:
    """VE-08: nor one that is told to let everything pass."""
    assert (find_hidden_exit(line) == "") == can_fail


def test_only_what_says_how_tests_are_run_counts() -> None:
    """VE-08: a new version or dependency is no change of the tests."""
    first = '[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'

    assert about_tests("pyproject.toml", first) == about_tests(
        "pyproject.toml", first.replace('"1"', '"2"')
    )
    assert about_tests("pyproject.toml", first) != about_tests(
        "pyproject.toml", first.replace("-q", "--co")
    )
    cargo = '[package]\nversion = "1"\n[[test]]\nname = "a"\n'
    assert about_tests("Cargo.toml", cargo) == about_tests("Cargo.toml", cargo.replace("1", "2"))
    assert about_tests("Cargo.toml", cargo) != about_tests("Cargo.toml", cargo + "test = false\n")
    ini = "[metadata]\nname = a\n\n[tool:pytest]\naddopts = -q\n"
    assert about_tests("setup.cfg", ini) == about_tests("setup.cfg", ini.replace("= a", "= b"))
    assert about_tests("setup.cfg", ini) != about_tests("setup.cfg", ini.replace("-q", "--co"))
