"""Ranking texts by the words that they share with a query: BM25, for stores that do not rank."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from daruma.tools.word_splitting import query_terms, terms

K1: Final = 1.2
"""How soon more of one word adds nothing (Robertson and Zaragoza, 2009: 1.2 to 2)."""
B: Final = 0.75
"""How much the length of a text counts against it (the same: 0.5 to 0.8)."""


def ranked(query: str, texts: Sequence[str], least: float = 0.0) -> list[tuple[int, float]]:
    """Return the places of the texts that share a word with a query, with scores, the best first.

    Of two that are equally good the earlier one comes first. Left out are those below the share
    ``least`` of what the query's words weigh.

    >>> [place for place, _ in ranked("leases", ["a lock", "the lease of a thread", "lease"])]
    [2, 1]
    """
    wanted = query_terms(query)
    counts = [Counter(terms(text)) for text in texts]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / max(1, len(lengths))
    scores, whole = [0.0] * len(texts), 0.0
    for term in wanted:
        having = [place for place, count in enumerate(counts) if term in count]
        worth = rarity(len(having), len(texts))
        whole += worth
        for place in having:
            scores[place] += worth * weight(counts[place][term], lengths[place] / mean)
    found = [(place, score) for place, score in enumerate(scores) if score > least * whole]
    return sorted(found, key=lambda each: -each[1])


def rarity(having: int, among: int) -> float:
    """Return what it is worth to have a word that ``having`` texts ``among`` all have."""
    return math.log(1 + (among - having + 0.5) / (having + 0.5))


def weight(times: float, length: float) -> float:
    """Return what a word adds that stands ``times`` in a text; ``length`` is 1 for a mean one."""
    return times * (K1 + 1) / (times + K1 * (1 - B + B * length))
