"""What a task may spend, by its mode and the settings."""

from typing import Any

import pytest
from tests.parts import settings

from daruma.state.mode import Mode
from daruma.state.spending import limits_of, verifies
from daruma.state.task import Limits


@pytest.mark.parametrize(
    ("mode", "think"), [("direct_chat", 1), ("react", 10), ("plan_exec", 7), ("team_collab", 7)]
)
def test_each_mode_has_its_limit_of_thinks(mode: Mode, think: int) -> None:
    """MO-01, MO-04 and BU-01 by default."""
    assert limits_of(settings(), mode) == Limits(think=think, verify=2, reflect=1)


@pytest.mark.parametrize(
    ("sections", "field", "value"),
    [
        ({"budgets": {"max_steps_per_turn": 4}}, "turn", 4),
        ({"budgets": {"reflect": 5}}, "reflect", 2),
        ({"budgets": {"reflect": 0}}, "reflect", 0),
        ({"verification": {"max_reinjections": 3}}, "reinjections", 3),
        ({"fallback_chain": {"recovery": {"max_retries": 2}}}, "recoveries", 2),
        ({"fallback_chain": {"recovery": {"enabled": False}}}, "recoveries", 0),
        ({"fallback_chain": {"recovery": {"observe_only": True}}}, "recoveries", 1),
        ({"fallback_chain": {"enabled": False}}, "recoveries", 0),
    ],
)
def test_limits_are_copied_from_the_settings(
    sections: dict[str, Any], field: str, value: int
) -> None:
    """VE-04, RE-06 and EM-05: later settings do not change a task that has begun."""
    assert getattr(limits_of(settings(**sections), "plan_exec"), field) == value


@pytest.mark.parametrize(
    ("enabled", "modes"),
    [
        ("auto", {"plan_exec", "team_collab"}),
        (True, {"react", "plan_exec", "team_collab"}),
        (False, set()),
    ],
)
def test_who_is_verified(enabled: object, modes: set[Mode]) -> None:
    """MO-03, MO-04 and MO-05: direct chat never is."""
    given = settings(verification={"enabled": enabled})
    every: tuple[Mode, ...] = ("direct_chat", "react", "plan_exec", "team_collab")

    assert {mode for mode in every if verifies(given, mode)} == modes
