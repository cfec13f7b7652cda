"""The number in the middle."""

from collections.abc import Sequence


def median(numbers: Sequence[float]) -> float:
    """Return the median; half of the numbers are below it, half above."""
    return numbers[len(numbers) // 2]
