"""The table is whole: every outcome has a target, every node is reached and can end."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import settings as settings_event_pairs
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.graph import END
from langgraph.types import Command, interrupt
from tests.parts import a_call, a_state, memory, settings
from tests.parts import settings as settings_of
from tests.scripted_runs import CLOSERS, REQUESTS, Run, call, calls, phases, say, unclosed

from daruma.graph.build import build_graph, node
from daruma.graph.command_line import main
from daruma.graph.history import NothingToReopen
from daruma.graph.machine import ENTRY, ON_BUG, TABLE, Each, mermaid, node_of, ready_calls
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import open_postgres
from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.errors import HoldLost
from daruma.state.interrupts import ReplyRefused
from daruma.state.settings import Settings
from daruma.state.spending import AGAIN, spent_by_task

NAMES = {
    *("intake", "plan", "look", "spec_review", "begin", "member", "merge", "delegate", "main"),
    *("compress", "repair", "clarify", "gate", "tool", "verify", "reflect", "recovery", "consult"),
    *("pause", "rollback", "settle", "structure", "emergency", "finish", "hold"),
}
EDGES = {name: {node_of(target) for target in edges.values()} for name, (_, edges) in TABLE.items()}


def reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Every node that can be come to from a start, with itself."""
    found, fresh = {start}, {start}
    while fresh:
        fresh = set().union(*(edges.get(name, set()) for name in fresh)) - found
        found |= fresh
    return found


def test_the_nodes_have_their_names() -> None:
    """DESIGN: names that users and stored checkpoints know."""
    assert set(TABLE) == NAMES


@pytest.mark.parametrize("name", TABLE)
def test_a_node_and_its_router_are_those_of_the_table(name: str) -> None:
    """One file per node, with one function of that name.

    A router's stray label would be an error at run time, an unused one a dead edge.
    """
    function, (router, edges) = node(name), TABLE[name]
    outcomes = get_args(get_type_hints(router)["return"])

    assert (function.__module__, function.__name__) == (f"daruma.nodes.{name}", name)
    assert set(outcomes) == set(edges)
    assert len(outcomes) == len(set(outcomes))
    assert router.__name__ == f"after_{name}"


def test_every_node_is_reached_and_can_end() -> None:
    """By the table alone, and each node's bug on bugs alone; only finish leads out of it.

    LangGraph ends silently at a target that it does not know. A tool's bug leads where its siblings
    go: else both ways would be gone at the same time.
    """
    bugs = {name: {target} for name, target in ON_BUG.items()}

    for ways in (EDGES, bugs):
        assert set(ways) == set(TABLE)
        assert set().union(*ways.values()) <= {*TABLE, END}
        assert [name for name in TABLE if END not in reached(name, ways)] == []
    assert reached(ENTRY, EDGES) == {*TABLE, END}
    assert {name for name, targets in EDGES.items() if END in targets} == {"finish"}
    assert {ON_BUG["tool"]} == EDGES["tool"]


def test_a_tool_is_sent_only_what_may_run() -> None:
    """TL-02: one dispatch for each ready call, with the task it needs."""
    calls = (a_call("a"), a_call("b", "awaiting"), a_call("c"), a_call("d", "failed"))
    state = a_state(calls=calls)
    assert state.task is not None

    sent = ready_calls(state)

    assert sent == [
        Dispatch(task=state.task, call=calls[0]),
        Dispatch(task=state.task, call=calls[2]),
    ]
    assert ready_calls(State(calls=calls)) == []


# --- The drawn machine is the machine: every edge that can be taken is drawn, and no other.

EDGE = re.compile(r"^    (\w+) (-->|==>)\|(.+)\| (\w+)", re.MULTILINE)
BUG = re.compile(r"^    (\w+) -\.->\|bug\| (\w+)$", re.MULTILINE)
SHARED_BUG = re.compile(r'^    bug_\w+{{"a bug in (.+)"}} -\.-> (\w+)$', re.MULTILINE)


def drawn(name: str) -> str:
    return "__end__" if name == END else name


def test_every_edge_of_the_table_is_drawn_with_its_outcome() -> None:
    """Outcomes that lead to the same node share an edge; fan-out is drawn thick."""
    edges = {
        (source, outcome, target, arrow == "==>")
        for source, arrow, outcomes, target in EDGE.findall(mermaid())
        for outcome in outcomes.split(", ")
    }

    assert edges == {
        (name, outcome, drawn(node_of(target)), isinstance(target, Each))
        for name, (_, outcomes) in TABLE.items()
        for outcome, target in outcomes.items()
    }


def test_every_edge_of_the_error_handlers_is_drawn_dotted() -> None:
    """Those that several nodes share once, the others each."""
    bugs = dict(BUG.findall(mermaid()))
    for names, target in SHARED_BUG.findall(mermaid()):
        bugs |= dict.fromkeys(names.split(", "), target)
    others = bugs.pop("any other node")

    assert {name: bugs.get(name, others) for name in ON_BUG} == {
        name: drawn(target) for name, target in ON_BUG.items()
    }


def test_the_picture_begins_where_the_machine_does() -> None:
    """Start and end are drawn, and it is the same picture every time."""
    assert f'__start__(["start"]) --> {ENTRY}\n' in mermaid()
    assert '__end__(["end"])' in mermaid()
    assert mermaid() == mermaid()


def test_the_command_prints_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """``daruma graph`` prints exactly this, ready to be pasted."""
    with pytest.raises(SystemExit):
        main(["graph"])

    assert capsys.readouterr().out == mermaid()


# --- Budgets in tokens, money and time: asked about when they are spent, answered from anywhere.

USED = {"usage": {"input": 60, "output": 40}}
PRICES = {"prices": {"scripted": {"input": 1000.0, "output": 1000.0}}}
"""Ten cents for each call."""


CIRCLE = '{"phases": [{"id": "a", "depends_on": ["a"]}]}'


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


WORK = [calls(call("shout", text=each)) | USED for each in "ab"] + [say("Done.") | USED]
PLANNED = {"plan": [phases({"id": "p"}) | USED], "main": WORK}


def run(script: Any, mode: str = "react", llm: Any = None, **budgets: Any) -> Run:
    given = settings(budgets=budgets, spec_review={"enabled": False}, llm=llm or {})
    return Run(script, settings=given, tools=[shout]).ask(mode=mode)


def ended(run: Run) -> tuple[str, str | None]:
    error = run.result.error_struct
    return run.result.status, error.error_code if error else None


@pytest.mark.parametrize(
    ("budgets", "llm"), [({"tokens": 150}, {}), ({"usd": 0.15}, PRICES), ({"usd": 0.2}, PRICES)]
)
def test_a_spent_budget_is_asked_about(budgets: dict[str, Any], llm: Any) -> None:
    """BU-04: before the call that would go beyond it; what is granted is on record.

    It has the form of inboxes, and says when it was asked: a yes sent before is none to this one.
    """
    asking = run({"main": WORK}, llm=llm, **budgets)
    measure = next(iter(budgets))
    assert asking.nodes[-2:] == ["main", "__interrupt__"]
    assert asking.question.value["options"] == [AGAIN, "stop"]
    assert asking.question.value["deadline"] is None
    assert asking.question.value["asked_at"] > 0
    assert asking.question.value["action_requests"][0]["args"] == {"answer": AGAIN}

    asking.reply({"answer": AGAIN})

    assert ended(asking) == ("completed", None)
    assert asking.result.usage["main"]["calls"] == 3
    assert any(note.startswith("granted beyond its budget") for note in asking.result.notes)
    assert [event["measure"] for event in asking.happened("budget_settled")] == [measure]
    assert unclosed(asking.events) == []


def test_an_amount_in_words_is_granted_exactly() -> None:
    """And it is asked again once that is spent too, under another id; nothing by a guess."""
    asking = run({"main": WORK}, tokens=100)
    first = asking.question.value
    for answer in ("usd 5", "tokens 0", "tokens lots", "yes"):
        with pytest.raises(ReplyRefused, match="tokens NUMBER"):
            asking.reply({"answer": answer})
        assert asking.question.value == first

    asking.reply({"answer": "tokens 50"})

    assert asking.question.value["id"] != first["id"]
    assert "150 tokens" in asking.question.value["question"]


@pytest.mark.parametrize("when_spent", ["ask", "stop"])
def test_it_ends_by_its_own_name(when_spent: str) -> None:
    """By the settings, or as a person says so: a failure that tells which budget it was."""
    asking = run({"main": WORK}, tokens=150, when_spent=when_spent)
    if when_spent == "ask":
        asking.reply({"answer": "stop"})

    assert ended(asking) == ("budget_exceeded", "budget_exceeded")
    assert "150 tokens is spent (200 used)" in (asking.result.error_message or "")
    assert spent_by_task(asking.state).tokens == 200
    assert unclosed(asking.events) == []


def test_who_has_no_checkpointer_is_not_asked() -> None:
    """There is nobody who could answer: it stops."""
    model = ScriptedChatModel(script={"main": WORK})
    graph: Any = build_graph(model, [shout], settings(budgets={"tokens": 150}))

    out = graph.invoke({"messages": [HumanMessage("Do it")]})

    assert out["result"].status == "budget_exceeded"


def test_planning_spends_of_it_too() -> None:
    """The plan's own call; then each phase, against the same limit."""
    asking = run({"plan": [say(CIRCLE) | USED], "main": WORK}, "plan_exec", tokens=100)
    assert asking.nodes[-3:] == ["plan", "plan", "__interrupt__"]

    asking.reply({"answer": "stop"})

    assert asking.nodes[-3:] == ["pause", "emergency", "finish"]
    assert ended(asking) == ("budget_exceeded", "budget_exceeded")


def test_a_phase_has_a_budget_of_its_own() -> None:
    """Planning is no part of it."""
    asking = run(PLANNED, "plan_exec", per_phase={"tokens": 150})

    assert (
        "The phase's budget of 150 tokens is spent (200 used)"
        in (asking.question.value["question"])
    )
    asking.reply({"answer": AGAIN})
    assert ended(asking) == ("completed", None)


@pytest.mark.parametrize("command", ["true", "false"])
def test_work_is_verified_before_it_ends(command: str, tmp_path: Any) -> None:
    """BU-01, MO-10: the tool calls under way are finished, then checked; that is no answer yet."""
    given = settings(
        budgets={"tokens": 200, "when_spent": "stop"},
        spec_review={"enabled": False},
        verification={"commands": [command]},
        fallback_chain={"recovery": {"max_retries": 0}},
    )
    stopped = Run(PLANNED, settings=given, tools=[shout])
    stopped.ask(mode="plan_exec", workspace=str(tmp_path))

    assert stopped.nodes.count("verify") == 1
    assert stopped.nodes.index("pause") < stopped.nodes.index("verify")
    assert ended(stopped)[0] == "budget_exceeded"
    assert stopped.result.phases[0].verification is not None
    assert stopped.result.phases[0].verification.passed == (command == "true")
    assert unclosed(stopped.events) == []


def test_time_at_work_is_counted_and_not_the_wait_for_people() -> None:
    """The smallest budget is spent by the first call; what a person takes is none of it."""
    asking = run({"main": WORK}, seconds=1e-9)
    assert asking.question.value["amounts"] == ["seconds"]

    asking.reply({"answer": "seconds 3600"})

    assert ended(asking) == ("completed", None)
    kinds = {step.kind for step in asking.state.steps}
    assert {"think", "tool", "pause"} <= kinds


def test_a_fork_has_spent_what_its_history_says() -> None:
    """BU-03: a grant that came later is none of its own."""
    asking = run({"main": WORK}, tokens=100).reply({"answer": "tokens 1000"})
    (before,) = [
        past
        for past in asking.graph.get_state_history(asking.config)
        if past.next == ("main",) and [s.kind for s in past.values["steps"]] == ["think", "tool"]
    ]

    forked = asking.graph.update_state(before.config, None, as_node="__copy__")
    list(asking.graph.stream(None, forked))

    assert asking.question.value["type"] == "question"
    assert spent_by_task(asking.state).tokens == 100


def test_a_stopped_task_goes_on_once_settings_allow_more() -> None:
    """TL-23: with the work that was done; too little is refused, naming the setting."""
    stopped = run({"main": WORK}, tokens=150, when_spent="stop")
    with pytest.raises(NothingToReopen, match=r"Raise budgets\.tokens"):
        stopped.graph.reopen(stopped.config)

    more = settings(budgets={"tokens": 1000})
    saver = stopped.graph.checkpointer
    stopped.graph = build_graph(stopped.model, [shout], more, checkpointer=saver)
    stopped.graph.reopen(stopped.config)
    stopped.send(None)

    assert ended(stopped) == ("completed", None)
    assert stopped.result.usage["main"]["calls"] == 3


def test_all_phases_that_were_stopped_go_on() -> None:
    """From where the stop was: what came after it has done nothing."""
    each = [calls(call("shout", text="a")) | USED, say("Done.") | USED]
    script = {"plan": [phases({"id": "p"}, {"id": "q"}) | USED], "main": each * 2}
    stopped = run(script, "plan_exec", tokens=150, when_spent="stop")

    more = settings(budgets={"tokens": 1000}, spec_review={"enabled": False})
    saver = stopped.graph.checkpointer
    stopped.graph = build_graph(stopped.model, [shout], more, checkpointer=saver)
    stopped.graph.reopen(stopped.config)
    stopped.send(None)

    assert ended(stopped) == ("completed", None)
    assert [phase.status for phase in stopped.result.phases] == ["completed", "completed"]


def test_members_share_what_is_left() -> None:
    """Each asks by an id of its own; both grants are on the task's record."""
    pair = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    work = [calls(call("shout", text="x")) | USED] * 2 + [say("Done.") | USED]
    script = {"plan": [phases(*pair) | USED], "main@a": work, "main@b": work}
    given = settings(budgets={"tokens": 300}, spec_review={"enabled": False})
    asking = Run(script, settings=given, tools=[shout]).ask(mode="team_collab")
    ids = {each.value["id"]: each.id for each in asking.snapshot.interrupts}
    assert sorted(ids) == ["t/1:a:budget:0", "t/1:b:budget:0"]

    asking.send(Command(resume={key: {"answer": "tokens 1000"} for key in ids.values()}))

    assert ended(asking) == ("completed", None)
    assert any("2,000 tokens" in note for note in asking.result.notes)
    told = [asking.happened(f"budget_{each}") for each in ("spent", "settled")]
    assert [sorted(event["member"] for event in each) for each in told] == [["a", "b"]] * 2


@pytest.fixture
def graphs(postgres_url: str) -> Iterator[Any]:
    """A graph over the same database, opened anew each time, as another process would."""

    def opened(**budgets: Any) -> Any:
        postgres = stack.enter_context(open_postgres(postgres_url))
        model = ScriptedChatModel(script={"main": WORK})
        return build_graph(model, [shout], settings(budgets=budgets), persistence=postgres)

    with ExitStack() as stack:
        yield opened


@pytest.mark.long
def test_a_grant_survives_the_process_that_took_it(graphs: Any) -> None:
    """Asked in one, answered in a second, which ends right after the grant; a third goes on."""
    config: Any = {"configurable": {"thread_id": "t"}}
    first = graphs(tokens=100)
    first.invoke({"messages": [HumanMessage("Do it")]}, config)

    second = graphs(tokens=100)
    (question,) = second.get_state(config).interrupts
    reply: Command[Any] = Command(resume={question.id: {"answer": "tokens 1000"}})
    second.invoke(reply, config, interrupt_after=["pause"])
    third = graphs(tokens=100)
    out = third.invoke(None, config)

    assert out["result"].status == "completed"
    assert sum(step.kind == "pause" for step in third.get_state(config).values["steps"]) == 1


# --- A call in doubt whose tool had asked in its own words is never told as failed (DU-06).

T: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("reply", ["yes", {"sure": True}, {"answer": "yes"}])
def test_an_answer_to_a_tools_own_question_is_none_to_what_became_of_it(reply: Any) -> None:
    """The call was cut short after it was answered; the model is told that nobody knows."""
    paid = []

    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append((amount, interrupt({"sure": "?"})))
        raise HoldLost("t")

    script = {"main": [calls(call("pay", amount=5)), say()]}
    graph = build_graph(ScriptedChatModel(script=script), [pay], Settings(), checkpointer=memory())
    given: Any = {"messages": [("user", "Pay")], "mode": "react"}
    graph.invoke(given, T)
    (own,) = graph.get_state(T).interrupts
    with pytest.raises(HoldLost):
        graph.invoke(Command(resume={own.id: reply}), T)

    ended = graph.invoke(None, T)

    assert paid == [(5, reply)]
    (result,) = [each for each in ended["messages"] if each.type == "tool"]
    assert result.text.startswith("Error: outcome_unknown: pay was cut short")


# --- What is told as begun is told as ended, whatever happens on the way (PL-04).

NAMES_EVENT_PAIRS = ("task_id", "phase_id", "call_id", "id")
ROLLBACKS: dict[str, dict[str, str]] = {
    "none": {},
    "works": {"rollback_command": "true"},
    "fails": {"rollback_command": "false"},
    "snapshot": {"rollback": "snapshot"},
    "not needed": {"validation_command": "true", "rollback": "snapshot"},
    "needed": {"validation_command": "false", "rollback_command": "true"},
}
OK = calls(call("run_command", command="touch ok"))
WORKS: dict[str, list[dict[str, Any]]] = {
    "passes": [OK, say()],
    "fails": [say(), say()],
    "is silent": [say(""), say("")],
    "falls": [{"raise": "the provider is down"}] * 3,
}


@dataclass(frozen=True)
class Journey:
    """A task: its phases, how each of them goes, what people say, where the caller goes away."""

    mode: str
    rollbacks: list[str]
    works: list[str]
    chained: bool
    reviews: list[str]
    holds: list[str]
    leaves_after: int | None
    parallel: int = field(default=2)

    @property
    def script(self) -> dict[str, Any]:
        plan = [
            {
                "id": f"p{n}",
                "expert": "developer",
                "depends_on": [f"p{n - 1}"] if self.chained and n else [],
                **ROLLBACKS[rollback],
            }
            for n, rollback in enumerate(self.rollbacks)
        ]
        own = {f"main@p{n}": WORKS[work] for n, work in enumerate(self.works)}
        return {
            "plan": [phases(*plan)] * 9,
            "main": [turn for work in self.works for turn in WORKS[work]] + [say()] * 9,
            "reflect": [say("Hm.")] * 9,
            "recovery": [say("no idea")] * 9,
        } | own


JOURNEYS = st.integers(1, 3).flatmap(
    lambda n: st.builds(
        Journey,
        mode=st.sampled_from(["plan_exec", "team_collab"]),
        rollbacks=st.lists(st.sampled_from([*ROLLBACKS]), min_size=n, max_size=n),
        works=st.lists(st.sampled_from([*WORKS]), min_size=n, max_size=n),
        chained=st.booleans(),
        reviews=st.lists(st.sampled_from(["reject", "park"]), max_size=2, unique=True),
        holds=st.lists(st.sampled_from(["retry", "restore"]), max_size=1),
        leaves_after=st.none() | st.integers(1, 30),
    )
)


@contextmanager
def a_workspace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="daruma-journey-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def travel(journey: Journey, workspace: Path) -> list[dict[str, Any]]:
    """Run the task to its end, and return all that was told.

    Who goes away misses what is told at that moment: then it is all that is told after that.
    """
    given_settings = settings_of(
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": ["test -e ok"]},
        fallback_chain={"recovery": {"wait_seconds": 0}},
        llm={"requests": {"wait_seconds": 0}},
        team={"max_parallel": journey.parallel},
    )
    run = Run(journey.script, settings=given_settings)
    request = {
        "messages": [HumanMessage("Do it")],
        "mode": journey.mode,
        "workspace": str(workspace),
    }
    reviews, holds = [*journey.reviews], [*journey.holds]
    leave(run, request, journey.leaves_after)
    missed = len(run.events) if journey.leaves_after == len(run.events) else 0
    while run.snapshot.tasks:
        questions = run.snapshot.interrupts
        run.send(
            Command(resume={q.id: reply_to(q.value, reviews, holds) for q in questions})
            if questions
            else None
        )
    return run.events[missed:]


def leave(run: Run, request: Mapping[str, Any], after: int | None) -> None:
    """Start the task; the caller may go away after so many events, which ends the run."""
    parts = run.graph.stream(request, run.config, stream_mode="custom")
    for number, event in enumerate(parts, 1):
        run.events.append(event)
        if number == after:
            parts.close()
            return


def reply_to(question: Mapping[str, Any], reviews: list[str], holds: list[str]) -> Any:
    if question["type"] == "question" and "options" in question:
        way = holds.pop() if holds else "keep"
        return {"answer": way if way in question["options"] else "keep"}
    if question["type"] == "question":
        return {"answer": "Go on."}
    decision = reviews.pop() if reviews and not question.get("parked") else "confirm"
    return {"decision": decision, **({"feedback": "no"} if decision == "reject" else {})}


PAIRS = {**CLOSERS, **dict.fromkeys(REQUESTS, ("question_closed",))}


def open_at_the_end(events: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return what was begun last, and never ended; by type and name, since runs are cut short."""
    opened: set[tuple[str, str]] = set()
    for event in events:
        name = ":".join(str(event.get(key, "")) for key in NAMES_EVENT_PAIRS) + event.get(
            "member", ""
        )
        for opener, closers in PAIRS.items():
            if event["type"] == opener:
                opened.add((opener, name))
            elif event["type"] in closers:
                opened.discard((opener, name))
    return opened


@settings_event_pairs(max_examples=3, deadline=None)
@given(JOURNEYS)
def test_what_begins_ends(journey: Journey) -> None:
    """PL-04: confirm, reject, timeout, failure, rollback, held, cancelled and resumed."""
    with a_workspace() as workspace:
        events = travel(journey, workspace)

    assert open_at_the_end(events) == set()
    assert events[-1]["type"] == "task_completed"


def test_an_open_end_is_found() -> None:
    """The property can fail."""
    begun = {"type": "phase_started", "phase_id": "a"}
    other = {"type": "phase_completed", "phase_id": "b"}

    assert open_at_the_end([begun, other]) == {("phase_started", ":a::")}
    assert open_at_the_end([begun, other | {"phase_id": "a"}]) == set()
