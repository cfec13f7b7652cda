"""What a setting does not do is said."""

import pytest

from daruma.state.settings import Settings
from daruma.state.settings_unbuilt import UNBUILT, without_effect


def test_the_defaults_promise_nothing() -> None:
    """Who sets nothing is told nothing."""
    assert without_effect(Settings()) == []


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"budgets": {"usd": 1.0}}, "budgets.usd"),
    ],
)
def test_a_key_without_effect_is_named(given: dict[str, object], key: str) -> None:
    """As the user writes it."""
    assert without_effect(Settings.model_validate(given)) == [key]


def test_every_key_there_is_a_setting() -> None:
    """A key that was renamed would never be named again."""
    for key in UNBUILT:
        settings: object = Settings()
        for part in key.split("."):
            settings = getattr(settings, part)


def test_what_recovery_does_act_on_is_not_named() -> None:
    """`daruma doctor` would warn of thresholds that decide who is asked."""
    chosen = {"execute_above": 0.9, "ask_above": 0.1, "wait_seconds": 1.0}
    settings = Settings.model_validate({"fallback_chain": {"recovery": chosen}})

    assert without_effect(settings) == []
