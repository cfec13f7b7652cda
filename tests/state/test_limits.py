"""What a task may spend, by its mode and the settings."""

from typing import Any

import pytest
from tests.parts import settings

from daruma.state.mode import Mode
from daruma.state.spending import limits_of, only_if_changed, verifies
from daruma.state.task import Limits


@pytest.mark.parametrize(
    ("mode", "think"), [("direct_chat", 1), ("react", 50), ("plan_exec", 50), ("team_collab", 50)]
)
def test_each_mode_has_its_limit_of_thinks(mode: Mode, think: int) -> None:
    """MO-01, MO-04 and BU-01 by default."""
    assert limits_of(settings(), mode) == Limits(think=think, verify=4, reflect=2)


@pytest.mark.parametrize(
    ("sections", "field", "value"),
    [
        ({"budgets": {"max_steps_per_turn": 4}}, "turn", 4),
        ({"budgets": {"reflect": 5, "verify": 7}}, "reflect", 5),
        ({"budgets": {"preset": "frugal"}}, "think", 7),
        ({"budgets": {"preset": "frugal"}}, "reinjections", 0),
        ({"budgets": {"preset": "frugal", "think": 9}}, "think", 9),
        ({"budgets": {"reflect": 0}}, "reflect", 0),
        (
            {"verification": {"max_reinjections": 3}, "budgets": {"verify": 6}},
            "reinjections",
            3,
        ),
        ({"fallback_chain": {"recovery": {"ask": True}}}, "ask", True),
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
        ("auto", {"react", "plan_exec", "team_collab"}),
        (True, {"react", "plan_exec", "team_collab"}),
        (False, set()),
    ],
)
def test_who_is_verified(enabled: object, modes: set[Mode]) -> None:
    """MO-03, MO-04 and MO-05: direct chat never is."""
    given = settings(verification={"enabled": enabled})
    every: tuple[Mode, ...] = ("direct_chat", "react", "plan_exec", "team_collab")

    assert {mode for mode in every if verifies(given, mode)} == modes


@pytest.mark.parametrize(("enabled", "modes"), [("auto", {"react"}), (True, set()), (False, set())])
def test_who_is_verified_only_after_a_change(enabled: object, modes: set[Mode]) -> None:
    """MO-04."""
    given = settings(verification={"enabled": enabled})
    every: tuple[Mode, ...] = ("direct_chat", "react", "plan_exec", "team_collab")

    assert {mode for mode in every if only_if_changed(given, mode)} == modes
