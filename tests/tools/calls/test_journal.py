"""What a call does is done once, and what is in doubt is asked or told, never guessed (DU-06)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphInterrupt
from tests.parts import a_call, a_context, settings

from daruma.graph.storage._ledgers import Place, ProcessJournal, ProcessLedger
from daruma.state.errors import StorageUnavailable
from daruma.state.events import CallSettled, Event
from daruma.state.interrupts import Question, read_reply
from daruma.state.settings import Settings
from daruma.state.text import digest
from daruma.tools.calls import (
    Effect,
    JournalEntry,
    NoJournal,
    Outcome,
    WorkspaceTurns,
    call_effect,
    outcome_without_tool,
    run_once,
)
from daruma.tools.calls._journal import put_back, question_of
from daruma.tools.calls._results import Settles
from daruma.tools.context import Context
from daruma.tools.errors import OutcomeUnknown
from daruma.tools.snapshots import (
    Restored,
    Snapshots,
    SnapshotUnavailable,
    Store,
    store_of,
    with_snapshots,
)

CALL = a_call(args={"amount": 5, "note": "x" * 500})
DONE = Outcome("done", "paid")


async def make_once(effect: Effect, context: Context, work: Any, ask: Any) -> Outcome:
    """Make the call in its turn, as the node does."""
    snapshots = context.snapshots(effect.workspace or None)
    async with context.turns.turn(effect.workspace, snapshots, context.journal) as turn:
        return await run_once(CALL, effect, turn, context.journal, work, ask, context.emit)


class Life:
    """One life of a process after the other, over the same journal."""

    def __init__(self, workspace: Path | None = None) -> None:
        self.ledger = ProcessLedger()
        self.workspace = str(workspace) if workspace else ""
        self.events: list[Event] = []
        self.asked: list[Question] = []
        self.worked: list[str] = []
        self.number = 0

    def begin(self) -> Context:
        """The context of the next life."""
        self.number += 1
        journal = self.ledger.journal_at(Place("t", "", "1"), str(self.number))
        return replace(a_context(events=self.events), journal=journal, turns=WorkspaceTurns())

    def effect(self, settles: Settles, call: str = "m1:c1") -> Effect:
        return Effect(call, "digest", settles, self.workspace)

    async def make(
        self,
        settles: Settles,
        *,
        dies: bool = False,
        says: Sequence[str] = (),
        outcome: Outcome = DONE,
    ) -> Outcome:
        """Make the call in a life of its own; a person answers in turn, and then no more."""
        answers = list(says)

        async def work(key: str) -> Outcome:
            self.worked.append(key)
            if dies:
                raise asyncio.CancelledError
            return outcome

        def ask(question: Question) -> str:
            self.asked.append(question)
            if not answers:
                raise GraphInterrupt
            return answers.pop(0)

        return await make_once(self.effect(settles), self.begin(), work, ask)

    def settled(self) -> list[str]:
        return [each.how for each in self.events if isinstance(each, CallSettled)]


async def test_a_call_that_was_made_is_answered_with_what_came_of_it() -> None:
    """Its result, a failure too, was on record before the machine was told."""
    for outcome in (DONE, Outcome("failed", "Error: no")):
        life = Life()
        await life.make("ask", outcome=outcome)

        assert await life.make("ask", outcome=Outcome("done", "paid twice")) == outcome
        assert (len(life.worked), life.settled()) == (1, ["reused"])


async def test_a_call_that_was_cut_short_is_settled_as_its_effect_says() -> None:
    """Made again with the same key, told to the model, or asked about; that is on record."""
    settles: Any
    for settles, says, status, made in (
        ("again", [], "done", 2),
        ("tell", [], "unknown", 1),
        ("ask", ["happened"], "done", 1),
        ("ask", ["unknown"], "unknown", 1),
        ("ask", ["again"], "done", 2),
    ):
        life = Life()
        with pytest.raises(asyncio.CancelledError):
            await life.make(settles, dies=True)
        if says:
            with pytest.raises(GraphInterrupt):
                await life.make(settles)

        outcome = await life.make(settles, says=says)

        assert (outcome.status, len(life.worked), {*life.worked}) == (
            status,
            made,
            {life.worked[0]},
        )
        assert (life.settled(), bool(life.asked)) == (says or [settles], bool(says))
        assert status == "done" or outcome.text.startswith("Error: outcome_unknown: shout was cut ")
        assert await life.make(settles) == outcome


async def test_an_old_answer_is_none_to_a_second_question() -> None:
    """Cut short once more, after ``again``: the first answer is remembered, and asked beyond."""
    life = Life()
    with pytest.raises(asyncio.CancelledError):
        await life.make("ask", dies=True)
    with pytest.raises(asyncio.CancelledError):
        await life.make("ask", says=["again"], dies=True)

    with pytest.raises(GraphInterrupt):
        await life.make("ask", says=["again"])
    outcome = await life.make("ask", says=["again", "happened"])

    assert (outcome.status, len(life.worked)) == ("done", 2)
    assert len({each["id"] for each in life.asked}) == 2


async def test_a_tool_that_asks_in_its_own_words_is_begun_anew() -> None:
    """What it does before its question is done again: LangGraph's rule, not a crash."""
    life, context = Life(), None
    asked = 0

    async def work(_: str) -> Outcome:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise GraphInterrupt
        return DONE

    def ask(_: Question) -> str:
        raise LookupError

    context = life.begin()
    with pytest.raises(GraphInterrupt):
        await make_once(life.effect("ask"), context, work, ask)

    assert await make_once(life.effect("ask"), life.begin(), work, ask) == DONE


def test_the_question_names_the_call_and_takes_its_options_only() -> None:
    """Bounded, whatever the arguments hold."""
    question = question_of(CALL, 1)

    assert question["question"].startswith("outcome_unknown: shout(amount=5, note='xxx")
    assert len(question["question"]) < 500
    assert read_reply(question, {"answer": "Again"}).answer == "again"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    place = tmp_path / "ws"
    place.mkdir()
    (place / "kept").write_text("kept")
    return place


async def test_what_was_cut_short_in_a_workspace_is_undone_before_anything_else_is_done(
    workspace: Path,
) -> None:
    """Also where another call comes first: it must not build on what is half done."""
    life = Life(workspace)
    log = workspace / "log"

    async def writing(context: Context, key: str, *, dies: bool) -> Outcome:
        async with with_snapshots(context.snapshots(life.workspace), f"shout {key}"):
            with log.open("a") as file:
                file.write("half" if dies else "whole")
            if dies:
                raise KeyboardInterrupt  # as if it were killed: nothing after it is done
        return DONE

    def ask(_: Question) -> str:
        raise LookupError

    seen = []

    async def looking(key: str) -> Outcome:
        seen.append((log.exists(), key))
        return DONE

    first = life.begin()
    snapshots = first.snapshots(life.workspace)
    assert snapshots
    snapshots.take("the start", by="others")
    with pytest.raises(KeyboardInterrupt):
        await make_once(
            life.effect("restore"), first, lambda key: writing(first, key, dies=True), ask
        )
    assert log.read_text() == "half"

    second = life.begin()
    await make_once(life.effect("restore", "m1:c2"), second, looking, ask)
    await make_once(
        life.effect("restore"), second, lambda key: writing(second, key, dies=False), ask
    )

    assert [there for there, _ in seen] == [False]
    assert (log.read_text(), (workspace / "kept").read_text()) == ("whole", "kept")
    (settled,) = [each for each in life.events if isinstance(each, CallSettled)]
    assert settled.how == "restore"
    assert settled.undo in {each.id for each in snapshots.kept()}


async def test_where_nothing_can_be_put_back_a_person_is_asked(workspace: Path) -> None:
    """On another machine there are no snapshots: nothing is guessed."""
    life = Life(workspace)
    with pytest.raises(asyncio.CancelledError):
        await life.make("restore", dies=True)

    with pytest.raises(GraphInterrupt):
        await life.make("restore")

    assert len(life.asked) == 1


class Lost(ProcessLedger):
    """A journal whose database is gone."""

    def journal_at(self, place: Place, run: str) -> ProcessJournal:
        return Away(self.effects, place, run)


class Away(ProcessJournal):
    """The journal at one place of it."""

    async def begin(self, effect: Effect) -> JournalEntry:
        raise StorageUnavailable(f"gone: {effect}")


async def test_without_a_database_nothing_is_done() -> None:
    """The intent is the fence: no record of it, no effect."""
    life = Life()
    life.ledger = Lost()

    with pytest.raises(StorageUnavailable):
        await life.make("ask")

    assert life.worked == []


# --- What becomes of a call that was cut short, by what it can have changed (DU-06).


def declaring(name: str, **declared: Any) -> BaseTool:
    def act(text: str, key: str = "") -> str:
        """Act."""
        return text + key

    return StructuredTool.from_function(act, name=name, metadata={"daruma": declared})


TOOLS = [
    declaring("plain"),
    declaring("looks", effect="none"),
    declaring("writes", effect="workspace"),
    declaring("same", idempotent=True),
    declaring("keyed", idempotency_key="key"),
]


def context(given: Settings | None = None) -> Context:
    return a_context(tools=TOOLS, given=given or settings(sandbox={"require": "none"}))


async def effect(name: str, given: Settings | None = None, **args: Any) -> Effect | None:
    used = context(given)
    known = used.tools.named(name)
    assert known
    return await call_effect(
        a_call(name=name, args=args), known, "/ws", used.settings, used.open_sandbox
    )


async def test_a_call_is_settled_by_what_it_can_have_changed() -> None:
    """Made again, undone and made again, asked about as the policy says, or not journalled.

    A rule of the call goes before the setting. What was sent over the network can not be taken
    back; without snapshots nothing can.
    """
    tell = {"decision": "allow", "in_doubt": "tell"}
    ask = {"decision": "allow", "in_doubt": "ask"}
    given: Any
    args: Any
    for name, args, given, settled in [
        ("plain", {}, {}, "ask"),
        ("writes", {}, {}, "restore"),
        ("same", {}, {}, "again"),
        ("keyed", {}, {}, "again"),
        ("str_replace_editor", {"command": "create"}, {}, "restore"),
        ("run_tests", {}, {}, "restore"),
        ("run_command", {"command": "pytest -x -q"}, {}, "restore"),
        ("run_command", {"command": "make"}, {}, "ask"),  # not confined: it may do anything
        ("run_command", {"command": "make"}, {"sandbox": {"network": True}}, "ask"),
        ("writes", {}, {"rollback": {"snapshots": False}}, "ask"),
        ("plain", {}, {"tools": {"in_doubt": "tell"}}, "tell"),
        ("plain", {}, {"tools": {"policy": {"plain": tell}}}, "tell"),
        ("plain", {}, {"tools": {"in_doubt": "tell", "policy": {"pl*": ask}}}, "ask"),
        ("plain", {}, {"tools": {"in_doubt": "tell", "policy": {"plain": "allow"}}}, "tell"),
        ("looks", {}, {}, None),
        ("search", {"pattern": "x"}, {}, None),
        ("str_replace_editor", {"command": "view"}, {}, None),
    ]:
        found = await effect(name, settings(**given) if given else None, **args)

        assert (found and found.settles) == settled, (name, given)


async def test_the_order_of_arguments_is_no_difference() -> None:
    """The digest is of what is done."""
    one = await effect("plain", text="x", key="1")
    two = await effect("plain", key="1", text="x")
    other = await effect("plain", key="2", text="x")

    assert one
    assert other
    assert one == two
    assert one.digest != other.digest


# --- A call whose tool is gone is not called failed if it may have been made (DU-06).

CALL_GONE = a_call(args={"amount": 5})
PAY = Effect(CALL_GONE.result_id, digest([CALL_GONE.name, CALL_GONE.args]), "ask")


def lives() -> tuple[Context, Context]:
    """The contexts of two lives, one after the other, over the same journal."""
    ledger, here = ProcessLedger(), Place("t", "", "1")
    first, second = (ledger.journal_at(here, run) for run in ("one", "two"))
    return replace(a_context(), journal=first), replace(a_context(), journal=second)


async def test_of_a_call_whose_tool_is_gone_that_is_told_which_is_on_record() -> None:
    """It failed if it was never begun; what came of it; or nobody knows, and that stays so."""
    failed = Outcome("failed", "Error: the tool 'shout' is no longer there")
    done = Outcome("done", "paid")
    how = "shout was cut short when the process ended, and is no longer there"
    for begun, ended, told in (
        (False, None, failed),
        (True, done, done),
        (True, None, Outcome("unknown", f"Error: {OutcomeUnknown(how)}")),
    ):
        first, second = lives()
        entry = await first.journal.begin(PAY) if begun else None
        if entry and ended:
            await first.journal.end(entry, ended)

        found = [await outcome_without_tool(CALL_GONE, second.journal) for _ in range(2)]

        assert found == [told, told]


# --- What was cut short in a workspace is put back to before it, and nothing else is.

KEY = "k1"


class Ground:
    """A workspace with one file, in which calls are begun and cut short."""

    def __init__(self, place: Path) -> None:
        self.log = place / "log"
        self.log.write_text("start,")
        self.place = place
        self.own = self.of("t")
        self.own.take("the start", by="others", fresh=True)

    def of(self, thread: str) -> Snapshots:
        return Snapshots(self.place, thread, Store(store_of(self.place)))

    def begin(self, key: str, adds: str) -> None:
        """Begin a call, which is then cut short."""
        self.own.take(f"before run_command {key}", by="work", opens=True)
        self.add(adds)

    def make(self, key: str, adds: str) -> None:
        self.begin(key, adds)
        self.own.take(f"after run_command {key}", by="work")

    def add(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)

    def put_back(self) -> Restored | None:
        return put_back(self.own, KEY)

    def look(self) -> None:
        """Be killed right after the look with which putting back begins."""
        self.own.take(f"before putting back before run_command {KEY}", by="work")

    def undo(self) -> None:
        """Have a person undo the task."""
        self.own.restore(self.own.kept()[0].id, last="work")

    def other(self, adds: str) -> None:
        """Have another thread write here."""
        self.of("other").take("the start", by="others", fresh=True)
        self.add(adds)

    @property
    def text(self) -> str:
        return self.log.read_text()


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    place = tmp_path / "ws"
    place.mkdir()
    return Ground(place)


HALF, PUT, TWO = ("begin", KEY, "half,"), ("put_back",), ("make", "k2", "two,")
PUT_BACK: dict[str, tuple[list[tuple[str, ...]], str, str]] = {
    "it had not begun": ([("make", "k0", "zero,")], "none", "start,zero,"),
    "who put it back was killed": ([HALF, PUT], "none", "start,"),
    "killed before it was made once more": ([HALF, PUT, PUT], "none", "start,"),
    "killed after it was": ([HALF, PUT, ("begin", KEY, "half again,")], "", "start,"),
    "its putting back was killed first": ([HALF, ("look",)], "", "start,"),
    "a sibling was made after it": ([HALF, PUT, TWO], "none", "start,two,"),
    "the thread went on without it": ([HALF, TWO], "since", "start,half,two,"),
    "another thread was here": (
        [HALF, ("other", "theirs,")],
        "another thread",
        "start,half,theirs,",
    ),
    "a person undid it": ([("make", "k0", "zero,"), HALF, ("undo",)], "since", "start,"),
}


@pytest.mark.parametrize("case", PUT_BACK)
def test_what_was_cut_short_is_put_back_and_nothing_else(ground: Ground, case: str) -> None:
    """As often as it takes; what was done on top of it is not undone: a person is asked."""
    steps, said, text = PUT_BACK[case]
    for name, *args in steps:
        getattr(ground, name)(*args)

    if said in ("", "none"):
        assert (ground.put_back() is None) is (said == "none")
    else:
        with pytest.raises(SnapshotUnavailable, match=said):
            ground.put_back()
    assert ground.text == text


async def test_a_workspace_is_had_by_one_call_at_a_time() -> None:
    """One in another workspace, or in none, does not wait."""
    turns = WorkspaceTurns()

    async def take(workspace: str) -> None:
        async with turns.turn(workspace, None, NoJournal()):
            pass

    for other, waits in [("/ws", True), ("/other", False), ("", False)]:
        async with turns.turn("/ws", None, NoJournal()):
            second = asyncio.create_task(take(other))
            await asyncio.wait([second], timeout=0.1 if waits else 10)
            waited = not second.done()
        await second

        assert waited == waits
