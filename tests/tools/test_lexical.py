"""Ranking by words where the store does not rank."""

from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.text.search import ranked, rarity, weight

TEXTS = [
    "The lease of a thread is renewed every ten seconds.",
    "A thread is run by one process.",
    "Every process has a thread, and every thread a thread-local store.",
    "Nothing of the kind.",
]


def places(query: str, texts: list[str]) -> list[int]:
    return [place for place, _ in ranked(query, texts)]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    """One text has the lease, three the thread."""
    assert places("lease thread", ["a thread", "thread here", "the thread", "a lease"])[0] == 3
    assert places("thread", TEXTS)[0] == 2
    assert 3 not in places("lease thread process", TEXTS)


def test_the_shorter_of_two_texts_comes_first() -> None:
    """With the same words in it, it is more about them; equal ones keep their order."""
    assert places("lease", ["lease " + "other " * 50, "a lease", "a lease"]) == [1, 2, 0]


def test_without_a_common_word_nothing_is_found() -> None:
    """Neither for an empty query nor for no texts."""
    assert ranked("zebra", TEXTS) == ranked("", TEXTS) == ranked("lease", []) == []


def test_what_shares_too_little_is_left_out_where_that_is_asked() -> None:
    """One common word of four is chance; words that no text has count too."""
    query = "lease renewed zebra process"

    assert [place for place, _ in ranked(query, TEXTS)] == [0, 1, 2]
    assert [place for place, _ in ranked(query, TEXTS, 1 / 3)] == [0]
    assert ranked("zebra giraffe gnu process", TEXTS, 1 / 3) == []


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=20))
def test_scores_fall_and_places_are_there_once(texts: list[str], query: str) -> None:
    """Whatever the texts and the query are."""
    found = ranked(query, texts)

    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert len({place for place, _ in found}) == len(found)


def test_more_of_a_word_adds_less_and_less() -> None:
    """BM25: up to 2.2 times what one adds; what all have still adds a little."""
    assert weight(1, 1) == 1
    assert weight(2, 1) - weight(1, 1) > weight(3, 1) - weight(2, 1) > 0
    assert weight(10**6, 1) < 2.2001
    assert rarity(1, 1000) > rarity(10, 1000) > rarity(1000, 1000) > 0
