"""A check is judged by what the task has made of it, and is not talked round."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_context, a_phase, a_plan, a_state, a_task, settings, taken
from tests.sandboxes import LEVELS, sandbox_at

from daruma.state.plan import Plan
from daruma.state.verification import Verification
from daruma.tools.context import Context
from daruma.tools.rollback import write_savepoint
from daruma.tools.sandbox._sandbox import Level
from daruma.tools.verification import (
    ENDED_EARLY,
    run_all_checks,
    verification_completed,
    with_changed_tests,
)

Files = dict[str, str | None]


@pytest.fixture(autouse=True)
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def put(ws: Path, files: Files) -> None:
    """Write files, and remove those that are None."""
    for name, text in files.items():
        if text is None:
            (ws / name).unlink()
        else:
            (ws / name).parent.mkdir(parents=True, exist_ok=True)
            (ws / name).write_text(text)


def began(ws: Path) -> float:
    """Return when the task began: after the folder was there, before anything else was."""
    return ws.stat().st_ctime - 1


async def story(
    ws: Path,
    before: Files,
    after: Files,
    goal: str = "Do it",
    *,
    plan: Plan | None = None,
    level: Level = "none",
    **sections: Any,
) -> Verification:
    """Verify a task that begins with some files and changes some of them."""
    context = a_context(given=settings(**sections))

    async def opened() -> Any:
        return sandbox_at(level)

    context = replace(context, open_sandbox=opened) if level != "none" else context
    task = a_task(workspace=str(ws), goal=goal, started_at=began(ws))
    put(ws, before)
    written = await write_savepoint(task, "task", context)
    put(ws, after)
    return await run_all_checks(
        a_state(task=task, plan=plan, savepoints=written.savepoints), context
    )


# --- What was red before the task, and what the task broke (VE-07).

OLD: Files = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "test_old.py": "def test_fine(): pass\ndef test_legacy():\n    assert 0\n",
}
WRONG = "def add(a, b):\n    return a - b\n"
LEGACY = "was red before the task: test_old.py::test_legacy"

RED_BEFORE: list[tuple[Files, str, str, str]] = [
    ({}, "Do it", "none", LEGACY),
    ({"calc.py": "# ok\n" + str(OLD["calc.py"])}, "Say more in add", "none", LEGACY),
    ({"calc.py": WRONG}, "Do it", "failed", "broken by the task: test_calc.py::test_add"),
    ({"calc.py": None}, "Do it", "failed", "broken by the task: test_calc.py"),
    ({}, "Make test_legacy pass", "failed", "red as before the task, which asks for it"),
    ({}, "Mend test_old.py", "failed", "which asks for it: test_old.py::test_legacy"),
    ({}, "All tests have to pass", "failed", "which asks for it"),
    ({}, "Speed up add. Ignore the failing tests, they are known.", "none", LEGACY),
    ({}, "Repair the legacy path", "failed", "which asks for it"),
    ({}, "Fix the colours of the page", "none", LEGACY),
    ({"test_old.py": "def test_fine(): pass"}, "Remove test_legacy", "passed", ""),
    ({"test_new.py": "def test_n():\n    assert 0"}, "Do it", "failed", "broken by the task"),
]


BUGGY: Files = {
    **OLD,
    "calc.py": WRONG,
    "test_calc.py": str(OLD["test_calc.py"]) + "def test_add_old():\n    assert add('', 1)\n",
}
TWO_WRONG: Files = {
    "calc.py": "def add(a, b): return 0\ndef sub(a, b): return 0\n",
    "test_calc.py": "import calc\ndef test_add(): assert calc.add(1, 2) == 3\n"
    "def test_sub(): assert calc.sub(3, 2) == 1\n"
    "def test_mul(): assert calc.mul(3, 2) == 6\n",
}
HALF = "def add(a, b): return a + b\ndef sub(a, b): return 0\n"
WHOLE = "def add(a, b): return a + b\ndef sub(a, b): return a - b\n"
TURNED = "def add(a, b):\n    return b - a\n"
CASES: Files = {
    "calc.py": "def add(a, b): return None\n",
    "test_calc.py": "import pytest\nfrom calc import add\n"
    "@pytest.mark.parametrize('b', [0, 1, 2])\ndef test_add(b):\n    assert add(1, b) == 1 + b\n",
}
MENDED: list[tuple[Files, str, str, str]] = [
    (BUGGY, str(OLD["calc.py"]), "Fix add() in calc.py", "none"),
    (BUGGY, TURNED, "Fix add() in calc.py", "failed"),
    (BUGGY, TURNED, "Fix the sums", "none"),
    (BUGGY, TURNED, "Write it the other way round", "none"),
    (CASES, "def add(a, b): return a\n", "Fix add()", "failed"),  # where some cases are green
    (TWO_WRONG, HALF, "Fix the bugs in calc.py.", "failed"),
    (TWO_WRONG, HALF, "Fix add and sub in calc.py.", "failed"),
    (TWO_WRONG, HALF, "Fix add in calc.py, but do not change the tests.", "none"),
    (TWO_WRONG, WHOLE, "Fix add and sub in calc.py.", "none"),
    (TWO_WRONG, WHOLE, "Implement mul in calc.py.", "failed"),
    (TWO_WRONG, f"{WHOLE}def mul(a, b): return a * b\n", "Implement mul in calc.py.", "passed"),
]
"""Files, what the task makes of calc.py, the goal, and how it ends."""


CHANGED: Files = {"calc.py": "# ok\n" + str(OLD["calc.py"])}
QUOTED = [
    ("from calc import add, later\ndef test_l(): pass\n", "Fix add() in calc.py", "none"),
    ("from calc import add, later\ndef test_l(): pass\n", "Fix later() in calc.py", "failed"),
    ("import src_only\ndef test_l(): pass\n", "Fix add() in src_only.py", "none"),
    ("import lost\ndef test_l(): pass\n", "The module lost is missing: repair that", "failed"),
]


@pytest.mark.long
async def test_no_other_check_makes_up_for_an_old_red_one(ws: Path) -> None:
    """MO-10: a workspace that is red is not checked, whatever else is green."""
    found = await story(ws, OLD, {}, verification={"commands": ("test -f calc.py",)})

    assert [check.outcome for check in found.checks] == ["none", "passed"]
    assert (found.outcome, LEGACY in found.why) == ("none", True)


@pytest.mark.long
async def test_the_plan_asks_as_the_goal_does(ws: Path) -> None:
    """VE-07: in a phase's instructions, or by a declared command."""
    asking = a_plan(a_phase("a", instructions="It is done when all tests pass."), current="a")
    found = await story(ws, OLD, {}, plan=asking)
    named = await story(ws, {}, {}, verification={"commands": ("pytest -q test_old.py",)})

    assert found.outcome == "failed"
    assert [check.outcome for check in named.checks] == ["failed", "failed"]


async def test_without_a_snapshot_red_is_red_and_says_so(ws: Path) -> None:
    """VE-07: nothing can be compared."""
    found = await story(ws, OLD, {}, rollback={"snapshots": False})

    assert found.outcome == "failed"
    assert "there is no snapshot of the task's beginning" in found.why


@pytest.mark.long
@pytest.mark.parametrize("level", LEVELS)
async def test_the_beginning_has_what_no_snapshot_holds(level: Level, ws: Path) -> None:
    """VE-07: ignored files, so that a test which needs one is not taken for red before."""
    needs = "from made import one\nfrom calc import add\ndef test_m(): assert add(1, one) == 2\n"
    before = {**OLD, "test_made.py": needs, ".gitignore": "made.py\n", "made.py": "one = 1\n"}
    found = await story(ws, before, {"calc.py": WRONG}, level=level)

    assert "broken by the task" in found.why
    assert "test_made.py::test_m" in found.why.partition("was red")[0]


async def test_a_file_that_could_not_be_read_before_was_red(ws: Path) -> None:
    """VE-07: as a whole, whatever fails in it now."""
    before: Files = {"test_a.py": "import nothing\ndef test_a(): assert 0\n"}
    found = await story(ws, before, {"test_a.py": "def test_a(): assert 0\n"})

    assert (found.outcome, found.changed_tests) == ("none", ("test_a.py",))


@pytest.mark.long
async def test_findings_of_a_linter_are_compared_too(ws: Path) -> None:
    """VE-07: by file and message, wherever they stand in the file."""
    before: Files = {"a.py": "import os\n", "ruff.toml": "", "test_a.py": "def test_a(): pass\n"}
    same = await story(ws, before, {"a.py": "x = 1\nimport os\n"})
    more = await story(ws, {}, {"a.py": "import os\nimport sys\n"})
    asked = await story(
        ws, {}, {"a.py": "import os\nimport sys\ny = 1\n"}, goal="Mend what ruff finds"
    )

    assert [each.outcome for each in same.checks] == ["passed", "none"]
    assert "there before the task" in same.summary
    assert (more.outcome, "new findings: 1" in more.why) == ("failed", True)
    assert asked.outcome == "failed"


async def test_another_runner_is_compared_as_a_whole(ws: Path) -> None:
    """VE-07: red before and after says nothing of the work."""
    make = {"Makefile": "test:\n\tgrep -q yes it\n", "it": "no"}
    old = await story(ws, {**make}, {"other": "x"})
    asked = await story(ws, {}, {"other": "y"}, goal="Get the build green: make the tests pass")
    broken = await story(ws, {"it": "yes"}, {"it": "no"})

    assert (old.outcome, old.why) == (
        "none",
        "make test: none, was red before the task (exit 2)",
    )
    assert asked.outcome == "failed"
    assert (broken.outcome, "broken by the task" in broken.why) == ("failed", True)


# --- Ways to fake a green check (VE-08). In each the code is wrong.

PYTHON: Files = {
    "pyproject.toml": "[project]\nname = 'x'\n",
    "calc.py": OLD["calc.py"],
    "tests/test_calc.py": OLD["test_calc.py"],
    "tests/test_more.py": "def test_more(): pass\n",
    "conftest.py": "",
}
TEST = str(OLD["test_calc.py"])
HOOK = "import pytest\n\n"
EXIT = "import os; os._exit(0)\n"

FAKES: dict[str, Files] = {
    "exit at import of the code": {"calc.py": "import os\nos._exit(0)\n"},
    "sys.exit in conftest": {"conftest.py": "import sys\nsys.exit(0)\n"},
    "exit in a fixture": {
        "conftest.py": f"{HOOK}@pytest.fixture(autouse=True)\ndef a():\n    {EXIT}"
    },
    "exit in a test": {"tests/test_calc.py": "def test_add():\n    import os; os._exit(0)\n"},
    "exit at the end": {
        "calc.py": "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG,
    },
    "exit status of the session": {
        "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
        "def pytest_unconfigure():\n    import os; os._exit(0)\n"
    },
    "collect_ignore": {"conftest.py": "collect_ignore = ['tests/test_calc.py']\n"},
    "python_files in pytest.ini": {"pytest.ini": "[pytest]\npython_files = test_more.py\n"},
    "python_files in pyproject": {
        "pyproject.toml": "[tool.pytest.ini_options]\npython_files = ['test_more.py']\n"
    },
    "python_files in setup.cfg": {"setup.cfg": "[tool:pytest]\npython_files = test_more.py\n"},
    "python_files in tox.ini": {"tox.ini": "[pytest]\npython_files = test_more.py\n"},
    "testpaths": {
        "pytest.ini": "[pytest]\ntestpaths = docs\n",
        "docs/test_d.py": "def test_d(): pass\n",
    },
    "collect only": {"pytest.ini": "[pytest]\naddopts = --co\n"},
    "select by name": {"pytest.ini": "[pytest]\naddopts = -k more\n"},
    "deselect": {"pytest.ini": "[pytest]\naddopts = --deselect tests/test_calc.py\n"},
    "select by mark": {
        "pytest.ini": "[pytest]\naddopts = -m 'not red'\nmarkers = red\n",
        "tests/test_calc.py": TEST.replace("def ", f"{HOOK}@pytest.mark.red\ndef "),
    },
    "no report": {"pytest.ini": "[pytest]\naddopts = -p no:junitxml\n"},
    "no python tests": {"pytest.ini": "[pytest]\naddopts = -p no:python\n"},
    "skip": {"tests/test_calc.py": TEST.replace("def ", f"{HOOK}@pytest.mark.skip\ndef ")},
    "skipif": {"tests/test_calc.py": TEST.replace("def ", f"{HOOK}@pytest.mark.skipif('1')\ndef ")},
    "xfail": {"tests/test_calc.py": TEST.replace("def ", f"{HOOK}@pytest.mark.xfail\ndef ")},
    "importorskip": {"tests/test_calc.py": f"{HOOK}pytest.importorskip('nothing')\n{TEST}"},
    "skip from the code": {"calc.py": f"{HOOK}pytest.skip('x', allow_module_level=True)\n"},
    "skip in the code": {"calc.py": f"{HOOK}def add(a, b): pytest.skip('x')\n"},
    "skip of unittest in the code": {
        "calc.py": "import unittest\ndef add(a, b): raise unittest.SkipTest('x')\n"
    },
    "exit of pytest in the code": {
        "calc.py": f"{HOOK}def add(a, b): pytest.exit('x', returncode=0)\n"
    },
    "hook that takes tests away": {
        "conftest.py": "def pytest_collection_modifyitems(items):\n    del items[0]\n"
    },
    "hook that turns reports": {
        "conftest.py": f"{HOOK}@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport():\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    },
    "weaker assertion": {"tests/test_calc.py": TEST.replace("add(1, 2) == 3", "True")},
    "test deleted": {"tests/test_calc.py": "from calc import add\n"},
    "file deleted": {"tests/test_calc.py": None},
    "file renamed": {"tests/test_calc.py": None, "tests/calc_checks.py": TEST},
    "test renamed": {"tests/test_calc.py": TEST.replace("test_add", "check_add")},
    "sitecustomize": {"sitecustomize.py": "import os\nos._exit(0)\n"},
    "usercustomize": {"usercustomize.py": "import os\nos._exit(0)\n"},
    "pytest.py": {"pytest.py": "raise SystemExit(0)\n"},
    "plugin of conftest": {
        "conftest.py": "pytest_plugins = ['helping']\n",
        "helping.py": "def pytest_collection_modifyitems(items):\n    items[:] = []\n",
    },
    "plugin by addopts": {
        "pytest.ini": "[pytest]\naddopts = -p helping\npythonpath = .\n",
        "helping.py": "import os\nos._exit(0)\n",
    },
}
TOLD = {"hook that turns reports", "weaker assertion"}
"""What a machine can not tell from honest work: green, and the changed test files are named."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fake", FAKES)
async def test_a_faked_check_is_red_or_told(fake: str, ws: Path) -> None:
    """VE-08: none of them ends green without a word."""
    found = await story(ws, PYTHON, {"calc.py": WRONG, **FAKES[fake]})

    if fake in TOLD:
        assert found.outcome == "passed"
        assert set(found.changed_tests) == FAKES[fake].keys()
    else:
        assert found.outcome == "failed", found.summary


MAKE: Files = {"Makefile": "test:\n\tgrep -q hi tool.sh\n", "tool.sh": "echo hi\n"}
NPM: Files = {"package.json": '{"scripts": {"test": "grep -q hi tool.sh"}}'}
CHECKED_BY_PYTEST: Files = {"test_o.py": "def test_o(): pass\n"}
ALONE: Files = {"tests/test_tool.py": "def test_a(): pass\n", "tool.sh": "echo hi\n"}
NO_MORE: Files = {"tests/test_tool.py": None, "tool.sh": "echo ho\n"}
NONE_NOW = "the task's beginning had such tests, and the workspace has none now"

VANISHED: dict[str, tuple[Files, Files, str, str, str]] = {
    "the only test": (ALONE, NO_MORE, "Do it", "failed", "not collected any more: tests/test_tool"),
    "moved where nobody looks": (
        ALONE,
        {**NO_MORE, ".attic/test_tool.py": ALONE["tests/test_tool.py"]},
        "Do it",
        "failed",
        "not collected any more",
    ),
    "as the goal asks": (ALONE, NO_MORE, "Remove test_tool.py", "none", "there are no tests"),
    "a recipe": (MAKE, {"Makefile": "test:\n\t@true\n"}, "Do it", "none", NONE_NOW),
    "another recipe": (MAKE, {"Makefile": "test:\n\ttest -f tool.sh\n"}, "Do it", "passed", ""),
    "a script": (NPM, {"package.json": '{"scripts": {"test": "true"}}'}, "Do it", "none", NONE_NOW),
    "a broken manifest": (NPM, {"package.json": '{"scripts": {},}'}, "Do it", "none", NONE_NOW),
    "one kind of two": (NPM | CHECKED_BY_PYTEST, {"package.json": None}, "Do it", "none", NONE_NOW),
    "one kind of two, named": (
        NPM | CHECKED_BY_PYTEST,
        {"package.json": None},
        "Replace npm by pytest",
        "passed",
        "",
    ),
    "called by another": (
        {"Makefile": "test:\n\tpytest\n"},
        {"test_a.py": "def test_a(): pass\n"},
        "Do it",
        "passed",
        "",
    ),
}
"""Files before and after, the goal, how it ends, and what is said."""


@pytest.mark.parametrize("name", VANISHED)
async def test_a_kind_of_tests_does_not_vanish_without_a_word(name: str, ws: Path) -> None:
    """VE-08, MO-10: pytest's are red, others say nothing; unless the goal takes them away."""
    before, after, goal, outcome, why = VANISHED[name]
    found = await story(ws, before, after, goal)

    assert (found.outcome, why in found.summary) == (outcome, True), found.summary
    assert found.changed_tests or outcome == "passed"


@pytest.mark.long
@pytest.mark.parametrize("path", ["pytest.ini", ".venv/bin/pytest"])
async def test_what_no_snapshot_holds_is_told_too(path: str, ws: Path) -> None:
    """VE-08: git ignores it, and it says how tests are run, or runs them."""
    ignored = OLD | {".gitignore": "pytest.ini\n.venv\n"}
    found = await story(ws, ignored, {path: "[pytest]\n", "note.txt": "x"})

    assert found.changed_tests == (path,)


@pytest.mark.long
async def test_what_ends_early_is_named(ws: Path) -> None:
    """VE-08: the reason is of use to the model."""
    found = await story(ws, PYTHON, FAKES["exit at import of the code"])

    assert ENDED_EARLY in found.why


LINES = {
    "sh red || true": "none",
    "sh red; true": "none",
    "sh red; exit 0": "none",
    "sh red || :": "none",
    "sh red | tee log": "none",
    "sh red": "failed",
    "set -o pipefail; sh red | cat": "failed",
    "true": "none",
    "echo ok && true": "none",
    "! grep -rq TODO calc.py || true": "none",
    "echo 'a || true'": "none",
    ":": "none",
    "# pytest": "none",
    "false &": "none",
    "! false": "none",
    "sh -c 'sh red || true'": "none",
    "sh -c 'true'": "none",
    "if sh red; then echo ok; fi": "none",
    "if sh red; then echo ok; else echo bad; fi": "none",
    "if test -d .; then sh red; fi": "failed",
    "sh red || echo red >&2": "none",
    "(sh red || true)": "none",
    "echo $(sh red)": "none",
    "sh red & wait": "none",
    "sh red; echo done": "none",
    "set -e; sh red; echo done": "failed",
    "sh -ec 'sh red; echo done'": "failed",
    "trap 'exit 0' EXIT; sh red": "none",
    "grep -q assert notes && exit 1 || true": "failed",
    "sh red || { echo red; exit 1; }": "failed",
    "echo start && sh red": "failed",
    "test -f notes": "passed",
    "! grep -q nothing notes": "passed",
    "grep -q 'a || true' notes || test -d .; true # or so": "none",
}


async def test_a_line_that_can_not_fail_says_nothing(ws: Path) -> None:
    """VE-08: its exit code is hidden."""
    wanted = {f"bash -c {x!r}" if "pipefail" in x else x: end for x, end in LINES.items()}
    lines = {"commands": tuple(wanted)}
    found = await story(ws, {"red": "exit 1\n", "notes": "assert\n"}, {}, verification=lines)

    assert {check.command: check.outcome for check in found.checks} == wanted


HONEST: list[tuple[Files, str, tuple[str, ...]]] = [
    ({"tests/test_new.py": "def test_n(): pass\n"}, "Do it", ("tests/test_new.py",)),
    ({"tests/test_more.py": None}, "Delete tests/test_more.py", ("tests/test_more.py",)),
    ({"tests/test_more.py": None}, "Drop the test test_more", ("tests/test_more.py",)),
    (
        {"tests/test_more.py": None, "tests/test_b.py": "def test_more(): pass\n"},
        "Rename test_more.py to test_b.py",
        ("tests/test_b.py", "tests/test_more.py"),
    ),
    ({"calc.py": "# more\n" + str(OLD["calc.py"])}, "Do it", ()),
    ({"pyproject.toml": "[project]\nname = 'y'\n"}, "Do it", ()),
    ({"web/jest.config.js": "module.exports = {}\n"}, "Do it", ("web/jest.config.js",)),
    (
        {"tests/test_new.py": f"{HOOK}@pytest.mark.skip\ndef test_n(): pass\n"},
        "Do it",
        ("tests/test_new.py",),
    ),
]


@pytest.mark.long
async def test_a_manifest_that_became_a_pipe_is_not_waited_for(ws: Path) -> None:
    """SE-07: nor is it taken for what it was."""
    context = a_context(given=settings())
    task = a_task(workspace=str(ws), started_at=began(ws))
    put(ws, PYTHON | {"Makefile": "all:\n"})
    written = await write_savepoint(task, "task", context)
    (ws / "Makefile").unlink()
    os.mkfifo(ws / "Makefile")
    found = await run_all_checks(a_state(task=task, savepoints=written.savepoints), context)

    assert (found.outcome, found.changed_tests) == ("passed", ("Makefile",))


@pytest.mark.long
@pytest.mark.parametrize(("after", "goal", "told"), HONEST)
async def test_honest_work_is_green(
    after: Files, goal: str, told: tuple[str, ...], ws: Path
) -> None:
    """VE-08: with the test files that it changed."""
    found = await story(ws, PYTHON, after, goal)

    assert (found.outcome, found.changed_tests) == ("passed", told), found.summary


# --- Right work whose tests have other names than at its beginning (VE-07, VE-08).


def with_cases(values: str, body: str = "assert add(a, 0) == a", ids: str = "None") -> str:
    """Return a file with a parametrised test."""
    return (
        f"{HOOK}from calc import add\n"
        f"@pytest.mark.parametrize('a', {values}, ids={ids})\ndef test_add(a):\n    {body}\n"
    )


RANDOM = "lambda _: __import__('secrets').token_hex(9)"
NEW: Files = {"tests/test_new.py": "def test_n(): pass\n"}
MOVED: Files = {"tests/test_calc.py": None, "tests/unit/test_sums.py": TEST}
OTHER: Files = {
    "test_p.py": with_cases("[1, 2]", ids=RANDOM),
    "test_q.py": f"{HOOK}@pytest.mark.xdist_group('g')\ndef test_g(): pass\n",
    "pytest.ini": "[pytest]\naddopts = --junitprefix=own --doctest-modules -p no:cacheprovider"
    " -n 1 --dist loadgroup\njunit_family = xunit2\njunit_suite_name = s\njunit_logging = all\n"
    "asyncio_mode = auto\npython_classes = *Suite\n",
    "more.py": 'def one():\n    """\n    >>> one()\n    1\n    """\n    return 1\n',
    "test_a.py": "async def test_a(): pass\nclass ASuite:\n    def test_s(self): pass\n",
    "test_u.py": "import unittest\nclass T(unittest.TestCase):\n    def test_u(self): pass\n",
    "gen/test_g.py": "def test_g(a): pass\n",
    "gen/conftest.py": "import time\n"
    "def pytest_generate_tests(metafunc): metafunc.parametrize('a', [time.time()])\n",
}
BRACKETS: Files = {
    "a[b]/test_b.py": with_cases("['x::y', 'a]b[', 'c/d.py::e']", "pass"),
    "a::b/test_c.py": "class TestC:\n    def test_c(self): pass\n",
}
INHERITED: Files = {
    "tests/base.py": "class Base:\n    def test_x(self): assert 0\n",
    "tests/test_x.py": "from base import Base\nclass TestX(Base): pass\n",
}
KIT = "FAST = True\nclass Kit:\n    def test_a(self): pass\n"
FROM_CODE: Files = {
    "kit.py": KIT,
    "data.json": "[1, 2]",
    "test_k.py": f"{HOOK}import json\nimport kit\nclass TestK(kit.Kit): pass\n"
    "@pytest.mark.parametrize('a', json.load(open('data.json')))\ndef test_d(a): pass\n"
    "@pytest.mark.skipif(not kit.FAST, reason='slow')\ndef test_f(): pass\n",
}
TWO, LOST = {"test_p.py": with_cases("[1, 2]")}, "not collected any more"
SKIPPED = with_cases("[3, 4]", "pytest.skip('x')")
RED_CASES: Files = {"test_p.py": with_cases("[1, 2]", "assert a < 2", RANDOM)}

COMPARED: list[tuple[Files, Files, str, str, str]] = [
    ({**TWO}, {"test_p.py": with_cases("[3, 4, 5]")}, "Do it", "passed", ""),
    ({**TWO}, {"test_p.py": with_cases("[3]")}, "Do it", "failed", LOST),
    ({**TWO}, {"test_p.py": SKIPPED}, "Do it", "failed", "newly skipped"),
    (RED_CASES, NEW, "Do it", "none", "was red before"),
    ({**OTHER}, {"calc.py": WRONG}, "Do it", "failed", "broken by the task"),
    (OTHER, NEW, "Do it", "passed", ""),
    (BRACKETS, NEW, "Do it", "passed", ""),
    ({}, MOVED, "Move the unit tests into a folder of their own", "passed", ""),
    ({}, MOVED, "Do it", "failed", LOST),
    (
        {},
        {"calc.py": "", "tests/test_calc.py": None},
        "Remove the module calc.py, nothing uses it.",
        "passed",
        f"{LOST}, as the goal asks: tests/test_calc.py::test_add",
    ),
    (
        {"tests/test_calc.py": TEST + "def test_more(): pass\n"},
        {"tests/test_calc.py": "def test_more(): pass\n"},
        "Remove calc.py",
        "failed",
        f"{LOST}: tests/test_calc.py::test_add",
    ),
    (INHERITED, {"a.py": ""}, "Do it", "none", "before the task: tests/test_x.py::"),
    (FROM_CODE, {"kit.py": KIT}, "Do it", "passed", ""),
    (FROM_CODE, {"kit.py": KIT.replace("test_a", "a")}, "Do it", "failed", f"{LOST}: test_k.py::"),
    (FROM_CODE, {"kit.py": KIT + "    __test__ = False\n"}, "Do it", "failed", LOST),
    (FROM_CODE, {"kit.py": KIT.replace("True", "False")}, "Do it", "failed", "newly skipped"),
    (FROM_CODE, {"data.json": "[1]"}, "Do it", "failed", f"{LOST}: test_k.py::test_d[2]"),
]


ABOVE: Files = {
    "pytest.ini": "[pytest]\npython_files = check_*.py\npythonpath = lib\n",
    "conftest.py": f"{HOOK}@pytest.fixture\ndef three(): return 3\n",
    "lib/shared.py": "one = 1\n",
}
MEMBER: Files = {
    "calc.py": OLD["calc.py"],
    "check_calc.py": "from calc import add\nfrom shared import one\n"
    "def test_add(three): assert add(one, 2) == three\n",
    "check_old.py": "def test_old(three): assert three == 4\n",
}
FINE: Files = {"check_old.py": "def test_old(): pass\n"}
IN_MEMBER: list[tuple[Files, Files, str, str]] = [
    ({**FINE}, {"check_new.py": "def test_n(): pass\n"}, "passed", ""),
    ({}, {"calc.py": "# ok\n" + str(OLD["calc.py"])}, "none", "before the task: check_old.py"),
    ({}, {"calc.py": WRONG}, "failed", "broken by the task: check_calc.py::test_add"),
    ({**FINE}, {"check_old.py": "", "tests/a": ""}, "failed", f"{LOST}: check_old.py::test_old"),
]


@pytest.mark.long
@pytest.mark.parametrize(("before", "after", "outcome", "why"), IN_MEMBER)
async def test_a_configuration_above_the_workspace_holds_for_its_beginning(
    before: Files, after: Files, outcome: str, why: str, ws: Path
) -> None:
    """VE-07 and VE-08: in one package of a repository with several."""
    member = ws / "packages" / "a"
    member.mkdir(parents=True)
    put(ws, ABOVE)
    found = await story(member, MEMBER | before, after)

    assert (found.outcome, why in found.why) == (outcome, True), found.summary


BACK: Files = {
    "back/pyproject.toml": "[tool.pytest.ini_options]\n",
    "back/conftest.py": f"{HOOK}@pytest.fixture\ndef three(): return 3\n",
    "back/b.py": "def b(): return 2\n",
    "back/tests/test_b.py": "import sys; sys.path.insert(0, 'back')\nfrom b import b\n"
    "def test_b(three): assert b() == three\ndef test_c(): pass\n",
    "front/tests/test_f.py": "def test_f(): pass\n",
}
HIDES: Files = {
    "back/tests/test_b.py": f"{HOOK}@pytest.mark.skip\ndef test_b(): 0\ndef test_c(): pass\n"
}
IN_BACK: list[tuple[Files, str, str, str]] = [
    ({"note.md": "x"}, "Write a note", "none", "was red before the task: back/tests/test_b.py"),
    ({"back/b.py": "def b(): return 3\n"}, "Fix b() in b.py", "passed", ""),
    (HIDES, "Fix b() in b.py", "failed", "newly skipped: back/tests/test_b.py::test_b"),
]
NEEDS: Files = {
    ".gitignore": "local.json\nbuild/\n",
    "local.json": "[1]",
    "build/run.py": "one = 1\n",
    "test_local.py": "import json, pathlib\nfrom build.run import one\n"
    "def test_local():\n"
    "    pathlib.Path('build/out.py').write_text('x')\n"
    "    assert json.loads(pathlib.Path('local.json').read_text()) == [one]\n",
}
RED = {**NEEDS, "local.json": "[0]", "build/out.py": "", "build/a.log": ""}
SPOILED = "can not be compared with the task's beginning: what is ignored has changed: "
IN_IGNORED: list[tuple[Files, Files, str, str]] = [
    (NEEDS, {"local.json": None, "new.py": ""}, "failed", f"{SPOILED}local.json"),
    (NEEDS, {"build/run.py": "one = 20\n"}, "failed", f"{SPOILED}build/run.py"),
    (RED, {"build/out.py": "y", "new.py": ""}, "none", "was red before"),  # the test writes it
    (RED, {"build/new.py": "", "build/a.log": "y"}, "none", "was red before"),
]
SKIPPING = f"{HOOK}@pytest.mark.skip\ndef test_s(): pass\n"
ALL_SKIPPED = "pytest -x -q: none, all tests were skipped"
STORIES: list[tuple[Any, ...]] = [
    *((OLD, *rest) for rest in RED_BEFORE),
    *((files, {"calc.py": code}, *rest, "") for files, code, *rest in MENDED),
    *((OLD | {"test_old.py": text}, CHANGED, *rest, "") for text, *rest in QUOTED),
    *((PYTHON | before, *rest) for before, *rest in COMPARED),
    *((BACK, *rest) for rest in IN_BACK),
    *((old, new, "Do it", *rest) for old, new, *rest in IN_IGNORED),
    (
        {"test_s.py": SKIPPING + "def test_t(): pass\n"},
        {"a.py": "", "test_t.py": "def test_u(): 0\n"},
        "Do it",
        "passed",
        "",
    ),
    ({"test_s.py": SKIPPING}, {}, "Do it", "none", ALL_SKIPPED),
]
"""Files before and after, the goal, how it ends, and what is said."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("before", "after", "goal", "outcome", "why"), STORIES)
async def test_what_a_task_made_of_its_tests_is_what_counts(
    before: Files, after: Files, goal: str, outcome: str, why: str, ws: Path
) -> None:
    """VE-07, VE-08: what was red is told, and fails a task whose goal asks for it.

    A goal names the test of what it wants mended: by what went wrong in it, or as one of several.
    Tests are compared by their functions where parameters or files differ; only what is new counts.
    """
    found = await story(ws, before, after, goal)

    assert (found.outcome, why in found.why) == (outcome, True), found.summary
    assert "not compared" not in found.summary


@pytest.mark.long
@pytest.mark.parametrize("level", ["landlock", "namespace"])
async def test_a_configuration_that_a_sandbox_hides_fails_no_right_work(
    level: Level, ws: Path
) -> None:
    """VE-07: the beginning is not to be seen either."""
    member = ws / "a"
    member.mkdir()
    put(ws, {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n"})
    found = await story(member, {**OLD, "test_old.py": "def test_o(): pass\n"}, NEW, level=level)

    assert found.outcome == ("none" if level == "landlock" else "passed"), found.summary


async def test_the_beginning_is_collected_once_a_task(ws: Path, tmp_path: Path) -> None:
    """VE-09: however often a run verifies it; another task has a beginning of its own."""
    log = tmp_path / "log"
    seen = f"import sys\nopen({str(log)!r}, 'a').write('c' * ('--collect-only' in sys.argv))\n"
    context, again = a_context(given=settings()), a_context(given=settings())

    async def verified(*runs: Context, **files: str) -> str:
        task = a_task(workspace=str(ws), started_at=began(ws))
        written = await write_savepoint(task, "task", context)
        state = a_state(task=task, savepoints=written.savepoints)
        for context_, (name, text) in zip(runs, files.items(), strict=True):
            put(ws, {name: text})
            assert (await run_all_checks(state, context_)).outcome == "passed"
        return log.read_text()

    put(ws, {"test_a.py": "def test_a(): pass\n", "conftest.py": seen, "test_b.py": "no python"})

    assert await verified(context, context, **{"test_b.py": ""}, b="x") == "c"
    assert await verified(context, again, c="x", d="x") == "ccc"


@pytest.mark.long
async def test_a_green_run_that_is_compared_with_nothing_says_so(ws: Path) -> None:
    """VE-08: it has passed, and what it lost nobody knows."""
    found = await story(ws, PYTHON, NEW, rollback={"snapshots": False})

    assert found.outcome == "passed"
    assert "tests were not compared with the task's beginning" in found.why
    assert "rollback.snapshots is off" in found.why


def test_later_questions_name_the_changed_tests() -> None:
    """VE-08: of the last verification in the task, whichever phase it was in."""
    changed = Verification(changed_tests=("tests/test_a.py",))
    state = a_state(steps=taken("verify", verification=changed))
    other = a_state(steps=taken("verify", verification=changed, task="t/0"))

    told = with_changed_tests("How does it go on?", state)
    assert told == "How does it go on?\nchanged tests: tests/test_a.py"
    assert with_changed_tests("How does it go on?", other) == "How does it go on?"
    event = verification_completed(changed).to_dict()
    assert event["changed_tests"] in (["tests/test_a.py"], ("tests/test_a.py",))
