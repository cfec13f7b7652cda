"""Finding by meaning: with vectors where they can be, by words where they can not, nothing lost."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from langgraph.store.base import PutOp
from psycopg.conninfo import make_conninfo
from tests.damages import KEY
from tests.toy_embeddings import ToyEmbeddings

from daruma.graph.storage import PostgresStore, open_postgres
from daruma.graph.storage._store import SEALED
from daruma.graph.storage.items._vectors import AT_ONCE, Embedding, NotEmbedded

HERE = ("n", "here")


@pytest.fixture
def plain(postgres_url: str) -> Iterator[PostgresStore]:
    with open_postgres(postgres_url) as pg:
        yield pg.store


@pytest.fixture
def toy() -> ToyEmbeddings:
    return ToyEmbeddings()


@pytest.fixture
def store(plain: PostgresStore, toy: ToyEmbeddings) -> PostgresStore:
    return plain.with_embeddings(toy)


def filled(store: PostgresStore) -> None:
    store.put(HERE, "car", {"text": "the automobile stands outside"})
    store.put(HERE, "dog", {"text": "a hound barks at midnight"})
    store.put(("n", "there"), "car", {"text": "an automobile"})


def found(store: PostgresStore, query: str, way: Any = "both", **options: Any) -> list[str]:
    result = asyncio.run(store.afind(HERE, query, way=way, **options))
    return [item.key for item in result.items]


def count(url: str, what: str = "daruma_item_vectors") -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(f"TABLE {what}".encode()).rowcount


def near_indexes(url: str) -> int:
    with psycopg.connect(url) as connection:
        named = "SELECT FROM pg_indexes WHERE indexname LIKE 'daruma_near_%'"
        return connection.execute(named).rowcount


def test_a_synonym_is_found_by_meaning_and_not_by_words(store: PostgresStore) -> None:
    """And by both together, which is what a search does; only beneath the namespace."""
    filled(store)

    assert found(store, "vehicle", "words") == []
    assert found(store, "vehicle", "meaning", limit=1) == ["car"]
    assert [item.key for item in store.search(HERE, query="puppy", limit=1)] == ["dog"]
    assert {item.namespace for item in store.search(HERE, query="puppy", limit=9)} == {HERE}
    assert store.note == ""


def test_no_model_is_asked_where_there_is_nothing_to_find(
    store: PostgresStore, toy: ToyEmbeddings
) -> None:
    """Most tasks have no memories yet, and none waits for an answer about nothing."""
    filled(store)
    toy.asked.clear()

    assert store.search(("n", "h"), query="vehicle") == []
    assert toy.asked == []
    assert store.search(("n",), query="vehicle", limit=1)
    assert toy.asked == [1]


def test_a_word_shared_by_chance_does_not_go_before_what_is_meant(store: PostgresStore) -> None:
    """Places tell nothing of how little that is; found by words alone it still is."""
    filled(store)
    store.put(HERE, "chance", {"text": "outside midnight is another tale"})

    assert found(store, "vehicle cars tale", limit=1) == ["car"]
    assert found(store, "vehicle cars tale", "words") == ["chance"]


def test_what_has_changed_means_what_it_says_now(store: PostgresStore, toy: ToyEmbeddings) -> None:
    """Its vector is made anew; one of the same text is not asked for again."""
    filled(store)
    asked = len(toy.asked)
    store.put(HERE, "car", {"text": "the automobile stands outside"})
    assert len(toy.asked) == asked

    store.put(HERE, "car", {"text": "the physician is in"})

    assert found(store, "doctor", "meaning", limit=1) == ["car"]


def test_a_put_is_kept_when_the_model_fails(
    store: PostgresStore, toy: ToyEmbeddings, postgres_url: str
) -> None:
    """It is found by its words at once, with a note, and by its meaning once it is indexed."""
    toy.broken = OSError("the wire is\ncut")
    filled(store)

    assert found(store, "automobile") == ["car"]
    assert store.note == ("by words alone: the embedding model failed (OSError: the wire is cut)")
    assert found(store, "vehicle") == []
    toy.broken = None
    later = store.with_embeddings(toy)
    assert later.reindex() == 3
    assert found(later, "vehicle", limit=1) == ["car"]
    assert (later.note, count(postgres_url)) == ("", 3)


def test_a_model_that_fails_is_left_alone_for_a_while(
    store: PostgresStore, toy: ToyEmbeddings
) -> None:
    """Not every put and every search waits for it in turn."""
    toy.broken = OSError("down")

    for _ in range(5):
        store.put(HERE, "k", {"text": "a car"})
        store.search(HERE, query="car")

    assert len(toy.asked) == 1


@pytest.mark.long
def test_what_was_put_meanwhile_is_caught_up_with(plain: PostgresStore, postgres_url: str) -> None:
    """A put that succeeds makes some of the vectors that are lacking, too."""
    plain.batch([PutOp(HERE, f"k{n}", {"text": f"word{n}"}) for n in range(AT_ONCE + 5)])

    store = plain.with_embeddings(ToyEmbeddings())
    store.put(HERE, "new", {"text": "a car"})

    assert count(postgres_url) == AT_ONCE + 1
    store.put(HERE, "newer", {"text": "a car"})
    assert (count(postgres_url), store.note) == (AT_ONCE + 7, "")


@pytest.mark.long
def test_another_model_is_noticed_and_gets_its_own_vectors(
    store: PostgresStore, toy: ToyEmbeddings, postgres_url: str
) -> None:
    """With vectors of another size. Its note names the command; the old ones go with it."""
    filled(store)
    other = store.with_embeddings(ToyEmbeddings("other", 32))

    found(other, "vehicle")
    assert "have no vector of this embedding model yet" in other.note
    assert "`daruma knowledge reindex`" in other.note
    assert other.reindex() == 3
    assert found(other, "vehicle", "meaning", limit=1) == ["car"]
    assert (other.note, count(postgres_url)) == ("", 3)
    assert near_indexes(postgres_url) == 1
    assert other.with_embeddings(toy).reindex() == 3


def test_items_without_words_and_deleted_ones_have_no_vectors(
    store: PostgresStore, toy: ToyEmbeddings, postgres_url: str
) -> None:
    """``index=False`` too: nothing is sent to the model."""
    store.put(HERE, "quiet", {"text": "a car"}, index=False)
    store.put(HERE, "empty", {"text": "  "})
    assert (toy.asked, store.search(HERE)[0].score) == ([], None)
    filled(store)

    store.delete(HERE, "car")

    assert count(postgres_url) == 2
    assert found(store, "vehicle", "meaning") == ["dog"]


def test_in_a_sealed_database_no_vectors_are_kept(postgres_url: str) -> None:
    """They tell what a text says; that is said."""
    toy = ToyEmbeddings()
    with open_postgres(postgres_url, key=KEY, embeddings=toy) as pg:
        filled(pg.store)

        result = asyncio.run(pg.store.afind(HERE, "automobile"))
        assert ([item.key for item in result.items], result.note) == (["car"], SEALED)
        assert (pg.store.reindex(), toy.asked) == (0, [])


def test_a_database_without_room_for_vectors_is_one_clear_line(postgres_url: str) -> None:
    """A role that may make no extension and no table: all is kept, and found by words."""
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE guest LOGIN")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
        url = make_conninfo(postgres_url, user="guest")
        with open_postgres(url, embeddings=ToyEmbeddings()) as pg:
            filled(pg.store)

            assert found(pg.store, "automobile") == ["car"]
            assert pg.store.note.startswith(
                "by words alone: the database has no room for vectors (permission denied"
            )
            assert "\n" not in pg.store.note
        owner.execute("DROP OWNED BY guest")
        owner.execute("DROP ROLE guest")


@pytest.mark.long
def test_vectors_that_were_dropped_are_made_again(store: PostgresStore, postgres_url: str) -> None:
    """Dropping the extension takes them along: nothing is lost but time, and no call fails."""
    filled(store)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector CASCADE")

    meanwhile = found(store, "vehicle"), found(store, "automobile"), store.note
    store.put(HERE, "bus", {"text": "a vehicle for many"})
    store.reindex()

    assert meanwhile[:2] == ([], ["car"])
    assert "by words alone" in meanwhile[2]
    assert store.note == ""
    assert count(postgres_url) == 4
    assert "car" in found(store, "vehicle", "meaning")


@pytest.mark.long
def test_many_items_are_searched_along_the_index(store: PostgresStore) -> None:
    """What is compared one by one up to 5,000 items is found along the index beyond them."""
    filled(store)
    store.batch([PutOp(HERE, f"k{n}", {"text": f"filler{n}"}) for n in range(300)])
    exact = found(store, "vehicle", "meaning", limit=5)

    store.meanings.exact = 10

    near = found(store, "vehicle", "meaning", limit=5)
    assert near[0] == exact[0] == "car"
    assert len(near) == 5
    assert found(store, "vehicle", "meaning", filter={"text": "filler7"}) == ["k7"]


class Odd(ToyEmbeddings):
    """Embeddings that are none."""

    def __init__(self, *vectors: list[float]) -> None:
        super().__init__()
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(self.vectors)[: len(texts)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], "a vector without direction"),
        ([[1.0, float("nan")], [1.0, 0.0]], "a vector without direction"),
        ([[1.0]], "1 vectors of .1. numbers for 2 texts"),
        ([[1.0], [1.0, 2.0]], "2 vectors of .1, 2. numbers for 2 texts"),
    ],
)
async def test_vectors_that_can_not_be_compared_are_a_failure(given: Any, told: str) -> None:
    """Of nothing, of other sizes, too few."""
    with pytest.raises(NotEmbedded, match=told):
        await Embedding(Odd(*given)).of_texts(["one", "two"])


@pytest.mark.parametrize("factor", [1e9, 1e-9])
def test_how_long_a_vector_is_does_not_matter(store: PostgresStore, factor: float) -> None:
    """Numbers that half precision has no room for lose no put: what counts is the direction."""

    class Long(ToyEmbeddings):
        def _vector(self, text: str) -> list[float]:
            return [number * factor for number in super()._vector(text)]

    long = store.with_embeddings(Long())
    filled(long)

    assert found(long, "vehicle", "meaning", limit=1) == ["car"]
    assert long.note == ""


@pytest.mark.long
def test_who_puts_and_who_makes_vectors_do_not_wait_for_each_other_in_a_ring(
    postgres_url: str,
) -> None:
    """Where the numbers of items go against their names; a ring is no loss that is ridden out."""
    names = [f"k{number:02}" for number in range(30)]
    with open_postgres(postgres_url, outage_seconds=0) as pg:
        for name in reversed(names):
            pg.store.put(HERE, name, {"text": name})
        store = pg.store.with_embeddings(ToyEmbeddings("small", 16))

        def work(worker: int) -> None:
            for turn in range(15):
                store.batch([PutOp(HERE, name, {"text": f"{worker} {turn}"}) for name in names])

        with ThreadPoolExecutor(3) as threads:
            assert list(threads.map(work, range(3))) == [None] * 3


def test_an_item_that_is_damaged_takes_no_other_with_it(
    store: PostgresStore, toy: ToyEmbeddings, postgres_url: str
) -> None:
    """What can not be read gets no vector; what is put, and what else is lacking, does."""
    toy.broken = OSError("down")
    filled(store)
    with psycopg.connect(postgres_url) as connection:
        damage = "UPDATE daruma_items SET value = set_byte(value, 12, 0) WHERE key = 'dog'"
        connection.execute(damage)
    toy.broken = None
    later = store.with_embeddings(toy)

    later.put(HERE, "new", {"text": "a puppy"})

    assert (later.reindex(), count(postgres_url)) == (0, 3)
    assert found(later, "hound", "meaning", limit=1) == ["new"]


async def test_a_model_that_does_not_answer_is_given_up() -> None:
    """Within its seconds."""
    toy = ToyEmbeddings()
    toy.held = threading.Event()

    with pytest.raises(NotEmbedded, match=r"no answer within 0.05 s"):
        await Embedding(toy, seconds=0.05).of_query("x")

    toy.held.set()
