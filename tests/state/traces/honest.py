"""Honest work that looks like a loop: waiting for what goes on, long ways through new things."""

from collections.abc import Callable, Iterator
from random import Random

from tests.state.traces.noise import noisy, words
from tests.state.traces.trace import Call, Turn


def percent(rng: Random) -> Iterator[Turn]:
    done = 0
    while done < 100:
        done += rng.randint(1, 9)
        yield [Call("status", {"job": 7}, noisy(rng, f"running: {min(done, 100)} %"))]


def counters(rng: Random) -> Iterator[Turn]:
    rows = 0
    for _ in range(20):
        rows += rng.randint(1, 400)
        yield [Call("status", {"job": "load"}, noisy(rng, f'{{"rows": {rows}, "of": 9000}}'))]


def growing_lists(rng: Random) -> Iterator[Turn]:
    names = words(rng, 20)
    for n in range(1, 20):
        yield [Call("list_results", {}, "\n".join(names[:n]))]


def changing_status(rng: Random) -> Iterator[Turn]:
    for status in words(rng, 12):
        yield [Call("deployment", {"id": 3}, noisy(rng, f"now: {status}"))]


def time_left(rng: Random) -> Iterator[Turn]:
    for left in range(90, 0, -rng.randint(4, 9)):
        yield [Call("status", {"job": 7}, f"still at it, {left} s left")]


def waiting_between(rng: Random) -> Iterator[Turn]:
    for done in sorted(rng.sample(range(100), 10)):
        yield [Call("wait", {"seconds": 5}, "waited 5 s")]
        yield [Call("status", {"job": 7}, f"{done} of 100 tests ran")]


def reading_files(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 25):
        empty = rng.random() < 0.3
        yield [Call("view", {"path": f"src/{name}.py"}, "" if empty else f"def {name}(): ...")]


def paging(rng: Random) -> Iterator[Turn]:
    for page, name in enumerate(words(rng, 15), 1):
        shown = name if rng.random() < 0.7 else "(nothing on this page)"
        yield [Call("view", {"path": "log.txt", "from": page * 50}, shown)]


def searching_in_vain(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 20):
        yield [Call("search", {"pattern": name}, "no matches")]


def like_names(rng: Random) -> Iterator[Turn]:
    """Paths and code differ in signs only, and each write says the same."""
    a, b = (name.split("_")[0] for name in words(rng, 2))
    paths = [f"{a}{sign}{b}.py" for sign in ("_", "-", ".", "/", " ", "__", "-_", "+")]
    for path in rng.sample(paths, len(paths)):
        yield [Call("write", {"path": path, "text": f"{a} = {b}"}, "ok")]


def all_return_ok(rng: Random) -> Iterator[Turn]:
    first = rng.randint(1, 5000)
    for number in range(first, first + 15):
        yield [Call("create_user", {"name": f"user {number}"}, "ok")]


def parallel_reads(rng: Random) -> Iterator[Turn]:
    names = words(rng, 30)
    for n in range(0, 28, 2):
        yield [Call("view", {"path": names[i]}, "ok") for i in (0, n + 1, n + 2)]


def edits_and_tests(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 10):
        yield [_edit(name)]
        yield [Call("run_tests", {}, noisy(rng, f"FAILED test_{name} - KeyError"), ok=False)]


def edits_and_numbers(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 10):
        yield [_edit(name)]
        yield [Call("run_tests", {}, f"assert {rng.randint(1, 99)} == 42", ok=False)]


def edits_and_one_failure(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 10):
        yield [_edit(name)]
        yield [Call("run_tests", {}, noisy(rng, "1 failed: test_total"))]


def looking_again(rng: Random) -> Iterator[Turn]:
    before = "x = 0"
    for name in words(rng, 8):
        yield [Call("view", {"path": "a.py"}, before)]
        before = f"x = {name}"
        yield [_edit(name)]
        yield [Call("run_tests", {}, "1 failed: test_total")]


def different_errors(rng: Random) -> Iterator[Turn]:
    for name, said in zip(words(rng, 15), words(rng, 15), strict=True):
        why = said.replace("_", " ")
        yield [Call("run", {"line": f"python {name}.py"}, f"no {why} for {name}", ok=False)]


def errors_in_between(rng: Random) -> Iterator[Turn]:
    for n, name in enumerate(words(rng, 20)):
        failing = n % 3 != 2
        said = "the text to replace is not there" if failing else "replaced"
        yield [Call("replace", {"path": "a.py", "old": name}, said, ok=not failing)]


def denials(rng: Random) -> Iterator[Turn]:
    for name in words(rng, 6):
        yield [Call("view", {"path": name}, f"content of {name}")]
        yield [Call("run", {"line": f"rm {name}"}, "A person denied this call", ok=False)]


def _edit(name: str) -> Call:
    return Call("replace", {"path": "a.py", "old": "x", "new": name}, "replaced")


HONEST: dict[str, Callable[[Random], Iterator[Turn]]] = {
    "polling: a percentage": percent,
    "polling: counters": counters,
    "polling: a growing list": growing_lists,
    "polling: a changing status": changing_status,
    "polling: the time left": time_left,
    "polling: with waits between": waiting_between,
    "exploring: many files": reading_files,
    "exploring: one file in pages": paging,
    "exploring: searches without a hit": searching_in_vain,
    "exploring: 15 calls that all return ok": all_return_ok,
    "exploring: parallel reads": parallel_reads,
    "editing: files whose names are nearly alike": like_names,
    "editing: tests that fail otherwise": edits_and_tests,
    "editing: tests that fail with other numbers": edits_and_numbers,
    "editing: tests that fail as before": edits_and_one_failure,
    "editing: look, edit, test": looking_again,
    "failing: each time otherwise": different_errors,
    "failing: but not always": errors_in_between,
    "failing: denials between reads": denials,
}
"""By family and name: no cycle of these repeats both its calls and their results."""
