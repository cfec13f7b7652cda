"""Twenty tasks whose first plan can not work: how many are completed, with and without a new one.

No plan is made for ever (PL-01b): the quota is reached, and the walk ends.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.spec.face import ALLOWED, Run, call, calls, command, create, plan, say, view

SETTINGS: Final[dict[str, Any]] = {
    "mode": "plan_exec",
    "spec_review": {"enabled": False},
    "tools": ALLOWED,
    "fallback_chain": {"recovery": {"enabled": False}},
    "verification": {"max_reinjections": 0},
}


class Hard(NamedTuple):
    """A task: its plan that can not work, what the work on that comes to, and the plan that can."""

    first: dict[str, Any]
    fails: tuple[dict[str, Any], ...]
    then: dict[str, Any]
    works: tuple[dict[str, Any], ...]
    check: str


def missing(name: str) -> Hard:
    """The file that the plan speaks of is not there; it has another name."""
    no = call("revise_plan", why=f"There is no {name}.py.")
    return Hard(
        plan({"id": "edit", "title": f"Edit {name}.py"}, {"id": "tell", "depends_on": ["edit"]}),
        (calls(view(f"{name}.py")), calls(no)),
        plan({"id": "make", "title": f"Make {name}_new.py"}),
        (calls(create(f"{name}_new.py", "done\n")), say("Made.")),
        f"grep -q done {name}_new.py",
    )


def assumed(name: str) -> Hard:
    """The plan takes one format for granted, and the checks want another."""
    return Hard(
        plan({"id": "json", "title": f"Write {name}.json"}),
        (calls(create(f"{name}.json", "{}\n")), say("Written.")),
        plan({"id": "toml", "title": f"Write {name}.toml"}),
        (calls(create(f"{name}.toml", "a = 1\n")), say("Written now.")),
        f"test -f {name}.toml",
    )


def dependent(name: str) -> Hard:
    """What the plan rests on can not be had; half of its work is kept."""
    return Hard(
        plan({"id": "tool"}, {"id": "use", "depends_on": ["tool"]}, {"id": "more"}),
        (calls(command(f"test -x ./{name}")), say(""), say("More is done.")),
        plan({"id": "own", "title": "Without it", "depends_on": ["more"]}),
        (calls(command(f"echo {name} > own.txt")), say("Done without.")),
        "test ! -e never",
    )


NAMES: Final = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa")
TASKS: Final = [
    *(missing(name) for name in NAMES),
    *(assumed(name) for name in NAMES),
    *(dependent(name) for name in NAMES[:6]),
]


def carried_out(task: Hard, workspace: Path, replan: int, then: int = 1) -> Run:
    """Run it; ``then`` is how often the planner can be asked once more."""
    turns = (*task.fails, *task.works) if replan else task.fails
    script = {"plan": [task.first, *[task.then] * then], "main": [*turns]}
    budgets = {"replan": replan, "reflect": 0}
    checks = SETTINGS["verification"] | {"commands": [task.check]}
    given = SETTINGS | {"budgets": budgets, "verification": checks}
    return Run(script, workspace=workspace, **given).ask()


def test_there_are_twenty() -> None:
    """Of three kinds."""
    assert len(TASKS) == 20


@pytest.mark.parametrize(
    ("replan", "every"),
    [
        (1, 5),
        pytest.param(0, 1, marks=pytest.mark.long),
        pytest.param(1, 1, marks=pytest.mark.long),
    ],
)
def test_a_new_plan_completes_what_the_first_could_not(
    replan: int, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PL-01b: all of them with one new plan, none of them without."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    ended = []
    for number, task in enumerate(TASKS[::every]):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        ended.append(carried_out(task, workspace, replan).result)

    assert [each.status for each in ended].count("completed") == replan * len(ended)
    assert {len(each.replaced) for each in ended} == {replan}
