"""Replies to open questions, made of the options of ``daruma answer``."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from langgraph.types import Command, Interrupt
from rich.console import Console
from tests.daruma_command import DONE, OTHER_PLAN, PLAN, Daruma, Said

from daruma import ScriptedChatModel, build_graph, open_postgres
from daruma.graph.command_line._output import Paper
from daruma.graph.command_line._questions import AnswerRefused, how_to_answer
from daruma.graph.command_line._replies import ALL, Given, ask, yes_to
from daruma.graph.command_line._run import with_all
from daruma.graph.command_line._thread_view import Stop
from daruma.state.failure import RecoveryAction
from daruma.state.interrupts import read_reply

# --- What is said on the command line or at the terminal becomes exactly one reply per question.


def review() -> Interrupt:
    phases = [{"id": "p1", "title": "Do it", "depends_on": []}]
    value = {"id": "r", "spec_review_id": "r", "goal": "Do it", "phases": phases}
    return Interrupt({"type": "spec_review_request", "deadline": None, **value}, id="i1")


def approvals(*names: str, required: bool = False) -> Interrupt:
    shown = [
        {"approval_id": name, "digest": f"digest of {name}", "tool": "run_command",
         "args": {"command": "ls"}, "command": "ls", "cwd": "/ws", "reason": "why",
         "required": required, "deny_effect": "continue", "sandbox": "none", "shown": ""}
        for name in names
    ]  # fmt: skip
    value = {"type": "approval_request", "id": "a", "approvals": shown, "deadline": None}
    return Interrupt(value, id="i1")


def question() -> Interrupt:
    value = {
        "type": "question",
        "id": "q",
        "question": "What now?",
        "context": "",
        "deadline": None,
    }
    return Interrupt(value, id="i1")


def held() -> Interrupt:
    """The question after a rollback that failed."""
    return Interrupt(question().value | {"options": ["retry", "restore", "keep"]}, id="i1")


def recovery() -> Interrupt:
    action = RecoveryAction(strategy="retry", tool_name="shout", confidence=0.6).to_dict()
    value = {"id": "t/1:recovery:0", "failure": "it fell", "action": action, "deadline": None}
    return Interrupt({"type": "recovery_request", **value}, id="i1")


def decided(reply: Any) -> dict[str, str]:
    return {each["approval_id"]: each["decision"] for each in reply["decisions"]}


CHANGED_A = Given(edit="a", args='{"command": "ls -l"}')

GIVEN: dict[str, tuple[Given, dict[str, str]]] = {
    "as shown": (Given(approve=["a@digest of a"], deny=["b"]), {"a": "approve", "b": "deny"}),
    "all approved": (Given(approve=[ALL]), {"a": "approve", "b": "approve"}),
    "one approved": (Given(approve=["b"]), {"b": "approve"}),
    "one each": (Given(approve=["a"], deny=["b"]), {"a": "approve", "b": "deny"}),
    "the rest denied": (Given(approve=["a"], deny=[ALL]), {"a": "approve", "b": "deny"}),
    "one changed": (CHANGED_A, {"a": "edit"}),
    "the rest approved": (replace(CHANGED_A, approve=[ALL]), {"a": "edit", "b": "approve"}),
    "all but one": (Given(approve=[ALL], deny=["a"]), {"a": "deny", "b": "approve"}),
}


@pytest.mark.parametrize("name", GIVEN)
def test_decisions_name_what_they_decide(name: str) -> None:
    """Each with the digest that was shown; what is not named stays open (TL-13)."""
    given, expected = GIVEN[name]
    asked = approvals("a", "b")

    reply = given.replies("t", [asked])["i1"]

    assert decided(reply) == expected
    assert read_reply(asked.value, reply)


RECOVERIES: dict[str, tuple[Given, dict[str, str]]] = {
    "approved": (Given(approve=[ALL]), {"decision": "approve"}),
    "approved by its id": (Given(approve=["t/1:recovery:0"]), {"decision": "approve"}),
    "denied": (Given(deny=[ALL], reason="no"), {"decision": "deny", "reason": "no"}),
    "instructed": (Given(text="Ask Ann."), {"decision": "instruct", "text": "Ask Ann."}),
}


@pytest.mark.parametrize("name", RECOVERIES)
def test_a_recovery_is_agreed_to_or_not_or_replaced(name: str) -> None:
    """RE-06: by the options that calls and questions are answered with."""
    given, expected = RECOVERIES[name]

    reply = given.replies("t", [recovery()])["i1"]

    assert reply == expected
    assert read_reply(recovery().value, reply)


@pytest.mark.parametrize(
    ("thread", "asked", "commands"),
    [
        (
            "t",
            recovery(),
            [
                "--approve t/1:recovery:0",
                "--deny --reason 'why not'",
                "--text 'what to do instead'",
            ],
        ),
        ("t", held(), ["--text retry", "--text restore", "--text keep"]),
        ("my thread", approvals("a; rm -rf /"), ["--approve 'a; rm -rf /@digest of a;'"]),
    ],
    ids=["recovery", "options", "quoted"],
)
def test_the_commands_that_answer_can_be_pasted(
    thread: str, asked: Interrupt, commands: list[str]
) -> None:
    """RE-06, RO-03: each that would do; names are quoted for the shell."""
    found = how_to_answer(thread, [asked])

    named = "'my thread'" if " " in thread else thread
    assert found[: len(commands)] == [f"daruma answer {named} {each}" for each in commands]


def test_yes_never_agrees_to_what_is_required() -> None:
    """Plans and optional approvals are confirmed; questions have no yes."""
    assert yes_to([review()]) == {"i1": {"decision": "confirm"}}
    assert decided(yes_to([approvals("a", "b")])["i1"]) == {"a": "approve", "b": "approve"}
    assert yes_to([approvals("a", required=True)]) == {}
    assert yes_to([recovery()]) == {"i1": {"decision": "approve"}}
    assert yes_to([question()]) == {}


BARE = {
    ("t", "--approve"): ["t", "--approve=*"],
    ("t", "--approve", "a"): ["t", "--approve", "a"],
    ("t", "--deny", "--reason", "no"): ["t", "--deny=*", "--reason", "no"],
    ("t", "--approve", "a", "--deny"): ["t", "--approve", "a", "--deny=*"],
    ("t", "--approve=-a"): ["t", "--approve=-a"],
}


@pytest.mark.parametrize("args", BARE)
def test_without_an_id_all_are_meant(args: tuple[str, ...]) -> None:
    """``--approve`` and ``--deny`` may stand alone."""
    assert with_all(args) == BARE[args]


def test_the_commands_that_answer_say_what_was_shown() -> None:
    """TL-13: a yes to one call is not one to another that has its id by then."""
    (command, *_) = how_to_answer("t", [approvals("a")])
    pinned = Given(approve=["a@digest of a"])
    later = approvals("a")
    later.value["approvals"][0]["digest"] = "digest of b"

    assert command == "daruma answer t --approve 'a@digest of a'"
    assert decided(pinned.replies("t", [approvals("a")])["i1"]) == {"a": "approve"}
    with pytest.raises(AnswerRefused, match="'a' is another call by now"):
        pinned.replies("t", [later])
    with pytest.raises(AnswerRefused, match="'a' is another call by now"):
        Given(edit="a@digest of a", args="{}").replies("t", [later])


TYPED: dict[str, tuple[Interrupt, list[str], Any]] = {
    "confirmed": (review(), ["c"], {"decision": "confirm"}),
    "rejected": (review(), ["r", "shorter"], {"decision": "reject", "feedback": "shorter"}),
    "asked until it is understood": (review(), ["", "what?", "C"], {"decision": "confirm"}),
    "answered": (question(), ["wait"], {"answer": "wait"}),
    "chosen": (held(), ["keep"], {"answer": "keep"}),
    "chosen by its beginning": (held(), ["re", "maybe", "RES"], {"answer": "restore"}),
    "recovered": (recovery(), ["a"], {"decision": "approve"}),
    "not recovered": (recovery(), ["d", "no"], {"decision": "deny", "reason": "no"}),
    "recovered otherwise": (
        recovery(),
        ["i", "Ask Ann."],
        {"decision": "instruct", "text": "Ask Ann."},
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_what_is_typed_becomes_a_reply(name: str) -> None:
    """A reply that the question accepts."""
    asked, typed, expected = TYPED[name]

    replies = ask(Stop("t", None, (asked,)), paper(), known=False, read=typing(*typed))

    assert replies == {"i1": expected}
    assert read_reply(asked.value, replies["i1"])


def typing(*lines: str) -> Any:
    """A person who types these lines and then closes the input."""
    typed: Iterator[str] = iter(lines)

    def read(_: str) -> str:
        for line in typed:
            return line
        raise EOFError

    return read


def paper() -> Paper:
    return Paper(Console(file=StringIO()))


def in_doubt(name: str) -> Interrupt:
    value = question().value | {"id": name, "options": ["happened", "again", "unknown"]}
    return Interrupt(value, id=f"interrupt {name}")


def test_one_text_is_no_answer_to_several_questions() -> None:
    """Each call that is in doubt is answered for itself; the commands say how."""
    both = [in_doubt("m1:c1"), in_doubt("m1:c2")]

    with pytest.raises(AnswerRefused, match=r"say which one .* --to m1:c1 --text happened or "):
        Given(text="happened").replies("t", both)
    with pytest.raises(AnswerRefused, match="no question 'm9' is open; open: m1:c1, m1:c2"):
        Given(text="happened", to="m9").replies("t", both)

    told = Given(text="happened", to="m1:c2").replies("t", both)
    assert told == {"interrupt m1:c2": {"answer": "happened"}}
    assert Given(text="again").replies("t", both[:1]) == {"interrupt m1:c1": {"answer": "again"}}


# --- A plan that nobody confirmed in time is parked, said to be, and taken up by a late answer.


@pytest.fixture
def late(daruma: Daruma) -> Daruma:
    """The command, with a review on thread ``t`` whose deadline has passed."""
    daruma.configure("spec_review: {timeout: 0.001}\n")
    model = daruma.script(plan=[PLAN, OTHER_PLAN], main=[DONE])
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    return daruma


def standing(daruma: Daruma) -> str:
    (row,) = daruma("threads").out.splitlines()
    return row.split("\t")[1]


@pytest.mark.long
def test_resuming_parks_an_overdue_review_and_says_so(late: Daruma) -> None:
    """PL-03: exit code 3, the result, the question again, and how to answer it."""
    before, said, after = standing(late), late("resume", "t"), standing(late)

    assert (before, after) == ("waiting", "parked")
    assert said.code == 3
    assert "Is this plan right? parked: nobody confirmed it in time" in said.out
    assert "─── ✗ parked ───" in said.out
    assert "Is this plan right?  parked: it waits, without a deadline" in said.out
    assert "daruma answer t --confirm\n" in said.out


@pytest.mark.long
def test_agreeing_beforehand_confirms_what_is_overdue(late: Daruma) -> None:
    """``--yes`` is an answer, and a late one counts."""
    said: Said = late("resume", "t", "--yes", "--json")

    assert (said.code, said.json["status"]) == (0, "completed")


# --- A thread of a program whose tools the command does not have is answered there.


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.mark.long
def test_a_yes_to_a_tool_that_is_not_here_is_not_taken(daruma: Daruma) -> None:
    """It stays open for the program that has the tool, and nothing of it is spent."""
    model = daruma.script(main=[DONE])
    script = {"main": [{"calls": [{"name": "pay", "args": {"amount": 3}}]}, DONE]}
    confirm = {"tools": {"policy": {"pay": "confirm"}}}
    thread: Any = {"configurable": {"thread_id": "t"}}
    with open_postgres(daruma.url) as pg:
        graph = build_graph(ScriptedChatModel(script=script), [pay], confirm, pg)
        graph.invoke({"messages": [("user", "Pay")], "mode": "react"}, thread)

    for more in ((), ("--model", model), ("--submit", "--model", model)):
        said = daruma("answer", "t", "--approve", *more).complaint
        assert "asks about 'pay', a tool of the program that began it" in said

    with open_postgres(daruma.url) as pg:
        graph = build_graph(ScriptedChatModel(script=script), [pay], confirm, pg)
        (asked,) = graph.get_state(thread).interrupts
        shown = asked.value["approvals"][0]
        yes = {key: shown[key] for key in ("approval_id", "digest")} | {"decision": "approve"}
        out = graph.invoke(Command(resume={asked.id: {"decisions": [yes]}}), thread)
    assert "paid 3" in [each.text for each in out["messages"]]
