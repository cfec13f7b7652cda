"""Words of texts, and finding texts by a query: word splitting, BM25, fused rankings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from tests.toy_embeddings import ToyEmbeddings

from daruma.tools.text import (
    SAME_KIND,
    WORDS_ONLY,
    SearchResult,
    ask_for_the_same,
    fuse_rankings,
    is_related,
    likeness,
    likeness_to_any,
    needed_likeness,
    query_terms,
    rank_texts,
    search_store,
    split_words,
    texts_in,
)
from daruma.tools.text._search import LONGEST, is_name, telling_words

# --- Index, query and ranking know the same words.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("... \x00 \ud83d !?", []),
        ("Configurations CONFIGURED", ["configur", "configur"]),
        ("Café cafe CAFÉ", ["cafe"] * 3),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("max_retry_count", ["max_retry_count", "max", "retri", "count"]),
        ("tools/search.py", ["tools/search.py", "tool", "search", "py"]),
        ("3.11.2", ["3.11.2", "3", "11", "2"]),
        ("utf8", ["utf8", "utf"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("数据库索引", ["数据", "据库", "库索", "索引"]),
        ("用Postgres存", ["用", "postgr", "存"]),
        ("데이터베이스", ["데이", "이터", "터베", "베이", "이스"]),
        ("x" * 1000, ["x" * LONGEST]),
    ],
)
def test_a_text_has_these_words(text: str, found: list[str]) -> None:
    """Case, accents and forms do not count; what is joined is known whole and by its parts."""
    assert split_words(text) == found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Kündigungsfristen der Mietverträge", "Kündigungsfrist Mietvertrag"),
        ("Les bibliothèques nationales de France", "la bibliothèque"),
        ("las configuraciones del servidor", "la configuración"),
        ("straße", "STRASSE"),
        ("Datenbankverbindungen für alle", "Datenbankverbindungen"),
        ("leases are renewed", "renewing a lease"),
        ("get_user_name()", "getUserName"),
    ],
)
def test_other_forms_share_a_word(text: str, query: str) -> None:
    """In English always; in others where the text, or the query, shows its language."""
    assert set(split_words(text)) & set(query_terms(query))


def test_a_query_of_nothing_but_filling_words_keeps_them() -> None:
    """Else it could find nothing; beside others they only cost time."""
    assert query_terms("Where is the lease of the lease?") == ["leas"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), max_size=6)


@given(WORDS, st.data())
def test_whatever_stands_in_a_text_is_found_by_it(words: list[str], data: st.DataObject) -> None:
    """Each word of a text that is a word at all shares one with the text."""
    text = " ".join(words)
    for word in data.draw(st.permutations(words))[:2]:
        assert set(query_terms(word)) <= set(split_words(text))


# --- Which memories fit: none that is about something else.

BILLING = "The billing tests need DB_URL to point at the test database."


@pytest.mark.parametrize(
    ("goal", "memory", "fits"),
    [
        ("Fix the failing test in billing", BILLING, True),
        ("Set DB_URL in the deployment of everything we have", BILLING, True),
        ("Move all parsing libraries of the server to v2", "v2 is slow.", True),
        ("Deploy to staging", "The staging server is host-3.", True),
        ("Why does parseInvoice round wrongly?", "Rounding is decided in parse_invoice.py.", True),
        ("Translate the café menu into German", "The Cafe menu lies in menus/today.md.", True),
        ("修复计费模块的测试", "计费模块的测试需要数据库。", True),
        ("修复计费模块的测试", "文档写在另一个仓库。", False),
        ("Write the README of the parser", BILLING, False),
        ("Make it work, please, as we did before", "We did it before, and it works.", False),
        ("Rename the column amount to total in all invoices", "Prices have a total.", False),
        ("Do it", BILLING, False),
        ("", BILLING, False),
        ("Fix the failing test in billing", "", False),
    ],
)
def test_what_is_recalled_shares_what_the_goal_is_about(
    goal: str, memory: str, *, fits: bool
) -> None:
    """CX-05: the floor beneath which nothing is injected, on both of its sides."""
    assert is_related(goal, memory) is fits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The tests were failing", {"test", "fail"}),
        ("HttpServer", {"httpserver", "http", "server"}),
        ("src/app/main.py", {"src/app/main.py", "src", "app", "main", "py"}),
        ("计费模块", {"计费", "费模", "模块"}),
        ("Über", {"uber"}),
        ("of and the", set()),
    ],
)
def test_words_are_taken_from_a_text(text: str, words: set[str]) -> None:
    """Whole and in parts, without case, accents and what stands everywhere."""
    assert telling_words(text) == words


def test_names_of_code_are_told_from_words() -> None:
    """One of them shared is no chance."""
    assert [is_name(word) for word in ("db_url", "a.py", "v2", "billing", "2024", "e-mail")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


# --- How alike goals are: by the words that tell something.

FIX = "Fix the rounding of invoices in bill/split.py"


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        (FIX, FIX, 1, 1),
        (FIX, "fix rounding of the invoices in bill/split.py!", needed_likeness(1), 1),
        (FIX, "Please fix how invoices are rounded (bill/split.py)", needed_likeness(1), 1),
        ("Fix module number 7", "Fix module number 8", SAME_KIND, 0.99),
        (FIX, "Document the config parser", 0, SAME_KIND - 0.01),
        (FIX, "Fix the login", 0, SAME_KIND - 0.01),
        (FIX, "", 0, 0),
        (FIX, "!?", 0, 0),
    ],
)
def test_the_same_in_other_words_is_alike(one: str, other: str, least: float, most: float) -> None:
    """Enough to be told of a pitfall that one task has met; numbers tell tasks of a kind apart."""
    assert least <= likeness(one, other) <= most
    assert needed_likeness(1) > needed_likeness(2) > needed_likeness(3) == needed_likeness(100)
    assert likeness_to_any(one, ["Speed up the page", other]) >= likeness(one, other)
    assert likeness_to_any(one, []) == 0


@pytest.mark.parametrize(
    ("words", "end", "same"),
    [(9, "", True), (8, "", False), (9, " 7", True), (9, " 8", False)],
)
def test_the_same_is_asked_for_where_nine_words_in_ten_and_the_numbers_are_the_same(
    words: int, end: str, same: bool
) -> None:
    """What speaks against a pitfall has to be so near."""
    every = "fix invoices rounding split totals discounts taxes euros cents"
    said = " ".join(every.split()[:words])

    assert ask_for_the_same(f"{said} yearly{end}", f"{said} daily{end and ' 7'}") is same


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    """From 0 to 1, the same both ways, and a text is like itself."""
    assert 0 <= likeness(one, other) == likeness(other, one) <= 1
    assert likeness(one, one) == 1


# --- Ranking by words where the store does not rank.

TEXTS = [
    "The lease of a thread is renewed every ten seconds.",
    "A thread is run by one process.",
    "Every process has a thread, and every thread a thread-local store.",
    "Nothing of the kind.",
]


@pytest.mark.parametrize(
    ("query", "texts", "share", "found"),
    [
        ("lease thread", ["a thread", "thread here", "the thread", "a lease"], 0, [3, 0, 1, 2]),
        ("thread", TEXTS, 0, [2, 1, 0]),
        ("lease", ["lease " + "other " * 50, "a lease", "a lease"], 0, [1, 2, 0]),
        ("zebra", TEXTS, 0, []),
        ("", TEXTS, 0, []),
        ("lease", [], 0, []),
        ("lease renewed zebra process", TEXTS, 0, [0, 1, 2]),
        ("lease renewed zebra process", TEXTS, 1 / 3, [0]),
        ("zebra giraffe gnu process", TEXTS, 1 / 3, []),
    ],
)
def test_a_rare_word_counts_more_and_the_shorter_text_comes_first(
    query: str, texts: list[str], share: float, found: list[int]
) -> None:
    """One common word of four is chance, where that is asked; words that no text has count too."""
    assert [place for place, _ in rank_texts(query, texts, share)] == found


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=20))
def test_scores_fall_and_places_are_there_once(texts: list[str], query: str) -> None:
    """Whatever the texts and the query are."""
    found = rank_texts(query, texts)

    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert len({place for place, _ in found}) == len(found)


def test_more_of_a_word_adds_less_and_less() -> None:
    """BM25: up to 2.2 times what one adds."""
    texts = ["lease " * times + "filling " * (9 - times) for times in (1, 2, 3)] + ["other"]
    three, two, one = [score for _, score in rank_texts("lease", texts)]

    assert 2.2 * one > three > two > one
    assert three - two < two - one


# --- Several rankings become one.


@pytest.mark.parametrize(
    ("rankings", "together"),
    [
        ([], []),
        ([["a", "b"], []], ["a", "b"]),
        ([["a", "b", "c"], ["c", "b", "a"]], ["a", "c", "b"]),
        ([["a", "b"], ["b", "c"]], ["b", "a", "c"]),
        ([["a"], ["b"], ["b"]], ["b", "a"]),
    ],
)
def test_what_several_rankings_have_comes_first(
    rankings: list[list[str]], together: list[str]
) -> None:
    """Places count, not scores; of equals the one that was seen first."""
    assert [thing for thing, _ in fuse_rankings(rankings)] == together


def test_the_score_is_that_of_the_paper() -> None:
    """1 / (60 + place), for each ranking."""
    assert dict(fuse_rankings([["a"], ["b", "a"]])) == {"a": 1 / 61 + 1 / 62, "b": 1 / 61}


# --- Finding in a store that does not rank, and in one that ranks by meaning alone.

NOTES = ("notes",)


def filled(store: InMemoryStore) -> InMemoryStore:
    store.put(NOTES, "car", {"text": "the automobile stands outside", "n": 1})
    store.put(NOTES, "dog", {"text": "a hound barks at midnight", "n": 2})
    store.put(NOTES, "id", {"text": "error E4711 of the printer", "n": 3})
    store.put(("other",), "car", {"text": "automobile E4711"})
    return store


def meaning() -> InMemoryStore:
    return InMemoryStore(index={"dims": ToyEmbeddings.SIZE, "embed": ToyEmbeddings()})


def keys(found: SearchResult) -> list[str]:
    return [item.key for item in found.items]


async def test_a_store_that_does_not_rank_is_ranked_here_by_words() -> None:
    """And that is said, unless words were all that was asked for."""
    store = filled(InMemoryStore())

    both = await search_store(store, NOTES, "barking hounds at the printer", limit=1)
    words = await search_store(store, NOTES, "E4711", way="words")

    assert (keys(both), both.note) == (["dog"], WORDS_ONLY)
    assert (keys(words), words.note) == (["id"], "")
    assert words.items[0].score
    assert (await search_store(store, NOTES, "E4711", filter={"n": {"$lt": 3}})).items == ()
    assert await search_store(InMemoryStore(), NOTES, "car") == SearchResult()


async def test_a_store_that_ranks_by_meaning_is_fused_with_words() -> None:
    """A synonym is found by meaning, a number by words; nothing of another namespace."""
    store = filled(meaning())

    assert keys(await search_store(store, NOTES, "car", way="words")) == []
    assert keys(await search_store(store, NOTES, "car", way="meaning", limit=1)) == ["car"]
    assert keys(await search_store(store, NOTES, "car", limit=1)) == ["car"]
    found = await search_store(store, NOTES, "E4711", limit=9)
    assert (keys(found)[0], found.note) == ("id", "")
    assert {item.namespace for item in found.items} == {NOTES}


@pytest.mark.parametrize(
    ("value", "texts"),
    [({"a": "x", "b": [1, 2.5, True, None, {"c": ("y",)}]}, ["x", "1", "2.5", "y"]), ({}, [])],
)
def test_a_value_has_these_texts(value: Any, texts: list[str]) -> None:
    """Texts and numbers, without keys, truth values and nulls."""
    assert list(texts_in(value)) == texts
