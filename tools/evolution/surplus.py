"""Which facts of a group are let go of where there are more than are counted. Pure."""

from collections.abc import Sequence

from daruma.tools.evolution.evidence import Evidence
from daruma.tools.evolution.summing_up import Summary


def surplus(
    facts: Sequence[Evidence], summaries: Sequence[Summary], most: int
) -> tuple[Evidence, ...]:
    """Return the facts, the oldest first, without which there are ``most`` of them.

    The first fact of a pitfall, which gives it its id and its goal, is as new as its newest: it
    goes only after all others of that pitfall.
    """
    newest = {each.facts[0]: max(fact.at for fact in each.facts) for each in summaries}

    def order(fact: Evidence) -> tuple[float, bool, str]:
        return newest.get(fact, fact.at), fact in newest, fact.task

    return tuple(sorted(facts, key=order)[: max(0, len(facts) - most)])
