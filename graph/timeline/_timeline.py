"""What happened on a thread, in order: as data, as text, as cards in a notebook and as a page."""

import shlex
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from langgraph.types import StateSnapshot

from daruma.graph.standing import status_of
from daruma.graph.timeline._machine_svg import asset, machine_svg, style
from daruma.graph.timeline._moments import (
    KINDS,
    Moment,
    plain_line,
    render_duration,
    render_duration_if_any,
    safe_block,
    safe_line,
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
        return page_of(self)

    def _repr_html_(self) -> str:
        return timeline_card(self)

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


# --- A unified diff as coloured HTML; the signs stay, so that nothing rests on colour alone.

_KINDS: Final = {"+": "plus", "-": "minus", "@": "place"}


def diff_html(diff: str, limit: int = 4000, whole: str = "") -> str:
    """Return a diff as HTML. ``limit`` is in characters; ``whole`` says where the rest of it is."""
    lines = safe_block(diff, limit, whole).split("\n")
    return f'<pre class="diff" dir="ltr">{chr(10).join(map(_line, lines))}</pre>'


def _line(line: str) -> str:
    kind = _KINDS.get(line[:1])
    return f'<span class="{kind}">{line}</span>' if kind else line


# --- One moment of a run as a row of HTML, which opens where there is more to it.

_MARKS: Final = {
    None: '<span class="mark"></span>',
    True: '<span class="mark good" role="img" aria-label="ok">✓</span>',
    False: '<span class="mark bad" role="img" aria-label="failed">✗</span>',
}


def moment_html(moment: Moment, limit: int, whole: str = "") -> str:
    """Return a list item. ``limit`` bounds each text; ``whole`` says where they are whole."""
    more = _more(moment, limit, whole)
    row = _row(moment)
    if not more:
        return f'<li class="k-{moment.kind}"><div class="row">{row}</div></li>'
    return (
        f'<li class="k-{moment.kind}"><details><summary class="row">{row}</summary>'
        f'<div class="more">{more}</div></details></li>'
    )


def _row(moment: Moment) -> str:
    at = datetime.fromtimestamp(moment.at).astimezone() if moment.at else None
    clock = f'<time datetime="{at.isoformat()}">{at:%H:%M:%S}</time>' if at else "<time></time>"
    return (
        f'{clock}<span class="kind">{moment.kind}</span>{_MARKS[moment.ok]}'
        f'<span class="title" dir="auto">{safe_line(moment.title)}</span>'
        f'<span class="meta">{safe_line(_meta(moment))}</span>'
    )


def _meta(moment: Moment) -> str:
    told = (
        f"[{moment.member}]" if moment.member else "",
        moment.model,
        f"{moment.tokens:,} tokens" if moment.tokens else "",
        f"${moment.usd:.4f}" if moment.usd else "",
        render_duration_if_any(moment.seconds),
    )
    return " · ".join(each for each in told if each)


def _more(moment: Moment, limit: int, whole: str) -> str:
    detail = moment.detail if moment.detail.strip() != moment.title.strip() else ""
    long_title = len(moment.title) > 200
    parts = [
        f'<p class="note">{safe_line(moment.note, 500)}</p>' if moment.note else "",
        _pre(moment.title, limit, whole) if long_title and not detail else "",
        _pre(detail, limit, f"{whole}.detail"),
        diff_html(moment.diff, limit, f"{whole}.diff") if moment.diff else "",
        _pre(moment.output, limit, f"{whole}.output"),
    ]
    return "".join(parts)


def _pre(text: str, limit: int, whole: str) -> str:
    return f'<pre dir="auto">{safe_block(text, limit, whole)}</pre>' if text.strip() else ""


# --- The head of a run: its goal, how it stands, what it took, what it asks, how it ended.

_LONGEST = 4000


def head_html(timeline: Timeline, level: int = 3) -> str:
    """Return the head; ``level`` is that of its heading."""
    goal = safe_line(timeline.goal or timeline.thread, 300)
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{safe_line(text)}</dd></div>" for name, text in _facts(timeline)
    )
    return (
        f'<header><h{level} dir="auto">{goal}</h{level}>'
        f'<p><span class="badge {_colour(timeline.headline)}">'
        f"{safe_line(timeline.headline)}</span></p>"
        f"<dl>{facts}</dl>{''.join(_questions(timeline))}{result_html(timeline.result)}</header>"
    )


def _colour(status: str) -> str:
    if status == "completed":
        return "good"
    return "wait" if status in (NOT_CHECKED, "waiting", "held", "parked", "unfinished") else "bad"


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


def _questions(timeline: Timeline) -> Iterator[str]:
    for each in timeline.questions:
        value = each["value"] if isinstance(each["value"], Mapping) else {}
        asked = str(value.get("question") or _ASKED.get(str(value.get("type")), "A question"))
        ways = _WAYS.get(str(value.get("type")), "--text '...'")
        command = f"daruma answer {shlex.quote(timeline.thread)} {ways}"
        reply = f"Command(resume={{{each['id']!r}: ...}})"
        yield (
            f'<div class="box"><strong>{safe_line(asked, 500)}</strong>'
            f'<pre dir="auto">{safe_block(_about(value), _LONGEST)}</pre>'
            f"<p>Answer with <code>{safe_line(command, 500)}</code>, "
            f"or in Python with <code>{safe_line(reply)}</code>.</p></div>"
        )


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


def result_html(result: TaskResult | None) -> str:
    """Return how a task ended; nothing for one that has not."""
    if result is None:
        return ""
    colour = "wait" if result.status == "parked" else _colour(result.headline)
    advice = result.error_struct.suggestions if result.error_struct else ()
    told = "".join(f"<li>{safe_line(each, 500)}</li>" for each in (*advice, *result.notes))
    return (
        f'<div class="box {colour}"><strong>{safe_line(result.headline)}</strong>'
        f'<pre dir="auto">{safe_block(result.output, _LONGEST)}</pre>'
        + (f"<ul>{told}</ul>" if told else "")
        + "</div>"
    )


# --- Runs, results and plans as cards for a notebook: no script, and no style outside of the card.

SHOWN: Final = 60
"""Moments of a run that a card shows: the last ones. The page has all."""
_TEXT: Final = 1500


def timeline_card(timeline: Timeline) -> str:
    """Return a run as a card."""
    first = max(len(timeline.moments) - SHOWN, 0)
    left = f"<p>{first:,} earlier moments are left out.</p>" if first else ""
    items = (
        moment_html(moment, _TEXT, f"moments[{number}]")
        for number, moment in enumerate(timeline.moments)
        if number >= first
    )
    return card(f'{head_html(timeline)}{left}<ol class="lane">{"".join(items)}</ol>')


def result_card(result: TaskResult) -> str:
    """Return a result as a card."""
    return card(result_html(result))


def plan_card(plan: Plan) -> str:
    """Return a plan as a card."""
    phases = [phase.to_dict() for phase in plan.phases]
    return card(f'<pre dir="auto">{safe_block(plan_text(phases), _TEXT * 4)}</pre>')


def card(body: str) -> str:
    """Return HTML with the style that it is shown in, which reaches nothing else."""
    return (
        f"<style>{style('colours', 'page')}</style>"
        f'<div class="daruma daruma-run" style="padding:8px 12px">{body}</div>'
    )


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


# --- A run as one HTML file: it asks nothing of the network, and obeys nothing that it shows.

MOST_TEXT: Final = 3_000_000
"""Characters of outputs and details on a page, all together."""
_LEAST, _MOST = 300, 4000
"""Characters of one text."""


def page_of(timeline: Timeline) -> str:
    """Return the whole page. Its size is bounded: long texts are cut, and say where they go on."""
    styles = style("colours", "page")
    script = asset("page.js")
    picture = machine_svg(nodes_walked(timeline.path), edges_walked(timeline.path))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; "
        f"style-src {_hash(styles)} {_hash(style('colours', 'machine'))}"
    )
    parts = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="generator" content="daruma"><meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{safe_line(timeline.thread)}: {safe_line(timeline.headline)}</title>",
        f'<style>{styles}</style></head><body class="daruma daruma-run">',
        head_html(timeline, level=1),
        "<main><section><h2>The walk through the machine</h2>",
        "" if timeline.whole else "<p>What came before was thinned away.</p>",
        picture,
        "</section><section><h2>What happened</h2>",
        _filters(timeline),
        f'<div id="timeline">{"".join(_lanes(timeline))}</div></section></main>',
        f"<script>{script}</script></body></html>\n",
    )
    return "".join(parts)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _filters(timeline: Timeline) -> str:
    counted = Counter(each.kind for each in timeline.moments)
    buttons = "".join(
        f'<button type="button" data-kind="{kind}" aria-pressed="true">{kind} {counted[kind]}'
        "</button>"
        for kind in KINDS
        if counted[kind]
    )
    search = (
        '<input id="search" type="search" placeholder="Search" aria-label="Search the timeline">'
    )
    return (
        f'<div class="filters" role="group" aria-label="Kinds that are shown">{buttons}{search}'
        '<span id="found" role="status"></span></div>'
    )


def _lanes(timeline: Timeline) -> Iterator[str]:
    limit = max(_LEAST, min(_MOST, MOST_TEXT // (2 * max(len(timeline.moments), 1))))
    for lane in lanes_of(timeline):
        yield _lane(lane, limit)
    if not timeline.moments:
        yield "<p>Nothing has happened yet.</p>"


def _lane(lane: Lane, limit: int) -> str:
    title = f"<h3>{safe_line(lane.title)}</h3>" if lane.title else ""
    items = (
        moment_html(moment, limit, f"graph.timeline(config).moments[{number}]")
        for number, moment in lane.moments
    )
    return f'<section class="lane">{title}<ol>{"".join(items)}</ol></section>'


# --- What a notebook shows of values that know nothing of notebooks: results and plans.


def show_in_notebooks() -> None:
    """Have a running notebook show results and plans as cards; do nothing anywhere else."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        html = shell.display_formatter.formatters["text/html"]
        html.for_type(TaskResult, result_card)
        html.for_type(Plan, plan_card)
