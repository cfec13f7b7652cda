"""Hooks see what a run does, change it, or say no; what they do is on record (TL-13)."""

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.parts import memory
from tests.scripted_runs import RecordingModel, Run, call, calls, say, shout, unclosed

from daruma import Deny, HookInput, Settings, UntrustedSettings, build_graph, hook
from daruma.graph.build import PartRefused
from daruma.state.errors import DarumaError
from daruma.state.settings import HookPoint

SHOUTS: Any = [calls(call("shout", "c1", text="hello")), say(), say(), say()]
CONFIRM: Any = {"tools": {"policy": {"shout": "confirm"}}}


def run_with(*hooks: Any, script: Any = SHOUTS, **settings: Any) -> Run:
    given = Settings.model_validate(
        {"fallback_chain": {"recovery": {"wait_seconds": 0}}, **settings}
    )
    model = RecordingModel(script=script)
    graph = build_graph(model, [shout], given, checkpointer=memory(), hooks=hooks)
    run = Run(script, graph=graph)
    run.model = model
    return run


def answering(point: HookPoint, answer: Any, seen: list[HookInput] | None = None) -> Any:
    """A hook that gives an answer, and takes down what it was given."""

    @hook(point)
    async def own(given: HookInput) -> Any:
        if seen is not None:
            seen.append(given)
        return answer

    return own


def results(run: Run) -> list[str]:
    return [each.text for each in run.messages if isinstance(each, ToolMessage)]


def did(run: Run) -> list[tuple[str, str]]:
    """What hooks did: as it was told, which is as it is on record."""
    told = [(each["point"], each["did"]) for each in run.happened("hook_applied")]
    noted = [
        (note.point, note.did)
        for step in run.state.steps
        if step.audit
        for note in step.audit.hooks
    ]
    assert {*noted} <= {*told}
    return told


@pytest.mark.parametrize(
    ("point", "answer", "result", "what"),
    [
        ("before_call", None, "HELLO", []),
        ("before_call", {"text": "bye"}, "BYE", ["changed"]),
        ("before_call", Deny("too loud"), "not run: denied by the hook own: too loud", ["denied"]),
        ("before_call", {"txt": 1}, "invalid_args", ["changed"]),
        ("before_call", 7, "it failed: it answered int", ["failed"]),
        ("before_call", {"text": object()}, "it failed: Object of type object", ["failed"]),
        ("before_call", {1: 2}, "invalid_args", ["changed"]),
        ("before_call", Deny(7), "it failed: the reason", ["failed"]),  # type: ignore[arg-type]
        ("before_call", Deny("no" * 9_000), "denied by the hook own: nono", ["denied"]),
        ("after_call", None, "HELLO", []),
        ("after_call", "quiet", "quiet", ["changed"]),
        ("after_call", Deny("secret"), "withheld: denied by the hook own: secret", ["denied"]),
        ("after_call", 7, "HELLO", ["failed"]),
        ("after_call", Deny(7), "HELLO", ["failed"]),  # type: ignore[arg-type]
    ],
)
def test_a_call_goes_on_is_changed_or_denied(
    point: HookPoint, answer: Any, result: str, what: list[str]
) -> None:
    """TL-11: the model is told the reason, its own message stays, and the step has it on record."""
    seen: list[HookInput] = []
    run = run_with(answering(point, answer, seen)).ask()

    assert result in results(run)[0]
    assert len(results(run)[0]) < 2_000
    assert did(run) == [(point, each) for each in what]
    assert run.result.completed
    (given,) = seen
    assert (given.tool, given.call_id, given.args) == ("shout", "c1", {"text": "hello"})
    assert (given.thread_id, given.task_id) == ("t", run.result.task_id)
    answered = next(each for each in run.messages if isinstance(each, AIMessage))
    assert answered.tool_calls[0]["args"] == {"text": "hello"}
    noted = [each.audit.hooks for each in run.state.steps if each.audit]
    assert len(noted) == len(what)


def test_what_a_hook_left_is_what_a_person_sees_and_what_runs() -> None:
    """TL-13: it is gated anew, and the hook is asked once, however often the gate is come to."""
    seen: list[HookInput] = []
    run = run_with(answering("before_call", {"text": "bye"}, seen), **CONFIRM).ask()
    run.send(None)

    assert run.question.value["approvals"][0]["args"] == {"text": "bye"}
    assert results(run.approve()) == ["BYE"]
    assert "shout bye" in str(run.graph.timeline(run.config))
    assert len(seen) == 1

    rule = {"tools": {"policy": {"shout(text=bye)": "deny"}}}
    denied = run_with(answering("before_call", {"text": "bye"}), **rule).ask()
    assert "denied by policy" in results(denied)[0]
    (told,) = denied.happened("call_refused")
    assert (told["args"], told["reason"]) == ({"text": "bye"}, results(denied)[0])


def test_a_hook_changes_what_it_answers_and_nothing_else() -> None:
    """TL-13: what it is given is its own, so nothing is changed that is neither gated nor told."""

    @hook("before_call")
    async def call(given: HookInput) -> None:
        dict.update(given.args, text="bye")

    @hook("after_model")
    async def message(given: HookInput) -> None:
        assert given.message
        given.message.content = "bye"

    @hook("before_model")
    async def request(given: HookInput) -> None:
        given.messages[-1].content = "bye"

    run = run_with(call, message, request).ask()

    assert (results(run), run.result.output, did(run)) == (["HELLO"], "Done.", [])
    assert "bye" not in str(run.model.requests)

    @hook("before_call")
    async def same(given: HookInput) -> Mapping[str, Any]:
        dict.update(given.args, text="bye")
        return given.args

    told = run_with(same).ask()
    assert (results(told), did(told)) == (["BYE"], [("before_call", "changed")])


def test_what_a_person_edits_is_seen_by_the_hooks_too() -> None:
    """An edit is another call."""

    @hook("before_call", match="sh*")
    async def guard(given: HookInput) -> Deny | None:
        return Deny("no rm") if "rm" in given.args["text"] else None

    run = run_with(guard, **CONFIRM).ask()
    (approval,) = run.question.value["approvals"]
    decision = {"approval_id": "c1", "digest": approval["digest"], "decision": "edit"}
    run.reply({"decisions": [decision | {"args": {"text": "rm"}}]})

    assert results(run) == ["not run: denied by the hook guard: no rm"]


def test_requests_and_answers_of_models() -> None:
    """A request is changed in what is sent alone; a no is a failure that is told."""
    more = [HumanMessage("Only this")]
    nothing = run_with(answering("before_model", ["hi"]), script=[say()]).ask()
    assert (nothing.result.output, did(nothing)) == ("Done.", [("before_model", "failed")])
    sent = run_with(answering("before_model", more), script=[say()]).ask()
    said = run_with(answering("after_model", AIMessage("Other.")), script=[say()]).ask()
    points: tuple[HookPoint, ...] = ("before_model", "after_model")
    denied = [run_with(answering(each, Deny("not today")), script=[say()]).ask() for each in points]

    assert [each.text for each in sent.model.requests[0]] == ["Only this"]
    assert sent.messages[0].text == "Do it"
    assert said.result.output == "Other."
    for run in denied:
        assert run.result.status == "failed"
        assert "denied by the hook own: not today" in run.result.output
        assert unclosed(run.events) == []


@pytest.mark.parametrize("point", ["before_verification", "after_verification"])
def test_a_no_to_a_verification_is_a_red_check(point: HookPoint, tmp_path: Path) -> None:
    """VE-03: the model is told why, and goes on; what is denied for ever is no success."""
    checks = {"verification": {"enabled": True, "commands": ["true"]}}
    run = run_with(answering(point, Deny("no ticket")), script=[say()] * 9, **checks)
    run.ask(workspace=str(tmp_path))

    assert not run.result.completed
    assert "no ticket" in run.model.requests[1][-1].text
    assert unclosed(run.events) == []


def test_the_end_of_a_task_is_told() -> None:
    """What goes wrong with that stands on the result."""
    seen: list[HookInput] = []

    @hook("on_end")
    async def broken(_: HookInput) -> None:
        raise ValueError("no network")

    run = run_with(answering("on_end", None, seen), broken).ask()

    assert [(each.status, each.output) for each in seen] == [("completed", "Done.")]
    assert "the hook broken failed: no network" in run.result.notes


async def raises(_: HookInput) -> None:
    raise ValueError("broken")


async def hangs(_: HookInput) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("function", [raises, hangs])
@pytest.mark.parametrize(
    ("point", "on_error", "runs"),
    [
        ("before_call", None, False),
        ("before_call", "go_on", True),
        ("before_model", None, True),
        ("after_call", None, True),
        ("after_call", "deny", False),
    ],
)
def test_a_hook_that_fails_is_told_and_means_what_was_said(
    function: Any, point: HookPoint, on_error: Any, runs: bool
) -> None:
    """A slow one is ended in its time; what stands before a call denies unless told otherwise."""
    run = run_with(hook(point, timeout=0.01, on_error=on_error)(function)).ask()

    assert (results(run)[0] == "HELLO") is runs
    assert {*did(run)} == {(point, "failed")}
    told = run.happened("hook_applied")[0]
    assert told["reason"] in ("broken", "it did not end in 0.01 s")


def test_hooks_of_a_point_are_asked_in_their_order() -> None:
    """Each sees what the one before it left."""
    seen: list[HookInput] = []
    run = run_with(
        answering("before_call", {"text": "bye"}),
        answering("before_call", None, seen),
        hook("before_call", match="other_*")(raises),
    ).ask()

    assert (seen[0].args, results(run)) == ({"text": "bye"}, ["BYE"])


def test_what_is_no_hook_is_refused() -> None:
    """In one line, when the graph is built."""
    point: Any = "before_lunch"
    with pytest.raises(DarumaError, match="before_lunch"):
        hook(point)(raises)
    for wrong in ({"on_error": "denied"}, {"match": 7}, {"timeout": 0}, {"timeout": "5"}):
        with pytest.raises(DarumaError, match=next(iter(wrong))):
            hook("before_call", **wrong)(raises)
    with pytest.raises(DarumaError, match="async"):
        hook("on_end")(lambda _: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(PartRefused, match="hook"):
        build_graph(RecordingModel(script=[]), hooks=[raises])  # type: ignore[list-item]


# --- Programs of the settings.


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("cat > /dev/null", "HELLO"),
        ("echo 'too loud' >&2; exit 2", "program: too loud"),
        ("""echo '{"deny": "too loud"}'""", "program: too loud"),
        ("""echo '{"args": {"text": "bye"}}'""", "BYE"),
        ("""grep -q '"tool": "shout"' && exit 2""", "program: no reason given"),
        ("exit 3", "it failed: exit code 3"),
        ("echo nothing", "it failed"),
        ("""echo '{"messages": []}'""", "messages can not be changed at before_call"),
        ("""echo '{"args": null}'""", "it failed"),
        ("sleep 60 & sleep 60", "it failed"),
    ],
)
def test_a_program_is_asked(tmp_path: Path, body: str, result: str) -> None:
    """As Claude Code asks its own: JSON on standard input, exit code 2 says no."""
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "work").mkdir()
    asked = {"run": [str(program)], "match": "shout", "timeout": 0.5}
    run = run_with(hooks={"before_call": [asked]}).ask(workspace=str(tmp_path / "work"))

    assert result in results(run)[0]


@pytest.mark.long
def test_what_a_program_has_started_ends_with_its_time(tmp_path: Path) -> None:
    """SE-07: it could fill the disk for ever after."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    body = f"(echo $$; exec sleep 60) > {pipe} & sleep 60"
    asked = {"run": ["/bin/sh", "-c", body], "match": "shout", "timeout": 0.5}
    heard: list[bytes] = []
    reading = Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reading.start()
    run = run_with(hooks={"before_call": [asked]}).ask(workspace=str(tmp_path))

    assert "it failed" in results(run)[0]
    reading.join(5)  # who writes has ended
    assert heard


def test_no_program_of_the_workspace_is_a_hook(tmp_path: Path) -> None:
    """SE-01, SE-02: nor do a folder's settings bring one along that nobody has trusted."""
    program = tmp_path / "guard"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    own: Mapping[str, Any] = {"before_call": [{"run": [str(program)]}]}
    run = run_with(hooks=own).ask(workspace=str(tmp_path))
    file = tmp_path / "daruma.yaml"
    file.write_text("hooks: {before_call: [{run: [id]}]}\n")

    assert "there is no program" in results(run)[0]
    with pytest.raises(UntrustedSettings, match=r"hooks\.before_call"):
        Settings.load(str(file))
