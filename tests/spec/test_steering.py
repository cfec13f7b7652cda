"""Chapter 13: what a person says to a task at work."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests import warm
from tests.spec.face import (
    ALLOWED,
    Daruma,
    DarumaError,
    RecordingModel,
    Run,
    call,
    calls,
    command,
    create,
    plan,
    refused,
    say,
)
from tests.spec.rules import ROOT
from typing_extensions import override

from daruma import HookInput, Settings, build_graph, hook, open_postgres, status_of, submit, work

OFF: Final[dict[str, Any]] = {"verification": {"enabled": False}}
KEY: Final = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 2


class Steered(Run):
    """A thread, to which something is ``said`` while its model gives the numbered answers.

    A text, or all that ``steer`` takes, or several of them; ``meanwhile`` is what else is done.
    """

    def __init__(self, script: Any, said: dict[int, Any], *, hooks: Any = (), **given: Any) -> None:
        own = {"persistence", "thread", "mode", "workspace"}
        settings = Settings(**{name: each for name, each in given.items() if name not in own})
        given = {name: each for name, each in given.items() if name in own}
        pg = given.get("persistence")
        kept: dict[str, Any] = {"persistence": pg} if pg else {"checkpointer": InMemorySaver()}
        model, number = RecordingModel(script=script), count()

        @hook("after_model")
        async def answered(given: HookInput) -> None:
            if given.node == "main" and (does := self.meanwhile.get(next(number))):
                await does()

        graph = build_graph(model, [look], settings, hooks=[answered, *hooks], **kept)
        super().__init__(script, graph=graph, **given)
        self.model = model
        self.sent: list[str] = []
        self.meanwhile = {number: self.saying(each) for number, each in said.items()}

    def saying(self, said: Any) -> Callable[[], Awaitable[object]]:
        """Return what says something to the thread."""

        async def say_all() -> None:
            for each in said if isinstance(said, list) else [said]:
                own = {"text": each} if isinstance(each, str) else each
                self.sent.append(await self.graph.asteer(self.config, **own))

        return say_all

    def steer(self, text: str, **more: Any) -> None:
        """Say something."""
        self.sent.append(self.graph.steer(self.config, text, **more))

    @property
    def heard(self) -> list[list[str]]:
        """What a person said that each request of the main model had."""
        requests = self.model.asked()
        return [[m.text for m in each.messages if isinstance(m, HumanMessage)] for each in requests]


def look() -> str:
    """Look at something."""
    return "looked"


LOOK: Final = calls(call("look", "c1"), call("look", "c2"))


@pytest.fixture(params=["memory", "postgres"])
def kept(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Where threads are kept."""
    if request.param == "memory":
        yield {}
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield {"persistence": pg}


def whole(messages: Sequence[Any]) -> bool:
    """Whether the results of each answer's calls follow right after it, all of them."""
    for at, message in enumerate(messages):
        asked = [each["id"] for each in getattr(message, "tool_calls", ())]
        found = messages[at + 1 : at + 1 + len(asked)]
        if [getattr(each, "tool_call_id", None) for each in found] != asked:
            return False
    return True


# --- What is said reaches the next request.


def test_what_is_said_is_in_the_next_request_after_all_results(kept: dict[str, Any]) -> None:
    """FA-14: in the order that it was sent in, each once, and on record with its id."""
    run = Steered([LOOK, LOOK, say()], {0: ["Mind the gap.", "And the door."]}, **OFF, **kept)

    run.ask()

    assert run.heard == [["Do it"], *[["Do it", "Mind the gap.", "And the door."]] * 2]
    assert all(whole(each.messages) for each in run.model.asked())
    assert whole(run.messages)
    assert isinstance(run.model.asked()[1].messages[-3], ToolMessage)
    assert [each.text for each in run.messages if isinstance(each, HumanMessage)] == run.heard[-1]
    told = run.happened("message_received")
    assert [each["id"] for each in told] == run.sent
    assert (told[0]["text"], told[0]["stop"], told[0]["goal"]) == ("Mind the gap.", False, "")
    assert run.result.status == "completed"


def test_a_message_during_the_last_answer_keeps_the_task_open(kept: dict[str, Any]) -> None:
    """FA-14: where nothing is checked, and where a phase of a plan would have ended with it."""
    direct = Steered([say("A."), say("B.")], {0: "Say B."}, **OFF, **kept)
    direct.ask()
    phased = Steered(
        {"plan": [plan("One", "Two")], "main": [say("A."), say("B."), say("C."), say("D.")]},
        {0: "Say B.", 2: "Say D."},
        mode="plan_exec",
        thread="p",
        spec_review={"enabled": False},
        **OFF,
        **kept,
    )
    phased.ask()

    assert [each[-1] for each in direct.heard] == ["Do it", "Say B."]
    assert direct.result.output == "B."
    assert [each[-1].split(":")[0] for each in phased.heard] == [
        "Phase 1 of 2",
        "Say B.",
        "Phase 2 of 2",
        "Say D.",
    ]
    assert [phase.answer for phase in phased.result.phases] == ["B.", "D."]
    assert direct.unclosed == phased.unclosed == []


def test_a_message_before_or_while_the_checks_run_comes_before_the_end(workspace: Path) -> None:
    """FA-14: and what is done about it is checked; green checks from before count no more."""
    run: Steered

    @hook("after_verification")
    async def meanwhile(_: HookInput) -> None:
        if len(run.sent) < 2:
            await run.saying("Write b, too.")()

    script = [calls(create("a", "a", "c1")), say(), say("Again."), calls(create("b", "b")), say()]
    checks = {"commands": ["cat a"]}
    run = Steered(script, {1: "Wait."}, hooks=[meanwhile], workspace=workspace, verification=checks)
    run.ask()

    assert [each[-1] for each in run.heard][2:4] == ["Wait.", "Write b, too."]
    assert run.nodes.count("verify") == 3  # one of them only took the message up
    assert run.result.checked.outcome == "passed"
    assert len(run.result.verifications) == 2
    assert run.unclosed == []


def test_the_budget_holds_whatever_is_said(kept: dict[str, Any]) -> None:
    """FA-14: what can not be told any more is told to the thread's next task, as said before it."""
    endless = dict.fromkeys(range(30), "More.")
    run = Steered(
        [say(f"{n}") for n in range(30)], endless, budgets={"max_steps": 4}, **OFF, **kept
    )
    run.ask()
    stopped, asked = run.result, len(run.model.asked())
    run.meanwhile.clear()
    run.ask("And now?")

    assert (stopped.status, asked) == ("completed", 4)
    assert stopped.output == "3"
    assert run.heard[4][-2] == "And now?"
    assert run.heard[4][-1].endswith("\n\nMore.")
    assert "task before this one" in run.heard[4][-1]
    assert len([text for text in run.heard[-1] if "More." in text]) == len(run.sent) == 4


def test_what_stops_or_changes_a_goal_is_for_its_own_task(kept: dict[str, Any]) -> None:
    """FA-14: told to the next one it is words."""
    late = {"text": "Wait.", "stop": True, "goal": "Something else"}
    run = Steered([say("A."), say("B.")], {0: late}, budgets={"max_steps": 1}, **OFF, **kept)
    run.ask().ask("Another thing")

    assert run.result.output == "B."
    assert "Task: Another thing" in run.model.asked()[1].messages[0].text
    assert "Wait." in run.heard[1][-1]


def test_a_cell_speaks_while_another_runs(kept: dict[str, Any]) -> None:
    """FA-14: `graph.steer` waits for nobody who runs the thread, in a notebook, say."""
    at_work, spoken = threading.Event(), threading.Event()
    run = Steered([LOOK, say()], {}, **OFF, **kept)

    async def until_spoken() -> None:
        at_work.set()
        assert await asyncio.to_thread(spoken.wait, 60)

    run.meanwhile[0] = until_spoken
    cell = threading.Thread(target=run.ask)
    cell.start()
    assert at_work.wait(60)
    run.steer("Mind the gap.")
    spoken.set()
    cell.join()

    assert run.heard == [["Do it"], ["Do it", "Mind the gap."]]


# --- Taking over: stop, ask, another goal.


def test_stop_stands_still_before_the_next_request_and_asks(kept: dict[str, Any]) -> None:
    """FA-14: every call has its result, nothing of the budget goes, and the answer is told."""
    run = Steered([LOOK, say()], {0: {"text": "Stop.", "stop": True}}, **OFF, **kept)
    run.ask()
    question, before = run.question.value, len(run.model.asked())
    run.reply({"answer": "Look no further."})

    assert (question["type"], question["kind"], before) == ("question", "clarification", 1)
    assert "as you said" in question["question"]
    assert run.heard[1] == ["Do it", "Stop.", "Look no further."]
    assert whole(run.messages)
    assert run.happened("budget_spent") == []
    assert [each["kind"] for each in run.happened("question_closed")] == ["clarification"]
    assert (run.result.status, run.result.budgets["think"]) == ("completed", 2)


@pytest.mark.parametrize("at", [0, 1])
def test_a_task_that_stands_still_can_end_there(kept: dict[str, Any], at: int) -> None:
    """FA-14: also where its answer was there; a plan does nothing more, and undoes nothing."""
    rolled = {"title": "One", "rollback_command": "echo no > gone"}
    script = {"plan": [plan(rolled, "Two")], "main": [LOOK, say("Done."), say("Never.")]}
    run = Steered(
        script,
        {at: {"text": "Wait.", "stop": True}},
        mode="plan_exec",
        spec_review={"enabled": False},
        **OFF,
        **kept,
    )
    run.ask().reply({"answer": "Stop!"})

    assert run.result.status == "cancelled"
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "stopped"
    assert [phase.outcome for phase in run.result.phases] == ["cancelled", None]
    assert len(run.model.asked()) == at + 1
    assert "rollback" not in run.nodes
    assert run.unclosed == []


def test_stop_comes_after_an_approval_that_is_open(kept: dict[str, Any]) -> None:
    """FA-14: the call has its decision and its result first; nothing that is said decides it."""
    policy = {"tools": {"policy": {"look": "confirm"}}}
    run = Steered([calls(call("look", "c1")), say()], {}, **policy, **OFF, **kept)
    run.ask()
    run.steer("Yes, approve it all, and stop then.", stop=True)
    waiting = run.question.value["type"]
    run.approve()
    stopped = run.question.value["question"]
    run.reply({"answer": "go on"})

    assert waiting == "approval_request"
    assert "stands still" in stopped
    assert list(run.outputs.values()) == ["looked"]
    assert run.heard[1] == ["Do it", "Yes, approve it all, and stop then.", "go on"]


def test_another_goal_takes_the_place_of_the_tasks(kept: dict[str, Any]) -> None:
    """FA-14: in the prompt, in the plan, in what the model is told, and on record."""
    script = {"plan": [plan("One")], "main": [LOOK, say()]}
    said = {0: {"text": "I thought again.", "goal": "Paint it red"}}
    run = Steered(script, said, mode="plan_exec", spec_review={"enabled": False}, **OFF, **kept)
    run.ask()

    first, second = run.model.asked()
    assert "Task: Do it" in first.messages[0].text
    assert "Task: Paint it red" in second.messages[0].text
    assert run.heard[1][-1] == "I thought again.\n\nThe goal of the task is now: Paint it red"
    assert run.snapshot.values["task"].goal == "Paint it red"
    assert run.snapshot.values["plan"].goal == "Paint it red"
    assert run.graph.timeline(run.config).goal == "Paint it red"


def test_a_task_that_is_tried_again_still_has_what_was_said(kept: dict[str, Any]) -> None:
    """FA-14: it goes back to before the request that failed, and is told that, too, once more."""
    said = {0: [{"text": "I thought again.", "goal": "Paint it red"}, "Mind the gap."]}
    script = [LOOK, {"raise": "boom"}]  # at each try
    alone = {"fallback_chain": {"recovery": {"enabled": False}}}
    run = Steered(script, said, **alone, **OFF, **kept)
    run.ask()
    for _ in range(2):
        run.graph.reopen(run.config)
        run.send(None)

    told = [
        "Do it",
        "I thought again.\n\nThe goal of the task is now: Paint it red",
        "Mind the gap.",
    ]
    assert run.heard == [["Do it"], told, told, told]
    assert run.snapshot.values["task"].goal == "Paint it red"


@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_a_task_that_was_stopped_asks_once_more(kept: dict[str, Any], mode: str) -> None:
    """FA-14: `daruma retry` goes back to the question, not to before what was said."""
    script = {"plan": [plan("One")], "main": [LOOK, say(), say()]}
    unread = {"spec_review": {"enabled": False}}
    run = Steered(script, {0: {"text": "Wait.", "stop": True}}, mode=mode, **unread, **OFF, **kept)
    run.ask().reply({"answer": "stop"})
    run.graph.reopen(run.config)
    run.send(None)
    asked = run.question.value["question"]
    run.reply({"answer": "go on"})

    assert "stands still" in asked
    assert run.heard[-1][-2:] == ["Wait.", "go on"]
    assert len(run.heard) == 2
    assert run.result.status == "completed"


# --- What is no message to a task at work.


def test_only_a_task_that_is_open_is_told_anything(kept: dict[str, Any]) -> None:
    """FA-14: else it is refused in one line, and nothing waits."""
    run = Steered([say(), say()], {}, **OFF, **kept)

    unknown = refused(lambda: run.steer("Hello"))
    run.ask()
    ended = refused(lambda: run.steer("Hello"))
    run.ask("Again")

    assert unknown == "there is no thread 't'"
    assert ended.startswith("no task is open on thread 't'")
    assert run.heard[-1] == ["Do it", "Again"]
    assert "empty" in refused(lambda: run.steer(" \n"))
    assert "goal is empty" in refused(lambda: run.steer("Hello", goal=""))
    assert "20,000" in refused(lambda: run.steer("x" * 20_001))


def test_each_refusal_has_its_http_status(kept: dict[str, Any]) -> None:
    """FA-14: as those of answers have."""
    run = Steered([say()], {}, **OFF, **kept)
    found = []
    for text in ("Hello", "", "Hello"):
        with pytest.raises(DarumaError) as error:
            run.steer(text)
        said: Any = error.value
        found.append(status_of(said))
        run.ask()

    assert found == [404, 422, 409]


def test_so_much_may_wait_and_no_more(kept: dict[str, Any]) -> None:
    """FA-14: a hundred messages."""
    run = Steered([calls(call("look")), say()], {}, tools={"policy": {"look": "confirm"}}, **kept)
    run.ask()
    for number in range(100):
        run.steer(f"{number}")
    said = refused(lambda: run.steer("One more"))
    run.approve()

    assert "too much waits" in said
    assert run.heard[1] == ["Do it", *(f"{number}" for number in range(100))]


def test_a_team_is_told_nothing(workspace: Path) -> None:
    """FA-14: its members work in runs of their own; it is said, and not lost."""
    script = {"plan": [plan({"id": "a", "title": "A", "expert": "developer"})], "main@a": [say()]}
    run = Steered(script, {}, mode="team_collab", workspace=workspace, **OFF)
    run.ask()  # the review waits

    assert "a team is at work" in refused(lambda: run.steer("Hello"))


def test_keys_are_masked_and_what_waits_is_sealed(postgres_url: str) -> None:
    """FA-14: as what a request says is (SE-08, DU-05)."""
    with open_postgres(postgres_url, key="ab" * 32) as pg:
        policy = {"tools": {"policy": {"look": "confirm"}}}
        run = Steered([calls(call("look")), say()], {}, persistence=pg, **policy, **OFF)
        run.ask()
        run.steer(f"The key is {KEY}. The word is swordfish.")
        with psycopg.connect(postgres_url) as connection:
            (stored,) = connection.execute("SELECT message FROM daruma_steering").fetchall()
        run.approve()
        known = str(run.heard) + str(run.messages) + str(run.events)

    assert b"swordfish" not in bytes(stored[0])
    assert "swordfish" in run.heard[1][-1]
    assert KEY not in known


# --- Faces.


def test_a_terminal_tells_a_task_that_another_process_runs(
    daruma: Daruma, postgres_url: str
) -> None:
    """FA-14: `daruma tell` in a process of its own, and the story has it as the person's words."""
    with open_postgres(postgres_url) as pg:
        run = Steered([LOOK, LOOK, say()], {}, persistence=pg, **OFF)
        said: list[Any] = []

        def telling(*words: str) -> Callable[[], Awaitable[object]]:
            async def tell() -> None:
                said.append(await asyncio.to_thread(daruma.run, "tell", "t", *words))

            return tell

        run.meanwhile[0] = telling("Mind the gap.")
        run.meanwhile[1] = telling("Wait.", "--stop", "--goal", "Less", "--json")
        run.ask()
        asked = run.question.value["question"]

    shown, story = daruma("show", "t"), daruma("show", "t", "--json").json
    assert [each.code for each in said] == [0, 0]
    assert said[0].out == "sent: its next request has it\n"
    assert said[1].json["thread"] == "t"
    assert run.heard[1] == ["Do it", "Mind the gap."]
    assert "stands still" in asked
    assert "a person says: Mind the gap." in shown.out
    (moment,) = [each for each in story["timeline"]["moments"] if "Mind the gap" in each["title"]]
    assert moment["timed"]
    assert story["goal"] == "Less"
    assert "there is no thread 'no'" in daruma("tell", "no", "Hello").complaint


def test_a_worker_hears_what_is_said_to_what_it_runs_or_is_to_run(postgres_url: str) -> None:
    """FA-14: what was said before it began is in its first request; followers hear of it."""
    with open_postgres(postgres_url) as pg:
        run = Steered([LOOK, say()], {0: "Now."}, persistence=pg, **OFF)
        following = run.graph.follow(run.config)
        submit(pg, {"messages": [("user", "Do it")], "mode": "react"}, "t")
        run.steer("Before.")
        work(run.graph, wait=False)
        told = [each.event for each in following]

    assert run.heard == [["Do it", "Before."], ["Do it", "Before.", "Now."]]
    assert [each["text"] for each in told if each["type"] == "message_received"] == [
        "Before.",
        "Now.",
    ]


# --- Kills.

CALLS: Final = 40
LEDGER: Final = "".join(f"{number}\n" for number in range(CALLS))


def life(url: str, folder: str, *, dies_before: int = -1) -> None:
    """Have the thread run in this process, and put each request down; die before one of them."""
    requests = Path(folder) / "requests"

    class Noting(RecordingModel):
        @override
        def answer(self, messages: Any, **named: Any) -> AIMessage:
            if named["metadata"].get("daruma_role", "main") != "main":
                return super().answer(messages, **named)
            line = json.dumps([[m.type, m.text] for m in messages if m.type != "system"])
            with requests.open("a") as file:
                file.write(line + "\n")
            if len(requests.read_text().splitlines()) == dies_before:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().answer(messages, **named)

    steps = [calls(command(f"echo {n} >> ledger", f"c{n}")) for n in range(CALLS)]
    script = [*steps, *[say(f"{n}") for n in range(200)]]
    workspace = Path(folder) / "ws"
    workspace.mkdir(exist_ok=True)
    sections: dict[str, Any] = {"tools": ALLOWED, "budgets": {"max_steps": 300}, **OFF}
    with open_postgres(url) as pg:
        model = Noting(script=script)
        graph = build_graph(model, settings=Settings(**sections), persistence=pg)
        run = Run(script, graph=graph, workspace=workspace)
        if run.snapshot.created_at is None:
            run.ask()
        else:
            run.send(None)


def process(url: str, folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Begin a life in a process of its own."""
    code = (
        f"from tests.spec.test_steering import life; life({url!r}, {str(folder)!r}, **{options!r})"
    )
    return warm.start(["-c", code], imports=__name__, cwd=ROOT)


@contextmanager
def thread_on(url: str) -> Iterator[Run]:
    """The thread of these lives, seen from this process."""
    with open_postgres(url) as pg:
        yield Run([say("Flushed.")] * 300, persistence=pg, **OFF)


def requests_in(folder: Path) -> list[list[list[str]]]:
    """What the model was asked, in all lives."""
    file = folder / "requests"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def told_in(request: list[list[str]]) -> list[int]:
    """The numbers of what was said that a request has."""
    return [
        int(text.rpartition("#")[2]) for kind, text in request if kind == "human" and "#" in text
    ]


def test_what_was_said_outlives_the_process_that_was_told(
    postgres_url: str, tmp_path: Path
) -> None:
    """FA-14: killed in its first request, said to nobody, and told by whoever goes on (DU-01)."""
    with process(postgres_url, tmp_path, dies_before=1) as first:
        pass
    with thread_on(postgres_url) as thread:
        thread.graph.steer(thread.config, "#0")
        with process(postgres_url, tmp_path, dies_before=2) as second:
            pass
        with process(postgres_url, tmp_path) as third:
            pass
        history = [each.text for each in thread.messages if isinstance(each, HumanMessage)]

    assert (first.returncode, second.returncode, third.returncode) == (-9, -9, 0)
    found = requests_in(tmp_path)
    assert [told_in(each) for each in found[:3]] == [[], [0], [0]]
    assert history == ["Do it", "#0"]
    assert (tmp_path / "ws" / "ledger").read_text() == LEDGER


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "kills"),
    [pytest.param(8, 2, id="some"), pytest.param(100, 25, id="all", marks=pytest.mark.long)],
)
def test_at_random_moments_with_kills_each_is_told_once_and_in_order(
    postgres_url: str, tmp_path: Path, number: int, kills: int
) -> None:
    """FA-14: no call is torn from its result, and every effect comes once (DU-01, DU-06)."""
    drawn = Random(number)  # noqa: S311 - no secret
    deaths = set(drawn.sample(range(1, number), kills))
    with thread_on(postgres_url) as thread:
        at_work, sent = process(postgres_url, tmp_path), 0
        while sent < number:
            seen, more = len(requests_in(tmp_path)), drawn.choice([0, 0, 1, 2])
            while at_work.poll() is None and len(requests_in(tmp_path)) < seen + more:
                pass  # the moment is what is tried
            try:
                thread.graph.steer(thread.config, f"#{sent}")
            except DarumaError as error:
                if "there is no thread" in str(error):
                    continue
                break  # it has ended
            if sent in deaths or at_work.poll() is not None:
                at_work.kill()
                at_work.wait()
                at_work = process(postgres_url, tmp_path)
            sent += 1
        at_work.wait()
        messages = [*thread.messages]
        thread.ask("Flush")  # what came too late for the task is told to the next one
        texts = [["human", m.text] for m in thread.messages if isinstance(m, HumanMessage)]

    found = [told_in(each) for each in requests_in(tmp_path)]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(found))
    assert found[-1] == list(range(len(found[-1])))
    assert told_in(texts) == list(range(sent))
    assert whole(messages)
    assert all(one_by_one(each) for each in requests_in(tmp_path))
    assert (tmp_path / "ws" / "ledger").read_text() == LEDGER


def one_by_one(request: list[list[str]]) -> bool:
    """Whether each call's result stands right after its answer: one for each."""
    kinds = [kind for kind, _ in request]
    return all(kinds[at - 1] == "ai" for at, kind in enumerate(kinds) if kind == "tool")


def test_two_who_speak_at_once_are_both_heard_in_one_order(postgres_url: str) -> None:
    """FA-14: what is sent first is told first, whoever sends it."""
    with open_postgres(postgres_url) as pg:
        policy = {"tools": {"policy": {"look": "confirm"}}}
        run = Steered([calls(call("look")), say()], {}, persistence=pg, **policy, **OFF)
        run.ask()

        def speak(name: str) -> None:
            for number in range(20):
                run.steer(f"{name}{number}")

        speakers = [threading.Thread(target=speak, args=[name]) for name in "ab"]
        for each in speakers:
            each.start()
        for each in speakers:
            each.join()
        run.approve()

    for name in "ab":
        own = [text for text in run.heard[1] if text.startswith(name)]
        assert own == [f"{name}{number}" for number in range(20)]
