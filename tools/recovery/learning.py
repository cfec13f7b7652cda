"""What has worked before against a failure, where there is a record of that (RE-08)."""

from contextlib import suppress
from typing import Final

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.recovery import RecoveryAction
from daruma.tools.context import Context
from daruma.tools.evolution.in_time import in_time
from daruma.tools.evolution.recovery_patterns import Met, learned_action
from daruma.tools.key_masking import without_keys
from daruma.tools.results import clean

LEARNED_SECONDS: Final = 2.0
"""Longer it is not waited for: a model is asked instead."""


async def learned_against(
    state: State, failure: Failure, context: Context, *, seconds: float = LEARNED_SECONDS
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    None unless what was learned is fed back. It never raises, and waits no longer: a fault of the
    store is as good as knowing nothing.
    """
    store, given, task = context.store, context.settings.evolution, state.task
    if store is None or task is None or not given.enabled or given.observe_only:
        return None
    signature = without_keys(clean(failure.signature))  # as it is kept
    met = Met(task.experience_owner, actor_of(state, failure), signature)
    with suppress(Exception):
        return await in_time(learned_action(store, met, context.settings, context.now()), seconds)
    return None


def actor_of(state: State, failure: Failure) -> str:
    """Return whom a failure happened to: a member of the team, ``plan`` or ``main``."""
    if state.task and state.task.expert:
        return state.task.expert
    return "plan" if failure.node == "plan" else "main"
