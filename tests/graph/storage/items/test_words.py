"""Search by words in Postgres: rare words first, one namespace, no larger for what it can hold."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import PutOp
from tests.damages import KEY

from daruma.graph.storage import PostgresStore, open_postgres
from daruma.graph.storage._store import CANDIDATES
from daruma.graph.sync import run
from daruma.tools.text import query_terms

HERE, THERE = ("n", "here"), ("n", "there")


@pytest.fixture(params=["clear", "sealed"])
def store(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    with open_postgres(postgres_url, key=KEY if request.param == "sealed" else None) as pg:
        yield pg.store


def filled(store: PostgresStore, texts: list[str], namespace: Any = HERE, **more: Any) -> None:
    puts = [PutOp(namespace, f"{n:05}", {"text": text, **more}) for n, text in enumerate(texts)]
    store.batch(puts)


def numbers(store: PostgresStore, query: str, **options: Any) -> list[int]:
    return [int(item.key) for item in store.search(HERE, query=query, **options)]


TEXTS = [
    "The lease of a thread is renewed every ten seconds, and then again.",
    "A thread is run by one process; the thread ends with it.",
    "Every process has a thread, and every thread a store of its own.",
    "getUserName reads tools/users.py in Zürich",
    "数据库的索引很快",
    "Die Kündigungsfristen der Verträge",
    "lease lease lease lease thread",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("leases", [6, 0]),
        ("who renews the lease", [0]),
        ("user_name", [3]),
        ("users.py", [3]),
        ("ZURICH", [3]),
        ("索引", [4]),
        ("Kündigungsfrist", [5]),
        ("it's 'quoted' \\ & | ! (lease):*", [6]),
        ("zebra", []),
        ("...", []),
    ],
)
def test_the_best_come_first(store: PostgresStore, query: str, best: list[int]) -> None:
    """Also in a sealed database, where the index holds no word."""
    filled(store, TEXTS)

    assert numbers(store, query)[: len(best)] == best
    assert bool(numbers(store, query)) is bool(best)


def test_a_rare_word_tells_more_than_two_common_ones(store: PostgresStore) -> None:
    """And of items with the same word the longest is the last."""
    common = [f"thread store number {n}" for n in range(20)]
    filled(store, [*common, "a heron by the lake in the morning", "heron heron lake", "heron"])

    assert set(numbers(store, "thread store heron", limit=3)) == {20, 21, 22}
    assert numbers(store, "heron", limit=3)[-1] == 20


@pytest.mark.long
def test_common_words_alone_find_something_and_rare_ones_go_first(postgres_url: str) -> None:
    """More items have the word than are ranked: some are, and one with a rare word is the first."""
    with open_postgres(postgres_url) as pg:
        filled(pg.store, [f"common plain {n % 3}" for n in range(CANDIDATES + 50)])
        pg.store.put(HERE, "99999", {"text": "common plain heron " + "filling " * 100})

        assert numbers(pg.store, "common heron plain", limit=3)[0] == 99999
        assert len(numbers(pg.store, "common heron plain", limit=3)) == 3
        assert len(numbers(pg.store, "common", limit=20)) == 20
        found = pg.store.search(("n",), query="plain common", filter={"text": "common plain 1"})
        assert {item.value["text"] for item in found} == {"common plain 1"}
        run(pg.store.database.transact(analyze))
        assert numbers(pg.store, "common heron plain", limit=3)[0] == 99999


async def analyze(connection: Any) -> None:
    """Let Postgres know by its statistics which words are common."""
    await connection.execute("ANALYZE daruma_items")


@pytest.mark.long
def test_what_has_most_of_many_common_words_is_found(postgres_url: str) -> None:
    """No item has all, and more than are ranked have some: the one that is most alike is first."""
    letters = [letter * 3 for letter in "bcdfghkm"]
    draw = random.Random(1)  # noqa: S311 - no secret
    few = [" ".join(draw.sample(letters, 4)) for _ in range(3 * CANDIDATES)]
    with open_postgres(postgres_url) as pg:
        filled(pg.store, [*few, " ".join(letters[:-1])])
        run(pg.store.database.transact(analyze))

        assert numbers(pg.store, " ".join(letters), limit=3)[0] == len(few)


def test_a_filter_goes_before_the_limit(store: PostgresStore) -> None:
    """Of what is found, those that fit are counted; exact ones are looked up, others looked at."""
    for number in range(30):
        value = {"text": "lease " * (30 - number), "n": number, "kind": f"k{number % 2}"}
        store.put(HERE, f"{number:05}", value)

    odd = numbers(store, "lease", filter={"kind": "k1"}, limit=2)
    late = numbers(store, "lease", filter={"n": {"$gte": 25}}, limit=2, offset=1)

    assert len(odd) == len(late) == 2
    assert all(number % 2 for number in odd)
    assert all(number >= 25 for number in late)


def test_a_huge_text_is_kept_and_found(store: PostgresStore) -> None:
    """Postgres breaks off at 1 MB of words; what is counted ends before that."""
    words = " ".join(f"word{number}é{'x' * 40}" for number in range(20_000))

    store.put(HERE, "00001", {"text": f"first {words} last", **{f"k{n}": n for n in range(2000)}})

    assert numbers(store, "first") == [1]
    assert numbers(store, "first", filter={"k1999": 1999}) == [1]
    assert numbers(store, "first", filter={"k1999": 1}) == []


def test_what_was_changed_is_ranked_by_what_it_is_now(store: PostgresStore) -> None:
    """A text that has grown is less about its word than one that has not."""
    store.put(HERE, "00001", {"text": "lease"})
    store.put(HERE, "00002", {"text": "lease of a thread"})
    assert numbers(store, "lease") == [1, 2]

    store.put(HERE, "00001", {"text": "lease " + "and something else " * 20})

    assert numbers(store, "lease") == [2, 1]


def test_an_item_is_found_by_the_fields_that_it_names(store: PostgresStore) -> None:
    """``index`` names them; False means that it is found by none."""
    store.put(HERE, "00001", {"title": "lease", "text": "thread"}, index=["title"])
    store.put(HERE, "00002", {"title": "lease", "text": "thread"}, index=False)
    store.put(HERE, "00003", {"list": [{"title": "lease"}]}, index=["list[*].title"])

    assert sorted(numbers(store, "lease")) == [1, 3]
    assert numbers(store, "thread") == []
    assert len(store.search(HERE)) == 3


@pytest.mark.sampled(1)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=25), min_size=1, max_size=4),
    data=st.data(),
)
def test_whatever_is_put_is_found_by_a_rare_word_and_nowhere_else(
    store: PostgresStore, texts: list[str], data: st.DataObject
) -> None:
    """Any text, by a word that it alone has; nothing of another namespace is ever returned."""
    known = store.search((), limit=100)
    store.batch([PutOp(item.namespace, item.key, None) for item in known])
    filled(store, texts)
    filled(store, [*texts, "other"], THERE)
    place = data.draw(st.integers(0, len(texts) - 1))
    rare = set(query_terms(texts[place])).difference(
        *(query_terms(text) for other, text in enumerate(texts) if other != place)
    )

    for query in (*sorted(rare)[:2], texts[place]):
        found = store.search(HERE, query=query, limit=20)
        assert {item.namespace for item in found} <= {HERE}
        if query in rare and set(query_terms(query)) & rare:
            assert f"{place:05}" in [item.key for item in found]
