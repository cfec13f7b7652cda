"""LangGraph's store on Postgres: what is put is found, by whoever asks, wherever they run."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from tests.damages import KEY
from tests.fault_proxy import fault_proxy, once, passing

from daruma.graph.storage import Postgres, PostgresStore, open_postgres
from daruma.graph.storage.items._rows import ValueRefused
from daruma.state.errors import DamagedState

NOTES = ("daruma", "memory", "me", "common")


@pytest.fixture
def pg(postgres_url: str) -> Iterator[Postgres]:
    with open_postgres(postgres_url) as opened:
        yield opened


@pytest.fixture
def store(pg: Postgres) -> PostgresStore:
    return pg.store


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


@pytest.mark.parametrize(
    "text",
    ["plain", "", "nul \x00 in it", "half \ud83d of one", "日本語 \u202e", "'; DROP --", "x" * 9],
)
def test_any_text_is_a_value_a_key_and_a_label(store: PostgresStore, text: str) -> None:
    """A NUL or half a character is no text to Postgres."""
    namespace = ("a", "l" + text.replace("\x00", "0"))

    store.put(namespace, text, {"text": text, text: [None, True, 1, -0.5, {"deep": text}]})

    item = store.get(namespace, text)
    assert item
    assert (item.namespace, item.key) == (namespace, text)
    assert item.value == {"text": text, text: [None, True, 1, -0.5, {"deep": text}]}
    assert store.list_namespaces() == [namespace]


def test_what_is_put_again_keeps_its_beginning(store: PostgresStore) -> None:
    """An item is changed, not made anew: its ``created_at`` stays."""
    store.put(NOTES, "one", {"text": "a"})
    first = store.get(NOTES, "one")
    store.put(NOTES, "one", {"text": "b"})
    second = store.get(NOTES, "one")

    assert first
    assert second
    assert second.value == {"text": "b"}
    assert second.created_at == first.created_at == first.updated_at < second.updated_at
    assert store.search(NOTES, query="a") == []


def test_what_is_new_was_changed_when_it_was_made(store: PostgresStore) -> None:
    """One look at the clock for both times: two of them differ now and then."""
    store.batch([PutOp(NOTES, f"{number}", {"text": "a"}) for number in range(300)])

    items = store.search(NOTES, limit=300)
    assert len(items) == 300
    assert [item.key for item in items if item.created_at != item.updated_at] == []


def test_what_was_deleted_is_found_no_more(store: PostgresStore) -> None:
    """By no way of looking; and deleting it again is no error."""
    store.put(NOTES, "one", {"text": "lease"})
    store.delete(NOTES, "one")
    store.delete(NOTES, "one")

    assert store.get(NOTES, "one") is None
    assert store.search(NOTES) == store.search(NOTES, query="lease") == []
    assert store.list_namespaces() == []


def test_items_come_newest_first_page_by_page(store: PostgresStore) -> None:
    """Without a query; what was changed last is the newest."""
    for number in range(7):
        store.put(NOTES, f"k{number}", {"n": number})
    store.put(NOTES, "k0", {"n": 0})

    assert keys(store.search(NOTES, limit=3)) == ["k0", "k6", "k5"]
    assert keys(store.search(NOTES, limit=3, offset=3)) == ["k4", "k3", "k2"]
    assert keys(store.search(NOTES, filter={"n": {"$lt": 5}}, limit=2, offset=1)) == ["k4", "k3"]
    assert store.search(NOTES, limit=0) == store.search(NOTES, offset=7) == []
    assert store.search(NOTES, filter={"n": {"$lt": 5}}, limit=0) == []
    assert store.search(NOTES, filter={"n": {"$lt": 5}}, limit=0, offset=2) == []


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, "a", "b", "1", "x" * 300]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
NAMED = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3).map(tuple)
NUMBERS = st.sampled_from([-1, 0, 1, 2.5])
FILTERS = st.dictionaries(
    st.sampled_from("abcd"),
    VALUES
    | st.builds(lambda each: {"$eq": each}, VALUES)
    | st.builds(lambda each: {"$ne": each}, VALUES),
    max_size=2,
) | st.builds(
    lambda name, number: {"n": {name: number}},
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
    NUMBERS,
)
PUTS = st.builds(
    lambda namespace, key, value, number: PutOp(
        namespace, key, None if value is None else {**value, "n": number}
    ),
    NAMED,
    st.sampled_from("kl"),
    st.none() | st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=3),
    NUMBERS,
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "*"]), min_size=1, max_size=2).map(tuple)


def same(results: list[Any]) -> list[Any]:
    """What two stores have to agree on: what was found, not when it was put, nor its order."""
    told = [each if isinstance(each, list) else [each] for each in results]
    return [
        sorted(
            (str(each) if isinstance(each, tuple) else repr((each.namespace, each.key, each.value)))
            for each in found
            if each is not None
        )
        for found in told
    ]


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    puts=st.lists(PUTS, max_size=8),
    prefix=st.just(()) | NAMED,
    wanted=FILTERS,
    path=PATHS,
    depth=st.none() | st.integers(1, 3),
)
def test_the_answers_are_those_of_langgraphs_own_store(
    store: PostgresStore, puts: list[PutOp], prefix: Any, wanted: Any, path: Any, depth: Any
) -> None:
    """Whatever was put, deleted and asked: as ``InMemoryStore`` has it, in one batch or in many."""
    known = InMemoryStore()
    left = store.search((), limit=1000)
    store.batch([PutOp(item.namespace, item.key, None) for item in left])
    for put in puts:
        known.batch([put])
    if len(puts) % 2:
        store.batch(puts)
    else:
        assert [store.batch([put]) for put in puts] == [[None]] * len(puts)
    asked: list[Op] = [
        GetOp(("a",), "k"),
        SearchOp(prefix, limit=1000),
        SearchOp(prefix, wanted, limit=1000),
        SearchOp(path, wanted, limit=1000),
    ]

    assert same(store.batch(asked)) == same(known.batch(asked))
    for kind in ("prefix", "suffix"):
        condition: Any = {kind: path, "limit": 1000}
        live = {item.namespace for item in known.search((), limit=1000)}
        cut = {name[:depth] for name in known.list_namespaces(**condition) if name in live}
        assert store.list_namespaces(**condition, max_depth=depth) == sorted(cut)


def test_namespaces_are_listed_by_their_beginnings_and_ends(store: PostgresStore) -> None:
    """With ``*`` for any label; a label that begins like another is not within it."""
    for namespace in [("a", "b"), ("a", "c", "x"), ("ab",), ("b", "x")]:
        store.put(namespace, "k", {})

    assert store.list_namespaces(prefix=("a",)) == [("a", "b"), ("a", "c", "x")]
    assert store.list_namespaces(suffix=("x",)) == [("a", "c", "x"), ("b", "x")]
    assert store.list_namespaces(prefix=("a", "*", "x")) == [("a", "c", "x")]
    assert store.list_namespaces(max_depth=1, limit=2, offset=1) == [("ab",), ("b",)]
    assert MatchCondition("prefix", ("a",)).path == ("a",)
    assert keys(store.search(("a",))) == ["k", "k"]
    assert [item.namespace for item in store.search(("ab",))] == [("ab",)]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": float("nan")}, "Out of range float"),
        ({"n": {1, 2}}, "not JSON serializable"),
        ({"n": {3: "three"}}, "its key 3 is no text"),
    ],
)
def test_what_json_has_no_form_for_is_refused(
    store: PostgresStore, value: dict[str, Any], said: str
) -> None:
    """In one line; nothing that was put with it is kept."""
    with pytest.raises(ValueRefused, match=said):
        store.batch([PutOp(NOTES, "good", {"n": 1}), PutOp(NOTES, "bad", value)])

    assert store.search(NOTES) == []


def test_what_can_not_be_done_is_refused(store: PostgresStore) -> None:
    """A time to live, a namespace that is none, a name too long for an index, negative pages."""
    with pytest.raises(NotImplementedError):
        store.put(NOTES, "k", {}, ttl=5)
    with pytest.raises(NotImplementedError, match="without a ttl"):
        store.batch([PutOp(NOTES, "k", {}, None, 5.0)])
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp((), "k", {})])
    with pytest.raises(ValueRefused, match="longer than 2000"):
        store.put(NOTES, "k" * 2000, {})
    with pytest.raises(ValueRefused, match="negative"):
        store.search(NOTES, limit=-1)
    key: Any = 12
    for op in (PutOp(NOTES, key, {}), GetOp(NOTES, key), PutOp(NOTES, key, None)):
        with pytest.raises(ValueRefused, match="a key is a text, and not 12"):
            store.batch([op])
    store.put(NOTES, "k", {"n": 1})
    with pytest.raises(ValueError, match=r"knows \$eq, .* no '\$in'"):
        store.search(NOTES, filter={"n": {"$in": [1]}})


async def test_it_works_on_any_loop_and_any_thread(store: PostgresStore) -> None:
    """The connections live on one loop; who calls may be on another, or on none."""
    await store.aput(NOTES, "one", {"text": "lease"})

    def elsewhere() -> Any:
        return asyncio.run(store.aget(NOTES, "one"))

    found = await asyncio.to_thread(elsewhere)
    assert found.value == (await asyncio.to_thread(store.get, NOTES, "one")).value  # type: ignore[union-attr]
    assert keys(await store.asearch(NOTES, query="leases")) == ["one"]


@pytest.mark.long
def test_twenty_threads_put_and_search(store: PostgresStore) -> None:
    """Each finds its own at once, over the same names, and nothing is lost or waits for ever."""

    def work(worker: int) -> list[str]:
        mine = ("w", str(worker))
        for number in range(5):
            store.batch(
                [
                    PutOp(("shared",), f"k{(number + worker) % 5}", {"by": worker}),
                    PutOp(mine, f"k{number}", {"text": f"word{worker}x{number} lease"}),
                ]
            )
            found = store.search(("w",), query=f"word{worker}x{number}")[0]
            assert (found.namespace, found.key) == (mine, f"k{number}")
        return keys(store.search(mine, query="lease", limit=9))

    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(work, range(20)))

    assert [sorted(each) for each in found] == [[f"k{number}" for number in range(5)]] * 20
    assert len(store.search(("shared",), limit=99)) == 5


@pytest.mark.long
def test_who_puts_and_who_deletes_do_not_wait_for_each_other_in_a_ring(postgres_url: str) -> None:
    """Each puts what the other deletes; a ring is no loss that is ridden out here."""
    names = [f"k{number:02}" for number in range(40)]

    def batch(put: list[str], gone: list[str]) -> list[Op]:
        puts = [PutOp(NOTES, key, {"text": key * 9}) for key in put]
        return [*puts, *(PutOp(NOTES, key, None) for key in gone)]

    with open_postgres(postgres_url, outage_seconds=0) as pg:
        pg.store.batch(batch(names, []))

        def work(turn: int) -> None:
            halves = names[:20], names[20:]
            for _ in range(20):
                pg.store.batch(batch(halves[turn], halves[1 - turn]))

        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(work, range(2))) == [None, None]


def test_a_put_whose_acknowledgement_was_lost_is_there_once(postgres_url: str) -> None:
    """It is made again, and changes nothing. Every message of a batch, before and after."""
    ops: list[Op] = [PutOp(NOTES, "one", {"text": "lease"}), PutOp(NOTES, "gone", None)]
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as pg:
        pg.store.batch(ops)
        proxy.count_from_here(passing)
        pg.store.batch(ops)
        count = proxy.messages
        for number in range(count):
            pg.store.put(NOTES, "gone", {"text": str(number)})
            proxy.count_from_here(once(number, "cut after" if number % 2 else "cut before"))

            pg.store.batch(ops)

            assert keys(pg.store.search(NOTES, limit=99)) == ["one"]


def test_a_damaged_item_is_named(store: PostgresStore, postgres_url: str) -> None:
    """A flipped byte is an error, not another value."""
    store.put(NOTES, "one", {"text": "lease"})
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE daruma_items SET value = set_byte(value, 12, 0)")

    with pytest.raises(DamagedState, match="the item 'one' in daruma/memory/me/common: "):
        store.get(NOTES, "one")


def test_in_a_sealed_database_an_item_is_found_and_is_its_own(postgres_url: str) -> None:
    """By words and filters, though the index holds but digests; in another's place it is none."""
    with open_postgres(postgres_url, key=KEY) as pg:
        pg.store.put(NOTES, "one", {"text": "the kanarienvogel sings", "kind": "bird"})
        pg.store.put(NOTES, "two", {"text": "a dog", "kind": "dog"})

        assert keys(pg.store.search(NOTES, query="Kanarienvogel")) == ["one"]
        assert keys(pg.store.search(NOTES, filter={"kind": "dog"})) == ["two"]
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_items a SET value = b.value FROM daruma_items b WHERE a.id <> b.id"
            )
        with pytest.raises(DamagedState, match="a sealed value is not what was stored"):
            pg.store.get(NOTES, "one")
