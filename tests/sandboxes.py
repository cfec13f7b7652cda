"""The sandboxes that this machine has, each at exactly one level, for tests of all of them."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, TypeVar

import pytest

from daruma.tools.commands import Limits
from daruma.tools.sandbox import Sandbox
from daruma.tools.sandbox._opening import Leaks, prepare_level, prove_level, reached_targets
from daruma.tools.sandbox._sandbox import Level, NotProved

T = TypeVar("T")

LEVELS: Final[tuple[Level, ...]] = ("none", "landlock", "namespace")
CONFINED: Final[tuple[Level, ...]] = ("landlock", "namespace")
MEMORY: Final = 256 * 1024 * 1024
PROCESSES: Final = 48


def _done(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@lru_cache
def sandbox_at(level: Level, *, network: bool = False) -> Sandbox:
    """Open a level, proved, with small limits; a test on a machine without it is skipped."""
    try:
        sandbox = prepare_level(level, network=network, limits=Limits(MEMORY, PROCESSES))
        if level == "none":
            return sandbox
        return _done(prove_level(sandbox, network=network))
    except Leaks:  # a level that is there and does not hold is no reason to skip
        raise
    except NotProved as error:
        pytest.skip(f"{level}: {error}")


@lru_cache
def reached_at(level: Level) -> frozenset[str]:
    """Return the attempts that come through at a level, measured once."""
    return frozenset(_done(reached_targets(sandbox_at(level))))
