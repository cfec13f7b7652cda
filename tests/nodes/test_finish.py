"""A task ends with one result, and with a history in which every call is answered."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.parts import (
    GREEN,
    RED,
    a_context,
    a_failure,
    a_phase,
    a_plan,
    a_recovery,
    a_state,
    a_task,
    calling,
    settings,
    taken,
)
from tests.scripted_runs import illegal

from daruma.nodes.finish import finish
from daruma.state.channels import Update
from daruma.state.emergency import emergency_of
from daruma.state.events import Event, TaskCompleted
from daruma.state.result import Structured, TaskResult
from daruma.state.savepoint import Drifted, Savepoint
from daruma.state.steps import Audit
from daruma.state.task import Status
from daruma.state.verification import Check, Verification

ERROR = emergency_of(a_failure())
ANSWERED = [HumanMessage("Do it"), AIMessage("Done.")]


async def end(**values: Any) -> Update:
    return await finish(a_state(**{"messages": ANSWERED} | values), a_context())


async def result(**values: Any) -> TaskResult:
    found = (await end(**values))["result"]
    assert found is not None
    return found


def fallen(outcome: Status) -> Any:
    phase = a_phase("a", status="failed", outcome=outcome, failure=a_failure())
    other = a_phase("b", status="completed", outcome="completed")
    return replace(a_plan(phase, other), first_failed="a")


async def test_a_completed_task_says_the_answer() -> None:
    """MO-07: nothing is added to the history."""
    update = await end()

    assert (await result()).status == "completed"
    assert (await result()).output == "Done."
    assert update["messages"] == []


@pytest.mark.parametrize(
    ("values", "status", "output"),
    [
        ({"messages": [], "verification": GREEN}, "max_steps_exceeded", "Stopped: exceeded "),
        ({"messages": []}, "max_steps_exceeded", "Stopped: exceeded budgets.max_steps (3)."),
        ({"failure": a_failure(), "error": ERROR}, "failed", "The task ended as failed: broken"),
        (
            {"failure": a_failure("approval_denied"), "error": ERROR},
            "blocked",
            "The task ended as blocked: broken",
        ),
        (
            {"plan": fallen("gave_up_after_reflections"), "error": ERROR},
            "gave_up_after_reflections",
            "The task ended as gave_up_after_reflections: broken",
        ),
        ({"plan": fallen("blocked"), "error": ERROR}, "blocked", "The task ended as blocked: "),
        ({"error": ERROR}, "failed", "The task ended as failed: broken"),
    ],
)
async def test_every_ending_says_what_it_is(
    values: dict[str, Any], status: Status, output: str
) -> None:
    """MO-08: the status and the words belong together."""
    found = await result(**values)

    assert found.status == status
    assert found.output.startswith(output)
    assert found.completed == (status == "completed")


async def test_an_ending_without_an_answer_is_said_in_the_history() -> None:
    """The last message is the output, whatever it is."""
    update = await end(failure=a_failure(), error=ERROR)

    assert update["messages"][-1].text == "The task ended as failed: broken"
    assert update["messages"][-1].id == "t/1:end"


async def test_open_calls_are_answered_before_the_end() -> None:
    """TL-03."""
    answer = calling("shout", "shout", text="x")
    history = [HumanMessage("Do it"), answer.model_copy(update={"id": "m1"})]
    update = await end(messages=history, failure=a_failure("approval_denied"), error=ERROR)

    assert illegal([*history, *update["messages"]]) == []
    assert [m.type for m in update["messages"]] == ["tool", "tool", "ai"]


async def test_the_result_holds_what_was_spent() -> None:
    """MO-07: of this task only; the total runs from its start to the clock's now, 100 s."""
    steps = [*taken("think", "think", "verify"), *taken("think", task="t/0")]
    left = Structured(schema={}, value={"of": "another task"})
    found = await result(steps=steps, task=a_task(started_at=40.0), error=ERROR, structured=left)

    assert (found.task_id, found.structured) == ("t/1", None)
    idle = ("plan", "repair", "reflect", "recover", "consult", "compress", "summarise", "intake")
    spent = dict.fromkeys((*idle, "tool", "pause", "structure"), 0) | {"think": 2, "verify": 1}
    assert found.budgets == spent
    assert found.timings["total"] == 60.0
    assert found.error_struct == ERROR
    assert found.error_message == ERROR.to_error_message()


async def test_what_a_reader_must_know_is_noted() -> None:
    """RO-07: an empty verification; what others changed, in this task only; a bad savepoint."""
    bad = Savepoint(
        id="1/a", task_id="t/1", when="phase", workspace="/w", snapshot=None, note="full", at=0.0
    )
    found = await result(
        verification=Verification(note="nothing run"),
        drifted=Drifted(task_id="t/1", paths=("a.py", "b.py")),
        savepoints=[bad, replace(bad, task_id="t/0", note="old")],
    )

    assert (await result(drifted=Drifted(task_id="t/0", paths=("a.py",)))).notes == ()
    assert found.notes == (
        "nothing run",
        "files that somebody else changed meanwhile: a.py, b.py",
        "savepoint 1/a: full",
    )


async def test_the_end_is_told() -> None:
    """PL-04: it closes the start."""
    events: list[Event] = []
    await finish(a_state(messages=ANSWERED), a_context(events=events))

    told = TaskCompleted(
        task_id="t/1", status="completed", output="Done.", headline="completed, not checked"
    )
    assert events == [told]


async def test_what_was_checked_is_that_of_the_phase_that_failed() -> None:
    """The result does not contradict its status, and no note is lost."""
    bare = Verification(
        checks=(Check(command="pytest", passed=True, exit_code=5, note="no tests"),)
    )
    red = a_phase("a", status="failed", outcome="failed", failure=a_failure(), verification=RED)
    other = a_phase("b", status="completed", outcome="completed", verification=bare)
    plan = replace(a_plan(red, other), first_failed="a")
    ended = await result(plan=plan, verification=GREEN, error=ERROR)

    assert ended.verification == RED
    assert "pytest: no tests" in ended.notes


def checked(**how: Any) -> Verification:
    return Verification(checks=(Check(command="x", passed=True, exit_code=0, **how),))


def ran(task_id: str, **how: Any) -> ToolMessage:
    id_ = f"{task_id}:answer:0:c1"
    return ToolMessage("exit code: 0", id=id_, name="run_command", tool_call_id="c1", **how)


OPEN = a_phase(
    "a",
    status="completed",
    outcome="completed",
    verification=checked(sandbox="landlock", not_covered=("modes",)),
)
FULL = checked(sandbox="namespace")
LANDLOCK = "commands ran at sandbox level landlock, not covered: modes"


@pytest.mark.parametrize(
    ("values", "level", "noted"),
    [
        ({"verification": FULL, "plan": a_plan(OPEN)}, "landlock", LANDLOCK),
        ({"verification": FULL}, "namespace", ""),
        ({}, None, ""),
        ({"messages": [ran("t/1"), *ANSWERED]}, "none", "commands ran at sandbox level none"),
        ({"messages": [ran("t/10"), ran("t/1", status="error"), *ANSWERED]}, None, ""),
    ],
    ids=["the weakest", "a full one", "no command", "the model's", "another task's, or not run"],
)
async def test_the_result_says_at_which_level_commands_ran(
    values: dict[str, Any], level: str | None, noted: str
) -> None:
    """SA-01: the weakest, with what it leaves open; nothing is opened only to be told."""
    found = await result(task=a_task(workspace="/w"), **values)

    assert found.sandbox == level
    assert [note[: len(noted)] for note in found.notes if "sandbox" in note] == [noted][
        : bool(noted)
    ]


@pytest.mark.parametrize(
    ("values", "output"),
    [
        ({"messages": []}, "超出步数限制：Stopped: exceeded budgets.max_steps (3)."),
        ({"failure": a_failure(), "error": ERROR}, "任务以 failed 结束：broken"),
        ({}, "Done."),
    ],
)
async def test_the_fixed_sentences_come_in_chinese_too(values: dict[str, Any], output: str) -> None:
    """EM-03: what the model said stays as it is."""
    chinese = settings(fallback_chain={"emergency": {"language": "zh"}})
    state = a_state(**{"messages": ANSWERED} | values)
    ended = (await finish(state, a_context(given=chinese)))["result"]

    assert ended is not None
    assert ended.output == output


@pytest.mark.parametrize("off", [{"enabled": False}, {"emergency": {"enabled": False}}])
async def test_without_emergency_there_is_no_structured_error(off: dict[str, Any]) -> None:
    """EM-05 and MO-07: what went wrong is told in words all the same."""
    given = settings(fallback_chain=off)
    state = a_state(messages=ANSWERED, failure=a_failure(), error=ERROR)
    ended = (await finish(state, a_context(given=given)))["result"]

    assert ended is not None
    assert (ended.status, ended.error_struct) == ("failed", None)
    assert ended.error_message
    assert "error_struct" not in ended.to_dict()


async def test_a_recovery_of_what_came_again_did_not_work() -> None:
    """RE-08: although work went on in between."""
    failure = a_failure()
    recovered = taken("recover", signature=failure.signature, recovery=a_recovery())
    steps = [*recovered, *taken("think")]

    (again,) = (await result(steps=steps, failure=failure, error=ERROR)).recoveries
    (gone,) = (await result(steps=steps)).recoveries
    assert (again.worked, gone.worked) == (False, True)


async def test_the_audit_of_every_step_is_in_the_result() -> None:
    """TL-11 and TL-17: of the task at hand, in order."""
    audits = [Audit(message_id=f"t/1:answer:{n}", names_cut=True) for n in range(2)]
    steps = [taken("think", audit=each)[0] for each in audits]
    other = taken("think", task="t/0", audit=audits[0])

    assert (await result(steps=[*other, *steps, *taken("verify")])).audit == tuple(audits)
