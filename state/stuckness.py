"""No progress: steps that told nothing new, although they were not all the same (RE-01, RE-03)."""

from collections import Counter
from collections.abc import Sequence

from daruma.state.asked import tools_in
from daruma.state.rounds import Round, attempt, rounds, since_recovery
from daruma.state.step import Step

WINDOW = 3
"""Steps without anything new after which a model is stuck (RE-01)."""
MANY = 8
"""Steps from which on low progress counts (RE-03): more than a phase's default quota of 7, so that
it is asked only of long work."""
LOW = 0.25
"""The share of steps that brought something new below which progress is low."""


def news(past: Sequence[Round]) -> list[bool]:
    """Say of each round whether it brought something new.

    Nothing new is the same outcome of the same calls as before, and an error that other calls have
    come to as well.
    """
    seen: set[Round] = set()
    outcomes = Counter(each.outcome for each in past)
    told = []
    for each in past:
        told.append(not (each in seen or (each.failed and outcomes[each.outcome] > 1)))
        seen.add(each)
    return told


def _is_new(past: Sequence[Round], n: int) -> bool:
    # As above, for one: to ask of the last few is quicker than to count all of a long thread.
    each = past[n]
    known = each in past[:n]
    return not (known or (each.failed and sum(o.outcome == each.outcome for o in past) > 1))


def is_stuck(past: Sequence[Round]) -> bool:
    """Whether the last three rounds brought nothing new (RE-01)."""
    return len(past) >= WINDOW and not any(
        _is_new(past, n) for n in range(len(past) - 1, len(past) - 1 - WINDOW, -1)
    )


def is_slow(fresh: Sequence[bool], blockers: Sequence[str]) -> bool:
    """Whether many steps brought little, and something is in the way (RE-03)."""
    return bool(blockers) and len(fresh) >= MANY and sum(fresh) < LOW * len(fresh)


def without_progress(steps: Sequence[Step], asked: Step) -> str:
    """Say how there is no progress, if the calls of ``asked`` are more of the same; else nothing.

    More of the same is what was done before, and another try of a tool that keeps failing. After a
    recovery it is at first only what was done last: whatever else is tried has its chance.
    """
    past = rounds(attempt(steps), asked)
    since = sum(each.kind == "think" and each.ok for each in since_recovery(attempt(steps)))
    if is_stuck(past) and _more(past, asked, recovering=not since):
        return f"no progress over the last {WINDOW} steps"
    if since and asked.blockers and is_slow(news(past)[-since:], asked.blockers):
        return f"little progress over the last {since} steps"
    return ""


def _more(past: Sequence[Round], asked: Step, *, recovering: bool) -> bool:
    last = past[-WINDOW:]
    if asked.signature in {each.calls for each in (last if recovering else past)}:
        return True
    failing = {name for each in last for name in tools_in(each.calls)}
    again = not failing.isdisjoint(tools_in(asked.signature))
    return again and not recovering and all(each.failed for each in last)
