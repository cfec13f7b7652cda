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

from daruma.graph.storage._ledgers import Place, ProcessJournal, ProcessJournals
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
from daruma.tools.calls._journal import Settles, put_back, question_of
from daruma.tools.context import Context
from daruma.tools.snapshots import Snapshots, SnapshotUnavailable, Store, store_of, with_snapshots

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
        self.journals = ProcessJournals()
        self.workspace = str(workspace) if workspace else ""
        self.events: list[Event] = []
        self.asked: list[Question] = []
        self.worked: list[str] = []
        self.number = 0

    def begin(self) -> Context:
        """The context of the next life."""
        self.number += 1
        journal = self.journals.journal_at(Place("t", "", "1"), str(self.number))
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
    """Its result was on record before the machine was told."""
    life = Life()
    await life.make("ask")

    assert await life.make("ask", outcome=Outcome("done", "paid twice")) == DONE
    assert (len(life.worked), life.settled()) == (1, ["reused"])


async def test_a_failure_is_an_outcome_too() -> None:
    """What was told as failed is not tried again behind the model's back."""
    life = Life()
    failed = Outcome("failed", "Error: no")
    await life.make("ask", outcome=failed)

    assert await life.make("ask") == failed


async def test_a_repeatable_call_is_made_again_with_the_same_key() -> None:
    """Nobody is asked."""
    life = Life()
    with pytest.raises(asyncio.CancelledError):
        await life.make("again", dies=True)

    assert await life.make("again") == DONE
    assert life.worked[0] == life.worked[1]
    assert (life.settled(), life.asked) == (["again"], [])


async def test_a_person_says_what_became_of_a_call_that_was_cut_short() -> None:
    """It is made again only if they say so; their word is on record."""
    for said, status, made in [
        ("happened", "done", 1),
        ("unknown", "unknown", 1),
        ("again", "done", 2),
    ]:
        life = Life()
        with pytest.raises(asyncio.CancelledError):
            await life.make("ask", dies=True)
        with pytest.raises(GraphInterrupt):
            await life.make("ask")

        outcome = await life.make("ask", says=[said])

        assert (outcome.status, len(life.worked), life.settled()) == (status, made, [said])
        assert await life.make("ask") == outcome


async def test_the_model_is_told_where_the_policy_says_so() -> None:
    """As ``outcome_unknown``, never as failed or done."""
    life = Life()
    with pytest.raises(asyncio.CancelledError):
        await life.make("tell", dies=True)

    outcome = await life.make("tell")

    assert outcome.status == "unknown"
    assert outcome.text.startswith("Error: outcome_unknown: shout was cut short")
    assert (len(life.worked), life.asked) == (1, [])


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


class Lost(ProcessJournals):
    """A journal whose database is gone."""

    def journal_at(self, place: Place, run: str) -> ProcessJournal:
        journal = super().journal_at(place, run)

        async def begin(effect: Effect) -> JournalEntry:  # noqa: ARG001 - a Journal
            raise StorageUnavailable("gone")

        journal.begin = begin  # type: ignore[method-assign]
        return journal


async def test_without_a_database_nothing_is_done() -> None:
    """The intent is the fence: no record of it, no effect."""
    life = Life()
    life.journals = Lost()

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
    """Made again, undone and made again, or asked about."""
    args: Any
    for name, args, settled in [
        ("plain", {}, "ask"),
        ("writes", {}, "restore"),
        ("same", {}, "again"),
        ("keyed", {}, "again"),
        ("str_replace_editor", {"command": "create"}, "restore"),
        ("run_tests", {}, "restore"),
        ("run_command", {"command": "pytest -x -q"}, "restore"),
        ("run_command", {"command": "make"}, "ask"),  # not confined: it may have done anything
    ]:
        found = await effect(name, **args)

        assert found
        assert found.settles == settled


async def test_what_changes_nothing_is_not_journalled() -> None:
    """It may be made twice, and costs no write."""
    args: Any
    for name, args in [
        ("looks", {}),
        ("search", {"pattern": "x"}),
        ("str_replace_editor", {"command": "view"}),
    ]:
        assert await effect(name, **args) is None


async def test_the_policy_says_whether_a_person_is_asked() -> None:
    """A rule of the call goes before the setting."""
    tools: Any
    for tools, settled in [
        ({"in_doubt": "tell"}, "tell"),
        ({"policy": {"plain": {"decision": "allow", "in_doubt": "tell"}}}, "tell"),
        ({"in_doubt": "tell", "policy": {"pl*": {"decision": "allow", "in_doubt": "ask"}}}, "ask"),
        ({"in_doubt": "tell", "policy": {"plain": "allow"}}, "tell"),
    ]:
        found = await effect("plain", settings(tools=tools))

        assert found
        assert found.settles == settled


async def test_without_snapshots_nothing_can_be_put_back() -> None:
    """Then a person is asked about edits too."""
    found = await effect("writes", settings(rollback={"snapshots": False}))

    assert found
    assert found.settles == "ask"


async def test_a_command_with_the_network_is_not_confined() -> None:
    """What it sent can not be taken back; what it did not, nobody knows."""
    found = await effect("run_command", settings(sandbox={"network": True}), command="make")

    assert found
    assert found.settles == "ask"


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
    journals, here = ProcessJournals(), Place("t", "", "1")
    first, second = (journals.journal_at(here, run) for run in ("one", "two"))
    return replace(a_context(), journal=first), replace(a_context(), journal=second)


async def test_a_call_that_was_never_begun_has_failed() -> None:
    """However often it is looked for."""
    first, second = lives()

    for context in (first, second):
        outcome = await outcome_without_tool(CALL_GONE, context.journal)
        assert outcome == Outcome("failed", "Error: the tool 'shout' is no longer there")


async def test_a_call_that_was_made_is_answered_with_what_came_of_it_gone() -> None:
    """Resumed under another set of tools, the machine is told what was done before."""
    first, second = lives()
    done = Outcome("done", "paid")
    await first.journal.end(await first.journal.begin(PAY), done)

    assert await outcome_without_tool(CALL_GONE, second.journal) == done


async def test_of_a_call_that_was_cut_short_nobody_knows() -> None:
    """It may have had its effect; and so it stays on record."""
    first, second = lives()
    await first.journal.begin(PAY)

    outcome = await outcome_without_tool(CALL_GONE, second.journal)

    assert outcome.status == "unknown"
    assert outcome.text.startswith("Error: outcome_unknown: shout was cut short")
    assert await outcome_without_tool(CALL_GONE, second.journal) == outcome


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

    @property
    def text(self) -> str:
        return self.log.read_text()


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    place = tmp_path / "ws"
    place.mkdir()
    return Ground(place)


def test_a_call_that_had_not_begun_needs_nothing_put_back(ground: Ground) -> None:
    """It was killed before the workspace was looked at."""
    ground.make("k0", "zero,")

    assert put_back(ground.own, KEY) is None
    assert ground.text == "start,zero,"


def test_a_call_that_was_cut_short_is_put_back_as_often_as_it_takes(ground: Ground) -> None:
    """Who puts it back may be killed too, before or after the call is made once more."""
    ground.begin(KEY, "half,")
    put_back(ground.own, KEY)
    put_back(ground.own, KEY)
    assert ground.text == "start,"

    ground.begin(KEY, "half again,")
    put_back(ground.own, KEY)
    assert ground.text == "start,"


def test_one_whose_putting_back_was_killed_first_is_put_back(ground: Ground) -> None:
    """What was looked at just before is not what was there before the call."""
    ground.begin(KEY, "half,")
    ground.own.take(f"before putting back before run_command {KEY}", by="work")

    put_back(ground.own, KEY)

    assert ground.text == "start,"


def test_what_was_done_after_it_was_put_back_stays(ground: Ground) -> None:
    """A sibling had its turn, and the run was killed before this call was made once more."""
    ground.begin(KEY, "half,")
    put_back(ground.own, KEY)
    ground.make("k2", "two,")

    assert put_back(ground.own, KEY) is None
    assert ground.text == "start,two,"


def test_what_was_done_on_top_of_it_is_not_undone_with_it(ground: Ground) -> None:
    """Where it could not be put back at first, and the thread went on; a person is asked."""
    ground.begin(KEY, "half,")
    ground.make("k2", "two,")

    with pytest.raises(SnapshotUnavailable, match="since"):
        put_back(ground.own, KEY)
    assert ground.text == "start,half,two,"


def test_what_another_thread_did_since_is_not_undone_with_it(ground: Ground) -> None:
    """Nobody can tell its changes from those of the call that was cut short."""
    ground.begin(KEY, "half,")
    other = ground.of("other")
    other.take("the start", by="others", fresh=True)
    ground.add("theirs,")

    with pytest.raises(SnapshotUnavailable, match="another thread"):
        put_back(ground.own, KEY)
    assert ground.text == "start,half,theirs,"


def test_what_a_person_undid_since_is_not_brought_back(ground: Ground) -> None:
    """An undo of the task took what was cut short along."""
    start = ground.own.kept()[0].id
    ground.make("k0", "zero,")
    ground.begin(KEY, "half,")
    ground.own.restore(start, last="work")
    assert ground.text == "start,"

    with pytest.raises(SnapshotUnavailable, match="since"):
        put_back(ground.own, KEY)
    assert ground.text == "start,"


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
