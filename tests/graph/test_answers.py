"""One reply per question, parking, and whether there is something to go on with."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, illegal, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import PARK, RequestRefused, overdue, readdress_reply, stale_ids
from daruma.graph.storage import ledger_of, open_postgres
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import ThreadBusy
from daruma.state.interrupts import ReplyRefused

# --- Plans that nobody confirmed in time, and replies that come late.

CONFIRM = {"decision": "confirm"}


def review(deadline: float | None = 100.0, **more: Any) -> dict[str, Any]:
    about = {"id": "r", "spec_review_id": "r", "goal": "g", "phases": []}
    return {"type": "spec_review_request", "deadline": deadline, **about, **more}


def thread(**questions: Any) -> StateSnapshot:
    """A thread with these open questions."""
    interrupts = tuple(Interrupt(value=value, id=id_) for id_, value in questions.items())
    task = PregelTask(id="x", name="spec_review", path=(), interrupts=interrupts)
    config = RunnableConfig(configurable={"thread_id": "late"})
    return StateSnapshot({}, ("spec_review",), config, None, "now", None, (task,), interrupts)


PARKED = thread(new=review(None, parked=True))


@pytest.mark.parametrize(
    ("questions", "now", "parked"),
    [
        ({"q": review()}, 100.5, {"q": PARK}),
        ({"q": review()}, 100.0, {}),
        ({"q": review(None)}, 1e12, {}),
        ({"q": {"type": "question", "deadline": 1.0}}, 100.5, {}),
        ({"q": "a tool's own"}, 100.5, {}),
        ({}, 100.5, {}),
    ],
)
def test_a_review_is_parked_after_its_deadline(
    questions: dict[str, Any], now: float, parked: dict[str, Any]
) -> None:
    """PL-03: other questions have no such end."""
    assert overdue(thread(**questions), now) == parked


@pytest.mark.parametrize(
    ("given", "snapshot", "stale"),
    [
        (Command(resume={"old": CONFIRM}), PARKED, ["old"]),
        (Command(resume={"new": CONFIRM}), PARKED, []),
        (Command(resume={"old": CONFIRM, "older": CONFIRM}), PARKED, []),
        (Command(resume={"old": CONFIRM}), thread(new=review()), []),
        (Command(resume={"old": CONFIRM}), thread(), []),
        (Command(resume="confirm"), PARKED, []),
        (None, PARKED, []),
        ({"messages": []}, PARKED, []),
    ],
)
def test_a_late_reply_is_one_to_a_question_that_was_parked(
    given: Any, snapshot: StateSnapshot, stale: list[str]
) -> None:
    """Only then it is looked up what became of that."""
    assert [*stale_ids(given, snapshot)] == stale


@pytest.mark.parametrize(
    ("accepted", "goes_to"),
    [({"old": PARK}, {"new": CONFIRM}), ({}, {"old": CONFIRM}), ({"old": CONFIRM},) * 2],
)
async def test_a_late_reply_goes_to_the_question_as_it_is_asked_now(
    accepted: dict[str, Any], goes_to: dict[str, Any]
) -> None:
    """PL-03: it is taken up again by a later answer.

    A plan that a person had rejected is not confirmed by a second reply.
    """
    saver = InMemorySaver()
    await ledger_of(saver).replies.accept("late", accepted)

    given = await readdress_reply(saver, Command(resume={"old": CONFIRM}), PARKED)

    assert given.resume == goes_to


# --- One reply per question: the first counts, and a run that was killed goes on with it.

CONFIRM_ANSWERED_ONCE = settings(tools={"policy": {"shout": "confirm"}})
REQUIRED = settings(tools={"policy": {"run_command": {"decision": "confirm", "required": True}}})
ASKED = [calls(call(id_="one", text="1")), say()]


def run_command(id_: str, command: str) -> dict[str, Any]:
    return call("run_command", id_=id_, command=command)


class Heard:
    """A tool that counts what it was really called with."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()

    def shout(self, text: str) -> str:
        """Say it loudly."""
        self.texts[text] += 1
        return text.upper()


def yes_to(question: Any) -> dict[str, Any]:
    keys = ("approval_id", "digest")
    approvals = question.value["approvals"]
    return {
        "decisions": [{key: a[key] for key in keys} | {"decision": "approve"} for a in approvals]
    }


@pytest.mark.long
def test_of_forty_replies_at_once_one_is_accepted(postgres_url: str) -> None:
    """Through two pools and graphs, as from two processes: the tool runs once."""
    heard = Heard()
    with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        graphs: list[Any] = [
            build_graph(
                ScriptedChatModel(script=ASKED),
                [heard.shout],
                CONFIRM_ANSWERED_ONCE,
                persistence=pg,
            )
            for pg in (one, two)
        ]
        run = Run(ASKED, graph=graphs[0]).ask()
        answer: Command[Any] = Command(resume={run.question.id: yes_to(run.question)})

        def reply(n: int) -> str:
            try:
                graphs[n % 2].invoke(answer, run.config)
            except (ReplyRefused, RequestRefused, ThreadBusy) as refusal:
                return type(refusal).__name__
            return "accepted"

        with ThreadPoolExecutor(40) as pool:
            said = Counter(pool.map(reply, range(40)))

        assert said["accepted"] == 1
        assert heard.texts == {"1": 1}
        assert run.result.status == "completed"


def test_a_run_killed_after_its_reply_goes_on_with_it(postgres_url: str) -> None:
    """Nobody is asked for what was answered; another answer is refused, and says what to do."""
    heard = Heard()
    with open_postgres(postgres_url) as pg:
        graph: Any = build_graph(
            ScriptedChatModel(script=ASKED), [heard.shout], CONFIRM_ANSWERED_ONCE, persistence=pg
        )
        run = Run(ASKED, graph=graph).ask()
        replies = {run.question.id: yes_to(run.question)}
        assert run_on_loop(ledger_of(graph.checkpointer).replies.accept("t", replies))

        with pytest.raises(ReplyRefused, match="resume the thread to go on with that reply"):
            run.send(Command(resume=replies))
        assert heard.texts == {}
        run.send(None)

        assert heard.texts == {"1": 1}
        assert run.result.status == "completed"


async def test_it_goes_on_asynchronously_too() -> None:
    """MO-09: and without Postgres, as far as this process knows."""
    heard = Heard()
    run = Run(ASKED, settings=CONFIRM_ANSWERED_ONCE, tools=[heard.shout]).ask()
    replies = {run.question.id: yes_to(run.question)}
    assert await ledger_of(run.graph.checkpointer).replies.accept("t", replies)

    with pytest.raises(ReplyRefused):
        await run.graph.ainvoke(Command(resume=replies), run.config)
    await run.graph.ainvoke(None, run.config)

    assert heard.texts == {"1": 1}


def test_going_on_without_a_reply_asks_again() -> None:
    """Nothing runs without an answer."""
    heard = Heard()
    run = Run(ASKED, settings=CONFIRM_ANSWERED_ONCE, tools=[heard.shout]).ask()
    asked = run.question

    run.send(None)

    assert run.question.id == asked.id
    assert run.question.value["approvals"] == asked.value["approvals"]
    assert heard.texts == {}


ORDERS = st.permutations(range(4)).flatmap(
    lambda order: st.sets(st.integers(1, 3)).map(
        lambda cuts: [
            order[start:end]
            for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 4], strict=True)
        ]
    )
)


@pytest.mark.long
@hypothesis_settings(max_examples=30, deadline=None)
@given(ORDERS, st.lists(st.sampled_from(["approve", "deny"]), min_size=4, max_size=4))
def test_approvals_are_answered_in_any_order_and_grouping(
    groups: list[list[int]], decisions: list[str]
) -> None:
    """TL-02, TL-14: each runs if and only if it was approved, once, and waits for no other."""
    heard = Heard()
    script = [calls(*(call(id_=f"c{n}", text=str(n)) for n in range(4))), say()]
    run = Run(script, settings=CONFIRM_ANSWERED_ONCE, tools=[heard.shout]).ask()

    done: list[int] = []
    for group in groups:
        run.decide(**{f"c{n}": decisions[n] for n in group})
        done += group
        assert heard.texts == {str(n): 1 for n in done if decisions[n] == "approve"}

    assert run.result.status == "completed"
    assert illegal(run.messages) == []


def editing(tmp_path: Path) -> Run:
    """A run that waits for the approval of a script's start."""
    (tmp_path / "script.sh").write_text("printf ran >> ledger.txt\n")
    script = [calls(call("run_command", id_="go", command="sh script.sh")), say()]
    return Run(script).ask(workspace=str(tmp_path))


def test_a_denial_of_what_has_changed_holds(tmp_path: Path) -> None:
    """A no is a no: nothing runs, and nobody is asked again."""
    run = editing(tmp_path)
    (tmp_path / "script.sh").write_text("printf other >> ledger.txt\n")

    run.decide(go="deny")

    assert run.result.status == "completed"
    assert not (tmp_path / "ledger.txt").exists()


def test_a_yes_that_a_block_kept_from_running_is_void_once_its_grounds_have_changed(
    tmp_path: Path,
) -> None:
    """TL-13a: it is asked for again, however long the task stood still."""
    script = tmp_path / "run.sh"
    script.write_text("echo good")
    both = calls(run_command("one", "sh run.sh"), run_command("two", "make"))
    run = Run([both, say()], settings=REQUIRED).ask(workspace=str(tmp_path))

    run.decide(one="approve", two="deny")
    script.write_text("echo bad")
    run.send(None)

    asked = [each["approval_id"] for each in run.question.value["approvals"]]
    assert asked == ["one", "two"]
    assert run.happened("command_run") == []
    assert "run.sh (changed)" in run.question.value["approvals"][0]["warnings"][0]


def test_what_is_left_open_is_asked_on_the_same_ground_where_nothing_changes(
    tmp_path: Path,
) -> None:
    """Nobody is asked twice about the same thing."""
    asking = [call("run_command", id_=id_, command="echo", write=True) for id_ in ("one", "two")]
    run = Run([calls(*asking), say()])
    run.ask(workspace=str(tmp_path))
    run.decide(one="approve").decide(two="approve")

    assert len(run.happened("tool_started")) == 2
    assert run.result.status == "completed"
