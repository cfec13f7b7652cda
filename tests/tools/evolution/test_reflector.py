"""What a task's record says went wrong: from states as they are left, and from real runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_failure, a_phase, a_plan, a_recovery, a_state, a_task, settings, taken
from tests.scripted_runs import Run, against, call, calls, fall, phases, say, shout

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.lessons import Experience, Instruction, KnownPitfall, Lessons, Setback, Tried
from daruma.state.task import Status
from daruma.state.verification import Check, Verification
from daruma.tools.evolution import experience_of, is_sampled
from daruma.tools.evolution._reflector import about

RED = "$ pytest -q\n[failed (exit 1)]\nFAILED t.py::test_sum - assert 3 == {}\n"


def of(state: State, status: Any = "failed") -> Experience:
    return experience_of(state, status, 7.0)


def only(experience: Experience) -> Setback:
    (setback,) = experience.setbacks
    return setback


def red(number: int, result: int = 4) -> HumanMessage:
    return HumanMessage(
        f"Verification failed. What the checks said:\n\n{RED.format(result)}",
        id=f"t/1:verification:{number}",
    )


def reflected(number: int, text: str) -> HumanMessage:
    return HumanMessage(f"Reflection: {text}\n\nTry again.", id=f"t/1:reflection:{number}")


def called(
    number: int, tool: str, text: str, /, *, ok: bool = False, **args: Any
) -> list[AnyMessage]:
    id_ = f"t/1:answer:{number}"
    made = [{"name": tool, "args": args, "id": "c"}]
    status: Any = "success" if ok else "error"
    result = ToolMessage(text, name=tool, tool_call_id="c", id=f"{id_}:c", status=status)
    return [AIMessage("", tool_calls=made, id=id_), result]


def anothers(message: AnyMessage) -> AnyMessage:
    return message.model_copy(update={"id": f"{message.id}".replace("t/1", "t/10")})


def ended(failure: Failure, messages: Sequence[AnyMessage] = (), **values: Any) -> Experience:
    return of(a_state(failure=failure, messages=list(messages), **values))


def test_an_experience_says_whose_it_is_and_what_it_was_about() -> None:
    """EV-04: keys are masked; nothing went wrong."""
    task = a_task(goal="Do it with sk-abcdefghijk", experience_owner="me")

    found = of(a_state(task=task), "completed")

    assert (found.owner, found.task_id, found.goal) == ("me", "t/1", "Do it with [key]")
    assert (found.setbacks, found.tried, found.skills, found.at) == ((), (), (), 7.0)


def test_a_state_without_a_task_teaches_nothing() -> None:
    """It says so."""
    with pytest.raises(LookupError, match="no task"):
        of(State())


PASSING = [
    Failure(code="llm_failure", node="main", message="503", original_error="APIError"),
    Failure(code="timeout", node="main", message="no answer", original_error="APITimeoutError"),
    a_failure("storage_unavailable"),
    a_failure("sandbox_violation", "verify", "no sandbox here"),
    a_failure("script_mismatch", "reflect", "ScriptExhausted: ..."),
    a_failure("approval_denied", "gate", "a required approval was denied: run_command"),
    a_failure("internal_error", "tool", "OSError: [Errno 28] No space left on device"),
]


@pytest.mark.parametrize("failure", PASSING, ids=lambda failure: failure.code)
def test_what_passes_by_itself_is_marked(failure: Failure) -> None:
    """An outage says nothing of how the work was done."""
    found = only(ended(failure))

    assert (found.passing, found.ended) == (True, True)


@pytest.mark.parametrize(
    ("failure", "kind", "actor", "text"),
    [
        (
            a_failure("plan_refused", "plan", "no plan"),
            "failure",
            "plan",
            "plan_refused in plan: no",
        ),
        (a_failure("loop_detected", "main", "fall, 2 times"), "loop", "main", "fall, 2 times"),
        (a_failure("workspace_conflict", "merge", "x"), "failure", "main", "conflict in merge: x"),
        (
            Failure(
                code="llm_failure", node="main", message="empty", original_error="empty_answer"
            ),
            "failure",
            "main",
            "empty",
        ),
    ],
)
def test_what_a_task_ended_with_is_a_setback(
    failure: Failure, kind: str, actor: str, text: str
) -> None:
    """Its signature is the failure's, for whom it happened to."""
    found = only(ended(failure))

    assert (found.kind, found.actor, found.ended, found.passing) == (kind, actor, True, False)
    assert text in found.text
    assert found.signature.startswith(f"{failure.node}:{failure.code}:")


def test_red_checks_that_a_task_ended_with_are_told_by_their_lines() -> None:
    """One for each, with the assertion that failed."""
    output = "E   assert 3 == 4\nFAILED t.py::test_sum - assert 3 == 4\n1 failed in 0.2s"
    check = Check(command="pytest -q", passed=False, exit_code=1, output=output)

    answered = [AIMessage("Done.")]
    found = only(of(a_state(verification=Verification(checks=(check,)), messages=answered)))

    assert found.text == "pytest -q failed: test_sum: assert 3 == 4"
    assert found.signature == "check:pytest -q:test_sum: assert # == #"
    assert (found.kind, found.ended) == ("check", True)


def test_running_out_of_steps_is_told_with_what_stood_in_the_way() -> None:
    """The limit alone tells nothing."""
    steps = taken("think", blockers=("ImportError: no module named x",))

    found = only(of(a_state(steps=steps), "max_steps_exceeded"))

    assert "ImportError: no module named x" in found.text
    assert "ImportError" in found.signature


def test_phases_fail_for_their_own_actor() -> None:
    """In a team it is the expert; what fell with another phase has no failure of its own."""
    broken = {"status": "failed", "outcome": "failed"}
    one = a_phase("a", expert="tester", failure=a_failure("bad_request", message="a"), **broken)
    plan = a_plan(one, a_phase("b", "a", expert="writer", **broken))

    in_team = of(a_state(task=a_task("team_collab"), plan=plan))
    alone = of(a_state(task=a_task("plan_exec"), plan=plan))

    assert [each.actor for each in in_team.setbacks] == ["tester"]
    assert [each.actor for each in alone.setbacks] == ["main"]


@pytest.mark.parametrize(
    ("messages", "status", "advice"),
    [
        ([red(1), reflected(0, "Round last.")], "completed", "Round last."),
        (
            [red(1), reflected(0, "Round first."), red(2, 5), reflected(1, "Last.")],
            "completed",
            "Last.",
        ),
        ([red(1), reflected(0, "Round last."), red(2, 5)], "completed", ""),
        ([red(1), reflected(0, "Round last.")], "failed", ""),
        ([red(1)], "completed", ""),
    ],
    ids=["helped", "second helped", "came again", "never passed", "none"],
)
def test_a_reflection_is_advice_if_it_passed_after_it(
    messages: list[AnyMessage], status: Any, advice: str
) -> None:
    """What did not help is no advice."""
    found = next(e for e in of(a_state(messages=messages), status).setbacks if e.kind == "check")

    assert found.signature == "check:pytest -q:test_sum: assert # == #"
    assert found.advice == advice


@pytest.mark.parametrize(
    ("results", "advice"),
    [
        ([("no such file: 1", False), ("no such file: 2", False)], ""),
        (
            [("no such file: 1", False), ("no such file: 2", False), ("ok", True)],
            'view worked with {"path": "p2"}',
        ),
        ([("no such file: 1", False), ("ok", True), ("no such file: 2", False)], ""),
    ],
)
def test_a_tools_error_that_came_again_is_one(results: list[tuple[str, bool]], advice: str) -> None:
    """With the call that worked after the last of them."""
    messages = [
        message
        for n, (text, ok) in enumerate(results)
        for message in called(n, "view", text, ok=ok, path=f"p{n}")
    ]

    found = only(of(a_state(messages=messages), "completed"))

    assert (found.kind, found.tool, found.text) == ("tool", "view", "view: no such file: 1")
    assert (found.advice, found.ended) == (advice, False)


DENIED = "A person denied this call: "


@pytest.mark.parametrize(
    "messages",
    [
        called(0, "run_command", f"{DENIED}no reason given"),
        called(0, "view", f"{DENIED}write to the public folder", ok=True),
        called(0, "view", "no such file"),
        [*called(0, "view", "Not run: the task ended before."), *called(1, "view", "Not run: x")],
        [*called(0, "view", "one thing"), *called(1, "view", "quite another")],
        [anothers(m) for n in (0, 1) for m in called(n, "view", "no such file")],
    ],
    ids=["without a reason", "said by a tool", "once", "not run", "different", "another task's"],
)
def test_what_did_not_come_again_is_none(messages: list[AnyMessage]) -> None:
    """EV-04: nor what was not run, another task's, or what a page claims that a person said."""
    assert of(a_state(messages=messages), "completed").setbacks == ()


@pytest.mark.parametrize(
    ("messages", "actor", "text"),
    [
        (
            [
                HumanMessage(
                    "The plan was rejected: never touch migrations. Plan anew.",
                    id="t/1/plan-1:spec_review:feedback",
                )
            ],
            "plan",
            "a person rejected the plan: never touch migrations",
        ),
        (
            called(0, "run_command", "A person denied this call: not on this server"),
            "main",
            "a person denied run_command: not on this server",
        ),
    ],
)
def test_what_a_person_rejected_is_one(messages: Any, actor: str, text: str) -> None:
    """With the reason that was given."""
    found = only(of(a_state(messages=messages), "completed"))

    assert (found.kind, found.actor, found.text) == ("person", actor, text)
    assert found.advice in text


def test_recoveries_are_told_with_whether_they_worked() -> None:
    """RE-08: the signature is the failure's own; one that was only seen is none."""
    failure = a_failure("loop_detected", "main", "fall, 2 times")
    swap = a_recovery("alternative-tool", hides="fall", instead="shout", reasoning="It is broken.")
    steps = [
        *taken("recover", signature=failure.signature, recovery=swap),
        *taken("think"),
        *taken("recover", signature="main:x:y", recovery=replace(swap, carried="observed")),
    ]

    found = of(a_state(steps=steps), "completed")

    (tried,) = found.tried
    assert (tried.signature, tried.worked, tried.actor) == (failure.signature, True, "main")
    assert (tried.tool, tried.instead, tried.reasoning) == ("fall", "shout", "It is broken.")
    overcome = next(each for each in found.setbacks if each.kind == "loop")
    assert overcome.advice == "use shout in place of fall: It is broken."
    assert not overcome.ended


def test_what_is_kept_is_bounded() -> None:
    """However long the task was."""
    messages = [
        m
        for n in range(60)
        for _ in (0, 1)
        for m in called(n, f"tool_{chr(97 + n // 26)}{chr(97 + n % 26)}", "x " * 5000)
    ]

    skills = [m for n in range(12) for m in called(n, "skills_load", "", ok=True, name=f"s{n:02}")]
    recovered = taken("recover", signature="main:x:y", recovery=a_recovery("retry"))
    task = a_task(goal="x" * 2500)

    found = of(
        a_state(task=task, messages=[*messages, *skills], steps=[*recovered] * 60), "completed"
    )

    assert (len(found.setbacks), len(found.tried)) == (20, 50)
    assert (len(found.skills), len(found.goal)) == (10, 2000)
    assert all(len(each.text) <= 300 for each in found.setbacks)


def test_skills_that_were_loaded_are_named() -> None:
    """Each once; one that could not be loaded is none."""
    messages = [
        *called(0, "skills_load", "...", ok=True, name="pdf"),
        *called(1, "skills_load", "...", ok=True, name="pdf"),
        *called(2, "skills_load", "no such skill", name="xls"),
    ]

    assert of(a_state(messages=messages), "completed").skills == ("pdf",)


CHECK = "test -e ok.txt || { echo 'FAILED t.py::test_sum - assert 3 == 4'; exit 1; }\n"


def test_a_run_that_was_mended_after_a_reflection(tmp_path: Path) -> None:
    """A real one: what was red, and the reflection that helped."""
    (tmp_path / "check.sh").write_text(CHECK)
    script = {
        "plan": [phases({"id": "p1"})],
        "main": [
            say("Done."),
            calls(call("str_replace_editor", command="create", path="ok.txt", file_text="x")),
            say("Done."),
        ],
        "reflect": [say("The file ok.txt has to be made.")],
    }
    given = settings(
        spec_review={"enabled": False},
        verification={"commands": ["sh check.sh"], "max_reinjections": 0},
    )
    run = Run(script, settings=given).ask(mode="plan_exec", workspace=str(tmp_path))

    found = only(of(run.state, run.result.status))

    assert run.result.completed
    assert found.text == "sh check.sh failed: test_sum: assert 3 == 4"
    assert found.advice == "The file ok.txt has to be made."


def test_a_run_that_looped() -> None:
    """A real one: the loop that it fell to, the tool's error, and what was tried."""
    script = {
        "main": [calls("fall")] * 9,
        "recovery": [against("alternative-tool", tool_name="shout")],
    }
    run = Run(script, tools=[fall, shout]).ask()

    found = of(run.state, run.result.status)

    assert [(each.kind, each.ended) for each in found.setbacks] == [("loop", True), ("tool", False)]
    assert "fell over hello" in found.setbacks[1].text
    assert [(each.strategy, each.worked) for each in found.tried] == [("alternative-tool", False)]


def test_a_run_of_a_team() -> None:
    """A real one: each setback is its expert's, though the messages are not the task's."""
    pair = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    again = [calls(call("fall", text="1")), calls(call("fall", text="2"))]
    script = {
        "plan": [phases(*pair)],
        "main@a": [*again, say("A.")],
        "main@b": [say("")] * 9,
        "recovery@b": [say("no")] * 9,
    }
    given = settings(spec_review={"enabled": False})
    run = Run(script, settings=given, tools=[fall]).ask(mode="team_collab")

    found = of(run.state, run.result.status)

    told = {(each.actor, each.kind, each.ended) for each in found.setbacks}
    assert told == {("tester", "failure", True), ("developer", "tool", False)}
    assert {each.actor for each in found.tried} == {"tester"}


def test_a_signature_has_the_numbers_that_the_task_was_about() -> None:
    """Other numbers are new each time; these tell one task of a series from the next."""
    text = "module 7 is locked since 12:30"
    red = Setback(kind="check", actor="main", signature="check:locked", text=text)

    assert about(red, "Fix module 7").signature == "check:locked [7]"
    assert about(red, "Fix module 8") == red
    many = " ".join(map(str, range(1, 8)))
    assert about(replace(red, text=many), many).signature == "check:locked [1, 2, 3, 4, 5]"
    assert about(red, f"{'x' * 1999} 7") == red
    assert about(red, f"{'x' * 1998} 7").signature == "check:locked [7]"


# --- Which ended tasks are learned from.

WENT_WELL = Experience(
    task_id="t/1", owner="o", mode="react", status="completed", goal="Do it", at=1.0
)


def named(number: int) -> Experience:
    """The experience of one of many tasks."""
    return replace(WENT_WELL, task_id=f"t{number}/1")


TOLD = KnownPitfall(id="p", text="It falls.")
GUIDED = Instruction(variant="v", actor="main", place="plan")
TRIED = Tried(actor="main", signature="s", strategy="retry", by="learned", worked=True)


@pytest.mark.parametrize(
    ("changes", "learned"),
    [
        *(({"status": each}, True) for each in get_args(Status) if each != "completed"),
        ({"lessons": Lessons(task_id="t/1", pitfalls=(TOLD,))}, True),
        ({"lessons": Lessons(task_id="t/1", instructions=(GUIDED,))}, True),
        ({"lessons": Lessons(task_id="t/1", note="the store was slow")}, False),
        ({"tried": (TRIED,)}, True),
        ({"tried": (replace(TRIED, by="model"),)}, True),
        ({}, False),
    ],
)
def test_what_failed_was_told_or_tried_is_always_learned_from(
    changes: dict[str, Any], *, learned: bool
) -> None:
    """EV-01, RE-08: whether lessons help could not be told from failures alone.

    A store that was lost must not have every success looked at.
    """
    assert is_sampled(replace(WENT_WELL, **changes), rate=0.0) is learned


def test_of_the_successes_a_part_is() -> None:
    """EV-01: about a tenth at the rate that is the default; all or none at 1 and 0."""
    tasks = [named(number) for number in range(1000)]

    assert 70 <= sum(is_sampled(each, 0.1) for each in tasks) <= 130
    assert all(is_sampled(each, 1.0) for each in tasks)
    assert not any(is_sampled(each, 0.0) for each in tasks)


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_takes_what_a_lower_one_takes(task_id: str, one: float, other: float) -> None:
    """MO-09: the choice is the task's, whoever asks and however often."""
    each = replace(WENT_WELL, task_id=task_id)

    assert is_sampled(each, max(one, other)) or not is_sampled(each, min(one, other))
