"""Every setting and its default: the graph's context schema, and what ``daruma.yaml`` may hold."""

from daruma.state.settings.settings import (
    PRESETS,
    RollbackSettings,
    Sandbox,
    Settings,
    SpecReview,
    VerificationSettings,
)

__all__ = [
    "PRESETS",
    "RollbackSettings",
    "Sandbox",
    "Settings",
    "SpecReview",
    "VerificationSettings",
]
