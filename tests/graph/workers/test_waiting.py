"""Threads that wait for a person cost nothing: no process, no connection, no memory (DU-02)."""

from tests.waiting import cost_of

OBJECTS = 25
"""A run that is not let go of holds hundreds; new connections bring a few of their own."""


async def test_waiting_threads_hold_nothing(postgres_url: str) -> None:
    """Their worker holds next to nothing for each, uses no connection, and can be closed.

    ``python -m tests.waiting`` does so with 200 of them, and measures memory too.
    """
    cost = await cost_of(postgres_url, threads=60)

    assert cost.waiting
    assert (cost.used, cost.left) == (0, 0)
    assert cost.objects < OBJECTS
