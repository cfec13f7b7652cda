"""A team at work: members in worktrees of their own, merged, in conflict, failing, killed."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.parts import memory, settings
from tests.scripted_runs import Run, call, calls, phases, say, shout, unclosed

from daruma.graph.build import build_graph
from daruma.state.result import TaskResult

BASE = "".join(f"line {n}\n" for n in range(1, 11))
PAIR = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
THIRD = {"id": "c", "expert": "writer", "depends_on": ["a", "b"]}


@pytest.fixture(params=["git", "no git"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "shared.txt").write_text(BASE)
    (work / "notes.txt").write_text("untracked\n")
    if request.param == "git":
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(work)]
        for arguments in (["init", "-q"], ["add", "shared.txt"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *arguments], check=True)
    return work


def edit(old: str, new: str) -> dict[str, Any]:
    args = {"command": "str_replace", "path": "shared.txt", "old_str": old, "new_str": new}
    return calls(call("str_replace_editor", **args))


def create(path: str, text: str) -> dict[str, Any]:
    return calls(call("str_replace_editor", command="create", path=path, file_text=text))


def write(command: str) -> dict[str, Any]:
    return calls(call("run_command", command=command))


def team(workspace: Path | None, script: dict[str, Any], *, checks: tuple[str, ...] = ()) -> Run:
    given = settings(
        spec_review={"enabled": False},
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": checks},
    )
    work = {"workspace": str(workspace)} if workspace else {}
    return Run(script, settings=given).ask(mode="team_collab", **work)


def outcomes(run: Run) -> dict[str, str]:
    return {phase.id: phase.status for phase in run.result.phases}


def files(workspace: Path) -> dict[str, str]:
    found = (p for p in workspace.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(path.relative_to(workspace)): path.read_text() for path in found}


@pytest.mark.sampled(1)
def test_members_work_side_by_side_and_are_merged(workspace: Path) -> None:
    """PL-06: each in a worktree of its own; who depends on them sees what both did."""
    script = {
        "plan": [phases(*PAIR, THIRD)],
        "main@a": [edit("line 1\n", "line one\n"), create("a.txt", "A = 1\n"), say("A is there.")],
        "main@b": [edit("line 10\n", "line ten\n"), write("rm notes.txt; mkdir -p d"), say("B.")],
        "main@c": [
            {**write("cat shared.txt a.txt > all.txt"), "expect": ["A is there.", "B."]},
            say("Put together."),
        ],
    }
    run = team(workspace, script)

    assert outcomes(run) == {"a": "completed", "b": "completed", "c": "completed"}
    merged = BASE.replace("line 1\n", "line one\n").replace("line 10\n", "line ten\n")
    expected = {"shared.txt": merged, "a.txt": "A = 1\n", "all.txt": merged + "A = 1\n"}
    assert files(workspace) == expected
    assert (workspace / "d").is_dir()
    assert run.result.output.endswith("Put together.")
    assert run.result.budgets["think"] == 8
    assert unclosed(run.events) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("last", ["Done.", ""], ids=["completed", "failed"])
def test_what_a_person_changes_meanwhile_is_not_taken_for_the_work(
    workspace: Path, last: str
) -> None:
    """Members work elsewhere: what else changes in the workspace is somebody else's, and stays."""

    def change() -> str:
        """Be the person."""
        (workspace / "notes.txt").write_text("changed by a person\n")
        (workspace / "new.txt").write_text("made by a person\n")
        return "changed"

    script = {
        "plan": [phases(*PAIR)],
        "main@a": [create("a.txt", "A = 1\n"), calls({"name": "change", "args": {}}), say(last)],
        "main@b": [create("b.txt", "B = 1\n"), say(last)],
        "recovery": [say("no")],
    }
    given = settings(spec_review={"enabled": False}, verification={"enabled": False})
    run = Run(script, settings=given, tools=[change])
    run.ask(mode="team_collab", workspace=str(workspace))

    restored = run.graph.undo(run.config)

    assert restored.kept == ("new.txt", "notes.txt")
    assert files(workspace) == {
        "shared.txt": BASE,
        "notes.txt": "changed by a person\n",
        "new.txt": "made by a person\n",
    }


@pytest.mark.long
def test_a_conflict_that_is_not_settled_fails_what_depends_on_it(workspace: Path) -> None:
    """PL-05: the work in conflict never reached the workspace, and the result says what failed."""
    script = {
        "plan": [phases(*PAIR, THIRD)],
        "main@a": [edit("line 5\n", "from a\n"), say("A.")],
        "main@b": [edit("line 5\n", "from b\n"), say("B.")],
        "main@b-merge": [say("")],
        "recovery@b-merge": [say("no")],
    }
    run = team(workspace, script)

    assert outcomes(run) == {
        "a": "completed",
        "b": "completed",
        "b-merge": "failed",
        "c": "failed",
    }
    assert files(workspace)["shared.txt"] == BASE.replace("line 5\n", "from a\n")
    assert run.result.status == "failed"


@pytest.mark.long
def test_an_expert_that_fails_fails_only_what_needs_it(workspace: Path) -> None:
    """PL-05: its worktree is not merged; the other's is."""
    script = {
        "plan": [phases(*PAIR, THIRD, {"id": "d", "expert": "writer", "depends_on": ["a"]})],
        "main@a": [create("a.txt", "A = 1\n"), say("A.")],
        "main@b": [create("b.txt", "B = 1\n"), say("")],
        "recovery@b": [say("no")],
        "main@d": [say("D.")],
    }
    run = team(workspace, script)

    assert outcomes(run) == {"a": "completed", "b": "failed", "c": "failed", "d": "completed"}
    assert "a.txt" in files(workspace)
    assert "b.txt" not in files(workspace)
    assert run.result.status == "failed"
    (failed,) = run.happened("phase_failed")
    assert (failed["phase_id"], failed["fallen"]) == ("b", ("c",))


@pytest.mark.long
def test_when_all_fail_the_task_has_failed(workspace: Path) -> None:
    """MO-06: nothing falls back to another way of working."""
    before = files(workspace)
    script = {
        "plan": [phases(*PAIR)],
        "main": [create("x.txt", "X = 1\n"), say("")],
        "recovery": [say("no")],
    }
    run = team(workspace, script)

    assert outcomes(run) == {"a": "failed", "b": "failed"}
    assert run.result.status == "failed"
    assert run.result.error_struct is not None
    assert files(workspace) == before


@pytest.mark.long
def test_work_that_fits_and_fails_together_is_settled(workspace: Path) -> None:
    """What is right on each side may be wrong together: the checks run on the whole."""
    check = "! { test -e a.txt && test -e b.txt; } || test -e both.txt"
    script = {
        "plan": [phases(*PAIR)],
        "main@a": [create("a.txt", "a\n"), say("A.")],
        "main@b": [create("b.txt", "b\n"), say("B.")],
        "main@b-merge": [{**create("both.txt", ""), "expect": ["checks of the whole fail"]}, say()],
    }
    run = team(workspace, script, checks=(check,))

    assert outcomes(run) == {"a": "completed", "b": "completed", "b-merge": "completed"}
    assert run.result.status == "completed"
    assert {"a.txt", "b.txt", "both.txt"} <= files(workspace).keys()


def test_without_a_workspace_members_only_talk() -> None:
    """A team may have nothing to change."""
    run = team(None, {"plan": [phases(*PAIR)], "main@a": [say("A.")], "main@b": [say("B.")]})

    assert run.result.status == "completed"
    assert "A." in run.result.output
    assert "B." in run.result.output


def test_without_snapshots_a_team_has_no_worktrees(workspace: Path) -> None:
    """MO-06: that is said, and nobody works in the workspace itself."""
    given = settings(spec_review={"enabled": False}, rollback={"snapshots": False})
    script = {"plan": [phases(*PAIR)], "main": [create("x.txt", "X = 1\n"), say()]}
    run = Run(script, settings=given).ask(mode="team_collab", workspace=str(workspace))

    assert run.result.status == "failed"
    assert "rollback.snapshots" in (run.result.error_message or "")
    assert "x.txt" not in files(workspace)


@pytest.mark.long
def test_what_failed_is_tried_again_alone(workspace: Path) -> None:
    """TL-23: what the others did stays, and is not done twice."""
    script = {
        "plan": [phases(*PAIR, THIRD)],
        "main@a": [create("a.txt", "A = 1\n"), say("A.")],
        "main@b": [{"raise": "down"}, {"raise": "down"}, create("b.txt", "B = 1\n"), say("B.")],
        "main@c": [say("C.")],
        "recovery@b": [say("no")],
    }
    run = team(workspace, script)
    assert outcomes(run) == {"a": "completed", "b": "failed", "c": "failed"}
    mended = Run({**script, "main@b": [create("b.txt", "B = 1\n"), say("B.")]}).model
    run.graph = build_graph(
        mended,
        settings=settings(spec_review={"enabled": False}),
        checkpointer=run.graph.checkpointer,
    )

    run.graph.reopen(run.config)
    run.send(None)

    assert outcomes(run) == {"a": "completed", "b": "completed", "c": "completed"}
    assert run.result.status == "completed"
    assert {"a.txt", "b.txt"} <= files(workspace).keys()
    assert [event["phase_id"] for event in run.happened("member_started")] == ["a", "b", "b", "c"]


@pytest.mark.sampled(1)
def test_a_member_rolls_back_in_its_own_worktree(workspace: Path) -> None:
    """RO-06: to how that was drawn; nobody has to be asked."""
    before = files(workspace)
    script = {
        "plan": [phases({"id": "a", "expert": "developer", "rollback": "snapshot"}, PAIR[1])],
        "main@a": [create("a.txt", "A = 1\n"), say("")],
        "recovery@a": [say("no")],
        "main@b": [say("B.")],
    }
    run = team(workspace, script)

    assert outcomes(run) == {"a": "failed", "b": "completed"}
    (undone,) = run.happened("phase_rollback_completed")
    assert (undone["phase_id"], undone["exact"], undone["member"]) == ("a", True, "a")
    assert files(workspace) == before


def test_the_turns_limit_holds_for_all_members_together() -> None:
    """TL-16: what is left is shared."""
    script = {"plan": [phases(*PAIR)], "main": [calls("shout"), calls("shout"), say()]}
    given = settings(spec_review={"enabled": False}, budgets={"max_steps_per_turn": 4})
    run = Run(script, settings=given, tools=[shout]).ask(mode="team_collab")

    assert run.result.budgets["think"] == 4
    assert run.result.status == "max_steps_exceeded"


def test_a_members_call_that_does_not_run_is_told() -> None:
    """TL-03: with the member; it is denied, or a round of repair was in vain."""
    policy = {"policy": {"shout": "deny"}}
    given = settings(spec_review={"enabled": False}, tools=policy)
    turn = calls(call("shout", "c1", text="a"), call("no_such_tool", "c2"))
    script = {
        "plan": [phases({"id": "a", "expert": "developer"})],
        "main@a": [turn, say("A.")],
        "repair": [say('{"repairs": []}')],
    }
    run = Run(script, settings=given, tools=[shout]).ask(mode="team_collab")

    told = [(each["member"], each["call_id"]) for each in run.happened("call_refused")]
    assert told == [("a", "c1"), ("a", "c2")]


@pytest.mark.long
def test_a_conflict_that_is_only_called_settled_is_not(workspace: Path) -> None:
    """MO-06: markers and second versions of files never come into the workspace."""
    script = {
        "plan": [phases(*PAIR)],
        "main@a": [edit("line 5\n", "from a\n"), say("A.")],
        "main@b": [edit("line 5\n", "from b\n"), say("B.")],
        "main@b-merge": [say("Settled.")],
    }
    run = team(workspace, script)

    assert outcomes(run) == {"a": "completed", "b": "completed", "b-merge": "failed"}
    assert "<<<<<<<" not in files(workspace)["shared.txt"]
    assert "not settled in: shared.txt" in (run.result.error_message or "")


@pytest.mark.sampled(1)
def test_worktrees_go_once_their_work_is_merged(workspace: Path) -> None:
    """Those of phases that failed stay, to be looked at."""
    script = {
        "plan": [phases(*PAIR)],
        "main@a": [write("pwd"), say("A.")],
        "main@b": [write("pwd"), say("")],
        "recovery@b": [say("no")],
    }
    run = team(workspace, script)

    places = {
        event["member"]: Path(event["output"].split("stdout:\n")[1].strip())
        for event in run.happened("tool_completed")
    }
    assert outcomes(run) == {"a": "completed", "b": "failed"}
    assert not places["a"].exists()
    assert places["b"].exists()


# --- Whole runs over a provider that said no: nobody asks it again, and one line says why.

MODES = ["direct_chat", "react", "plan_exec"]


def said(message: str, **more: Any) -> Mapping[str, Any]:
    return {"error": {"message": message} | more}


def run(
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    mode: str = "react",
    *,
    streamed: bool = False,
    **given: Any,
) -> TaskResult:
    """One task over the real client, as it is by default but for waits of our own."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    llm = {"requests": {"wait_seconds": 0}} | given.pop("llm", {})
    chain = {"recovery": {"wait_seconds": 0}}
    chosen = settings(llm=llm, fallback_chain=chain, **given)
    graph: Any = build_graph("openai:m", settings=chosen, checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    asked = {"messages": [("user", "Say hi")], "mode": mode}
    for _ in graph.stream(asked, config, stream_mode="messages" if streamed else "values"):
        pass
    result = graph.get_state(config).values["result"]
    assert isinstance(result, TaskResult)
    return result


SAID_NO: list[tuple[Fault, str, bool]] = [
    (
        Fault(429, said("slow down"), {"Retry-After": "3600"}),
        "too many requests, asks for a wait of 3600 s: slow down",
        True,
    ),
    (Fault(503, said("away"), {"Retry-After": "3600"}), "asks for a wait of 3600 s: away", True),
    (Fault(429, said("Please try again in 1h10m.")), "asks for a wait of 4200 s: Please", True),
    (
        Fault(429, said("You exceeded your current quota", code="insufficient_quota")),
        "the quota or the credit is used up: You exceeded your current quota",
        False,
    ),
    (Fault(400, said("Your credit balance is too low")), "the credit is used up: Your", False),
    (Fault(402, {"error": "Insufficient Balance"}), "used up: Insufficient Balance", False),
    (Fault(401, said("wrong key sk-this-is-secret")), "the key is refused: wrong key [key]", False),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "line", "retryable"), SAID_NO, ids=lambda part: repr(part)[:60])
def test_whoever_said_no_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, line: str, retryable: bool, mode: str
) -> None:
    """TL-17a: neither the call nor recovery asks again; the failure is one line, with an advice."""
    with openai_server(lambda _: fault) as server:
        result = run(monkeypatch, server.url, mode)

        address = server.url.removeprefix("http://").removesuffix("/v1")
    error = result.error_struct
    assert error is not None
    assert (len(server.requests), result.status) == (1, "failed")
    assert error.message.startswith(f"openai:m: {address} HTTP {fault.status}: ")
    assert line in error.message
    assert "\n" not in error.message
    assert (error.retryable, bool(error.suggestions)) == (retryable, True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "line", "advice"),
    [
        (Fault(404, {"error": "model m not found"}), "no such model or address: model m", "name"),
        (
            Fault(400, {"error": "m does not support tools"}),
            "the model takes no tools: m does not support tools",
            "llm.fallback_models",
        ),
    ],
)
def test_what_the_body_says_is_told(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, line: str, advice: str
) -> None:
    """TL-17: another model is asked; where there is none, the failure has the body's own words."""
    with openai_server(lambda _: fault) as server:
        error = run(monkeypatch, server.url).error_struct

    assert error is not None
    assert f"HTTP {fault.status}: {line}" in error.message
    assert advice in error.suggestions[0]
    with openai_server(lambda asked: fault if asked["model"] == "m" else Reply("Hi.")) as server:
        assert run(monkeypatch, server.url, llm={"fallback_models": ["openai:n"]}).output == "Hi."
        assert len(server.requests) == 2


@pytest.mark.parametrize(("wait", "left"), [(0, True), (25, False)])
def test_a_wait_that_is_left_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, wait: int, left: bool
) -> None:
    """TL-17: a server that names a moment is asked again after it.

    TL-17a: one beyond `llm.requests.total_seconds` ends the asking.
    """
    limits = {"requests": {"total_seconds": 20, "wait_seconds": 0}}
    answers: list[Answer] = [Fault(429, said("no"), {"Retry-After": str(wait)}), Reply("Hello.")]
    with openai_server(answers) as server:
        result = run(monkeypatch, server.url, llm=limits)

    assert (len(server.requests), result.status) == ((2, "completed") if left else (1, "failed"))
    assert result.output == "Hello." or not left


@pytest.mark.long
def test_others_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17a: whoever said no is passed over, by later calls of the run too."""
    no = Fault(429, said("no", code="insufficient_quota"))
    call = Reply("", calls=[{"name": "nothing_of_the_kind", "arguments": {}}])
    answers: Iterator[Answer] = iter([call, Fault(500), Fault(500), Fault(500)])

    def reply(request: dict[str, Any]) -> Answer:
        return no if request["model"] == "m" else next(answers, Reply("Done."))

    with openai_server(reply) as server:
        result = run(monkeypatch, server.url, llm={"fallback_models": ["openai:n"]})

    assert result.status == "completed"
    assert [request["model"] for request in server.requests].count("m") == 1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/v1", "no connection to 127.0.0.1:9: connection refused"),
        ("http://nowhere.invalid/v1", "no connection to nowhere.invalid: the name is not resolved"),
    ],
)
def test_an_address_that_is_dead_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    """TL-17a: with the reason, in one line; recovery does not ask there either."""
    result = run(monkeypatch, url)

    error = result.error_struct
    assert error is not None
    assert error.message == f"openai:m: {why}"
    assert "OPENAI_BASE_URL" in error.suggestions[0]
    assert error.retryable
    assert result.budgets["recover"] == 0


@pytest.mark.long
@pytest.mark.parametrize("streamed", [False, True])
def test_a_budget_of_tokens_holds_where_no_usage_is_told(
    monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    """BU-05: what a provider does not tell is estimated, and marked."""
    words = Reply("word " * 200, calls=[{"name": "no_such_tool", "arguments": {}}], usage="untold")
    with openai_server(lambda _: words) as server:
        result = run(monkeypatch, server.url, streamed=streamed, budgets={"tokens": 3000})

    rows = result.usage.values()
    assert result.status != "completed"
    assert 3000 <= sum(row["input_tokens"] + row["output_tokens"] for row in rows) < 6000
    assert sum(row["estimated"] for row in rows) == len(server.requests)
    assert any(request["stream"] for request in server.requests) is streamed
    assert any("estimated" in note for note in result.notes)
