"""Chapter 7, on: helpers from the loop (PL-08)."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from tests.spec.face import (
    ALLOWED,
    NO_RECOVERY,
    UNREVIEWED,
    Daruma,
    Run,
    call,
    calls,
    command,
    create,
    plan,
    say,
    view,
)

from daruma import ScriptedChatModel, Settings, build_graph, hook

ON: Final[dict[str, Any]] = {"team": {"delegate": True}}
COST: Final[dict[str, Any]] = {"usage": {"input": 90, "output": 10}}
"""Of one model call: 100 tokens."""
UNMENDED: Final[dict[str, Any]] = {"name_repair_attempts": 0}
"""Settings of ``tools``: a name that is none is told at once."""
RED: Final[dict[str, Any]] = {"verification": {"commands": ["test -f ok"], "max_reinjections": 0}}


def helped(id_: str, task: str = "Help", **more: Any) -> dict[str, Any]:
    """A call of ``delegate``; its id is that of the helper."""
    return call("delegate", id_, task=task, **more)


def writes(id_: str, **more: Any) -> dict[str, Any]:
    return helped(id_, write=True, **more)


def asking(*delegated: dict[str, Any], **helpers: list[Any]) -> dict[str, Any]:
    """A script: one answer with these calls, then the last; and what each helper says."""
    said = {f"main@{id_}": turns for id_, turns in helpers.items()}
    return {"main": [calls(*delegated), say("All done.")], **said}


def offered(run: Run, number: int) -> set[str]:
    """The tools that a request was offered."""
    return {*run.model.asked()[number].tools}


@pytest.mark.parametrize("mode", [{"mode": "react"}, UNREVIEWED], ids=["react", "plan_exec"])
def test_a_helper_carries_out_a_task_of_its_own(workspace: Path, mode: dict[str, Any]) -> None:
    """PL-08: with a context of its own; the caller has its answer, and no word of the way to it."""
    (workspace / "a.txt").write_text("The lamp is red.")
    script = asking(helped("look", "Which lamp?"), look=[calls(view("a.txt")), say("It is lit.")])
    run = Run(script | {"plan": [plan("Find out")]}, workspace=workspace, **ON, **mode).ask()

    own, first, second, last = run.model.asked()
    assert "Which lamp?" in first.text
    assert "Do it" not in first.text
    assert "The lamp is red." in second.text
    assert "The lamp is red." not in own.text + last.text
    assert "The helper has done it.\nIt is lit.\n" in run.outputs["look"]
    assert run.result.status == "completed"
    assert run.unclosed == []
    at = run.nodes.index("delegate")
    assert run.nodes[at - 1 : at + 4] == ["main", "delegate", "member", "merge", "main"]
    (began,) = run.happened("member_started")
    assert (began["phase_id"], began["workspace"]) == ("look", str(workspace))
    assert {e["member"] for e in run.happened("model_call_started") if "member" in e} == {"look"}
    assert "[look] asked for str_replace_editor" in str(run.graph.timeline(run.config))


def test_without_the_setting_nothing_is_offered(workspace: Path) -> None:
    """PL-08: the tool is asked for by ``team.delegate``; a call of it is one of no tool else."""
    script = {"main": [calls(helped("look")), say()]}
    run = Run(script, workspace=workspace, tools=UNMENDED).ask()

    assert "delegate" not in offered(run, 0)
    assert "there is no tool 'delegate'" in run.outputs["look"]


@pytest.mark.parametrize("said", ["false", "no", 0])
def test_only_a_yes_lets_a_helper_write(workspace: Path, said: Any) -> None:
    """PL-08: also where arguments go unchecked: no word for no lets it write."""
    script = asking(helped("a", write=said), a=[calls(create("n", "n")), say("No.")])
    run = Run(script, workspace=workspace, tools={"validate_schema": False}, **ON).ask()

    assert not (workspace / "n").exists()
    assert run.happened("member_started")[0]["workspace"] == str(workspace)


def test_a_call_that_is_named_as_its_phase_moves_no_beginning(workspace: Path) -> None:
    """PL-08: a phase that fails goes back to where it began, not to where helpers did (RO-02)."""
    phase = {"id": "a", "title": "A", "rollback": "snapshot"}
    turns = [calls(create("mine", "1", "m")), calls(writes("a")), say(), say()]
    script = {"plan": [plan(phase)], "main": turns, "main@a": [calls(create("n", "n")), say()]}
    lost: dict[str, Any] = {"verification": {"commands": ["false"], "max_reinjections": 0}}
    spent: dict[str, Any] = {"budgets": {"reflect": 0}}
    run = Run(script, workspace=workspace, **ON, **UNREVIEWED, **NO_RECOVERY, **lost, **spent)
    run.ask()

    assert run.result.status == "failed"
    assert not (workspace / "mine").exists()


def test_who_helps_does_not_delegate(workspace: Path) -> None:
    """PL-08: neither a helper nor a member of a team is offered the tool: one level deep."""
    script = asking(helped("look"), look=[calls(helped("deeper")), say("No help.")])
    run = Run(script, workspace=workspace, **ON).ask()
    phases = {"id": "a", "title": "A", "expert": "developer"}
    team = {"plan": [plan(phases)], "main@a": [say("A.")]}
    shared = UNREVIEWED | {"mode": "team_collab"}
    members = Run(team, workspace=workspace, **ON, **shared).ask()

    assert "delegate" in offered(run, 0)
    assert "delegate" not in offered(run, 1) | offered(members, 0)
    assert run.result.status == members.result.status == "completed"
    assert run.nodes.count("delegate") == 1


def test_a_tool_of_ones_own_of_that_name_is_the_one(workspace: Path) -> None:
    """PL-08: with the setting on, too: it is called as any tool."""

    def delegate(task: str) -> str:
        """Give it to a colleague."""
        return f"A colleague does: {task}"

    run = Run(asking(helped("mine")), with_tools=[delegate], workspace=workspace, **ON).ask()

    assert run.outputs["mine"] == "A colleague does: Help"
    assert "delegate" not in run.nodes


# --- What a helper may do.


def test_a_helper_that_is_not_told_to_write_only_reads(workspace: Path) -> None:
    """PL-08: it has the tools that change nothing; the editor shows files and refuses the rest."""
    (workspace / "a.txt").write_text("old")
    edit = call(
        "str_replace_editor", "e", command="str_replace", path="a.txt", old_str="old", new_str="n"
    )
    turns = [calls(create("b.txt", "b"), edit, command("touch c"), view("a.txt", "v")), say("Read")]
    run = Run(
        asking(helped("look"), look=turns), workspace=workspace, **ON, tools=ALLOWED | UNMENDED
    ).ask()

    assert "run_command" in offered(run, 0)
    assert {"str_replace_editor", "search"} <= offered(run, 1)
    assert not offered(run, 1) & {"run_command", "run_tests", "memory_store"}
    told = run.model.asked()[2].text
    assert told.count("this helper only reads") == 2
    assert "there is no tool 'run_command'" in told
    assert [each.name for each in workspace.iterdir()] == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "old"
    assert run.happened("savepoint_written")[1:] == []


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ({"profile": "read_only"}, "there is no tool 'str_replace_editor'"),
        ({"policy": {"str_replace_editor": "deny"}}, "denied by policy"),
        ({"profile": "mine", "profiles": {"mine": ["search", "delegate"]}}, "there is no tool"),
    ],
    ids=["profile", "policy", "own profile"],
)
def test_a_helper_may_do_nothing_that_its_caller_may_not(
    workspace: Path, tools: dict[str, Any], said: str
) -> None:
    """PL-08: whatever it is told, and whoever it is: profile and policy are its caller's."""
    turns = [calls(create("b.txt", "b")), say("Tried.")]
    script = asking(writes("do", expert="developer"), do=turns)
    run = Run(script, workspace=workspace, **ON, tools=tools | UNMENDED).ask()

    assert said in run.model.asked()[2].text
    assert offered(run, 1) <= offered(run, 0)
    assert [*workspace.iterdir()] == []


def test_an_experts_profile_narrows_it_further(daruma: Daruma) -> None:
    """PL-08: experts come from the templates, with their prompt, and their profile on top."""
    workspace = daruma.folder / "ws"
    (daruma.folder / "teams").mkdir()
    expert = "{name: reader, about: Reads., prompt: You are the reader., profile: read_only}"
    (daruma.folder / "teams" / "own.yaml").write_text(f"about: Ours.\nexperts: [{expert}]\n")
    assert daruma("trust", "--yes", "teams/own.yaml").code == 0
    settings: dict[str, Any] = {"team": {"delegate": True, "template": "own", "folders": ["teams"]}}
    turns = [calls(create("b.txt", "b")), say("Tried.")]
    script = asking(writes("do", expert="reader"), do=turns)
    run = Run(script, workspace=workspace, **settings, tools=UNMENDED).ask()

    assert "You are the reader." in run.model.asked()[1].text
    assert "str_replace_editor" in offered(run, 0) - offered(run, 1)
    assert [*workspace.iterdir()] == []


def test_an_expert_that_is_not_there_is_named_with_those_that_are(workspace: Path) -> None:
    """PL-08: the call is answered at once, and those beside it are carried out."""
    script = asking(helped("a", expert="wizard"), helped("b", expert="tester"), b=[say("Tested.")])
    run = Run(script, workspace=workspace, **ON).ask()

    assert "there is no expert 'wizard'" in run.outputs["a"]
    assert "developer, tester, writer" in run.outputs["a"]
    assert "The helper tester has done it.\nTested." in run.outputs["b"]
    assert [each["phase_id"] for each in run.happened("member_started")] == ["b"]
    assert run.unclosed == []


def test_a_call_that_was_not_checked_still_has_to_say_what_to_do() -> None:
    """PL-08: with schemas unchecked, too (TL-07)."""
    script = {"main": [calls(call("delegate", "a"), helped("b", expert="")), say()]}
    script["main@b"] = [say("B.")]
    run = Run(script, **ON, tools={"validate_schema": False}).ask()

    assert "does not say what to do" in run.outputs["a"]
    assert "B." in run.outputs["b"]
    assert run.result.status == "completed"


def test_a_helper_that_writes_needs_files() -> None:
    """PL-08: without a workspace there are none: the caller is told, and goes on."""
    run = Run(asking(writes("a"), helped("b"), b=[say("Thought.")]), **ON).ask()

    assert "the task has no workspace" in run.outputs["a"]
    assert "Thought." in run.outputs["b"]
    assert run.result.status == "completed"


def test_a_helpers_question_reaches_the_person(workspace: Path) -> None:
    """PL-08: it asks as a member does, under its own name, and goes on with the reply."""
    turns = [calls(command("echo b > b.txt", "c")), say("Made.")]
    script = asking(writes("do"), helped("look"), do=turns, look=[say("Looked.")])
    run = Run(script, workspace=workspace, **ON, tools={"policy": {"run_command": "confirm"}}).ask()

    assert [each["command"] for each in run.approvals] == ["echo b > b.txt"]
    assert run.happened("approval_request")[0]["member"] == "do"
    run.approve()
    assert (workspace / "b.txt").read_text() == "b\n"
    assert "Looked." in run.outputs["look"]
    assert run.result.status == "completed"
    assert len(run.happened("member_started")) == len(run.happened("member_completed")) == 2
    assert run.unclosed == []


def test_a_call_of_delegate_is_under_the_policy() -> None:
    """PL-08: a person can be asked before anybody helps; a no is told like any other."""
    script = asking(helped("a"), helped("b"), b=[say("B.")])
    run = Run(script, **ON, tools={"policy": {"delegate": "confirm"}}).ask()
    assert run.nodes.count("delegate") == 0

    run.decide(a="deny", b="approve")

    assert "denied" in run.outputs["a"]
    assert "B." in run.outputs["b"]
    assert [each["phase_id"] for each in run.happened("member_started")] == ["b"]


def test_calls_beside_those_of_helpers_run_first(workspace: Path) -> None:
    """PL-08: helpers begin from what they have left."""
    script = asking(
        writes("do"), create("a.txt", "new\n", "c"), do=[calls(view("a.txt")), say("Saw it.")]
    )
    run = Run(script, workspace=workspace, **ON).ask()

    assert "new" in run.model.asked()[2].text
    assert run.nodes[:6] == ["intake", "main", "tool", "main", "delegate", "member"]


# --- What it changes, and what comes of it.


def edits(path: str, text: str, said: str = "Changed.") -> list[Any]:
    return [calls(command(f"printf '{text}' > {path}")), say(said)]


WRITING: Final[dict[str, Any]] = ON | {"tools": ALLOWED}


def test_helpers_write_apart_and_are_merged(workspace: Path) -> None:
    """PL-08: each in a worktree of its own, from the workspace as it was; none is left over."""
    (workspace / "a.txt").write_text("a\n")
    looks = [calls(command("ls > c.txt")), say("Listed.")]
    script = asking(writes("one"), writes("two"), one=edits("b.txt", "b"), two=looks)
    run = Run(script, workspace=workspace, **WRITING).ask()

    assert {p.name: p.read_text() for p in workspace.iterdir()} == {
        "a.txt": "a\n",
        "b.txt": "b",
        "c.txt": "a.txt\nc.txt\n",  # it did not see what the other one made
    }
    assert "Files it changed, merged: b.txt" in run.outputs["one"]
    assert [each["conflicts"] for each in run.happened("merge_completed")] == [(), ()]
    assert not [*workspace.parent.glob("data/worktrees/*/*/*")]
    assert run.happened("workspace_drifted") == []


def test_what_git_ignores_of_a_helpers_work_is_told(workspace: Path) -> None:
    """PL-08: that it was not merged, and where it is kept."""
    (workspace / ".gitignore").write_text("*.log\n")
    script = asking(writes("one"), one=edits("a.log", "a"))
    run = Run(script, workspace=workspace, **WRITING).ask()
    (kept,) = workspace.parent.glob("data/worktrees/*/*/*/a.log")

    assert f"ot merged but kept in {kept.parent}" in run.outputs["one"]
    assert "It changed no file" not in run.outputs["one"]


def test_a_conflict_is_an_outcome_that_the_caller_sees(workspace: Path) -> None:
    """PL-08: the first one's work stands; of the other's nothing came in, and none is lost."""
    (workspace / "a.txt").write_text("old\n")
    script = asking(
        writes("one"), writes("two"), one=edits("a.txt", "first\\n"), two=edits("a.txt", "other\\n")
    )
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+other\n"
    kept = sha256(patch.encode()).hexdigest()[:16]
    script["main"][1:] = [calls(call("read_output", "r", id=kept)), say()]
    run = Run(script, workspace=workspace, **WRITING).ask()

    assert (workspace / "a.txt").read_text() == "first\n"
    said = run.outputs["two"]
    assert said.startswith("Error: The helper has not done it: what it changed conflicts")
    assert "a.txt" in said
    assert f"kept as a patch: read_output shows it: id {kept}" in said
    assert patch in run.outputs["r"]
    assert [bool(each["conflicts"]) for each in run.happened("merge_completed")] == [False, True]
    assert run.result.status == "completed"


def test_work_that_fails_its_checks_does_not_come_in(workspace: Path) -> None:
    """PL-08: what a helper writes is verified as a member's is; the caller is told, and goes on."""
    turns = [calls(command("touch no")), say("Done."), say("Done all the same.")]
    script = asking(writes("do"), do=turns) | {"reflect": [say("Hm.")] * 4}
    script["plan"] = [plan("Do it")]
    script["main"][1:] = [calls(command("touch ok")), say("I did it myself.")]
    budgets: dict[str, Any] = {"budgets": {"verify": 2, "reflect": 1}}
    run = Run(script, workspace=workspace, **WRITING, **UNREVIEWED, **RED, **budgets).ask()

    assert run.outputs["do"].startswith("Error: The helper has not done it: gave_up_after_refl")
    assert "It is kept as a patch" in run.outputs["do"]
    assert [each.name for each in workspace.iterdir()] == ["ok"]
    assert run.result.status == "completed"


def test_a_helper_that_fails_is_an_error_of_its_call(workspace: Path) -> None:
    """PL-08: the loop goes on, with the helpers beside it."""
    script = asking(helped("a"), helped("b"), a=[{"raise": "down"}], b=[say("B.")])
    run = Run(script, workspace=workspace, **ON, **NO_RECOVERY).ask()

    assert run.outputs["a"].startswith("Error: The helper has not done it: failed: ")
    assert "B." in run.outputs["b"]
    assert run.result.status == "completed"


def test_its_answer_is_bounded_and_kept_whole(workspace: Path) -> None:
    """PL-08: of a long answer the caller is shown the ends, and the way to the rest."""
    long = "".join(f"line {number}\n" for number in range(3000))
    script = asking(helped("look"), look=[say(long)])
    run = Run(script, workspace=workspace, **ON).ask()

    assert len(run.outputs["look"]) < 4300
    assert "line 0\n" in run.outputs["look"]
    assert "line 2999" in run.outputs["look"]
    assert "read_output" in offered(run, 2) - offered(run, 0)


def test_hooks_see_what_comes_of_a_helper(workspace: Path) -> None:
    """PL-08: before the call and after it, as of any call."""
    seen = list[tuple[str, str]]()

    @hook("before_call", match="delegate")
    async def before(this: Any) -> None:
        seen.append(("before", this.call_id))

    @hook("after_call", match="delegate")
    async def after(this: Any) -> None:
        seen.append(("after", this.output.splitlines()[1]))

    model = ScriptedChatModel(script=asking(helped("a"), a=[say("A.")]))
    graph = build_graph(model, settings=Settings(**ON), hooks=[before, after])
    Run({}, graph=graph, workspace=workspace).ask()

    assert seen == [("before", "a"), ("after", "A.")]


# --- What it may spend.


def five(turns: Callable[[], list[Any]]) -> dict[str, Any]:
    names = "abcde"
    return asking(*map(helped, names), **{name: turns() for name in names})


def endless() -> list[Any]:
    """More work than any budget here has room for."""
    return [calls(call("search", pattern=f"p{number}")) | COST for number in range(40)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", ["react", "plan_exec"])
@pytest.mark.parametrize("scope", ["task", "phase"])
def test_five_helpers_never_spend_more_than_one_budget(
    workspace: Path, mode: str, scope: str
) -> None:
    """PL-08: each has an equal share of the tokens that are left, and asks for no more (BU-04)."""
    script = five(endless)
    script["main"] = [script["main"][0] | COST, script["main"][1] | COST]
    script["plan"] = [plan("Look") | COST]
    planned = 100 if mode == "plan_exec" else 0
    limit = {"tokens": 2100 + planned} if scope == "task" else {"per_phase": {"tokens": 2100}}
    settings = UNREVIEWED | {"mode": mode, "budgets": {"when_spent": "stop", **limit}}
    run = Run(script, workspace=workspace, **ON, **settings).ask()

    spent = run.result.usage["main"]
    assert spent["input_tokens"] + spent["output_tokens"] == planned + 100 + 5 * 400
    for name in "abcde":
        assert "budget of 400 tokens is spent" in run.outputs[name]
        assert "4 steps, 400 tokens" in run.outputs[name]
    stopped = {each["member"] for each in run.happened("budget_spent") if "member" in each}
    assert stopped == {*"abcde"}


def test_five_helpers_share_the_steps(workspace: Path) -> None:
    """PL-08: their model calls are the caller's, who keeps one to read what they say (BU-03)."""
    run = Run(five(endless), workspace=workspace, **ON, budgets={"max_steps": 12}).ask()

    assert run.result.budgets["think"] == 12
    assert run.result.status == "completed"
    assert [run.outputs[name].count("Spent: 2 steps") for name in "abcde"] == [1] * 5


def test_what_helpers_spend_counts_in_the_phase(workspace: Path) -> None:
    """PL-08: on record as theirs, in the caller's phase."""
    script = asking(helped("a"), a=[calls(call("search", pattern="x")) | COST, say("A.") | COST])
    script |= {"plan": [plan("First", {"title": "Then", "depends_on": ["p1"]})]}
    script["main"] += [say("Then.")]
    run = Run(script, workspace=workspace, **ON, **UNREVIEWED).ask()

    steps = run.snapshot.values["steps"]
    assert [each.phase_id for each in steps if each.helper == "a"] == ["p1"] * 3
    assert run.result.usage["main"]["input_tokens"] >= 180
    assert [phase.id for phase in run.result.phases] == ["p1", "p2"]
    assert run.result.status == "completed"


def test_a_stopped_helper_does_not_stop_its_caller(workspace: Path) -> None:
    """PL-08: its share is spent, not the task's budget."""
    script = asking(helped("a"), a=endless())
    script["main"] += [say("More.")]
    run = Run(script, workspace=workspace, **ON, budgets={"tokens": 100_000, "max_steps": 4}).ask()

    assert "max_steps_exceeded" in run.outputs["a"]
    assert run.result.status == "completed"


def test_a_failed_call_of_a_helper_can_be_tried_again(daruma: Daruma) -> None:
    """PL-08: by hand, from where it stood."""
    daruma.configure("team: {delegate: true}\nfallback_chain: {recovery: {enabled: false}}\n")
    script = asking(helped("a"), a=[{"raise": "down"}, say("A.")])
    script["main"] += [say("All done now.")]
    model = daruma.script(**script)
    first = daruma("run", "Do it", "--workspace", "ws", "--model", model, "--thread", "t")
    assert "has not done it" in daruma("show", "t").out + first.out + first.err

    again = daruma("retry", "t", "--call", "a", "--model", model)

    assert again.code == 0, again
