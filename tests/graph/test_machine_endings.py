"""How tasks end: what a model does, in which workspace, mode and settings, and what that comes to.

MO-04, MO-08, MO-10, VE-03, VE-05, BU-01: no story whose workspace is red or unchecked ends as a
plain ``completed``.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.lib import pretty
from langchain_openai import ChatOpenAI
from tests.openai_answers import Reply
from tests.openai_server import Fault, openai_server
from tests.parts import memory, settings
from tests.scripted_runs import Run, against, call, calls, phases, say, unclosed

from daruma.graph.build import build_graph
from daruma.graph.workers._execution import ended
from daruma.state.channels import State
from daruma.state.result import NOT_CHECKED

ALLOWED = {"policy": {"run_command": "allow"}}
CHECKED = {"verification": {"commands": ["test -f ok"]}}
ALWAYS = {"verification": {"enabled": True, "commands": ["test -f ok"]}}
OFF = {"verification": {"enabled": False, "commands": ["test -f ok"]}}
FRUGAL = {"budgets": {"preset": "frugal"}}
BRIEF = {"budgets": {"reflect": 1}, "verification": {"max_reinjections": 0}}
"""Red checks are looked at once more."""
NO_RECOVERY = {"fallback_chain": {"recovery": {"enabled": False}}}
GREEN_TEST = {"test_it.py": "def test_it():\n    assert True\n"}
RED_TEST = {"test_it.py": "def test_it():\n    assert False\n"}
HM = say("I see what is wrong.")
BLANK, DOWN = say(""), {"raise": "the provider is down"}
ONE = phases("one")
TWO = phases("one", "two")
STUCK = {"recovery": [against("give-up")] * 9}


def run(command: str) -> dict[str, Any]:
    """A turn that runs a command."""
    return calls(call("run_command", command=command))


def edit(path: str, text: str) -> dict[str, Any]:
    """A turn that writes a file."""
    return calls(call("str_replace_editor", command="create", path=path, file_text=text))


def look(path: str) -> dict[str, Any]:
    """A turn that reads a file, or a folder."""
    return calls(call("str_replace_editor", command="view", path=path))


def work(steps: int) -> list[Any]:
    """So many turns of one call each, every one with something new."""
    return [edit(f"part_{number}", f"{number}\n") for number in range(steps)]


OK = edit("ok", "ok\n")
MESS = edit("mess", "a mess\n")


@dataclass(frozen=True)
class Story:
    """What the model does, where and under what, and how that ends: ``says`` stands in the output.

    ``ends`` is the headline that people read; ``main`` the model's turns, ``more`` those of others.
    """

    name: str
    ends: str
    main: list[Any]
    mode: str = "react"
    files: dict[str, str] = field(default_factory=lambda: {"ok": "ok\n"})
    settings: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    workspace: bool = True
    goal: str = "Do it"


def planned(name: str, ends: str, main: list[Any], **how: Any) -> Story:
    """A story of a plan of one phase, if not told otherwise."""
    more = {"plan": [ONE], "reflect": [HM] * 9} | STUCK | how.pop("more", {})
    return Story(name, ends, main, **{"mode": "plan_exec", "settings": CHECKED} | how, more=more)


GAVE_UP = "gave_up_after_reflections"
OUT = "max_steps_exceeded"
RED: dict[str, Any] = {"files": {}}
"""A workspace where ``test -f ok`` is red."""
HELD: dict[str, Any] = {"files": {"ok": "", ".gitignore": "x", "x": ""}}

STORIES = [
    # react, the default: checked where the task changed its workspace (MO-04)
    Story("only talk", NOT_CHECKED, [say("Hello.")], says="Hello."),
    Story("only talk, no workspace", NOT_CHECKED, [say()], workspace=False),
    Story("only talk, red", NOT_CHECKED, [say("All tests pass now.")], settings=CHECKED, **RED),
    Story("a chat", NOT_CHECKED, [say()], mode="direct_chat", settings=ALWAYS),
    Story("a chat, red", NOT_CHECKED, [say()], mode="direct_chat", settings=ALWAYS, **RED),
    Story("reads, green", NOT_CHECKED, [look("ok"), say()], settings=CHECKED),
    Story("reads, red", NOT_CHECKED, [look("."), say()], settings=CHECKED, **RED),
    Story("a command that changes nothing", NOT_CHECKED, [run("ls"), say()], settings=CHECKED),
    Story("removes what git ignores", "completed", [run("rm x"), say()], settings=CHECKED, **HELD),
    Story("writes, nothing to run", NOT_CHECKED, [OK, say()], files={}),
    Story("writes, green", "completed", [MESS, say()], settings=CHECKED, says="Done."),
    Story("makes it green", "completed", [OK, say()], settings=CHECKED, **RED),
    Story(
        "a command makes it green", "completed", [run("touch ok"), say()], settings=CHECKED, **RED
    ),
    Story(
        "says that all is well over red checks",
        GAVE_UP,
        [MESS, *[say("All tests pass now.")] * 4],
        settings=CHECKED,
        more={"reflect": [HM] * 2},
        says="budgets.reflect (2)",
        **RED,
    ),
    Story("put back, and mended", "completed", [MESS, say(), OK, say()], settings=CHECKED, **RED),
    Story(
        "reflected on, and mended",
        "completed",
        [MESS, say(), say(), OK, say()],
        settings=CHECKED,
        more={"reflect": [HM]},
        **RED,
    ),
    Story("off, red", NOT_CHECKED, [MESS, say()], settings=OFF, **RED),
    Story("always, unchanged, green", "completed", [say()], settings=ALWAYS),
    Story(
        "always, unchanged, red",
        GAVE_UP,
        [say()] * 4,
        settings=ALWAYS,
        more={"reflect": [HM] * 2},
        **RED,
    ),
    Story(
        "red tests of pytest",
        GAVE_UP,
        [edit("test_it.py", RED_TEST["test_it.py"]), *[say("All tests pass now.")] * 2],
        settings=BRIEF,
        more={"reflect": [HM]},
        files={},
        says="pytest",
    ),
    Story("green tests of pytest", "completed", [MESS, say()], files=GREEN_TEST),
    Story("no tests for pytest", NOT_CHECKED, [MESS, say()], files={"code.py": "ONE = 1\n"}),
    Story(
        "the checks' program is not there",
        GAVE_UP,
        [MESS, *[say()] * 4],
        settings={"verification": {"commands": ["no-such-program"]}},
        more={"reflect": [HM] * 2},
    ),
    # what was there before, and what only looks green (VE-02, VE-06 to VE-08)
    Story(
        "right, in a project that ruff would not pass and does not configure",
        "completed",
        [MESS, say()],
        files=GREEN_TEST | {"untidy.py": "import os, sys\nx=lambda: undefined\n"},
    ),
    Story(
        "another test was red before",
        NOT_CHECKED,
        [MESS, say()],
        files=GREEN_TEST | {"test_old.py": RED_TEST["test_it.py"]},
    ),
    Story(
        "the test that is to be mended was red before",
        GAVE_UP,
        [MESS, *[say()] * 2],
        files=RED_TEST,
        goal="Mend test_it.py",
        settings=BRIEF,
        more={"reflect": [HM]},
    ),
    Story(
        "ends the test run early",
        GAVE_UP,
        [edit("conftest.py", "import os\n\nos._exit(0)\n"), *[say()] * 2],
        files=RED_TEST | {"test_more.py": GREEN_TEST["test_it.py"]},
        settings=BRIEF,
        more={"reflect": [HM]},
    ),
    Story(
        "hides a test",
        GAVE_UP,
        [edit("conftest.py", 'collect_ignore = ["test_it.py"]\n'), *[say()] * 2],
        files=RED_TEST | {"test_more.py": GREEN_TEST["test_it.py"]},
        settings=BRIEF,
        more={"reflect": [HM]},
        says="tests that are to go have to be named in the goal or the plan",
    ),
    Story(
        "a check that takes too long",
        GAVE_UP,
        [MESS, *[say()] * 4],
        settings={"verification": {"commands": ["sleep 99"], "timeout": 0.2}},
        more={"reflect": [HM] * 2},
        says="wants a higher verification.timeout",
    ),
    Story(
        "a check that leaves the workspace",
        GAVE_UP,
        [MESS, *[say()] * 4],
        settings={"verification": {"commands": ["cat ../../etc/passwd"]}},
        more={"reflect": [HM] * 2},
        says="leaves the workspace",
    ),
    Story("a change and its undoing", NOT_CHECKED, [MESS, run("rm mess"), say()], settings=CHECKED),
    # steps that run out, react
    Story(
        "out of steps, green",
        OUT,
        work(3),
        settings=CHECKED | {"budgets": {"max_steps": 3}},
        says="budgets.max_steps (3)",
    ),
    Story(
        "out of steps, always checked",
        OUT,
        work(3),
        settings=ALWAYS | {"budgets": {"max_steps": 3}},
        says="budgets.max_steps (3)",
    ),
    Story(
        "out of steps, red", OUT, work(3), settings=CHECKED | {"budgets": {"max_steps": 3}}, **RED
    ),
    Story("out of steps, unchecked", OUT, work(3), settings=OFF | {"budgets": {"max_steps": 3}}),
    Story("out of steps, frugal", OUT, work(10), settings=FRUGAL, says="budgets.max_steps (10)"),
    Story(
        "out of the turn",
        OUT,
        work(3),
        settings=CHECKED | {"budgets": {"max_steps_per_turn": 3}},
        says="Stopped: exceeded max_steps_per_turn.",
    ),
    Story(
        "out of steps as red work is put back",
        OUT,
        [MESS, say(), OK],
        settings=CHECKED | {"budgets": {"max_steps": 3}},
        **RED,
    ),
    Story("twelve actions", "completed", [*work(12), say()], settings=CHECKED),
    Story("thirty steps", "completed", [*work(30), say()], settings=CHECKED),
    # plans: checked unless switched off
    planned("a phase, green", "completed", [say()]),
    planned("a phase, nothing to run", NOT_CHECKED, [say()], settings={}),
    planned("a phase, off, red", NOT_CHECKED, [say()], settings=OFF, **RED),
    planned("a phase, no workspace", NOT_CHECKED, [say()], workspace=False),
    planned("a phase, red", GAVE_UP, [say()] * 4, says="budgets.reflect (2)", **RED),
    planned("a phase, red, frugal", GAVE_UP, [say()] * 2, settings=CHECKED | FRUGAL, **RED),
    planned("a phase, put back and mended", "completed", [say(), OK, say()], **RED),
    planned("a phase, reflected on and mended", "completed", [say(), say(), OK, say()], **RED),
    planned(
        "a phase, red, no reflections",
        "failed",
        [say()] * 2,
        settings=CHECKED | {"budgets": {"reflect": 0}},
        says="budgets.reflect (0)",
        **RED,
    ),
    planned(
        "a phase, out of steps, green",
        OUT,
        work(3),
        settings=CHECKED | {"budgets": {"think": 3}},
        says="budgets.think (3)",
    ),
    planned("twelve actions, frugal, green", OUT, work(7), settings=CHECKED | FRUGAL),
    planned("thirty steps in a phase", "completed", [*work(30), say()]),
    planned("a phase, out of steps, off", OUT, work(3), settings=OFF | {"budgets": {"think": 3}}),
    planned(
        "no plan, but a refusal",
        "failed",
        [],
        more={"plan": [say("Sorry, I can not make a plan for that.")] * 2},
        says="can not make a plan",
    ),
    planned(
        "a plan of another shape, then a plan",
        "completed",
        [say()],
        more={"plan": [{"json": {"steps": ["one"]}}, ONE]},
    ),
    planned(
        "no plan for a team",
        "failed",
        [],
        mode="team_collab",
        more={"plan": [say("I would rather not.")] * 2},
    ),
    planned("two phases, green", "completed", [say(), say()], more={"plan": [TWO]}),
    planned(
        "two phases, one without an answer",
        OUT,
        [say(), *work(3)],
        settings=CHECKED | {"budgets": {"think": 3}},
        more={"plan": [TWO]},
    ),
    planned(
        "two phases, the second breaks it",
        GAVE_UP,
        [say(), run("rm ok"), *[say()] * 4],
        more={"plan": [TWO]},
    ),
    # a team
    planned("a team, green", "completed", [], mode="team_collab", more={"main@p1": [say()]}),
    planned("a team, red", GAVE_UP, [], mode="team_collab", more={"main@p1": [say()] * 4}, **RED),
    planned(
        "a team, nothing to run",
        NOT_CHECKED,
        [],
        mode="team_collab",
        settings={},
        more={"main@p1": [say()]},
    ),
    planned(
        "a team, out of steps",
        OUT,
        [],
        mode="team_collab",
        settings=CHECKED | {"budgets": {"think": 3}},
        more={"main@p1": work(3)},
    ),
    # failures
    Story("the provider is down", "failed", [DOWN], settings=NO_RECOVERY),
    Story("the provider goes down", "failed", [MESS, DOWN], settings=CHECKED | NO_RECOVERY),
    Story("nothing is said", "failed", [BLANK], settings=CHECKED | NO_RECOVERY),
    Story(
        "twelve files that are not there",
        "failed",
        [look(f"gone_{number}.txt") for number in range(12)],
        settings=NO_RECOVERY,
        says="no progress",
    ),
    Story("a loop", "failed", [look("ok")] * 3, settings=CHECKED | NO_RECOVERY),
    Story(
        "a loop with the last step, green",
        "failed",
        [look("ok")] * 3,
        settings=ALWAYS | NO_RECOVERY | {"budgets": {"max_steps": 3}},
    ),
    Story("a request without words", "failed", [], settings=CHECKED, workspace=False, goal=""),
    # budgets that stop
    Story(
        "tokens are spent before an answer, green",
        "budget_exceeded",
        [MESS | {"usage": {"input": 90, "output": 20}}],
        settings=ALWAYS | {"budgets": {"tokens": 100, "when_spent": "stop"}},
        says="budgets.tokens",
    ),
    Story(
        "tokens are spent with the answer, green",
        "completed",
        [MESS, say() | {"usage": {"input": 9000, "output": 2000}}],
        settings=CHECKED | {"budgets": {"tokens": 10_000, "when_spent": "stop"}},
    ),
    planned(
        "tokens are spent, red",
        "budget_exceeded",
        [say() | {"usage": {"input": 9000, "output": 2000}}],
        settings=CHECKED | {"budgets": {"tokens": 10_000, "when_spent": "stop"}},
        **RED,
    ),
    Story(
        "a required approval that is denied by rule",
        NOT_CHECKED,
        [run("touch x"), say()],
        settings={"tools": {"policy": {"run_command": "deny"}}},
    ),
]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and one beside it for Daruma's own data."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def told(story: Story, workspace: Path) -> Run:
    """Run a story to its end."""
    for name, text in story.files.items():
        (workspace / name).write_text(text)
    given = settings(**{"tools": ALLOWED, "spec_review": {"enabled": False}} | story.settings)
    script = {"main": story.main} | story.more
    place = {"workspace": str(workspace)} if story.workspace else {}
    return Run(script, settings=given).ask(story.goal, mode=story.mode, **place)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
def test_a_story_ends_as_it_has_to(story: Story, workspace: Path) -> None:
    """MO-10: nothing is answered in the model's place."""
    ended = told(story, workspace)

    result = ended.result
    assert result.headline == story.ends, (ended.nodes, result.output)
    assert story.says in result.output
    assert (result.headline == "completed") == (
        result.completed and result.checked.outcome == "passed"
    )
    assert result.error_struct is not None or result.completed
    assert unclosed(ended.events) == []
    (end,) = ended.happened("task_completed")
    assert (end["status"], end["checked"]) == (result.status, result.checked.outcome)


def test_there_are_stories_enough() -> None:
    """At least sixty, each of its own name."""
    assert len({story.name for story in STORIES}) == len(STORIES) >= 60


# --- RE-03a: a person is asked when steps run out, or checks stay red.

ASKED = {"fallback_chain": {"recovery": {"ask": True}}}


def asking(workspace: Path, main: list[Any], **sections: Any) -> Run:
    """A run of a plan of one phase in an empty workspace, until a person is asked."""
    given = {"tools": ALLOWED, "spec_review": {"enabled": False}} | CHECKED | ASKED | sections
    script = {"plan": [ONE], "main": main, "reflect": [HM] * 9}
    run = Run(script, settings=settings(**given))
    return run.ask(mode="plan_exec", workspace=str(workspace))


SHORT = {"budgets": {"think": 2}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("main", "sections", "reply", "ends", "says"),
    [
        ([*work(2), OK, say()], SHORT, "go on", "completed", "budgets.think (2)"),
        ([*work(2), OK, say()], SHORT, "Make ok, and nothing else.", "completed", "no answer yet"),
        (work(2), SHORT, "stop", OUT, "no answer yet"),
        ([*[say()] * 4, OK, say()], {}, "go on", "completed", "budgets.reflect (2)"),
        ([*[say()] * 4, OK, say()], {}, "Make ok.", "completed", "still red"),
        ([say()] * 4, {}, "Stop", GAVE_UP, "still red"),
        ([say()] * 4, {}, "STOP.", GAVE_UP, "still red"),
        (work(2), SHORT, "No!", OUT, "no answer yet"),
    ],
)
def test_a_person_can_grant_more_instruct_or_stop(
    workspace: Path,
    main: list[Any],
    sections: dict[str, Any],
    reply: str,
    ends: str,
    says: str,
) -> None:
    """RE-03a, and what was granted is computed from the record (BU-03)."""
    run = asking(workspace, main, **sections)
    asked = run.question.value

    run.reply({"answer": reply})

    assert says in asked["question"]
    assert run.result.headline == ends
    assert unclosed(run.events) == []
    stops = reply in ("stop", "Stop", "STOP.", "No!")
    instructed = reply != "go on" and not stops
    assert any(message.text == reply for message in run.messages) == instructed
    granted = any("granted the steps once more" in note for note in run.result.notes)
    assert granted == (not stops)
    (settled,) = run.happened("budget_settled")
    think = 2 if sections else 50
    assert (settled["measure"], settled["more"]) == ("steps", think if granted else 0)


def test_steps_are_granted_as_often_as_a_person_says(
    workspace: Path,
) -> None:
    """Each time all of them, and the second question is another one."""
    run = asking(workspace, [*work(5), OK, say()], **SHORT)
    first = run.question.value
    run.reply({"answer": "go on"})
    second = run.question.value
    run.reply({"answer": "go on"})
    run.reply({"answer": "go on"})

    assert first["id"] != second["id"]
    assert "budgets.think (4)" in second["question"]
    assert run.result.headline == "completed"


@pytest.mark.parametrize("ask", [None, False])
def test_nobody_is_asked_where_the_settings_do_not_say_so(
    workspace: Path, ask: bool | None
) -> None:
    """Null is for faces with a person at them: a terminal, and Studio."""
    sections = SHORT | {"fallback_chain": {"recovery": {"ask": ask}}}

    assert asking(workspace, work(2), **sections).result.headline == OUT
    assert settings(**sections).with_a_person().fallback_chain.recovery.ask is (ask is None)


# --- MO-10: every face that shows how a task ended.

IN_IPYTHON: Callable[[object], str] = pretty.pretty

FACES: dict[str, Callable[[Run], str]] = {
    "the result, printed": lambda run: str(run.result),
    "the result, in IPython": lambda run: IN_IPYTHON(run.result),
    "the result, as JSON": lambda run: json.dumps(run.result.to_dict()),
    "the event": lambda run: json.dumps(run.happened("task_completed")),
    "the timeline, as text": lambda run: str(run.graph.timeline(run.config)),
    "the timeline, in a notebook": lambda run: run.graph.timeline(run.config)._repr_html_(),
    "the page": lambda run: run.graph.timeline(run.config).page(),
    "a worker": lambda run: ended("t", run.snapshot),
}


@pytest.mark.parametrize("checked", [True, False])
def test_every_face_says_that_nothing_was_checked(workspace: Path, *, checked: bool) -> None:
    """MO-10; those of the command line are tried in ``command_line/test_run.py``."""
    story = Story("", "", [MESS, say("Hello.")], settings=CHECKED if checked else OFF)

    run = told(story, workspace)

    says = {name: NOT_CHECKED in face(run) for name, face in FACES.items()}
    assert says == dict.fromkeys(FACES, not checked)


@pytest.mark.long
def test_who_is_asked_later_is_told_of_changed_tests(workspace: Path) -> None:
    """VE-08: a test that was weakened is told with the question that follows."""
    (workspace / "test_it.py").write_text(RED_TEST["test_it.py"])
    (workspace / "test_more.py").write_text("def test_more():\n    assert False\n")
    weakened = run("sed -i s/False/True/ test_it.py")
    checks = BRIEF["verification"] | {"commands": ["pytest -q"]}
    asked = asking(workspace, [weakened, *[say()] * 2], **BRIEF | {"verification": checks})

    assert "changed tests: test_it.py" in asked.question.value["context"]


# --- The tool loop through the real OpenAI client: what other agents lose runs to is overcome.

MEANT = {"amount": 5, "to_whom": "Ann"}
TEXT = json.dumps(MEANT)
CALL = json.dumps({"name": "pay", "arguments": MEANT})

Answers = list[Reply | Fault]


class Payments:
    """A tool that keeps what it was called with, and a thread on which it is offered."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    def pay(self, amount: int, to_whom: str) -> str:
        """Pay an amount."""
        self.made.append({"amount": amount, "to_whom": to_whom})
        return "paid"

    def run(
        self, answers: Answers, *, mode: str = "updates", passed_in: bool = False, **tools: Any
    ) -> State:
        """Run one task to its end; the way of streaming decides how the model is asked."""
        config: Any = {"configurable": {"thread_id": "t"}}
        with openai_server(answers) as server, pytest.MonkeyPatch.context() as environment:
            environment.setenv("OPENAI_API_KEY", "sk-test")
            environment.setenv("OPENAI_BASE_URL", server.url)
            given = settings(tools=tools)
            model = ChatOpenAI(model="m") if passed_in else "openai:m"
            graph: Any = build_graph(model, [self.pay], given, checkpointer=memory())
            request = {"messages": [("user", "Pay Ann 5")]}
            list(graph.stream(request, config, stream_mode=mode))
            self.requests = server.requests
            return State(**graph.get_state(config).values)


@pytest.fixture
def payments() -> Payments:
    return Payments()


def asking_forgiving_loop(arguments: str, name: str = "pay") -> Reply:
    return Reply(calls=[{"name": name, "arguments": arguments, "id": "c1"}])


def repairs(**repair: Any) -> Reply:
    return Reply(json.dumps({"repairs": [{"tool_call_id": "c1", **repair}]}))


MALFORMED = {
    "single quotes": asking_forgiving_loop("{'amount': 5, 'to_whom': 'Ann'}"),
    "a number as text": asking_forgiving_loop('{"amount": "5", "to_whom": "Ann"}'),
    "keys spelt otherwise": asking_forgiving_loop('{"Amount": 5, "toWhom": "Ann"}'),
    "the name spelt otherwise": asking_forgiving_loop(TEXT, "Functions.Pay".replace(".", "_")),
    "doubled encoding": asking_forgiving_loop(json.dumps(TEXT)),
    "a fence": asking_forgiving_loop(f"```json\n{TEXT}\n```"),
    "written as text": Reply(CALL),
    "written in a fence": Reply(f"```json\n{CALL}\n```"),
    "written as a list": Reply(f"[{CALL}]"),
    "written in tags": Reply(f"<tool_call>{CALL}</tool_call>"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", ["updates", "messages"])
@pytest.mark.parametrize("case", MALFORMED)
def test_an_answer_of_one_malformed_call_runs_as_meant(
    payments: Payments, case: str, mode: str
) -> None:
    """TL-04, TL-10, TL-18: no other model call is needed, streamed or not."""
    aliases = {"functions_pay": "pay"}

    state = payments.run([MALFORMED[case], Reply("Done.")], mode=mode, name_aliases=aliases)

    assert payments.made == [MEANT]
    assert state.result is not None
    assert state.result.status == "completed"
    assert len(payments.requests) == 2


@pytest.mark.parametrize("mode", ["updates", "messages"])
def test_a_repair_is_asked_for_exactly(payments: Payments, mode: str) -> None:
    """TL-08: no tools, no streaming, temperature 0; and its cost has a role of its own."""
    answers: Answers = [
        asking_forgiving_loop(TEXT, "transfer"),
        repairs(name="pay"),
        Reply("Done."),
    ]

    state = payments.run(answers, mode=mode)

    request = payments.requests[1]
    assert (request["temperature"], request.get("stream", False)) == (0, False)
    assert "tools" not in request
    assert payments.made == [MEANT]
    assert state.result is not None
    assert state.result.usage["repair"]["calls"] == 1
    (audit,) = (each for each in state.result.to_dict()["audit"] if each["round"])
    assert audit["names"][0]["requested_name"] == "transfer"


def test_no_word_of_a_repair_is_streamed(payments: Payments) -> None:
    """Who watches the model's words sees the answer, not the mending of a call."""
    answers: Answers = [
        asking_forgiving_loop(TEXT, "transfer"),
        repairs(name="pay"),
        Reply("Done."),
    ]
    with openai_server(answers) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-test")
        environment.setenv("OPENAI_BASE_URL", server.url)
        graph = build_graph("openai:m", [payments.pay], settings())
        request: Any = {"messages": [("user", "Pay Ann 5")]}
        said = [part[0].text for part in graph.stream(request, stream_mode="messages")]

    assert "repairs" not in "".join(said)
    assert "Done." in "".join(said)


@pytest.mark.long
def test_a_model_that_takes_no_temperature_is_asked_without(payments: Payments) -> None:
    """Models that reason refuse a request that sets it."""
    refusal = {"error": {"message": "Unsupported value: 'temperature' does not support 0."}}
    answers: Answers = [
        asking_forgiving_loop(TEXT, "transfer"),
        Fault(400, body=refusal),
        repairs(name="pay"),
        Reply("Done."),
    ]

    payments.run(answers)

    assert payments.made == [MEANT]
    assert "temperature" not in payments.requests[2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("passed_in", [False, True])
@pytest.mark.parametrize("mode", ["updates", "messages"])
def test_a_payload_that_was_cut_off_does_not_run(
    payments: Payments, mode: str, passed_in: bool
) -> None:
    """However the rest of the answer looks: the model is told, and gives it again."""
    answers: Answers = [
        asking_forgiving_loop('{"amount": 5, "to_whom": "An'),
        asking_forgiving_loop(TEXT),
        Reply("Done."),
    ]

    state = payments.run(answers, mode=mode, passed_in=passed_in)

    assert payments.made == [MEANT]
    assert len(payments.requests) == 3
    assert any("cut off" in message.text for message in state.messages if message.type == "tool")
