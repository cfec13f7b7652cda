"""Finding items by words, ranked by BM25 among those that have the rarest of them.

Postgres' own rank knows nothing of how rare a word is. How many items have each word is counted, up
to a bound; the rare words choose the candidates, the index finds these, and BM25 ranks them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from daruma.graph.storage.items.index_words import IndexWords, all_of, either
from daruma.graph.storage.pool import Connection
from daruma.tools.lexical import K1, B, rarity

CANDIDATES: Final = 2000
"""Items that are ranked for one query; a word that more have is a common one."""

_COUNT: Final = """
SELECT (
    SELECT count(*) FROM (
        SELECT FROM daruma_items WHERE words @@ asked.query::tsquery LIMIT %s
    ) AS bounded
) AS having
FROM unnest(%s::text[]) WITH ORDINALITY AS asked (query, place) ORDER BY place
"""
_ESTIMATE: Final = "SELECT reltuples FROM pg_class WHERE oid = 'daruma_items'::regclass"
_FOUND: Final = """
WITH candidates AS MATERIALIZED (
    SELECT id, words, length FROM daruma_items WHERE words @@ %s::tsquery LIMIT %s
), ranked AS (
    SELECT id, length / greatest(1, avg(length) OVER ()) AS length, {ranks} FROM candidates
)
SELECT id, {score} AS score FROM ranked ORDER BY score DESC, id DESC LIMIT %s
"""

Ranked = list[tuple[int, float]]
"""Items by their number, the best first, each with its score."""


async def best_by_words(
    connection: Connection,
    index: IndexWords,
    prefix: Sequence[str],
    query: str,
    *,
    wanted: Mapping[str, Any],
    most: int,
) -> Ranked:
    """Return at most ``most`` items beneath a prefix that share words with a query.

    ``wanted`` are plain values that they have to have. Of words that more than 2,000 items have,
    items are ranked that have all, and if those are too few, 2,000 of those that have any. Within a
    transaction.
    """
    words = index.of_query(query)
    if not words:
        return []
    # What the planner knows of a single word would let it read the whole table.
    await connection.execute("SET LOCAL enable_seqscan = off")
    among = index.among(prefix, wanted)
    every, *having = await _counted(connection, [among, *(all_of([among, w]) for w in words)])
    words, having = _known(words, having)
    if not words:
        return []
    worth = [rarity(count, max(every, count)) for count in having]
    asked = _candidates(words, having)
    found = await _ranked(connection, all_of([among, asked]), words, worth, most)
    if len(found) < most and max(having) >= CANDIDATES:
        found = await _ranked(connection, all_of([among, either(words)]), words, worth, most)
    return found


def _known(words: Sequence[str], having: Sequence[int]) -> tuple[list[str], list[int]]:
    """Return the words that some item has."""
    known = [(word, count) for word, count in zip(words, having, strict=True) if count]
    return [word for word, _ in known], [count for _, count in known]


def _candidates(words: Sequence[str], having: Sequence[int]) -> str:
    """Return the query for what is ranked: any of the rare words, or all of the common ones."""
    rare, common, room = list[str](), list[str](), CANDIDATES
    for count, word in sorted(zip(having, words, strict=True)):
        room -= count
        (rare if room > 0 else common).append(word)
    return either([*rare, all_of(common)] if common else rare)


async def _counted(connection: Connection, queries: Sequence[str]) -> list[int]:
    """Return how many items there are for each query, counted up to the bound; "" is all."""
    asked = [query for query in queries if query]
    found = await connection.execute(_COUNT, [CANDIDATES, asked])
    counts = iter([int(row["having"]) for row in await found.fetchall()])
    counted = [next(counts) if query else CANDIDATES for query in queries]
    if counted[0] >= CANDIDATES:
        row = await (await connection.execute(_ESTIMATE)).fetchone()
        counted[0] = max(CANDIDATES, int(row["reltuples"] if row else 0))
    return counted


async def _ranked(
    connection: Connection, asked: str, words: Sequence[str], worth: Sequence[float], most: int
) -> Ranked:
    """Rank what a query finds by BM25.

    ``ts_rank`` of one word that stands n times is ``(1 + 1/4 + ... + 1/n²) / 1.644934``: that is
    turned back into n, to a twentieth.
    """
    ranks = [f"ts_rank('{{1,1,1,1}}', words, %s::tsquery) AS r{n}" for n in range(len(words))]
    times = [f"(1 / (1.644934 * (1.000001 - r{n})) - 0.5)" for n in range(len(words))]
    norm = f"{K1} * ({1 - B} + {B} * length)"
    scores = [
        f"CASE WHEN r{n} > 0 THEN %s * {times[n]} * {K1 + 1} / ({times[n]} + {norm}) ELSE 0 END"
        for n in range(len(words))
    ]
    statement = _FOUND.format(ranks=", ".join(ranks), score=" + ".join(scores))
    values = [asked, CANDIDATES, *words, *worth, most]
    found = await connection.execute(statement.encode(), values)
    return [(int(row["id"]), float(row["score"])) for row in await found.fetchall()]
