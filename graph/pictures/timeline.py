"""What happened on a thread, in order: pure data, for people and for programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from daruma.graph.durations import duration_if_any
from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.safe_text import plain_line
from daruma.graph.pictures.visit import Visit
from daruma.state.plan import Plan
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint


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

    def page(self) -> str:
        """Return it as one self-contained HTML page."""
        from daruma.graph.pictures.page import page_of

        return page_of(self)

    def _repr_html_(self) -> str:
        from daruma.graph.pictures.card_html import timeline_card

        return timeline_card(self)

    def __str__(self) -> str:
        """Return it as text, a line for each moment."""
        head = f"thread {plain_line(self.thread)}: {self.status}"
        lines = [head, plain_line(self.goal), *(_line(each) for each in self.moments)]
        return "\n".join(line for line in lines if line)


def _line(moment: Moment) -> str:
    clock = datetime.fromtimestamp(moment.at).astimezone().strftime("%H:%M:%S")
    mark = {None: " ", True: "✓", False: "✗"}[moment.ok]
    took = duration_if_any(moment.seconds)
    who = f"[{moment.member}] " if moment.member else ""
    return f"{clock} {mark} {moment.kind:<10} {plain_line(who + moment.title)}" + (
        f" ({took})" if took else ""
    )
