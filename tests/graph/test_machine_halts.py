"""Whatever each node says for ever, the machine ends within what its limits allow.

The walk is pure Python: the table, the real routers, reducers and nodes, and a stubborn world. Only
what asks a person or runs a command is put in here, in the forms that the real nodes return.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END
from tests.parts import GREEN, RED, a_failure, a_registry, at_once, calling
from tests.scripted_runs import illegal, shout

from daruma.graph.build import node as function_of
from daruma.graph.machine import (
    EACH_MEMBER,
    ENTRY,
    MEMBER_ENTRY,
    TABLE,
    Each,
    Router,
    Target,
    node_of,
    of_a_member,
)
from daruma.nodes import pause as pausing
from daruma.nodes.hold import _apply_decision
from daruma.nodes.member import build_member_state
from daruma.state.budget import MAX_FAILED_PLANS, record_step
from daruma.state.calls import reduce_calls, set_status, with_status
from daruma.state.channels import State, Update
from daruma.state.conversation import with_status as with_answer
from daruma.state.failure import ModelFailed, Strategy, TooLong
from daruma.state.interrupts import read_reply
from daruma.state.messages import reduce_messages
from daruma.state.mode import KEEP_WORKING, MODES, Mode
from daruma.state.plan import Report, reduce_reports
from daruma.state.savepoint import append_savepoints
from daruma.state.settings import Settings
from daruma.state.spending import AGAIN, STOP, allowed_amounts, assignments, spent_by_task
from daruma.state.steering import SteeringMessage
from daruma.state.steps import append_steps
from daruma.state.usage import Usage
from daruma.tools.calls import tool_result, void_approval
from daruma.tools.calls._approvals import MAX_VOIDED, endless_changes
from daruma.tools.context import Answer, Context, receive_before_end
from daruma.tools.recovery import apply_reply, question_of
from daruma.tools.sandbox import open_best
from daruma.tools.team import settings_of


@tool
def whisper(text: str) -> str:
    """Say it quietly."""
    return text.lower()


whisper.metadata = {"daruma": {"ask_for": {"text": "What should I whisper?"}}}


@tool
def peek(text: str) -> str:
    """Look at it."""
    return text


peek.metadata = {"daruma": {"effect": "none"}}

Table = Mapping[str, tuple[Router, dict[str, Target]]]
PLANS: dict[str, list[dict[str, Any]]] = {
    "one": [{"id": "a", "expert": "tester"}],
    "chain": [
        {"id": "a", "expert": "tester"},
        {"id": "b", "depends_on": ["a"], "expert": "tester"},
        {"id": "c", "depends_on": ["b"], "expert": "tester"},
    ],
    "fork": [
        {"id": "a", "expert": "tester"},
        {"id": "b", "depends_on": ["a"], "expert": "tester"},
        {"id": "c", "depends_on": ["a"], "expert": "tester"},
    ],
    "apart": [
        {"id": "a", "rollback_command": "undo", "expert": "tester"},
        {"id": "b", "rollback": "snapshot", "expert": "writer"},
        {"id": "c", "validation_command": "look", "expert": "tester"},
    ],
}
REPAIRS: dict[str, dict[str, Any]] = {
    "renames": {"name": "shout"},
    "repairs": {"name": "shout", "arguments": {"text": "x"}},
    "repairs one": {"name": "shout", "arguments": {"text": "x"}},
    "misrepairs": {"name": "other", "arguments": {"txt": "x"}},
}
ACTIONS: dict[str, dict[str, Any]] = {
    f"{strategy} {confidence}": {"strategy": strategy, "confidence": confidence, "action": action}
    for strategy in get_args(Strategy)
    for confidence in (0.9, 0.6, 0.1)
    for action in ({"tool_name": "shout", "parameters": {"text": "x"}},)
}
PERSON: dict[str, dict[str, str]] = {
    "approves": {"decision": "approve"},
    "denies": {"decision": "deny"},
    "answers": {"decision": "instruct", "text": "Go on."},
}
T = TypeVar("T")
ANSWER = {"answer": "Go on."}
CALLING = ("loops", "works", "polls", "unknown", "misfits", "lacks", "contradicts")
"""A model that makes the same calls for ever, others each time, the same with other results; and
calls that can not run, or lack what a person has to say."""
REFUSED = '{"phases": [{"id": "a", "depends_on": ["a"]}]}'


class EndlessWalk(AssertionError):
    """Raised when a walk is longer than its limits allow."""


@dataclass(frozen=True)
class World:
    """What a stubborn world says, for ever. A person rejects a plan, has a rollback tried
    again and grants more of a budget only so often; of a budget that is spent then, they say stop.
    """

    mode: Mode = "react"
    plan: str = "one"
    main: str = "answers"
    gate: str = "approves"
    verify: str = "green"
    reflect: str = "blank"
    repair: str = "blank"
    recovery: str = "blank"
    consult: str = "answers"
    rollback_works: bool = True
    hold: str = "keep"
    rejections: int = 0
    retries: int = 0
    parks: bool = False
    new_words: bool = False
    compress: str = "text"
    too_long: bool = False
    long: int = 0
    grants: int = 0
    granted: str = AGAIN
    looks: int = 0
    says: str = ""


class Talkative:
    """Says something whenever anybody listens; a team is told nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._said = 0

    def waits(self, _: str) -> bool:
        return bool(self._world.says) and self._world.mode != "team_collab"

    async def read(self, _: str) -> list[SteeringMessage]:
        self._said += 1
        stop = self._world.says == "stop"
        return [SteeringMessage(id=f"{self._said:032x}", text="More.", at=0.0, stop=stop)]

    def forget(self, _: str, ids: Collection[str]) -> None:
        assert not ids


class Walker:
    """Walks the table with a state, in a world, under settings."""

    def __init__(self, world: World, given_settings: Settings, table: Table = TABLE) -> None:
        self.world = world
        self.settings = given_settings
        self.table = table
        self.context = Context(
            settings=given_settings,
            ask=self.ask,
            tools=a_registry([shout, whisper, peek]),
            open_sandbox=open_best,
            now=lambda: 0.0,
            sleep=at_once,
            steering=Talkative(world),
        )
        self.path: list[str] = []

    def walk(self) -> State:
        """Walk to the end. Raises :class:`EndlessWalk` one step after it should have come."""
        state = State(messages=[HumanMessage("Do it", id="q")], mode=self.world.mode)
        return self.walked(state, ENTRY)

    def walked(self, state: State, at: str) -> State:
        """Walk from a state and a node to the end."""
        while at != END:
            self.path.append(at)
            if len(self.path) > self.bound():
                raise EndlessWalk(f"over {self.bound()} nodes: ... {' '.join(self.path[-12:])}")
            state = replace(applied(state, self.update(at, state)), mode=None)
            router, edges = self.table[at]
            target = edges[router(state)]
            if isinstance(target, Each):
                state = self.fanned_out(target, state)
                (target,) = self.table[target.node][1].values()
            at = node_of(target)
        return state

    def fanned_out(self, target: Each, state: State) -> State:
        """The state once all that was sent out has come back."""
        if target == EACH_MEMBER:
            for assignment in assignments(state):
                state = applied(state, {"reports": self.member(assignment)})
            return state
        sent: list[Any] = target.items(state)
        for call in [each.call for each in sent]:
            if self.world.gate == "approves what changes" and call.approved:
                state = applied(state, {"calls": void_approval(call, ("it changed",))})
                continue
            result = tool_result(call, self.outcome())
            state = applied(state, {"messages": [result], "calls": set_status(call, "done")})
        return state

    def bound(self) -> int:
        """How many nodes a task can pass: each model call leads to so many of them at most."""
        budgets, recoveries = self.settings.budgets, self.settings.fallback_chain.recovery
        made = self.world.rejections + 1 + budgets.replan
        plans = made * (MAX_FAILED_PLANS + budgets.look) + recoveries.max_retries + 1
        think = max(budgets.think, budgets.max_steps)
        phases = len(PLANS.get(self.world.plan, ())) * (1 + budgets.replan)
        phases = phases if self.world.mode in KEEP_WORKING else 1
        tools = self.settings.tools
        each = 6 + tools.name_repair_attempts + tools.call_repair_attempts
        each += 3 * MAX_VOIDED if self.world.gate == "approves what changes" else 0
        if self.settings.llm.context_window_tokens or self.world.too_long:
            each, plans = each + 6, 3 * plans  # a compaction before a request, and one after it
        held = 4 * (self.world.retries + 1)
        paused = 2 * (self.world.grants + 4 * phases + 2)  # a node that is held up, and the pause
        return 4 + 2 * plans + paused + phases * (3 + held + each * (think + budgets.verify + 1))

    def update(self, at: str, state: State) -> Update:
        """What the node returns: the real one's update, or one of its form."""
        if at in {
            "spec_review",
            "gate",
            "clarify",
            "verify",
            "rollback",
            "consult",
            "hold",
            "pause",
        }:
            found: Update = getattr(self, at)(state)
            return found
        looks = at in {"intake", "plan"} and self.world.mode == "team_collab"
        return driven(function_of(at)(state, self.context), looks=looks)

    async def ask(self, node: str, *_: Any, **options: Any) -> Answer:
        world = self.world
        said = {
            "plan": world.plan,
            "main": world.main,
            "reflect": world.reflect,
            "repair": world.repair,
            "recovery": world.recovery,
            "compress": world.compress,
        }[node]
        if said == "fails":
            raise ModelFailed(self.words(), too_long=TooLong() if world.too_long else None)
        looks = self.path.count("plan") <= world.looks and options.get("tools")
        if node == "plan" and (said == "looks" or looks):
            said = "peeks"
        message = spoken(said, self.number if said == "works" else "x")
        return Answer(message=message, usage=Usage(role="main", model="stub", input_tokens=10))

    def outcome(self) -> str:
        """What a tool says: the same for ever, unless it is one that is polled."""
        said = f"{self.number} are done" if self.world.main == "polls" else "fine"
        return said + " indeed" * self.world.long

    @property
    def number(self) -> str:
        return str(len(self.path))

    def words(self) -> str:
        """The same words each time, or new ones: digits alone do not make a failure a new one."""
        number = self.number.translate(str.maketrans("0123456789", "abcdefghij"))
        return f"broken {number}" if self.world.new_words else "broken"

    def member(self, assignment: Any) -> Report:
        """The member's own walk, from a phase that was begun for it."""
        given = settings_of(None, self.settings)
        inner = Walker(replace(self.world, mode="team_collab"), given, of_a_member())
        start = build_member_state(assignment, None, None)
        ended = inner.walked(start, MEMBER_ENTRY)
        closed = ended.plan.phase(assignment.phase.id) if ended.plan else None
        assert closed is not None
        assert ended.result is not None
        phase = replace(closed, depends_on=assignment.phase.depends_on)
        return Report(phase=phase, steps=tuple(ended.steps))

    def hold(self, state: State) -> Update:
        """The real node, but for how the person is asked."""
        tried = self.path.count("hold") <= self.world.retries
        return driven(_apply_decision(state, self.world.hold if tried else "keep", self.context))

    def spec_review(self, state: State) -> Update:
        if self.world.parks and state.plan and self.path.count("spec_review") == 1:
            return {"plan": replace(state.plan, parked=True)}
        if self.path.count("spec_review") > self.world.rejections:
            return {"plan": replace(state.plan, parked=False) if state.plan else None}
        before = state.plan.before if state.plan else None
        return {"plan": before, "messages": [HumanMessage("Plan anew.")]}

    def gate(self, state: State) -> Update:
        waiting, over = with_status(state.calls, "awaiting"), endless_changes(state.calls)
        now = waiting[:1] if self.world.gate == "approves one" else waiting
        denied = self.world.gate in {"denies", "blocks"}
        calls = {call.id: replace(call, status="ready", approved="x") for call in now}
        no = [call for call in now if denied or call.id in over]
        calls |= {call.id: set_status(call, "rejected") for call in no}
        return {
            "calls": tuple(calls.get(call.id, call) for call in state.calls),
            "messages": [tool_result(call, "no", ok=False) for call in no],
            "failure": a_failure("approval_denied") if self.world.gate == "blocks" else None,
        }

    def pause(self, state: State) -> Update:
        """The real node, but for how the person is asked."""
        if not pausing.asks_person(state, self.context):
            return pausing.apply_decision(state, STOP, self.context)
        grants = self.path.count("pause") <= self.world.grants
        reply = {"answer": self.world.granted if grants else STOP}
        answer = read_reply(pausing.question_of(state), reply).answer
        return pausing.apply_decision(state, answer, self.context)

    def clarify(self, state: State) -> Update:
        """A person who says nothing of use."""
        assert state.clarification is not None
        answered = with_answer(state.clarification, "resumed")
        return {"messages": [HumanMessage("Hm.")], "clarification": answered}

    def consult(self, state: State) -> Update:
        """The real node, but for how the person is asked."""
        question = question_of(state)
        reply = PERSON[self.world.consult] if question["type"] == "recovery_request" else ANSWER
        return driven(apply_reply(state, read_reply(question, reply), self.context))

    def verify(self, state: State) -> Update:
        if told := driven(receive_before_end(state, self.context)):
            return told
        step = record_step(state, "verify", at=0.0, ok=self.world.verify == "green")
        if self.world.verify == "fails":
            failure = a_failure("workspace_conflict", "verify", self.words())
            return {"failure": failure, "steps": step}
        return {"verification": GREEN if self.world.verify == "green" else RED, "steps": step}

    def rollback(self, state: State) -> Update:
        phase = state.plan.phase(state.plan.current) if state.plan else None
        asked = phase and (phase.rollback_command or phase.rollback)
        if asked and not self.world.rollback_works:
            return {"failure": a_failure("rollback_failed")}
        return {"failure": None}


def spoken(said: str, text: str = "x") -> AIMessage:
    if said == "peeks":
        return calling("peek", "shout", text=text)
    if said == "contradicts":
        return calling("revise_plan", why="It is not so.")
    return answered(said, text)


def answered(said: str, text: str) -> AIMessage:
    if said in PLANS:
        return AIMessage(str({"phases": PLANS[said]}).replace("'", '"'))
    if said in CALLING:
        name = {"unknown": "nope", "lacks": "whisper"}.get(said, "shout")
        return calling(name, name, **({} if said in {"misfits", "lacks"} else {"text": text}))
    if said == "delegates":
        asked = [{"name": "delegate", "args": {"task": text}, "id": id_} for id_ in ("c1", "c2")]
        return AIMessage("", tool_calls=asked)
    if said in ACTIONS:
        return AIMessage(json.dumps(ACTIONS[said]))
    if said in REPAIRS:
        ids = [f"c{n}" for n in (1, 2)][: 1 if said == "repairs one" else 2]
        given = [{"tool_call_id": id_, **REPAIRS[said]} for id_ in ids]
        return AIMessage(json.dumps({"repairs": given}))
    return AIMessage({"refused": REFUSED, "blank": ""}.get(said, "Done."))


RUNNER = asyncio.Runner()
"""Runs the nodes that read a team's template."""


@pytest.fixture(scope="module", autouse=True)
def _runner() -> Iterator[None]:
    yield
    RUNNER.close()


def driven(coroutine: Coroutine[Any, Any, T], *, looks: bool = False) -> T:
    """Run a node to its end; without an event loop, unless it ``looks`` at files."""
    if looks:
        return RUNNER.run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as end:
        update: T = end.value
        return update
    raise AssertionError("the node waits for something")


def applied(state: State, update: Update) -> State:
    """The state after an update, by the reducers of its channels."""
    changes: dict[str, Any] = dict(update)
    if "messages" in update:
        changes["messages"] = reduce_messages(state.messages, [update["messages"]])
    if "steps" in update:
        changes["steps"] = append_steps(state.steps, [update["steps"]])
    if "savepoints" in update:
        changes["savepoints"] = append_savepoints(state.savepoints, [update["savepoints"]])
    if "reports" in update:
        changes["reports"] = reduce_reports(state.reports, update["reports"])
    if "calls" in update:
        changes["calls"] = reduce_calls(state.calls, update["calls"])
    return replace(state, **changes)


WORLDS = st.builds(
    World,
    mode=st.sampled_from(MODES),
    plan=st.sampled_from([*PLANS, "refused", "fails", "looks"]),
    looks=st.integers(0, 5),
    main=st.sampled_from(["answers", *CALLING, "delegates", "blank", "fails"]),
    repair=st.sampled_from([*REPAIRS, "blank", "fails"]),
    recovery=st.sampled_from([*ACTIONS, "blank", "fails"]),
    consult=st.sampled_from(list(PERSON)),
    gate=st.sampled_from(["approves", "approves one", "approves what changes", "denies", "blocks"]),
    verify=st.sampled_from(["green", "red", "fails"]),
    reflect=st.sampled_from(["text", "blank", "fails"]),
    rollback_works=st.booleans(),
    hold=st.sampled_from(["keep", "retry", "restore"]),
    rejections=st.integers(0, 2),
    retries=st.integers(0, 2),
    parks=st.booleans(),
    compress=st.sampled_from(["text", "blank", "fails"]),
    too_long=st.booleans(),
    long=st.sampled_from([0, 0, 200, 3000]),
    grants=st.integers(0, 3),
    granted=st.sampled_from([AGAIN, "tokens 25", STOP]),
    says=st.sampled_from(["", "", "more", "stop"]),
)


def reachable(sections: dict[str, Any]) -> dict[str, Any]:
    """Let ``verify`` be what is to spare beside what the others need (BU-01)."""
    budgets = sections["budgets"]
    again = 1 + sections["verification"]["max_reinjections"] + budgets["reflect"]
    return sections | {"budgets": budgets | {"verify": budgets["verify"] + again}}


SETTINGS = (
    st.fixed_dictionaries(
        {
            "llm": st.fixed_dictionaries(
                {"context_window_tokens": st.sampled_from([None, None, 1000, 1500, 4000])}
            ),
            "budgets": st.fixed_dictionaries(
                {
                    "think": st.integers(1, 7),
                    "max_steps": st.integers(1, 10),
                    "verify": st.integers(0, 3),
                    "reflect": st.integers(0, 2),
                    "look": st.integers(0, 3),
                    "replan": st.integers(0, 2),
                    "max_steps_per_turn": st.none() | st.integers(1, 8),
                    "tokens": st.none() | st.integers(1, 90),
                    "per_phase": st.fixed_dictionaries({"tokens": st.none() | st.integers(1, 60)}),
                    "when_spent": st.sampled_from(["ask", "stop"]),
                }
            ),
            "verification": st.fixed_dictionaries(
                {"enabled": st.sampled_from(["auto", True]), "max_reinjections": st.integers(0, 2)}
            ),
            "fallback_chain": st.fixed_dictionaries(
                {
                    "recovery": st.fixed_dictionaries(
                        {
                            "max_retries": st.integers(0, 2),
                            "enabled": st.booleans(),
                            "observe_only": st.booleans(),
                        }
                    )
                }
            ),
            "spec_review": st.fixed_dictionaries({"enabled": st.booleans()}),
            "team": st.just({"delegate": True}),
            "tools": st.fixed_dictionaries(
                {
                    "policy": st.sampled_from([{}, {"shout": "confirm"}]),
                    "name_repair_attempts": st.integers(0, 2),
                    "call_repair_attempts": st.integers(0, 2),
                }
            ),
        }
    )
    .map(reachable)
    .map(Settings.model_validate)
)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(WORLDS, SETTINGS)
def test_every_walk_ends_with_a_result(world: World, given_settings: Settings) -> None:
    """Within a bound that follows from the limits, and with every call answered (TL-03)."""
    state = Walker(world, given_settings).walk()

    assert state.result is not None
    assert (state.result.status in {"completed", "parked"}) == (state.error is None)
    assert illegal(state.messages) == []
    assert state.task is not None
    assert is_within_its_quotas(state, given_settings)
    at_once = 2 if world.main == "delegates" else 1
    assert is_within_its_tokens(state, given_settings, calls=4 if state.plan else at_once)


def is_within_its_quotas(state: State, given_settings: Settings) -> bool:
    """BU-01 and TL-16: per phase, or in total where there are none; and per turn."""
    assert state.task is not None
    limits = state.task.limits
    spent = Counter((step.kind, step.phase_id) for step in state.steps)
    quotas = {"think": limits.think, "verify": limits.verify, "reflect": limits.reflect}
    turn = given_settings.budgets.max_steps_per_turn
    thought = sum(n for (kind, _), n in spent.items() if kind == "think")
    kept = all(n <= quotas[kind] for (kind, _), n in spent.items() if kind in quotas)
    return kept and (turn is None or thought <= turn)


def is_within_its_tokens(state: State, given_settings: Settings, *, calls: int) -> bool:
    """BU-04: limits and grants, and at most the call under way: the planner's, each member's."""
    if given_settings.budgets.tokens is None:
        return True
    allowed_now = allowed_amounts(state, "task").tokens
    assert allowed_now is not None
    return spent_by_task(state).tokens < allowed_now + 10 * calls


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(WORLDS.filter(lambda world: world.plan != "fails"), SETTINGS)
def test_failures_in_ever_new_words_end(world: World, given_settings: Settings) -> None:
    """Each is a first one for recovery (RE-07); the quotas bound them all the same."""
    assert Walker(replace(world, new_words=True), given_settings).walk().result is not None


def test_plans_that_fail_in_ever_new_words_end() -> None:
    """A provider's error with a request id in it is new each time; planning spends no think."""
    world = World(mode="plan_exec", plan="fails", new_words=True)

    assert Walker(world, Settings()).walk().result is not None


@pytest.mark.parametrize(
    ("world", "window", "times"),
    [
        (World(main="works", long=100), 1000, 2),
        (World(main="works", long=3000), 1000, 5),
        (World(main="fails", too_long=True), None, 1),
        (World(mode="plan_exec", plan="fails", too_long=True), None, 1),
        (World(main="works", long=3000, compress="fails"), 1000, 5),
    ],
)
def test_walks_lead_through_compactions(world: World, window: int | None, times: int) -> None:
    """CX-01: the property above has them; each is gone back from, and no request is over it."""
    given_settings = Settings.model_validate({"llm": {"context_window_tokens": window}})
    walker = Walker(world, given_settings)

    state = walker.walk()

    assert state.result is not None
    assert walker.path.count("compress") >= times
    assert len(state.result.context_cost) == walker.path.count("compress")


@pytest.mark.parametrize(("replan", "plans"), [(0, 4), (1, 8), (2, 12)])
@pytest.mark.parametrize("mode", ["plan_exec", "team_collab"])
def test_walks_lead_through_looks_and_new_plans(mode: Mode, replan: int, plans: int) -> None:
    """PL-01a, PL-01b: each plan is looked for three times; a contradicted one is made anew."""
    given_settings = Settings.model_validate(
        {"budgets": {"look": 3, "replan": replan}, "spec_review": {"enabled": False}}
    )
    walker = Walker(World(mode=mode, main="contradicts", looks=99), given_settings)

    state = walker.walk()

    assert state.result is not None
    assert (state.result.status, walker.path.count("plan")) == ("failed", plans)
    assert [len(state.result.replaced), state.result.budgets["look"]] == [replan, plans * 3 // 4]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_walks_lead_through_helpers(mode: Mode) -> None:
    """PL-08: the property above has them; a loop of helpers is one like any other."""
    walker = Walker(
        World(mode=mode, main="delegates"), Settings.model_validate({"team": {"delegate": True}})
    )

    state = walker.walk()

    assert walker.path.count("delegate") == walker.path.count("merge") > 1
    assert {step.helper for step in state.steps} == {"", "c1", "c2"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("broken", "outcome", "world"),
    [
        ("main", "answered", World(main="unknown")),
        ("recovery", "retried", World(main="fails")),
        ("plan", "unusable", World(mode="plan_exec", plan="refused")),
        ("plan", "looked", World(mode="plan_exec", plan="looks")),
        ("settle", "replan", World(mode="plan_exec", main="contradicts")),
        ("gate", "gated", World(main="works", gate="approves one")),
    ],
)
def test_a_planted_loop_is_found(broken: str, outcome: str, world: World) -> None:
    """A router that always sends the work back makes the walk endless: the property can fail."""
    given_settings = Settings.model_validate({"tools": {"policy": {"shout": "confirm"}}})
    table = dict(TABLE) | {broken: (lambda _: outcome, TABLE[broken][1])}
    assert Walker(world, given_settings).walk().result is not None

    with pytest.raises(EndlessWalk):
        Walker(world, given_settings, table).walk()
