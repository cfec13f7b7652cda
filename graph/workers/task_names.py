"""What jobs are called in the queue; known also where procrastinate is not installed."""

from typing import Final

CARRY_OUT: Final = "daruma.carry_out"
"""Runs a thread with what was submitted for it."""

PARK: Final = "daruma.park"
"""Parks a thread's review at its deadline."""

IS_THERE: Final = "SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS there"
"""Tells whether anything was ever queued in a database."""
