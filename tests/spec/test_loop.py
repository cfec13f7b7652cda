"""Chapter 2: the loop, its tools, and how a call is read, decided and run (TL)."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.spec.face import (
    NO_RECOVERY,
    DarumaError,
    Run,
    call,
    calls,
    command,
    create,
    raw,
    refused,
    say,
)

from daruma import Settings, build_graph

HEARD: list[str] = []
"""What was shouted: the effects of a test's calls."""


@pytest.fixture(autouse=True)
def _silence() -> None:
    HEARD.clear()


def shout(text: str, times: int = 1) -> str:
    """Say it loudly."""
    HEARD.append(text)
    return text.upper() * times


def fall(text: str) -> str:
    """Fall over."""
    raise ValueError(f"fell over {text}")


def secret(text: str) -> str:
    """Tell a secret."""
    HEARD.append(f"secret {text}")
    return text


CONFIRM: dict[str, Any] = {"policy": {"shout": "confirm"}}
NO_REPAIR: dict[str, Any] = {"name_repair_attempts": 0, "call_repair_attempts": 0}
UNCHECKED: dict[str, Any] = {"verification": {"enabled": False}}


def names(run: Run) -> dict[str, str]:
    """How each changed name was found, by the id of its call."""
    return {
        each["tool_call_id"]: f"{each['how']}:{each['name']}"
        for audit in run.result.to_dict()["audit"]
        for each in audit["names"]
    }


def rounds(run: Run) -> list[dict[str, Any]]:
    """The model calls for repair that are on record."""
    return [each["round"] for each in run.result.to_dict()["audit"] if each["round"]]


def mended(run: Run) -> dict[str, str]:
    """Who mended the arguments of which call."""
    return {
        each["tool_call_id"]: each["repaired_by"]
        for audit in run.result.to_dict()["audit"]
        for each in audit["arguments"]
    }


def repair(*repairs: dict[str, Any]) -> dict[str, Any]:
    """A turn of the model that repairs."""
    return {"json": {"repairs": [*repairs]}, "expect_tools": []}


# --- TL-01 to TL-03: one model call a step, calls side by side, one result each.


def test_main_asks_once_and_turns_calls_into_tool_tasks() -> None:
    """TL-01: an answer without calls is the candidate final answer, and ends the loop."""
    run = Run([calls(call("shout", "c1", text="hi")), say("It is said.")], with_tools=[shout]).ask()

    assert run.nodes.count("main") == len(run.model.asked()) == 2
    assert run.outputs == {"c1": "HI"}
    assert run.result.output == "It is said."


def test_allowed_calls_run_before_a_person_is_asked_and_an_approved_one_waits_for_nobody(
    workspace: Path,
) -> None:
    """TL-02: the next model call waits for all; what a sibling changed is asked again."""
    turn = calls(command("touch a", "a"), command("touch b", "b"), create("new", "x\n", "e"))
    run = Run([turn, say()], workspace=workspace, **UNCHECKED).ask()

    assert run.outputs.keys() == {"e"}
    assert [each["approval_id"] for each in run.approvals] == ["a", "b"]
    first = {each["approval_id"]: each["digest"] for each in run.approvals}
    run.decide(b="approve")
    assert (workspace / "b").exists()
    assert not (workspace / "a").exists()
    assert len(run.model.asked()) == 1
    (left,) = run.approvals
    assert (left["approval_id"], left["digest"] == first["a"]) == ("a", False)
    run.approve()
    assert run.outputs.keys() == {"a", "b", "e"}
    assert len(run.model.asked()) == 2


def test_calls_of_one_answer_run_side_by_side() -> None:
    """TL-02: one after the other they would wait for ever."""
    together = threading.Barrier(3)

    def meet(n: int) -> str:
        """Meet the others."""
        together.wait(30)
        return str(n)

    turn = calls(*(call("meet", f"c{n}", n=n) for n in range(3)))
    run = Run([turn, say()], with_tools=[meet]).ask()

    assert run.outputs == {"c0": "0", "c1": "1", "c2": "2"}


def test_approved_calls_that_write_run_one_by_one() -> None:
    """TL-02: none begins before the one before it has ended."""
    now: list[int] = []
    most: list[int] = []

    async def pay(n: int) -> str:
        """Pay."""
        now.append(n)
        most.append(len(now))
        await asyncio.sleep(0)
        now.remove(n)
        return "paid"

    turn = calls(*(call("pay", f"c{n}", n=n) for n in range(3)))
    Run([turn, say()], with_tools=[pay], tools={"policy": {"pay": "confirm"}}).ask().approve()

    assert most == [1, 1, 1]


def test_every_call_has_one_result_whatever_became_of_it() -> None:
    """TL-03: failed, denied, rejected, unknown; and the loop goes on."""
    turn = calls(
        call("shout", "good", text="hi"),
        call("fall", "failed", text="x"),
        call("secret", "denied", text="x"),
        call("no_such_tool", "unknown"),
        call("pay", "rejected", text="x"),
    )

    def pay(text: str) -> str:
        """Pay."""
        raise AssertionError(text)

    policy = {"policy": {"secret": "deny", "pay": "confirm"}} | NO_REPAIR
    run = Run([turn, say()], with_tools=[shout, fall, secret, pay], tools=policy).ask()
    run.decide(rejected="deny")

    assert run.outputs.keys() == {"good", "failed", "denied", "unknown", "rejected"}
    assert "fell over x" in run.outputs["failed"]
    assert [each["call_id"] for each in run.happened("call_refused")] == ["denied", "unknown"]
    assert HEARD == ["hi"]
    assert run.result.completed


# --- TL-04 to TL-07: which tool is meant, and which are shown.


@pytest.mark.parametrize(
    ("requested", "found", "settings"),
    [
        ("shout", "", {}),
        ("yell", "alias:shout", {"name_aliases": {"yell": "shout"}}),
        ("functions.Shout", "normalized:shout", {}),
        ("functions.Shout", "unknown", {"normalize_names": False}),
        ("shuot", "repaired:shout", {"name_repair_attempts": 1}),
        ("shuot", "unknown", {}),
        ("", "missing", {}),
    ],
)
def test_names_are_resolved_in_a_fixed_order(
    requested: str, found: str, settings: dict[str, Any]
) -> None:
    """TL-04: exact, alias, normalised, repaired; each change is audited, and what is none fails."""
    script = {
        "main": [calls(call(requested, "c1", text="hi")), say()],
        "repair": [repair({"tool_call_id": "c1", "name": "shout"})],
    }
    run = Run(script, with_tools=[shout], tools=NO_REPAIR | settings).ask()

    if ":" in found:
        assert names(run) == {"c1": found}
    else:
        assert names(run) == {}
    assert (HEARD == ["hi"]) == (found.endswith("shout") or not found)


@pytest.mark.parametrize(
    "requested", ["memory.search", "memory.store", "memory.forget", "skills.list", "skills.load"]
)
def test_some_aliases_are_built_in(requested: str, workspace: Path) -> None:
    """TL-04: those that models write of themselves."""
    (workspace / "skills" / "one").mkdir(parents=True)
    (workspace / "skills" / "one" / "SKILL.md").write_text(
        "---\nname: one\ndescription: x\n---\nRead me.\n"
    )
    script = [calls(call(requested, "c1")), say()]
    skills = {"folders": [str(workspace / "skills")]}
    run = Run(script, workspace=workspace, store=InMemoryStore(), skills=skills, tools=NO_REPAIR)

    run.ask()

    assert names(run) == {"c1": f"alias:{requested.replace('.', '_')}"}


def test_at_most_twenty_changes_of_names_are_audited() -> None:
    """TL-04: more are marked as cut."""
    turn = calls(*(call("Shout", f"c{n}", text=str(n)) for n in range(25)))
    run = Run([turn, say()], with_tools=[shout], tools={"max_calls_per_turn": None}).ask()

    (audit,) = run.result.to_dict()["audit"]
    assert (len(audit["names"]), audit["names_cut"], len(HEARD)) == (20, True, 25)


def test_names_that_could_mean_two_tools_are_refused() -> None:
    """TL-05: both are named; an alias of itself is none."""

    def double(name: str) -> StructuredTool:
        return StructuredTool.from_function(shout, name=name)

    def build(*tools: Any, **settings: Any) -> object:
        return build_graph(Run([]).model, tools, {"tools": settings})

    def clash(*tools: Any, **settings: Any) -> str:
        with pytest.raises(DarumaError) as error:
            build(*tools, **settings)
        assert type(error.value).__name__ == "ToolNameConflictError"
        return str(error.value)

    assert "shout" in clash(double("shout"), double("shout"))
    twins = clash(double("read_it"), double("readIt"))
    assert "read_it" in twins
    assert "readIt" in twins
    shadow = clash(shout, secret, name_aliases={"shout": "secret"})
    assert "shout" in shadow
    assert "secret" in shadow
    assert build(shout, name_aliases={"shout": "shout"})
    assert build(double("read_it"), double("readIt"), normalize_names=False)


@pytest.mark.parametrize("requested", ["secret", "Secret", "whisper", "secrt"])
def test_what_is_not_shown_can_not_be_called(requested: str) -> None:
    """TL-06: not by its name, its normalised name, an alias or a repair."""
    script = {
        "main": [calls(call(requested, "c1", text="x")), say()],
        "repair": [repair({"tool_call_id": "c1", "name": "secret"})],
    }
    settings = {
        "profile": "loud",
        "profiles": {"loud": ["shout"]},
        "name_aliases": {"whisper": "secret"},
    }
    run = Run(script, with_tools=[shout, secret], tools=settings).ask()

    assert [*run.model.asked()[0].tools] == ["shout"]
    assert HEARD == []
    assert run.outputs["c1"].startswith("Error") or "shout" in run.outputs["c1"]


def test_schemas_are_tightened_before_they_are_shown() -> None:
    """TL-07: the tool itself stays as it was, and takes the same arguments."""
    loud = tool(shout)
    before = json.dumps(loud.args_schema.model_json_schema())  # type: ignore[union-attr]
    run = Run([calls(call("shout", text="hi")), say()], with_tools=[loud]).ask()

    shown = run.model.asked()[0].tools["shout"]["parameters"]
    assert shown["additionalProperties"] is False
    assert json.dumps(loud.args_schema.model_json_schema()) == before  # type: ignore[union-attr]
    assert HEARD == ["hi"]


# --- TL-08 to TL-11: repair, by rules and by a model.


def test_names_are_repaired_in_one_call_of_a_model() -> None:
    """TL-08: exactly a visible name or nothing; without tools; part of it may succeed."""
    script = {
        "main": [
            calls(call("shuot", "c1", text="one"), call("fal_over", "c2"), call("zzz", "c3")),
            say(),
        ],
        "repair": [
            repair(
                {"tool_call_id": "c1", "name": "shout"},
                {"tool_call_id": "c2", "name": "Fall"},
                {"tool_call_id": "c9", "name": "shout"},
            )
        ],
    }
    run = Run(script, with_tools=[shout, fall], tools={"name_repair_attempts": 1}).ask()

    (asked,) = run.model.asked("repair")
    assert asked.tools == {}
    assert HEARD == ["one"]
    assert names(run) == {"c1": "repaired:shout"}
    (done,) = rounds(run)
    assert (done["kind"], done["repaired"], done["failed"]) == ("names", ["c1"], ["c2", "c3"])


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [("max_candidates", "shuot2"), ("max_visible_names", "zoo"), ("attempts", None)],
)
def test_what_a_model_is_shown_for_repair_is_limited(limit: str, left_out: str | None) -> None:
    """TL-08: and the audit says what was cut."""

    def zoo(text: str) -> str:
        """Look at animals."""
        return text

    turn = calls(*(call(f"shuot{n}", f"c{n}", text="x") for n in range(3)))
    script = {"main": [turn, say()], "repair": [repair()]}
    settings = {f"name_repair_{limit}": 1 if limit == "attempts" else 2}
    run = Run(script, with_tools=[shout, fall, zoo], tools=settings).ask()

    (done,) = rounds(run)
    assert done["cut"] == (left_out is not None)
    (asked,) = run.model.asked("repair")
    assert [each for each in ("shuot0", "shuot2", "shout", "zoo") if each not in asked.text] == (
        [left_out] if left_out else []
    )


def test_arguments_are_repaired_in_one_call_of_a_model() -> None:
    """TL-09: what does not parse, or does not fit; what was made up stays as it was."""
    first = calls(
        raw("shout", '{{"text": "one"}', "c1"),
        call("shout", "c2", txt="two"),
        raw("shout", "?!", "c3"),
    )
    script = {
        "main": [first, say()],
        "repair": [
            repair(
                {"tool_call_id": "c1", "arguments": {"text": "one"}},
                {"tool_call_id": "c2", "arguments": {"text": "two"}},
                {"tool_call_id": "c3", "arguments": {"text": "made up"}},
            )
        ],
    }
    run = Run(script, with_tools=[shout]).ask()

    (asked,) = run.model.asked("repair")
    assert asked.tools == {}
    assert "times" in asked.text
    assert sorted(HEARD) == ["one", "two"]
    assert mended(run) == {"c1": "model", "c2": "model"}
    assert "not valid JSON" in run.outputs["c3"]


@pytest.mark.parametrize("switch", ["call_repair_attempts", "validate_schema"])
def test_repair_of_arguments_can_be_switched_off(switch: str) -> None:
    """TL-09: then no model is asked."""
    run = Run(
        [calls(call("shout", "c1", wrong="x")), say()], with_tools=[shout], tools={switch: 0}
    ).ask()

    assert run.model.asked("repair") == []
    assert "text" in run.outputs["c1"]
    assert HEARD == []


def test_repair_goes_for_visible_tools_within_limits_and_without_streaming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TL-09: and TL-08 alike, at temperature 0, as a provider sees it."""

    def reply(request: dict[str, Any]) -> Answer:
        asked = json.dumps(request["messages"])
        if request.get("tools") is None:
            return Reply(text='{"repairs":[{"tool_call_id":"c1","arguments":{"text":"hi"}}]}')
        if '"role": "tool"' in asked:
            return Reply("Done.")
        return Reply(calls=[{"id": "c1", "name": "shout", "arguments": '{{"text": "hi"}'}])

    with openai_server(reply) as server:
        _speak_to(server, monkeypatch)
        Run([], graph=build_graph("openai:one", [shout], {})).graph.invoke(
            {"messages": [HumanMessage("Do it")]}
        )
        (asked,) = [each for each in server.requests if "tools" not in each]

    assert HEARD == ["hi"]
    assert asked["temperature"] == 0
    assert not asked.get("stream")


@pytest.mark.parametrize(
    ("written", "args"),
    [
        ("{'text': 'hi',}", {"text": "hi"}),
        ('```json\n{"text": "hi"}\n```', {"text": "hi"}),
        ('{"text": "hi", "times": "3"}', {"text": "hi", "times": 3}),
        ('{"Text": "hi"}', {"text": "hi"}),
    ],
)
def test_rules_repair_what_has_one_reading(written: str, args: dict[str, Any]) -> None:
    """TL-10: before any model is asked, and audited as such."""
    run = Run([calls(raw("shout", written)), say()], with_tools=[shout]).ask()

    assert run.outputs == {"c1": "HI" * args.get("times", 1)}
    assert mended(run) == {"c1": "rules"}
    assert run.model.asked("repair") == []


@pytest.mark.parametrize("written", ['{"text": "hi", "times": "3.5"}', '{"text": "a", "text": "b"'])
def test_rules_guess_nothing(written: str) -> None:
    """TL-10: what would lose something, or has two readings, is left to others."""
    run = Run([calls(raw("shout", written)), say()], with_tools=[shout], tools=NO_REPAIR).ask()

    assert (HEARD, mended(run)) == ([], {})


def test_a_repair_changes_only_what_is_run() -> None:
    """TL-11: the model's own message keeps what it said."""
    script = {
        "main": [
            calls(call("Shout", "c1", text="hi", times="2"), call("shuot", "c2", txt="ho")),
            say(),
        ],
        "repair": [
            repair({"tool_call_id": "c2", "name": "shout"}),
            repair({"tool_call_id": "c2", "arguments": {"text": "ho"}}),
        ],
    }
    run = Run(script, with_tools=[shout]).ask()

    said = next(each for each in run.messages if isinstance(each, AIMessage))
    assert [(each["name"], each["args"]) for each in said.tool_calls] == [
        ("Shout", {"text": "hi", "times": "2"}),
        ("shuot", {"txt": "ho"}),
    ]
    assert run.outputs == {"c1": "HIHI", "c2": "HO"}
    assert names(run) == {"c1": "normalized:shout", "c2": "repaired:shout"}
    assert {each["attempt"] for each in rounds(run)} == {1}
    assert run.happened("answer_audited") != []


# --- TL-12 to TL-15: how a call is decided.


@pytest.mark.parametrize(
    ("given", "policy", "became"),
    [
        (raw("secret", "?!"), "deny", "arguments"),
        (raw("nobody", '{"text": "x"}'), "deny", "nobody"),
        (raw("secret", '{"wrong": 1}'), "deny", "polic"),
        (raw("secret", '{"wrong": 1}'), "confirm", "text"),
        (raw("secret", '{"text": "x"}'), "allow", "x"),
        (raw("secret", '{"text": "x"}'), "confirm", None),
    ],
)
def test_calls_are_decided_in_a_fixed_order(
    given: dict[str, Any], policy: str, became: str | None
) -> None:
    """TL-12: parse, name, denial, schema, then run or ask; what is wrong is asked of nobody."""
    settings = {"policy": {"secret": policy}} | NO_REPAIR
    run = Run([calls(given), say()], with_tools=[secret], tools=settings).ask()

    assert (became is None) == bool(run.snapshot.interrupts)
    assert bool(HEARD) == (policy == "allow")
    if became:
        assert became in run.outputs["c1"].lower()


def test_an_approval_shows_exactly_what_runs(workspace: Path) -> None:
    """TL-13: canonical name, arguments, line and folder; an answer names its id and digest."""
    turn = calls(call("RunCommand", "c1", command="echo hi > a"), call("shout", "c2", text="hi"))
    rules = {"policy": {"shout": {"decision": "confirm", "reason": "It is loud."}}}
    run = Run([turn, say()], with_tools=[shout], workspace=workspace, tools=rules, **UNCHECKED)
    line, loud = run.ask().approvals

    assert (line["tool"], line["args"]) == ("run_command", {"command": "echo hi > a"})
    assert (line["command"], line["cwd"]) == ("echo hi > a", str(workspace))
    assert (loud["reason"], loud["args"]) == ("It is loud.", {"text": "hi"})
    assert (loud["required"], loud["deny_effect"]) == (False, "continue")
    other = {"approval_id": "c1", "digest": loud["digest"], "decision": "approve"}
    stranger = {"approval_id": "c9", "digest": line["digest"], "decision": "approve"}
    for wrong in (other, stranger, {"approval_id": "c1", "decision": "approve"}):
        refused(lambda wrong=wrong: run.decide(wrong))  # type: ignore[misc]
        assert len(run.approvals) == 2
    assert not (workspace / "a").exists()
    run.approve()
    assert ((workspace / "a").read_text(), HEARD) == ("hi\n", ["hi"])


def test_a_command_that_only_looks_asks_nobody(workspace: Path) -> None:
    """TL-24: nor does one that fails by itself; what has to write is asked about, and runs once."""
    (workspace / "a").write_text("one\n")
    (workspace / ".env").write_text("TOKEN=hunter22\n")
    lines = ["cat a", "grep two a", "echo more >> a", "cat .env", "cat a"]
    turn = calls(*(command(line, f"c{n}") for n, line in enumerate(lines)))
    run = Run([turn, say()], workspace=workspace, **UNCHECKED).ask()

    assert [each["approval_id"] for each in run.approvals] == ["c2", "c3"]
    assert [each["reason"].rpartition("read-only first: ")[2] for each in run.approvals] == [
        "it has to write",
        "it was denied something",
    ]
    assert (workspace / "a").read_text() == "one\n"
    run.decide(c2="approve", c3="deny")
    assert (workspace / "a").read_text() == "one\nmore\n"
    assert "one" in run.outputs["c0"]
    assert run.outputs["c1"].startswith("exit code: 1")
    assert all("ran read-only" in run.outputs[id_] for id_ in ("c0", "c1", "c4"))
    assert "read-only" not in run.outputs["c2"]
    assert (run.unclosed, run.result.completed) == ([], True)


@pytest.mark.parametrize(
    ("tools", "more"),
    [
        ({"read_only_first": False}, {}),
        ({"policy": {"run_command(cat *)": "confirm"}}, {}),
        ({"policy": {"run_command": {"decision": "confirm", "required": True}}}, {}),
        ({}, {"write": True}),
    ],
    ids=["off", "a rule", "required", "asked for"],
)
def test_a_command_is_asked_about_at_once_where_that_is_wanted(
    workspace: Path, tools: dict[str, Any], more: dict[str, Any]
) -> None:
    """TL-24: by the settings, by a rule that says so, by the model."""
    (workspace / "a").write_text("one\n")
    turn = calls(call("run_command", "c1", command="cat a", **more))
    run = Run([turn, say()], workspace=workspace, tools=tools, **UNCHECKED).ask()

    assert run.happened("tool_started") == []
    assert "one" in run.approve().outputs["c1"]


@pytest.mark.parametrize("line", ["rm -rf gone", "ls; sudo mv a b", "sh -c 'rm gone' || true"])
def test_what_is_there_to_take_away_is_never_just_tried(workspace: Path, line: str) -> None:
    """TL-24: a person is asked, though there may be nothing to take."""
    run = Run([calls(call("run_command", "c1", command=line)), say()], workspace=workspace).ask()

    assert run.happened("tool_started") == []
    assert run.approvals


def test_a_yes_can_be_given_for_calls_to_come(workspace: Path) -> None:
    """TL-25: for the thread, by what it covers; the result says by which yes it ran."""
    script = [
        calls(call("shout", "c1", text="hi", times=1)),
        calls(call("shout", "c2", text="hi", times=3), call("shout", "c3", text="other")),
        say(),
        calls(call("shout", "c4", text="hi")),
        say(),
    ]
    run = Run(script, with_tools=[shout], workspace=workspace, tools=CONFIRM).ask()
    yes = {k: run.approvals[0][k] for k in ("approval_id", "digest")} | {"decision": "approve"}
    for wrong in (
        {"always": "workspace"},
        {"pattern": "times=*"},
        {"always": "thread", "pattern": "loud=*"},
        {"always": "thread", "decision": "deny"},
    ):
        refused(lambda wrong=wrong: run.decide(yes | wrong))  # type: ignore[misc]
    run.decide(yes | {"always": "thread", "pattern": "times=*"})

    assert (HEARD, [each["approval_id"] for each in run.approvals]) == (["hi", "hi"], ["c3"])
    (given,) = run.snapshot.values["allowances"]
    assert given.text == "shout(text='hi', times=*)"
    assert [each["by"] for each in run.happened("approval_completed")] == ["", given.id]
    run.decide(c3="deny").ask()
    assert (HEARD, run.result.completed) == (["hi"] * 3, True)
    noted = [m.additional_kwargs for m in run.messages if m.name == "shout"]
    assert [each.get("daruma_allowed_by") for each in noted] == [None, given.id, None, given.id]


def test_a_yes_for_a_workspace_does_not_follow_a_link(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-25: it is the folder's; where a link to it leads elsewhere by now, it is not."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (other := tmp_path / "other").mkdir()
    (link := tmp_path / "link").symlink_to(workspace)
    tools, script = {**CONFIRM, "always": "workspace"}, [calls(call("shout", text="hi")), say()]
    first = Run(script, with_tools=[shout], workspace=link, tools=tools).ask()
    yes = {k: first.approvals[0][k] for k in ("approval_id", "digest")} | {"decision": "approve"}
    first.decide(yes | {"always": "workspace"})

    Run(script, with_tools=[shout], workspace=workspace, tools=tools).ask()
    assert HEARD == ["hi"] * 2
    link.unlink()
    link.symlink_to(other)
    assert Run(script, with_tools=[shout], workspace=link, tools=tools).ask().approvals
    assert HEARD == ["hi"] * 2


def test_no_yes_is_given_for_good_to_what_is_required() -> None:
    """TL-25: nor does an earlier one hold once the policy requires a person, or never offers it."""
    turn = [
        calls(call("shout", "c1", text="hi")),
        say(),
        calls(call("shout", "c2", text="hi")),
        say(),
    ]
    required = {"policy": {"shout": {"decision": "confirm", "required": True}}}
    for tools in (required, {**CONFIRM, "always": "never"}):
        run = Run(turn, with_tools=[shout], tools=tools).ask()
        assert "always" not in run.approvals[0]
    saver = InMemorySaver()
    run = Run(turn, with_tools=[shout], tools=CONFIRM)
    run.graph = build_graph(
        run.model, [shout], Settings.model_validate({"tools": CONFIRM}), checkpointer=saver
    )
    run.ask()
    asked = {k: run.approvals[0][k] for k in ("approval_id", "digest")}
    run.decide(asked | {"decision": "approve", "always": "thread"})
    run.graph = build_graph(
        run.model, [shout], Settings.model_validate({"tools": required}), checkpointer=saver
    )
    run.ask()

    assert [each["approval_id"] for each in run.approvals] == ["c2"]


def test_a_yes_to_what_has_changed_since_is_void(workspace: Path) -> None:
    """TL-13a: it is asked again, with the difference; nothing runs that nobody saw."""
    (workspace / "it.sh").write_text("echo harmless > out\n")
    turn = calls(
        command("sh it.sh", "c1"),
        call(
            "str_replace_editor",
            "c2",
            command="str_replace",
            path="it.sh",
            old_str="harmless",
            new_str="edited",
        ),
    )
    run = Run([turn, say()], workspace=workspace, **UNCHECKED).ask()
    (workspace / "it.sh").write_text("echo evil > out\n")
    run.approve()

    assert not (workspace / "out").exists()
    (again,) = run.approvals
    assert "it.sh" in str(again["warnings"])
    run.approve()
    assert (workspace / "out").read_text() == "evil\n"


def test_several_approvals_are_answered_at_once_and_in_any_order() -> None:
    """TL-14: approved, edited or denied; an edit is checked again."""
    turn = calls(*(call("shout", f"c{n}", text=str(n)) for n in range(4)))
    run = Run([turn, say()], with_tools=[shout], tools=CONFIRM).ask()
    digests = {each["approval_id"]: each["digest"] for each in run.approvals}

    def decision(id_: str, word: str, **more: Any) -> dict[str, Any]:
        return {"approval_id": id_, "digest": digests[id_], "decision": word, **more}

    run.decide(
        decision("c3", "approve"),
        decision("c1", "deny", reason="It is late."),
        decision("c2", "edit", args={"text": "edited"}),
    )
    assert sorted(HEARD) == ["3", "edited"]
    assert [each["approval_id"] for each in run.approvals] == ["c0"]
    run.decide(decision("c0", "edit", args={"wrong": 1}))
    (still,) = run.approvals
    assert "edit can not be used" in still["reason"]
    run.approve()

    assert sorted(HEARD) == ["0", "3", "edited"]
    assert "It is late." in run.outputs["c1"]
    assert run.result.completed


def test_a_required_approval_that_is_denied_blocks_and_is_asked_again() -> None:
    """TL-15: it never runs unapproved; an optional one is only told to the model."""
    required = {"policy": {"shout": {"decision": "confirm", "required": True}}}
    turn = [calls(call("shout", "c1", text="hi")), say()]
    optional = Run(turn, with_tools=[shout], tools=CONFIRM).ask().decide(c1="deny")
    run = Run(turn, with_tools=[shout], tools=required).ask().decide(c1="deny")

    assert optional.result.completed
    assert run.result.status == "blocked"
    assert len(run.model.asked()) == 1
    run.send(None)
    assert [each["approval_id"] for each in run.approvals] == ["c1"]
    assert HEARD == []
    run.approve()
    assert HEARD == ["hi"]
    assert run.result.completed


# --- TL-16: limits.


def test_a_turn_has_a_limit_of_steps() -> None:
    """TL-16: told in fixed words, in a plan too."""
    turns = [calls(call("shout", text=str(n))) for n in range(5)]
    run = Run(turns, with_tools=[shout], budgets={"max_steps_per_turn": 2}).ask()

    assert run.result.status == "max_steps_exceeded"
    assert "Stopped: exceeded max_steps_per_turn." in (run.result.error_message or "")
    assert len(run.model.asked()) == 2


@pytest.mark.parametrize(("limit", "ran"), [(None, 25), (20, 20), (3, 3)])
def test_an_answer_has_a_limit_of_calls(limit: int | None, ran: int) -> None:
    """TL-16: the first are kept, in the history too; the audit tells of the others."""
    long = "é" * 150
    turn = calls(*(call("shout" if n < 24 else long, f"c{n}", text=str(n)) for n in range(25)))
    settings = {"max_calls_per_turn": limit} | NO_REPAIR
    run = Run([turn, say()], with_tools=[shout], tools=settings).ask()

    assert run.outputs.keys() == {f"c{n}" for n in range(ran)}
    said = next(each for each in run.messages if isinstance(each, AIMessage))
    assert len(said.tool_calls) == ran
    left = [each["left_out"] for each in run.result.to_dict()["audit"] if each["left_out"]]
    if limit:
        ((each),) = left
        told = {name: each[name] for name in ("total", "executed", "omitted", "limit")}
        assert told == {"total": 25, "executed": ran, "omitted": 25 - ran, "limit": limit}
        assert len(each["names"]) == min(25 - ran, 10)
        assert all(len(name.encode()) <= 200 for name in each["names"])


# --- TL-17, TL-17a, TL-20: models that fail, and what they are sent.


def _speak_to(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)


def _asked_models(
    replies: Any, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[Run, list[str]]:
    llm = {"fallback_models": ["openai:two"], "requests": {"wait_seconds": 0}} | settings
    with openai_server(replies, strict=False) as server:
        _speak_to(server, monkeypatch)
        graph = build_graph(
            "openai:one", [shout], {"llm": llm} | NO_RECOVERY, checkpointer=InMemorySaver()
        )
        run = Run([], graph=graph).ask()
        return run, [each["model"] for each in server.requests]


SPEAKS_OF_TOOLS = {"error": {"message": "this model does not support tools"}}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (Fault(404), ["one", "two"]),
        (Fault(400, SPEAKS_OF_TOOLS), ["one", "two"]),
        (Fault(503), ["one"] * 3 + ["two"]),
        (Fault(cut="before_first_token"), ["one"] * 3 + ["two"]),
        (Fault(cut="later"), ["one"] * 3 + ["two"]),
        (Fault(400, {"error": {"message": "temperature is too high"}}), ["one"]),
        (Fault(401), ["one"]),
    ],
)
def test_a_model_that_fails_is_followed_by_the_next(
    fault: Fault, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-17: what only asking again can mend is asked again, counted in one place."""
    run, models = _asked_models(
        lambda request: fault if request["model"] == "one" else Reply("Done."), monkeypatch
    )

    assert models == asked
    assert run.result.completed == ("two" in asked)
    assert [each.content for each in run.messages][1:] == ["Done."] or not run.result.completed
    assert "half-finished" not in str(run.messages)
    (failover,) = [each["failover"] for each in run.result.to_dict()["audit"] if each["failover"]]
    assert failover["requested"].endswith("one")
    assert failover["used"].endswith("two") == ("two" in asked)
    assert len(failover["attempts"]) == asked.count("one")


def test_retries_never_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17: whatever fails, a call makes six requests at most."""
    run, models = _asked_models(lambda _: Fault(503), monkeypatch)

    assert models == ["one"] * 3 + ["two"] * 3
    assert run.result.status == "failed"


QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}


@pytest.mark.parametrize(
    ("fault", "code_words", "asked"),
    [
        (Fault(429, QUOTA), "quota", 1),
        (Fault(429, headers={"Retry-After": "86400"}), "", 1),
        (Fault(500, {"detail": "the disk is full"}), "the disk is full", 3),
        (Fault(500, {"error": "all is lost"}), "all is lost", 3),
        (Fault(500, [{"error": {"message": "in a list"}}]), "in a list", 3),
    ],
)
def test_what_a_provider_says_is_read_whole(
    fault: Fault, code_words: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-17a: in all shapes; a quota that is used up, or a day to wait, ends the asking."""
    run, models = _asked_models(lambda _: fault, monkeypatch, fallback_models=[])

    assert code_words in (run.result.error_message or "")
    assert len(models) == asked


def test_too_large_a_request_is_no_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17a: it is made smaller, and asked again, to a limit that the words say."""
    words = "This model's maximum context length is 4096 tokens. Your messages have 9000 tokens."

    def reply(request: dict[str, Any]) -> Answer:
        large = len(json.dumps(request["messages"])) > 12_000
        body = {"error": {"message": words, "code": "context_length_exceeded"}}
        return Fault(400, body) if large else Reply("Done.")

    with openai_server(reply, strict=False) as server:
        _speak_to(server, monkeypatch)
        out: Any = build_graph(
            "openai:one", (), {"tools": {"profile": "none", "profiles": {"none": []}}}
        ).invoke({"messages": [HumanMessage("x " * 20_000), HumanMessage("Do it")]})

    assert out["result"].completed
    assert out["result"].context_cost[0].refused


def test_system_messages_are_one_at_the_head() -> None:
    """TL-20: wherever they stood in the history."""
    run = Run([say("One."), say("Two.")]).ask()
    run.send({"messages": [SystemMessage("Be brief."), HumanMessage("Again")]})

    for asked in run.model.asked():
        assert [each.type for each in asked.messages].count("system") == 1
        assert asked.messages[0].type == "system"
    assert "Be brief." in str(run.model.asked()[1].messages[0].content)


# --- TL-18, TL-19: calling conventions, and what is canonical.

WRITTEN = '{"name": "shout", "arguments": {"text": "hi"}}'


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"[{WRITTEN}]",
        f"<tool_call>{WRITTEN}</tool_call>",
        f"<function_call>{WRITTEN}</function_call>",
        f"[TOOL_CALLS][{WRITTEN}]",
        f"<|python_tag|>{WRITTEN}",
        f"<tool_call>{WRITTEN.replace(chr(34), chr(39))}</tool_call>",
    ],
)
def test_calls_that_are_written_into_the_text_are_calls(text: str) -> None:
    """TL-18: in all notations, and decided on as native ones are."""
    run = Run([say(text), say()], with_tools=[shout], tools=CONFIRM).ask()

    (asked,) = run.approvals
    assert (asked["tool"], asked["args"]) == ("shout", {"text": "hi"})
    run.approve()
    assert HEARD == ["hi"]
    assert run.result.output == "Done."


def test_a_written_call_that_can_not_be_read_is_never_an_answer() -> None:
    """TL-18: and of several none is lost; text about a tool is text."""
    broken = '<tool_call>{"name": "shout", "arguments": {"text": "hi</tool_call>'
    run = Run([say(broken), say("Done.")], with_tools=[shout], tools=NO_REPAIR).ask()
    two = Run([say(f"<tool_call>{WRITTEN}</tool_call>" * 2), say()], with_tools=[shout]).ask()
    prose = Run([say("I would call shout with a text.")], with_tools=[shout]).ask()

    assert run.result.output == "Done."
    assert len(two.outputs) == 2
    assert prose.result.output == "I would call shout with a text."
    assert prose.result.completed


def test_what_is_asked_and_run_is_canonical() -> None:
    """TL-19: other names of arguments, and a promotion to another tool, before the approval."""
    seen: list[Any] = []

    def note(title: str, due: str = "") -> str:
        """Note it."""
        seen.append(("note", title, due))
        return title

    def remind(title: str, due: str) -> str:
        """Remind of it."""
        seen.append(("remind", title, due))
        return title

    noting = tool(note)
    noting.metadata = {
        "daruma": {
            "argument_aliases": {"name": "title"},
            "promote_to": "remind",
            "promote_when": ["due"],
        }
    }
    turn = calls(call("note", "c1", name="a"), call("note", "c2", name="b", due="noon"))
    policy = {"policy": {"note": "confirm", "remind": "confirm"}}
    run = Run([turn, say()], with_tools=[noting, tool(remind)], tools=policy).ask()

    assert [(each["tool"], each["args"]) for each in run.approvals] == [
        ("note", {"title": "a"}),
        ("remind", {"title": "b", "due": "noon"}),
    ]
    run.approve()
    assert seen == [("note", "a", ""), ("remind", "b", "noon")]


# --- TL-21 to TL-23: tools and callers of both kinds, and trying again.


async def test_tools_and_callers_of_both_kinds_work() -> None:
    """TL-21: under a running event loop, too."""

    async def whisper(text: str) -> str:
        """Say it quietly."""
        await asyncio.sleep(0)
        return text.lower()

    turn = calls(call("shout", "c1", text="Hi"), call("whisper", "c2", text="Hi"))
    told = {"messages": [HumanMessage("Do it")]}
    for way in ("invoke", "ainvoke"):
        graph: Any = Run([turn, say()], with_tools=[shout, whisper]).graph
        thread = {"configurable": {"thread_id": "t"}}
        out = graph.invoke(told, thread) if way == "invoke" else await graph.ainvoke(told, thread)
        assert [each.content for each in out["messages"] if each.type == "tool"] == ["HI", "hi"]


@pytest.mark.parametrize("effect", ["external", "none"])
def test_an_effect_that_was_cut_off_is_unknown_and_not_run_again(effect: str) -> None:
    """TL-21: neither failed nor done; only what has no effect has failed."""
    begun: list[str] = []

    def hang(text: str) -> str:
        """Hang."""
        begun.append(text)
        threading.Event().wait(60)
        return text

    hanging = tool(hang)
    hanging.metadata = {"daruma": {"effect": effect}}
    run = Run(
        [calls(call("hang", "c1", text="x")), say()], with_tools=[hanging], tools={"timeout": 0.1}
    )
    run.ask()

    assert begun == ["x"]
    assert ("unknown" in run.outputs["c1"]) == (effect == "external")
    assert run.result.completed


async def test_tools_are_functions_langchain_tools_and_tools_of_mcp_servers() -> None:
    """TL-22: through the adapter that everybody uses."""
    from langchain_mcp_adapters.tools import load_mcp_tools
    from mcp.server.lowlevel import Server
    from mcp.shared.memory import create_connected_server_and_client_session
    from mcp.types import TextContent, Tool

    server: Server[Any] = Server("s")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def listed() -> list[Tool]:
        return [Tool(name="double", description="Double it.", inputSchema=schema)]

    @server.call_tool()  # type: ignore[untyped-decorator]
    async def called(_: str, arguments: dict[str, Any]) -> list[TextContent]:
        return [TextContent(type="text", text=str(2 * arguments["a"]))]

    class Text(BaseModel):
        text: str

    quiet = StructuredTool.from_function(
        lambda text: text.lower(), name="quiet", description="Say it quietly.", args_schema=Text
    )
    turn = calls(call("shout", "c1", text="Hi"), call("quiet", "c2", text="Hi"))
    turn["calls"].append(call("double", "c3", a=2))
    async with create_connected_server_and_client_session(server) as session:
        theirs = await load_mcp_tools(session)
        allowed = {"policy": {"*": "allow"}}
        run = Run([turn, say()], with_tools=[shout, quiet, *theirs], tools=allowed)
        await run.graph.ainvoke({"messages": [HumanMessage("Do it")]}, run.config)

    assert run.outputs == {"c1": "HI", "c2": "hi", "c3": "4"}


def test_what_ended_as_errored_is_tried_again_by_hand() -> None:
    """TL-23: a model call, a call of a tool without its siblings, a rejected approval."""
    tries: list[str] = []

    def flaky(text: str) -> str:
        """Work the second time."""
        tries.append(text)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "it works"

    down = Run([{"raise": "down"}], **NO_RECOVERY).ask()
    turn = calls(call("flaky", "c1", text="x"), call("shout", "c2", text="once"))
    again = Run([turn, say()], with_tools=[flaky, shout]).ask()
    no = Run(
        [calls(call("shout", "c1", text="hi")), say(), say()], with_tools=[shout], tools=CONFIRM
    )
    no.ask().decide(c1="deny")

    assert down.result.status == "failed"
    mended = Run([say("Up again.")]).model
    down.graph = build_graph(mended, checkpointer=down.graph.checkpointer)
    down.graph.reopen(down.config)
    assert down.send(None).result.output == "Up again."
    again.graph.reopen(again.config, call="c1")
    again.send(None)
    assert (again.outputs["c1"], HEARD) == ("it works", ["once"])
    no.graph.reopen(no.config, call="c1")
    no.send(None).approve()
    assert HEARD == ["once", "hi"]
