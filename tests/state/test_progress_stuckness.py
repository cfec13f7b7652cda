"""No progress: nothing new, although it is no plain loop."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parts import a_phase, a_plan, a_state, a_task, taken
from tests.state.test_progress import think
from tests.state.traces.trace import Call, Turn, Watched, runs_before_alarm

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.progress import Round, alarm, is_slow, is_stuck, news, repeating, without_progress
from daruma.state.steps import Step, append_steps


def past(done: str) -> list[Round]:
    return [Round(each[0], each[1:]) for each in done.split()]


def shown(steps: list[Step], saw: str, asked: str, *blockers: str) -> str:
    return without_progress(steps, think(f"{asked}#x", saw, blockers=blockers))


@pytest.mark.parametrize(
    ("done", "new"),
    [
        ("A1 B2 C3", "yyy"),
        ("A1 A2 A3", "yyy"),
        ("A1 B1 C1", "yyy"),
        ("A1 A1 B2 A1", "ynyn"),
        ("A!1 B!1 C!2", "nny"),
        ("A!1 B2 C!1", "nyn"),
        ("", ""),
    ],
)
def test_a_round_is_news_unless_it_was_seen_or_fails_as_another(done: str, new: str) -> None:
    """RE-01: new calls with a known result are news, unless that is an error."""
    assert news(past(done)) == [each == "y" for each in new]


@pytest.mark.parametrize(
    ("done", "stuck"),
    [
        ("A1 B2 A1 B2", False),
        ("A1 B2 A1 B2 A1", True),
        ("A!1 B!1", False),
        ("A!1 B!1 C!1", True),
        ("A!1 B!1 C!1 D4", False),
        ("A!1 B!2 C!3", False),
    ],
)
def test_three_steps_without_news_are_stuck(done: str, stuck: bool) -> None:
    """RE-01."""
    assert is_stuck(past(done)) is stuck


@pytest.mark.parametrize(
    ("news_of", "blockers", "slow"),
    [
        ("ynnnnnnn", ("no",), True),
        ("ynnnnnnn", (), False),
        ("ynnnnnn", ("no",), False),
        ("yynnnnnn", ("no",), False),
        ("yynnnnnnn", ("no",), True),
    ],
)
def test_little_that_is_new_in_many_steps_is_slow(
    news_of: str, blockers: tuple[str, ...], slow: bool
) -> None:
    """RE-03: at least 8 steps, less than a quarter of them with anything new, and a blocker."""
    assert is_slow([each == "y" for each in news_of], blockers) is slow


def test_after_a_recovery_another_try_is_let_through_once() -> None:
    """It may be the right one; if it fails as before, the next is not run."""
    stuck = [think(f"edit#{n}", "" if n == 1 else "!e") for n in (1, 2, 3)]
    recovered = [*stuck, think("edit#4", "!e", ok=False), *taken("recover")]
    tried = [*recovered, think("edit#5", "!refused")]

    assert without_progress(recovered, think("edit#5", "!refused")) == ""
    assert without_progress(recovered, think("edit#3", "!refused")) != ""
    assert without_progress(tried, think("edit#6", "!e")) == "no progress over the last 3 steps"
    assert without_progress(tried, think("edit#6", "fine")) == ""


def test_what_was_news_before_a_recovery_does_not_make_up_for_what_came_after() -> None:
    """Eight steps with news, and then eight without any."""
    good = [think(f"view#{n}", f"{n}") for n in range(8)]
    bad = [think(f"{tool}#x", "!e" if n else "") for n, tool in enumerate("ABCDEFGH")]

    assert shown([*good, *taken("recover"), *bad], "!e", "X", "no").startswith("little progress")


NAMES = ["a.txt", "src/b.py", "notes", "LICENSE", "x/y z.md", "données.csv", "t-1.log", "C", "_d"]
NAMES += ["tmp/e", "f.g.h", "README"]


def view(name: str) -> Call:
    return Call("str_replace_editor", {"command": "view", "path": name}, "1  x", ok=True)


def absent(name: str) -> Call:
    return view(name)._replace(result=f"Error: {name}: no such file", ok=False)


def ran(line: str, said: str, *, changes: bool | None = None) -> Call:
    return Call("run_command", {"command": line}, said, unchanged=changes is False)


def red(name: str) -> str:
    return f"exit code: 1\nstdout:\nFAILED tests.py::{name}"


EDIT = Call("str_replace_editor", {"command": "create"}, "done")
COMMANDS = ["true", ":", "echo", "sleep 1", "cd src", "test -e a", "sync", "wait", "umask", "set"]
FRUITLESS: dict[str, list[list[Call]]] = {
    "files that are not there": [[absent(name)] for name in NAMES],
    "two of them at a time": [[absent(a), absent(b)] for a, b in pairwise(NAMES)],
    "now one, now three": [
        [absent(f"{name}{n}") for n in range(1 + at % 2 * 2)] for at, name in enumerate(NAMES)
    ],
    "advice with other names in it": [
        [absent(name)._replace(result=f"Error: {name}: no such file; see 'src/{name}'")]
        for name in NAMES
    ],
    "people that are not there": [
        [Call("get_user", {"name": name}, f"no user {name}, of {n} users", ok=False)]
        for n, name in enumerate(["ann", "bob", "cy", "Dee", "eve", "fay"])
    ],
    "commands that find no file": [
        [ran(f"cat {n}", f"exit code: 1\nstderr:\ncat: {n}: No such file or directory")]
        for n in NAMES
    ],
    "programs that are not there": [
        [ran(f"{n} --version", f"exit code: 127\nstderr:\n/bin/sh: 1: {n}: not found")]
        for n in ("rg", "fd", "tox", "nox", "uv", "just")
    ],
    "modules that are not there": [
        [ran(f"python -c 'import {n}'", f"exit code: 1\nstderr:\nNo module named '{n}'")]
        for n in ("requests", "httpx", "urllib4", "yarl", "attr", "six")
    ],
    "commands that change and tell nothing": [
        [ran(line, "exit code: 0\n(no output)", changes=False)] for line in COMMANDS
    ],
    "commands that say the same in other times": [
        [ran(line, f"exit code: 0\nstdout:\nok in {n}.{n} s", changes=False)]
        for n, line in enumerate(COMMANDS)
    ],
}
FRUITFUL: dict[str, list[list[Call]]] = {
    "files that are there": [[view(name)] for name in NAMES],
    "empty files": [[view(name)._replace(result="(an empty file)")] for name in NAMES],
    "every third file is there": [
        [absent(name) if n % 3 else view(name)] for n, name in enumerate(NAMES)
    ],
    "one of two is there": [[absent(f"no/{name}"), view(name)] for name in NAMES],
    "commands that change something": [
        [ran(f"touch {name}", "exit code: 0\n(no output)", changes=True)] for name in NAMES
    ],
    "commands of which nobody knows": [
        [ran(f"touch {name}", "exit code: 0\n(no output)")] for name in NAMES
    ],
    "commands that tell something": [
        [ran(f"wc -l {name}", f"exit code: 0\nstdout:\n{n} {name}", changes=False)]
        for n, name in enumerate(NAMES)
    ],
    "a command whose tests fail otherwise": [
        [ran("pytest -x", red(f"test_{n}"), changes=False)] for n in "abcdefgh"
    ],
    "edits, and tests that fail as before": [
        turn
        for n in range(8)
        for turn in ([EDIT._replace(args={"path": f"{n}.py"})], [ran("pytest -x", red("test_a"))])
    ],
    "errors of other kinds": [
        [ran(f"python {n}.py", f"exit code: 1\nstderr:\n{error}: no")]
        for n, error in enumerate(
            ["KeyError", "ValueError", "a.b.LostError", "TypeError", "OSError"]
        )
    ],
    "errors of other tools": [
        [Call(f"get_{what}", {"name": "a"}, "a is not there", ok=False)]
        for what in ("user", "page", "file", "job", "note", "task")
    ],
    "one error of other commands": [
        [ran("pytest -x", red("test_a"))],
        [ran("pytest -x -k a", red("test_a"))],
        [ran("pytest -x -vv", red("test_a") + " with more")],
        [ran("git diff", "exit code: 0\nstdout:\n+ x", changes=False)],
        [ran("pytest -x -l", red("test_a"))],
    ],
}


@pytest.mark.parametrize("kind", FRUITLESS)
def test_the_same_failure_about_another_name_is_no_news(kind: str) -> None:
    """RE-01a: of so many rounds the first is news, three more make it stuck, the fifth is not run.

    Errors in the very same words need not even the first.
    """
    assert runs_before_alarm(FRUITLESS[kind]) in (3, 4)


@pytest.mark.parametrize("kind", FRUITFUL)
def test_what_is_new_is_progress_whatever_it_is_named(kind: str) -> None:
    """RE-01a: what changes, is there, or fails otherwise raises no alarm."""
    assert runs_before_alarm(FRUITFUL[kind]) is None


SAID = {"error", "no", "such", "file"}
WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12).filter(
    lambda word: word.casefold() not in SAID
)
PATHS = st.lists(WORDS, min_size=1, max_size=3).map("/".join)


@given(st.lists(PATHS, min_size=5, max_size=12, unique=True), st.integers(0, 11))
def test_any_names_at_all_are_one_failure_until_one_is_there(names: list[str], at: int) -> None:
    """RE-01a: whatever files are named, a file that is there begins the count anew."""
    turns = [[absent(name)] for name in names]

    assert runs_before_alarm(turns) in (3, 4)
    found = at % 3
    assert runs_before_alarm([*turns[:found], [view(names[found])]]) is None


@given(
    st.lists(
        st.builds(
            Round, st.sampled_from("ABCD"), st.sampled_from(["1", "2/k", "!3/k", "!4/k", "!5"])
        ),
        max_size=9,
    )
)
def test_stuck_is_that_the_last_three_are_no_news(past: list[Round]) -> None:
    """RE-01: asked of the last few, the answer is the same as of all."""
    assert is_stuck(past) is (len(past) >= 3 and not any(news(past)[-3:]))


def test_being_stuck_on_other_names_is_the_same_failure() -> None:
    """RE-01a and RE-07: so that a recovery is not begun anew for each name."""

    def stuck(name: str) -> Failure:
        said = f"no progress over the last 3 steps: Error: {name}: no such file"
        return Failure(code="loop_detected", node="main", message=said, tool="view")

    assert stuck("a.txt").signature == stuck("src/b.py").signature
    assert stuck("a.txt").signature != replace(stuck("a.txt"), message="view, 2 times").signature


# --- The alarm is raised from the record of steps, within the phase and the attempt.

LOOPING = [think("shout#1"), think("shout#1", "x")]
ASKED = think("shout#1", "x")


def in_phase(steps: list[Step], phase_id: str) -> list[Step]:
    return [replace(step, phase_id=phase_id) for step in steps]


def test_a_loop_is_a_failure_that_names_its_tool() -> None:
    """EM-02 and RE-03."""
    assert alarm(a_state(steps=LOOPING), ASKED) == Failure(
        code="loop_detected",
        node="main",
        message="shout, 2 times with the same results",
        tool="shout",
    )


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        (a_state(steps=LOOPING), think("", "x")),
        (a_state(steps=LOOPING, task=None), ASKED),
        (a_state(steps=LOOPING, task=a_task("plan_exec")), ASKED),
        (a_state(steps=[*LOOPING, *taken("reflect")]), ASKED),
    ],
)
def test_no_alarm(state: State, asked: Step) -> None:
    """An answer, no task, a mode that is more patient, an attempt that has just begun."""
    assert alarm(state, asked) is None


@given(st.lists(st.sampled_from(["other phase", "other task"]), max_size=4), st.integers(0, 2))
def test_steps_of_other_phases_and_tasks_change_nothing(others: list[str], at: int) -> None:
    """Each begins anew, wherever their steps stand."""
    plan = a_plan(a_phase("a", status="running"), a_phase("b"), current="a")
    foreign = {
        "other phase": replace(ASKED, phase_id="b"),
        "other task": replace(ASKED, phase_id="a", task_id="t/0"),
    }
    mine = in_phase([think("shout#1"), ASKED, ASKED], "a")
    mixed = [*mine[:at], *(foreign[other] for other in others), *mine[at:]]
    task = a_task("plan_exec")

    found = alarm(a_state(task=task, plan=plan, steps=mixed), ASKED)

    assert found is not None
    assert found == alarm(a_state(task=task, plan=plan, steps=mine), ASKED)
    assert alarm(a_state(task=task, plan=plan, steps=mixed[: at + len(others)]), ASKED) is None


TURNS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 9), st.integers(0, 9)).map(
        lambda drawn: [Call(drawn[0], {"n": drawn[1]}, f"result {drawn[2]}")]
    ),
    max_size=15,
    unique_by=str,
)


@given(TURNS, st.sampled_from(["react", "plan_exec"]))
def test_a_trace_of_different_rounds_raises_no_alarm(turns: list[Turn], mode: str) -> None:
    """MEASURED: 15 different calls are no loop, whatever they return."""
    assert runs_before_alarm(turns, "react" if mode == "react" else "plan_exec") is None


def test_whoever_goes_on_the_same_way_is_stopped_at_once() -> None:
    """RE-07: a second alarm is the same failure; something else closes the matter."""
    watched = Watched()
    loop, other = [Call("a", {}, "x")], [Call("b", {}, "y")]
    first = [watched.play(loop) for _ in range(4)]
    after = [watched.play(turn) for turn in (other, loop, loop)]

    assert first[:2] == [None, None]
    assert first[2] is not None
    assert first[2] == first[3]
    assert [each is None for each in after] == [True, True, True]
    assert watched.play(loop) is not None


THINKS = st.builds(
    Step,
    kind=st.sampled_from(["think"] * 6 + ["reflect", "recover"]),
    task_id=st.sampled_from(["t/1"] * 4 + ["t/0"]),
    phase_id=st.sampled_from(["p1", "p1", "p2"]),
    ok=st.sampled_from([True, True, True, False]),
    signature=st.sampled_from(["a#1", "a#2", "b#1", ""]),
    saw=st.sampled_from(["", "x", "!x", "!y"]),
    blockers=st.sampled_from([(), ("no",)]),
)


FAILING = [think("a#1"), *(think(f"a#{n}", "!e") for n in (2, 3))]
REFUSED = think("a#4", "!e", ok=False)
SLOW = [think("a#1"), *(think(f"{tool}#1", "x") for tool in "babababa")]


@given(st.lists(THINKS, max_size=14), THINKS, st.sampled_from([None, "p1"]))
@example([*FAILING, REFUSED], think("a#5"), None)
@example(
    [*in_phase([*FAILING, REFUSED], "p1"), *in_phase([think("b#1")], "p2")], think("a#5"), "p1"
)
@example(FAILING, think("a#5", "!e"), None)
@example(SLOW, think("c#1", "x", blockers=("no",)), None)
@example(SLOW, think("b#1", "x"), None)
def test_work_that_plainly_goes_on_would_never_raise_an_alarm(
    steps: list[Step], asked: Step, phase: str | None
) -> None:
    """The rounds are only gone through where they may tell something; a resumed run asks anew."""
    plan = a_plan(a_phase("p1"), a_phase("p2"), current=phase) if phase else None
    state = a_state(steps=steps, plan=plan)
    grown = a_state(steps=[], plan=plan)
    for step in steps:
        grown = replace(grown, steps=append_steps(grown.steps, [[step]]))
        alarm(grown, asked)
    past = list(budget.in_scope(state))
    repeats = repeating(past, asked, threshold=2) or without_progress(past, asked)

    assert bool(alarm(state, asked)) == bool(repeats and asked.signature)
    assert alarm(grown, asked) == alarm(state, asked)
