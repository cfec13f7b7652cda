"""What jobs are called in the queue; known also where procrastinate is not installed."""

from typing import Final

CARRY_OUT: Final = "daruma.carry_out"
"""Runs a thread with what was submitted for it."""

PARK: Final = "daruma.park"
"""Parks a thread's review at its deadline."""

EVOLVE: Final = "daruma.evolve"
"""Learns from a task that has ended."""

IS_THERE: Final = """
SELECT EXISTS (
    SELECT FROM pg_class WHERE relname = 'procrastinate_jobs' AND pg_table_is_visible(oid)
) AS there
"""
"""Tells whether anything was ever queued in a database.

``to_regclass`` would still say no to one who has asked before and then waited for the maker's lock.
"""
