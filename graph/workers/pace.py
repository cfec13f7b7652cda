"""How often workers look at what: all times in seconds, all patterns in cron's six fields."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """The times of a worker.

    It shows a sign of life each ``heartbeat``; one that has shown none for ``stalled`` is taken for
    dead, and its jobs are given to others. It looks for jobs each ``poll`` even if nobody tells it
    of any, and waits for a connection for ``connect``. What is put off waits for ``first_wait``,
    then for twice as long each time. Jobs that run when it is stopped have ``grace`` to end by
    themselves. ``rescue`` and ``sweep`` say when dead workers, and reviews whose deadline has
    passed, are looked for.
    """

    heartbeat: float = 10.0
    stalled: float = 30.0
    poll: float = 5.0
    connect: float = 10.0
    first_wait: float = 1.0
    grace: float = 10.0
    rescue: str = "* * * * * */10"
    sweep: str = "* * * * * 0"
