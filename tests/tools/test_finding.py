"""Finding in a store that does not rank, and in one that ranks by meaning alone."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.toy_embeddings import ToyEmbeddings

from daruma.tools.text.search import WORDS_ONLY, Found, find, texts_in

NOTES = ("notes",)


def filled(store: InMemoryStore) -> InMemoryStore:
    store.put(NOTES, "car", {"text": "the automobile stands outside", "n": 1})
    store.put(NOTES, "dog", {"text": "a hound barks at midnight", "n": 2})
    store.put(NOTES, "id", {"text": "error E4711 of the printer", "n": 3})
    store.put(("other",), "car", {"text": "automobile E4711"})
    return store


def meaning() -> InMemoryStore:
    return InMemoryStore(index={"dims": ToyEmbeddings.SIZE, "embed": ToyEmbeddings()})


def keys(found: Found) -> list[str]:
    return [item.key for item in found.items]


async def test_a_store_that_does_not_rank_is_ranked_here_by_words() -> None:
    """And that is said, unless words were all that was asked for."""
    store = filled(InMemoryStore())

    both = await find(store, NOTES, "barking hounds at the printer", limit=1)
    words = await find(store, NOTES, "E4711", way="words")

    assert (keys(both), both.note) == (["dog"], WORDS_ONLY)
    assert (keys(words), words.note) == (["id"], "")
    assert words.items[0].score
    assert (await find(store, NOTES, "E4711", filter={"n": {"$lt": 3}})).items == ()


async def test_a_store_that_ranks_by_meaning_is_fused_with_words() -> None:
    """A synonym is found by meaning, a number by words; nothing of another namespace."""
    store = filled(meaning())

    assert keys(await find(store, NOTES, "car", way="words")) == []
    assert keys(await find(store, NOTES, "car", way="meaning", limit=1)) == ["car"]
    assert keys(await find(store, NOTES, "car", limit=1)) == ["car"]
    found = await find(store, NOTES, "E4711", limit=9)
    assert (keys(found)[0], found.note) == ("id", "")
    assert {item.namespace for item in found.items} == {NOTES}


class Blind(ToyEmbeddings):
    """To it all texts mean the same."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] * self.size for _ in texts]


async def test_where_meaning_tells_nothing_words_decide() -> None:
    """The best by words goes before what is merely as near as all else."""
    store = filled(InMemoryStore(index={"dims": ToyEmbeddings.SIZE, "embed": Blind()}))

    assert keys(await find(store, NOTES, "E4711", way="meaning", limit=1)) != ["id"]
    assert keys(await find(store, NOTES, "E4711", limit=1)) == ["id"]


async def test_an_empty_store_has_nothing_to_say() -> None:
    """No note either."""
    assert await find(InMemoryStore(), NOTES, "car") == Found()


@pytest.mark.parametrize(
    ("value", "texts"),
    [({"a": "x", "b": [1, 2.5, True, None, {"c": ("y",)}]}, ["x", "1", "2.5", "y"]), ({}, [])],
)
def test_a_value_has_these_texts(value: Any, texts: list[str]) -> None:
    """Texts and numbers, without keys, truth values and nulls."""
    assert list(texts_in(value)) == texts
