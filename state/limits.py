"""What a task may spend, and whether it is verified: by its mode and the settings. Pure."""

from daruma.state.amounts import Amounts
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.settings import Settings
from daruma.state.settings_budgets import Spendable
from daruma.state.task import Limits


def limits_of(settings: Settings, mode: Mode) -> Limits:
    """Settle the limits of a task: quotas per phase where there is a plan, else a plain total."""
    budgets, verification = settings.budgets, settings.verification
    think = {"direct_chat": 1, "react": budgets.max_steps}.get(mode, budgets.think)
    return Limits(
        think=think,
        verify=budgets.verify,
        reflect=min(budgets.reflect, verification.max_reflections),
        reinjections=verification.max_reinjections,
        turn=budgets.max_steps_per_turn,
        recoveries=recoveries_of(settings),
        spend=_amounts(budgets),
        spend_in_phase=_amounts(budgets.per_phase),
        when_spent=budgets.when_spent,
    )


def _amounts(limited: Spendable) -> Amounts | None:
    found = Amounts(tokens=limited.tokens, usd=limited.usd, seconds=limited.seconds)
    return None if found == Amounts() else found


def recoveries_of(settings: Settings) -> int:
    """Say how often recovery may deal with one failure; none when it is switched off."""
    chain = settings.fallback_chain
    active = chain.enabled and chain.recovery.enabled
    return chain.recovery.max_retries if active else 0


def verifies(settings: Settings, mode: Mode) -> bool:
    """Say whether a task is verified: by default in modes that plan, in direct chat never."""
    if mode == "direct_chat":
        return False
    enabled = settings.verification.enabled
    return mode in KEEP_WORKING if enabled == "auto" else enabled
