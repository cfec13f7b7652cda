"""Runs, results and plans as cards for a notebook: no script, and no style outside of the card."""

from typing import Final

from daruma.graph.pictures.head_html import head_html, result_html
from daruma.graph.pictures.moment_html import moment_html
from daruma.graph.pictures.safe_text import safe_block
from daruma.graph.pictures.style import style
from daruma.graph.pictures.timeline import Timeline
from daruma.graph.pictures.told_questions import plan_text
from daruma.state.plan import Plan
from daruma.state.result import TaskResult

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
