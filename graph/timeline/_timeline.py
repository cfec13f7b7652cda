"""What happened on a thread, in order: as data, as text, as cards in a notebook and as a page."""

import shlex
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any, Final

from langgraph.types import StateSnapshot

from daruma.graph.standing import status_of
from daruma.graph.timeline._machine_svg import Picture, asset
from daruma.graph.timeline._moments import (
    KINDS,
    Moment,
    plain_block,
    plain_line,
    render_duration,
    render_duration_if_any,
)
from daruma.graph.timeline._record import Record, plan_text
from daruma.graph.timeline._sequence import moments_of
from daruma.graph.timeline._walk import Visit, edges_walked, nodes_walked
from daruma.state.plan import Plan
from daruma.state.result import NOT_CHECKED, TaskResult, headline_of
from daruma.state.savepoint import Savepoint
from daruma.state.spending import standing

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
        lines = [head, plain_line(self.goal), *(_text_line(each) for each in self.moments)]
        return "\n".join(line for line in lines if line)


def _text_line(moment: Moment) -> str:
    clock = datetime.fromtimestamp(moment.at).astimezone().strftime("%H:%M:%S")
    mark = {None: " ", True: "✓", False: "✗"}[moment.ok]
    took = render_duration_if_any(moment.seconds)
    who = f"[{moment.member}] " if moment.member else ""
    return f"{clock} {mark} {moment.kind:<10} {plain_line(who + moment.title)}" + (
        f" ({took})" if took else ""
    )


# --- Making a timeline of what is on record.


def timeline_of(
    record: Record, snapshot: StateSnapshot, members: Sequence[Record] = ()
) -> Timeline:
    """Return the timeline of a record; the snapshot is the one that its state is from."""
    state, moments = record.state, moments_of(record, members)
    task, times = state.task, [each.at for each in moments if each.timed]
    prices = [each.usd for each in moments if each.usd is not None]
    return Timeline(
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
        path=_path(record, members),
        plan=state.plan,
        result=state.result,
        savepoints=tuple(state.savepoints),
        questions=tuple({"id": each.id, "value": each.value} for each in snapshot.interrupts),
        whole=record.walk.whole,
    )


def _path(record: Record, members: Sequence[Record]) -> tuple[Any, ...]:
    visits = [*record.walk.path, *(visit for each in members for visit in each.walk.path)]
    return tuple(sorted(visits, key=lambda each: each.at))


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
    text = plan_text([phase.to_dict() for phase in shown.phases])
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
        "colour": lambda shown: _colour(shown.status, shown.headline),
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
    return " · ".join(each for each in told if each)


def _colour(status: str, headline: str) -> str:
    if headline == "completed":
        return "good"
    waits = {NOT_CHECKED, "waiting", "held", "parked", "unfinished"}
    return "wait" if waits & {status, headline} else "bad"


def _facts(timeline: Timeline) -> Iterator[tuple[str, str]]:
    yield "thread", timeline.thread
    if timeline.mode:
        yield "mode", timeline.mode
    if timeline.workspace:
        yield "workspace", timeline.workspace
    if timeline.started_at:
        began = datetime.fromtimestamp(timeline.started_at).astimezone()
        yield "began", f"{began:%Y-%m-%d %H:%M:%S %Z}"
        yield "took", render_duration(timeline.updated_at - timeline.started_at)
    yield "tokens", f"{timeline.tokens:,}"
    if timeline.usd:
        yield "cost", f"${timeline.usd:.4f}"
    if timeline.spent:
        spent = (
            f"{kind} {round(used, 4):,} of {round(most, 4):,}"
            for kind, (used, most) in timeline.spent.items()
        )
        yield "budget", ", ".join(spent)


def _questions(timeline: Timeline) -> Iterator[Mapping[str, str]]:
    for each in timeline.questions:
        value = each["value"] if isinstance(each["value"], Mapping) else {}
        kind = str(value.get("type"))
        ways = _WAYS.get(kind, "--text '...'")
        yield {
            "question": str(value.get("question") or _ASKED.get(kind, "A question")),
            "about": _about(value),
            "command": f"daruma answer {shlex.quote(timeline.thread)} {ways}",
            "reply": f"Command(resume={{{each['id']!r}: ...}})",
        }


_ASKED = {
    "spec_review_request": "Is this plan right?",
    "approval_request": "May this run?",
    "recovery_request": "May this be done about a failure?",
}
_WAYS = {
    "spec_review_request": "--confirm",
    "approval_request": "--approve",
    "recovery_request": "--approve",
}


def _about(value: Mapping[str, Any]) -> str:
    """Return what a question is about, as text."""
    if value.get("type") == "spec_review_request":
        return plan_text(value.get("phases", ()))
    if value.get("type") == "approval_request":
        return "\n".join(f"{a.get('shown')}\n  {a.get('reason')}" for a in value["approvals"])
    if value.get("type") == "recovery_request":
        return f"{value.get('failure')}\n{value.get('action', {}).get('reasoning', '')}"
    options = value.get("options") or ()
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
