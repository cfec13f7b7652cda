"""Settings that are read and checked, and that nothing acts on yet: `daruma doctor` says which."""

from typing import Any

from daruma.state.settings import Settings

UNBUILT = (
    "budgets.tokens",
    "budgets.usd",
    "budgets.seconds",
)


def without_effect(settings: Settings) -> list[str]:
    """Return the keys that were set to something else than their default and do nothing yet."""
    default = Settings()
    return [key for key in UNBUILT if _at(settings, key) != _at(default, key)]


def _at(settings: Any, key: str) -> Any:
    for part in key.split("."):
        settings = getattr(settings, part)
    return settings
