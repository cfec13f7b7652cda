"""What has worked before against a failure, where anything knows that (RE-08)."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from daruma.state.failure import Failure
from daruma.state.recovery import RecoveryAction
from daruma.tools.context import Context

LEARNED_SECONDS: Final = 2.0
"""Longer it is not waited for: a model is asked instead."""


async def learned_against(
    failure: Failure, context: Context, *, seconds: float = LEARNED_SECONDS
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    It never raises: a fault of what remembers is as good as knowing nothing.
    """
    found = None
    with suppress(Exception):
        async with asyncio.timeout(seconds):
            found = await context.learned(failure.signature)
    sure = context.settings.fallback_chain.recovery.execute_above
    if found is None or found.confidence < sure or found.strategy in ("escalate", "give-up"):
        return None
    return replace(found, by="learned")
