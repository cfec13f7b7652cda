"""Finding items by words: the index gives candidates, ``ts_rank`` by how rare each word is ranks.

Postgres' own rank of a whole query knows nothing of how rare a word is, which costs an eighth of
what is found first. So ``ts_rank`` is asked for each word alone, and weighed. No statement reads
more than a bounded number of items, however many there are (EV-05).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from daruma.graph.storage._pool import Connection
from daruma.graph.storage.items._values import IndexWords, all_of, between, either, quoted
from daruma.tools.text import rarity

CANDIDATES: Final = 1000
"""Items with rare words that are ranked for one query; a word that more items have is common."""
_OF_COMMON: Final = 300
"""Items that are ranked because they have several of the common words."""

_BENEATH: Final = """
SELECT (SELECT reltuples FROM pg_class WHERE oid = 'daruma_items'::regclass) AS all, count(*) AS few
FROM (
    SELECT FROM daruma_items WHERE namespace >= %s AND namespace < %s LIMIT %s
) AS bounded
"""
_COUNT: Final = """
SELECT greatest((
    SELECT count(*) FROM (
        SELECT FROM daruma_items WHERE words @@ asked.query LIMIT %(most)s
    ) AS bounded
), %(every)s * (
    SELECT share FROM pg_stats, unnest(most_common_elems::text::text[],
        most_common_elem_freqs) AS known (word, share)
    WHERE schemaname = current_schema() AND tablename = 'daruma_items' AND attname = 'words'
    AND known.word = asked.word AND %(every)s >= %(most)s
)) AS having
FROM unnest(%(queries)s::text[]::tsquery[], %(words)s::text[]) WITH ORDINALITY
    AS asked (query, word, place)
ORDER BY place
"""
"""Counted up to a bound; where there are many items, statistics know how many have common words."""

_FOUND: Final = """
WITH candidates AS MATERIALIZED (
    SELECT DISTINCT * FROM (
        SELECT item.* FROM unnest(%(queries)s::text[]::tsquery[]) AS asked (query), LATERAL (
            SELECT id, words || '' AS words, length FROM daruma_items
            WHERE words @@ asked.query LIMIT %(bound)s
        ) AS item LIMIT %(room)s
    ) AS found
)
SELECT id, (
    SELECT sum(worth * ts_rank('{1,1,1,1}', words, word))
    FROM unnest(%(words)s::text[]::tsquery[], %(worth)s::float[]) AS asked (word, worth)
) / (1 + ln(1 + length / greatest(1, avg(length) OVER ()))) AS score
FROM candidates ORDER BY score DESC, id DESC LIMIT %(most)s
"""
BY_INDEX: Final = """
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
"""
"""What the planner knows of a word may let it read the whole table, or compile what takes 1 ms."""

_ONCE: Final = 0.36
"""The score of a word, to its weight, that stands once in an item of mean length."""

Ranked = list[tuple[int, float]]
"""Items by their number, the best first, each with its score."""


async def beneath(connection: Connection, prefix: Sequence[str], bound: int = CANDIDATES) -> int:
    """Return how many items there are beneath a prefix; beyond the bound, all that there are."""
    counted = await connection.execute(_BENEATH, [*between(prefix), bound])
    row = await counted.fetchone() or {"few": 0, "all": 0}
    few = int(row["few"])
    return few if few < bound else max(bound, int(row["all"]))


async def best_by_words(
    connection: Connection,
    index: IndexWords,
    prefix: Sequence[str],
    query: str,
    *,
    wanted: Mapping[str, Any],
    most: int,
    least: float = 0.0,
) -> Ranked:
    """Return at most ``most`` items beneath a prefix that share words with a query.

    ``wanted`` are plain values that they have to have; those are left out whose words weigh less
    than the share ``least`` of the query's. Within a transaction.
    """
    words = index.of_query(query)
    if not words:
        return []
    await connection.execute(BY_INDEX)
    among, every = index.among(prefix, wanted), await beneath(connection, prefix)
    queries = [all_of([among, quoted(word)]) for word in words]
    asked = {"queries": queries, "words": words, "every": every, "most": CANDIDATES}
    counted = await connection.execute(_COUNT, asked)
    having = [int(row["having"]) for row in await counted.fetchall()]
    worth = [rarity(count, max(every, count)) for count in having]
    values = {
        "queries": [all_of([among, each]) for each in _candidates(words, having)],
        "bound": max(most, CANDIDATES),
        "room": max(most, CANDIDATES) + _OF_COMMON,
        "words": [quoted(word) for word in words],
        "worth": worth,
        "most": most,
    }
    found = await (await connection.execute(_FOUND, values)).fetchall()
    floor = least * _ONCE * sum(worth)
    return [(row["id"], row["score"]) for row in found if row["score"] >= floor]


def _candidates(words: Sequence[str], having: Sequence[int]) -> list[str]:
    """Return the queries for what is ranked, in the order in which they are gone through.

    First any of the rare words: of the rarest, those that few enough items have together. Then all
    of the common words, then all but the most common, and so on: to look for any of them would read
    nearly all that there is.
    """
    order = sorted(
        (count, quoted(word)) for word, count in zip(words, having, strict=True) if count
    )
    used = list(accumulate(count for count, _ in order))
    rare = [word for (_, word), sum_ in zip(order, used, strict=True) if sum_ <= CANDIDATES]
    common = [word for _, word in order[len(rare) :]]
    ladder = [all_of(common[:most]) for most in range(len(common), 0, -1)]
    return [either(rare), *ladder] if rare else ladder
