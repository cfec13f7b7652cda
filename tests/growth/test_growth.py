"""A step of a long thread keeps as many bytes as one of a short thread (DU-08).

``python -m tests.growth`` measures 1,000 steps, and time as well.
"""

from tests.growth.long_thread import between, long_thread

from daruma.graph.storage.postgres import open_postgres


def test_what_a_step_keeps_does_not_grow(postgres_url: str) -> None:
    """What is new, and nothing of what was there; whole copies add up to a part of that."""
    with open_postgres(postgres_url) as postgres:
        marks = long_thread(postgres, postgres_url, steps=100, size=1000, every=20)

    assert [mark.steps for mark in marks] == [0, 20, 40, 60, 80, 100]
    first, _, copied, late, _ = [part.kept for part in between(marks)]
    assert late / first < 1.05
    assert copied / first < 2.5
    assert first / 20 < 10_500


def test_a_large_output_is_kept_once(postgres_url: str) -> None:
    """By reference, and however often a whole copy of the history is kept."""
    with open_postgres(postgres_url) as postgres:
        marks = long_thread(postgres, postgres_url, steps=10, size=200_000, every=10)

    assert marks[-1].kept / 10 < 250_000
