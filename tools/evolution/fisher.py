"""Fisher's exact test: how likely a difference of two success rates is where there is none."""

from fractions import Fraction
from math import comb


def chance_of_better(wins: int, of: int, other_wins: int, other_of: int) -> float:
    """Return the one-sided p-value that the first rate is greater than the other.

    It is the chance that, all the successes being dealt out blindly, the first gets ``wins`` or
    more of them (R. A. Fisher, *The Design of Experiments*, 1935). Computed in whole numbers.
    Raises ValueError for counts that can not be.

    >>> chance_of_better(3, 3, 0, 3)
    0.05
    """
    if not (0 <= wins <= of and 0 <= other_wins <= other_of):
        raise ValueError(f"not counts of successes: {wins} of {of}, {other_wins} of {other_of}")
    successes, everybody = wins + other_wins, of + other_of
    most = min(of, successes)
    ways = sum(comb(of, k) * comb(other_of, successes - k) for k in range(wins, most + 1))
    return float(Fraction(ways, comb(everybody, successes)))
