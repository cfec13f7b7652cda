"""The timeline of a thread: the moments of its record in their order (messages, steps, and what the
walk tells), as text, as a page, and as the picture of the machine, lit where the thread went.

``machine.svg`` lies beside this file, with a line for each of its parts; ``docs/draw_machine.py``
draws it.
"""

import re
import sys
from base64 import b64encode
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import chain, groupby
from math import inf
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.graph.standing import status_of
from daruma.graph.storage import PostgresSaver
from daruma.graph.timeline._events import event_moment
from daruma.graph.timeline._moments import (
    KINDS,
    Moment,
    asked_for,
    call_moments,
    first_line,
    message_ids,
    plain_block,
    plain_line,
    render_duration,
    render_duration_if_any,
    request_moment,
    results_in,
    steering_moment,
    step_moment,
    todo_line,
)
from daruma.graph.timeline._record import (
    Record,
    asked_last,
    check_moments,
    member_record,
    members_in,
    phase_moment,
    plan_text,
    plan_title,
    question_moments,
    record_of,
    result_moment,
    review_text,
    savepoint_moment,
    walk_moments,
)
from daruma.graph.timeline._walk import (
    Visit,
    Walked,
    edges_walked,
    nodes_walked,
    read_snapshot,
    read_supersteps,
)
from daruma.state.interrupts import told_question
from daruma.state.messages import is_request, reasoning_of, todo_of
from daruma.state.plan import Plan
from daruma.state.result import NOT_CHECKED, TaskResult, headline_of
from daruma.state.savepoint import Savepoint
from daruma.state.spending import standing
from daruma.state.steering import steering_id
from daruma.state.steps import Step
from daruma.state.text import on_thread
from daruma.tools.text import mask_keys

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

# --- The picture of the machine, lit where a thread went.

_PART: Final = re.compile(r'<g class="plain( human)?" data-(node|edge|label)="([^"]*)">')
_NAME: Final = re.compile(r'(<text class="name" x="([\d.]+)" y=")([\d.]+)(">.*?</text>)')


@cache
def asset(name: str) -> str:
    """Return a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Picture:
    """The machine; nodes and edges with a count were walked, and are lit."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """The picture as SVG, with its own style in it."""
        drawn = asset("machine.svg")
        if not self.nodes:
            return drawn
        told = ", ".join(f"{name} {count} times" for name, count in self.nodes.items())
        drawn = re.sub('aria-label="[^"]*"', f'aria-label="The machine; walked: {told}"', drawn)
        parts = (self._lit(line) for line in drawn.splitlines())
        lines = list[str]()
        for _, own in groupby(parts, key=itemgetter(0)):
            lines += sorted(
                (line for _, line in own), key=lambda it: it.startswith('<g class="lit')
            )
        return "\n".join(lines) + "\n"

    def _lit(self, line: str) -> tuple[str, str]:
        """Return what kind of part a line is, and the line as it is where a thread went."""
        part = _PART.match(line)
        if part is None:
            return "", line
        human, kind, name = part.groups("")
        times = self.nodes.get(name, 0) if kind == "node" else self._taken(name)
        walked = times or name == "start" or (name == "end" and "finish" in self.nodes)
        rest = line[part.end() :]
        if times and kind == "node":
            found = _NAME.search(rest)
            if found:  # as in every node
                x, y = found[2], float(found[3])
                count = f'<text class="count" x="{x}" y="{y + 9:g}">×{times}</text>'
                rest = rest.replace(found[0], f"{found[1]}{y - 6:g}{found[4]}{count}")
        elif times:
            end = "</title>" if kind == "edge" else "</text></g>"
            count = f", {times} times" if kind == "edge" else f" ×{times}"
            rest = rest.replace(end, count + end)
        return kind, f'<g class="{"lit" if walked else "faded"}{human}">{rest}'

    def _taken(self, ends: str) -> int:
        """Return how often an edge was walked, from any of the nodes that it stands for."""
        edges = [tuple(each.split(" ")) for each in ends.split(",") if each]
        times = sum(self.edges.get((source, target), 0) for source, target in edges)
        return times or int(ends.startswith("start "))

    def save(self, path: str | Path) -> Path:
        """Write it to a file, and return its path."""
        Path(path).write_text(self.svg, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.svg, "text/plain": str(self)}

    def __str__(self) -> str:
        """Return the walked edges as lines, or say that there are none."""
        lines = (f"{one} -> {other}: {count}" for (one, other), count in self.edges.items())
        return "\n".join(lines) or "the machine of Daruma"


# --- Messages and steps side by side: each step with the message that it left in the history.


class SaidAndDone:
    """Tells one record's messages and steps; ``elsewhere`` are phases that their members tell."""

    def __init__(self, record: Record, elsewhere: frozenset[tuple[str, str]]) -> None:
        walked = record.walk.walked
        self._record = record
        self._elsewhere = elsewhere
        self._tasks = record.tasks
        self._results = results_in(record.state.messages)
        self._steps_at = [each.superstep.at for each in walked]
        self._tools = [visit for visit in record.walk.path if visit.node in ("tool", "look")]
        self._began = [visit.at for visit in self._tools]
        own = [step for step in record.state.steps if not step.helper]
        self._timed = [step for step in own if step.kind == "tool"]
        self._thought = [step.at for step in own if step.kind == "think"]

    def moments(self) -> Iterator[Moment]:
        """Yield them in the order of the record."""
        steps = self._record.state.steps
        numbers = {id_: number for number, id_ in enumerate(message_ids(steps)) if id_}
        done = 0
        for message in self._record.state.messages:
            number = numbers.get(str(message.id))
            if number is None:
                yield from self._alone(message)
                continue
            for step in steps[done:number]:
                yield from self._step(step)
            yield from self._step(steps[number], message)
            done = number + 1
        for step in steps[done:]:
            yield from self._step(step)

    def _alone(self, message: AnyMessage) -> Iterator[Moment]:
        """Yield a message that no step has left; results stand with their calls."""
        if is_request(message, self._record.thread):
            yield request_moment(message, self._tasks)
        elif isinstance(message, AIMessage) and message.tool_calls:
            yield from self._calls(message, Moment(kind="note", title=""))
        elif steering_id(message):
            yield steering_moment(message)
        elif not isinstance(message, ToolMessage) and _worth_a_note(message):
            yield Moment(kind="note", title=first_line(message.text), detail=message.text)

    def _step(self, step: Step, message: AnyMessage | None = None) -> Iterator[Moment]:
        if step.kind == "tool" or (step.task_id, step.helper or step.phase_id) in self._elsewhere:
            return  # a call stands with the answer that asked for it
        member = self._record.member or step.helper
        said = message.text if message else ""
        thought = reasoning_of(message) if isinstance(message, AIMessage) else ""
        moment = replace(step_moment(step, said), member=member, reasoning=thought)
        found = self._during(step.at, "verification") or step.verification
        if step.kind == "verify" and found:
            for each in check_moments(found, step.at):
                phase = step.phase_id or ""
                yield replace(each, task=step.task_id, phase=phase, member=member)
        elif step.kind == "plan" and step.ok and (plan := self._during(step.at, "plan")):
            yield replace(
                moment,
                title=f"{plan_title(plan.phases)}: {', '.join(each.title for each in plan.phases)}",
                detail=plan_text(plan.to_dict()["phases"]),
                note=f"planned anew: {plan.before.why}" if plan.before else moment.note,
            )
        elif isinstance(message, AIMessage):
            asked = replace(moment, title=moment.title if said else asked_for(message))
            yield asked
            yield from self._calls(message, asked)
        else:
            yield moment

    def _calls(self, message: AIMessage, asked: Moment) -> Iterator[Moment]:
        calls = [*call_moments(message, self._results)]
        took = [self._took(result, asked.at) for _, result in calls]
        timed = asked.timed and not any(took)  # beside calls with times, one without has not run
        ran = self._ran_after(asked.at) if timed else None
        for (call, _), own in zip(calls, took, strict=True):
            told = replace(
                call,
                at=asked.at + (asked.seconds or 0.0),
                timed=asked.timed,
                task=asked.task,
                phase=asked.phase,
                member=asked.member,
                node="look" if asked.node == "plan" else call.node,
            )
            if call.ok is not None:  # else it has not run: it may wait for a person
                one = own or ran
                told = replace(told, at=one.at, seconds=one.seconds) if one else told
            yield told

    def _took(self, result: ToolMessage | None, after: float) -> Step | None:
        """Take the record of a call with that result from those that began after its answer."""
        of = (result.name, result.status == "success") if result else None
        ran = (s for s in self._timed if (s.signature, s.ok) == of and s.at >= after)
        found = next(ran, None)
        if found and not bisect_right(self._thought, found.at) > bisect_right(self._thought, after):
            self._timed.remove(found)
            return found
        return None

    def _ran_after(self, at: float) -> Visit | None:
        """Return the visit of the tools between a model call and the next one, if there was one."""
        number, following = bisect_right(self._began, at), bisect_right(self._thought, at)
        if number == len(self._tools):
            return None
        until = self._thought[following] if following < len(self._thought) else inf
        return self._tools[number] if self._began[number] < until else None

    def _during(self, at: float, channel: str) -> Any:
        """Return what was last written into a channel by what ran at a time."""
        number = bisect_right(self._steps_at, at) - 1
        values = self._record.walk.walked[number].values(channel) if number >= 0 else ()
        return values[-1] if values else None


def _worth_a_note(message: AnyMessage) -> bool:
    """Whether a message says more than a review, a phase or a result does in its own place."""
    told = re.search(r":(feedback|end)$|:(begin|merge):", str(message.id))
    return bool(message.text.strip()) and not told


# --- The moments of a record in their order: messages and steps side by side, and what the walk
# tells.
#
# Messages have no times, steps have; a message stands where its step does.


_AT: Final = attrgetter("at")


def moments_of(record: Record, members: Sequence[Record] = ()) -> tuple[Moment, ...]:
    """Return all that is on record of a task and of its team, oldest first.

    What has no time of its own takes that of what stands before it.
    """
    elsewhere = frozenset((each.state.task_id, each.member) for each in members)
    told = list[Moment]()
    for each in (record, *members):
        own = SaidAndDone(each, elsewhere if each is record else frozenset())
        told += _timed([*own.moments()])
        told += sorted(_walked(each), key=_AT)
    return tuple(_placed(sorted(told, key=_AT)))


def _placed(moments: Sequence[Moment]) -> Iterator[Moment]:
    """Yield each with the task and phase it belongs to: those that it happened in."""
    place: dict[str, tuple[str, str]] = {}
    for each in moments:
        if each.task:
            place[each.member] = each.task, "" if each.kind == "result" else each.phase
            yield each
        else:
            task, phase = place.get(each.member) or (place.get("", ("", ""))[0], each.member)
            yield replace(each, task=task, phase=phase)


def _timed(moments: list[Moment]) -> list[Moment]:
    at = next((each.at for each in moments if each.timed), 0.0)
    filled = list[Moment]()
    for each in moments:
        at = each.at if each.timed else at
        filled.append(each if each.timed else replace(each, at=at))
    return filled


def _walked(record: Record) -> Iterator[Moment]:
    state, walk = record.state, record.walk
    told = [*walk_moments(walk, record.member)]
    yield from chain(*map(_drifted, walk.walked))
    last = asked_last(walk)
    for walked in walk.walked:
        yield from question_moments(walked, record.opened, record.member, last)
    yield from told  # at the same time as a question it is what came of that
    for walked in walk.walked:
        if any(visit.node == "merge" for visit in walked.visits):
            for each in walked.values("verification"):
                yield from check_moments(each, walked.until or walked.superstep.at)
    if not record.member:  # a member's phase and its worktree are told of by the task
        yield from map(savepoint_moment, state.savepoints)
        if not walk.whole:
            yield from _last(record, told)


def _drifted(walked: Walked) -> Iterator[Moment]:
    """Yield what was found changed when a run began or went on, as its event tells it (RO-07)."""
    for each in walked.values("drifted"):
        event = {"type": "workspace_drifted", "paths": each.paths, "total": len(each.paths)}
        if moment := event_moment(event):
            yield replace(moment, at=walked.until or walked.superstep.at, timed=True)


def _last(record: Record, told: Sequence[Moment]) -> Iterator[Moment]:
    """Yield how phases and the task ended, where what led there is thinned away."""
    state = record.state
    times = (*(s.at + s.seconds for s in state.steps), *(s.at for s in state.savepoints))
    at = max(times, default=0.0)
    if state.plan and not any(each.kind == "phase" for each in told):
        ended = (phase for phase in state.plan.phases if phase.status != "pending")
        yield from (phase_moment(state.plan, phase, at) for phase in ended)
    if state.result and not any(each.kind == "result" for each in told):
        yield result_moment(state.result, at)


# --- What happened on a thread, in order: pure data, for people and for programs.


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A thread as it stands. Times are Unix seconds; ``moments`` and ``path`` are oldest first.

    ``status`` is that of the newest task's result, or ``waiting`` for a person, ``held`` after a
    rollback that failed, or ``unfinished``. ``goal``, ``mode``, ``plan`` and ``result`` are the
    newest task's; tokens and ``usd`` the whole thread's, the latter None where no price is known.
    ``spent`` holds, by kind of step, how many the newest task or its phase has spent, and how many
    it may; likewise its tokens, usd and seconds, where they are limited. ``questions`` are open:
    each its ``id`` and ``value``. ``whole`` says that nothing of the path was thinned away.
    ``todo`` is the model's list of its own steps, each with its ``text`` and ``status``.
    """

    thread: str
    status: str
    goal: str = ""
    mode: str = ""
    workspace: str | None = None
    started_at: float = 0.0
    updated_at: float = 0.0
    tokens: int = 0
    usd: float | None = None
    spent: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    moments: tuple[Moment, ...] = ()
    path: tuple[Visit, ...] = ()
    plan: Plan | None = None
    result: TaskResult | None = None
    savepoints: tuple[Savepoint, ...] = ()
    questions: tuple[Mapping[str, Any], ...] = ()
    whole: bool = True
    todo: tuple[Mapping[str, str], ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the task itself went through, in order."""
        return tuple(visit.node for visit in self.path if not visit.member)

    @property
    def headline(self) -> str:
        """The status as people read it: a success that nothing checked says so (MO-10)."""
        return headline_of(self.status, self.result.checked.outcome if self.result else "")

    def page(self) -> str:
        """Return it as one self-contained HTML page."""
        return render_page(self)

    def _repr_html_(self) -> str:
        return render_card(self)

    def __str__(self) -> str:
        """Return it as text, a line for each moment."""
        head = f"thread {plain_line(self.thread)}: {self.headline}"
        steps = f"steps: {plain_line(todo_line(self.todo))}" if self.todo else ""
        lines = [head, plain_line(self.goal), steps, *(_text_line(each) for each in self.moments)]
        return "\n".join(line for line in lines if line)


def _text_line(moment: Moment) -> str:
    clock = f"{datetime.fromtimestamp(moment.at).astimezone():%H:%M:%S}" if moment.at else " " * 8
    mark = {None: " ", True: "✓", False: "✗"}[moment.ok]
    took = render_duration_if_any(moment.seconds)
    who = f"[{moment.member}] " if moment.member else ""
    tail = f" ({took})" if took else ""
    return f"{clock} {mark} {moment.kind:<10} {plain_line(who + moment.title)}{tail}"


# --- Making a timeline of what is on record.


def timeline_of(
    record: Record, snapshot: "StateSnapshot", members: Sequence[Record] = ()
) -> Timeline:
    """Return the timeline of a record; the snapshot is the one that its state is from."""
    state, moments = record.state, moments_of(record, members)
    task, times = state.task, [each.at for each in moments if each.timed]
    prices = [each.usd for each in moments if each.usd is not None]
    visits = [*record.walk.path, *(visit for each in members for visit in each.walk.path)]
    timeline = Timeline(
        thread=record.thread,
        status=status_of(state.result, snapshot.interrupts),
        goal=task.goal if task else "",
        mode=task.mode if task else "",
        workspace=task.workspace if task else None,
        started_at=min(times, default=0.0),
        updated_at=max(times, default=0.0),
        tokens=sum(each.tokens for each in moments),
        usd=sum(prices) if prices else None,
        spent=standing(state),
        moments=moments,
        path=tuple(sorted(visits, key=_AT)),
        plan=state.plan,
        result=state.result,
        savepoints=tuple(state.savepoints),
        todo=tuple({"text": t, "status": s} for t, s in todo_of(state.messages, state.task_id)),
        questions=tuple({"id": each.id, "value": each.value} for each in snapshot.interrupts),
        whole=record.walk.whole,
    )
    return mask_keys(timeline)  # another graph stores what it was told as it is (SE-08)


async def read_timeline(saver: PostgresSaver, snapshot: "StateSnapshot") -> Timeline:
    """Return what happened on the thread that a snapshot was read of."""
    thread = snapshot.config["configurable"]["thread_id"]
    supersteps = await read_supersteps(saver, thread)
    record = record_of(thread, snapshot, supersteps)
    members = []
    for name, own in members_in(supersteps, record.walk).items():
        stands = await read_snapshot(saver, thread, name)
        members += [member_record(record, stands, own)] if stands else []
    return timeline_of(record, snapshot, [each for each in members if each])


# --- A run as HTML: a page that asks nothing of the network and obeys nothing that it shows, and
# cards for notebooks. ``run.html`` beside this file is the template: it escapes what is put in.

MOST_TEXT: Final = 3_000_000
"""Characters of outputs and details on a page, all together."""
_LEAST, _MOST = 300, 4000
"""Characters of one text on a page."""
SHOWN: Final = 60
"""Moments of a run that a card shows: the last ones. The page has all."""
_TEXT: Final = 1500
"""Characters of one text on a card."""


def render_page(timeline: Timeline) -> str:
    """Return the whole page. Its size is bounded: long texts are cut, and say where they go on."""
    styles, script = _styles(), asset("page.js")
    picture = Picture(nodes_walked(timeline.path), edges_walked(timeline.path)).svg
    drawn = picture.partition("<style>")[2].partition("</style>")[0]
    policy = f"default-src 'none'; script-src {_hash(script)}; "
    policy += f"style-src {_hash(styles)} {_hash(drawn)}"
    counted = Counter(each.kind for each in timeline.moments)
    kinds = [(kind, counted[kind]) for kind in KINDS if counted[kind]]
    limit = max(_LEAST, min(_MOST, MOST_TEXT // (2 * max(len(timeline.moments), 1))))
    lanes = lanes_of(timeline)
    return str(_template().page(timeline, styles, script, picture, policy, kinds, lanes, limit))


def render_card(shown: Timeline | TaskResult | Plan) -> str:
    """Return a run, a result or a plan for a notebook: no script, no style outside of the card."""
    if isinstance(shown, Timeline):
        return str(_template().run_card(shown, _styles(), SHOWN, _TEXT))
    if isinstance(shown, TaskResult):
        return str(_template().result_card(shown, _styles()))
    told = shown.to_dict()
    text = review_text(told | {"why": shown.before.why if shown.before else ""})
    return str(_template().plan_card(text, _styles(), _TEXT * 4))


@cache
def _template() -> Any:
    from jinja2 import Environment

    environment = Environment(autoescape=True)
    environment.filters |= {
        "line": plain_line,
        "block": plain_block,
        "clock": lambda at: datetime.fromtimestamp(at).astimezone() if at else None,
        "meta": _meta,
        "colour": _colour,
        "facts": _facts,
        "questions": _questions,
    }
    return environment.from_string(asset("run.html")).module


def _styles() -> str:
    return asset("colours.css") + asset("page.css")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _meta(moment: Moment) -> str:
    told = (
        f"[{moment.member}]" if moment.member else "",
        moment.model,
        f"{moment.tokens:,} tokens" if moment.tokens else "",
        f"${moment.usd:.4f}" if moment.usd else "",
        render_duration_if_any(moment.seconds),
    )
    return " · ".join(filter(None, told))


def _colour(shown: Any) -> str:
    if shown.headline == "completed":
        return "good"
    waits = {NOT_CHECKED, "waiting", "held", "parked", "unfinished"}
    return "wait" if waits & {shown.status, shown.headline} else "bad"


def _facts(timeline: Timeline) -> Iterator[tuple[str, str]]:
    began = datetime.fromtimestamp(timeline.started_at).astimezone()
    took = render_duration(timeline.updated_at - timeline.started_at)
    spent = (
        f"{kind} {round(n, 4):,} of {round(m, 4):,}" for kind, (n, m) in timeline.spent.items()
    )
    told = {
        "thread": timeline.thread,
        "mode": timeline.mode,
        "workspace": timeline.workspace,
        "began": f"{began:%Y-%m-%d %H:%M:%S %Z}" if timeline.started_at else "",
        "took": took if timeline.started_at else "",
        "steps": todo_line(timeline.todo) if timeline.todo else "",
        "tokens": f"{timeline.tokens:,}",
        "cost": f"${timeline.usd:.4f}" if timeline.usd else "",
        "budget": ", ".join(spent),
    }
    yield from ((name, text) for name, text in told.items() if text)


def _questions(timeline: Timeline) -> Iterator[Mapping[str, str]]:
    for each in timeline.questions:
        value = told_question(each["value"])
        asked, way = _ASKED.get(str(value.get("type")), ("A question", "--text '...'"))
        yield {
            "question": str(value.get("question") or asked),
            "about": _about(value),
            "command": on_thread("answer", timeline.thread, way),
            "reply": f"Command(resume={{{each['id']!r}: ...}})",
        }


_ASKED = {
    "spec_review_request": ("Is this plan right?", "--confirm"),
    "approval_request": ("May this run?", "--approve"),
    "recovery_request": ("May this be done about a failure?", "--approve"),
}


def _about(value: Mapping[str, Any]) -> str:
    """Return what a question is about, as text."""
    if value.get("type") == "spec_review_request":
        return review_text(value)
    if value.get("type") == "approval_request":
        return "\n".join(f"{a.get('shown')}\n  {a.get('reason')}" for a in value["approvals"])
    if value.get("type") == "recovery_request":
        return f"{value.get('failure')}\n{value.get('action', {}).get('reasoning', '')}"
    options = value.get("options")
    options = options if isinstance(options, list | tuple) else ()
    return "\n".join((str(value.get("context") or ""), *(f"- {each}" for each in options))).strip()


# --- The moments of a run in sections: the task itself, its phases, and each member of a team.


@dataclass
class Lane:
    """A section: what it is called, and its moments with their numbers in the timeline."""

    title: str
    moments: list[tuple[int, Moment]] = field(default_factory=list)


def lanes_of(timeline: Timeline) -> list[Lane]:
    """Return the sections in the order that they began.

    A phase has one, whatever stands between its moments: those of a team go on side by side. What
    is no phase's begins a new one after each of them.
    """
    titles = _titles(timeline.moments)
    lanes = list[Lane]()
    known: dict[tuple[str, str], Lane] = {}
    for number, moment in enumerate(timeline.moments):
        key = (moment.task, moment.phase)
        lane = known.get(key)
        if lane is None or (not moment.phase and lane is not lanes[-1]):
            lane = known[key] = Lane(titles.get(key) or titles.get((moment.task, "")) or "")
            lanes.append(lane)
        lane.moments.append((number, moment))
    return lanes


def _titles(moments: Iterable[Moment]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for each in moments:
        if each.kind == "phase":
            found.setdefault((each.task, each.phase), each.title)
        elif each.kind == "request":
            found[each.task, ""] = f"Task: {each.title}"
    return found


# --- What a notebook shows of values that know nothing of notebooks: results and plans.


def show_in_notebooks() -> None:
    """Have a running notebook show results and plans as cards; do nothing anywhere else."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        html = shell.display_formatter.formatters["text/html"]
        html.for_type(TaskResult, render_card)
        html.for_type(Plan, render_card)
