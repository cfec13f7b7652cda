"""The head of a page: facts, and what is asked."""

from dataclasses import replace
from typing import Any

import pytest

from daruma.graph.timeline.page import head_html
from daruma.graph.timeline.timeline import Timeline

RUN = Timeline(thread="t", status="completed", started_at=100.0, updated_at=225.0, tokens=1234)


def test_what_a_run_took_is_told() -> None:
    """Tokens, money, time and budgets; money only where a price is known."""
    html = head_html(replace(RUN, usd=0.5, spent={"think": (1, 7), "usd": (0.12345, 2.0)}))

    assert "<dt>took</dt><dd>2 min 5 s</dd>" in html
    assert "<dt>tokens</dt><dd>1,234</dd>" in html
    assert "<dt>cost</dt><dd>$0.5000</dd>" in html
    assert "<dt>budget</dt><dd>think 1 of 7, usd 0.1235 of 2.0</dd>" in html
    assert "cost" not in head_html(RUN)


@pytest.mark.parametrize(
    ("status", "colour"), [("completed", "good"), ("held", "wait"), ("failed", "bad")]
)
def test_how_it_stands_has_a_colour(status: str, colour: str) -> None:
    """Beside its word."""
    assert f'class="badge {colour}">{status}<' in head_html(replace(RUN, status=status))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            {"type": "spec_review_request", "phases": [{"title": "Look"}]},
            ("Is this plan right?", "1. Look", "--confirm"),
        ),
        (
            {"type": "approval_request", "approvals": [{"shown": "rm x", "reason": "by rule"}]},
            ("May this run?", "rm x\n  by rule", "--approve"),
        ),
        (
            {"type": "recovery_request", "failure": "timeout", "action": {"reasoning": "again"}},
            ("May this be done", "timeout\nagain", "--approve"),
        ),
        (
            {"type": "question", "question": "Which?", "context": "Of two", "options": ["a"]},
            ("Which?", "Of two\n- a", "--text"),
        ),
    ],
)
def test_each_question_says_what_it_is_about(value: dict[str, Any], told: tuple[str, ...]) -> None:
    """And with which option it is answered."""
    html = head_html(replace(RUN, questions=({"id": "abc", "value": value},)))

    assert [each for each in told if each not in html] == []
