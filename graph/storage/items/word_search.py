"""Finding items by words, ranked by BM25 among those that have the rarest of them.

Postgres' own rank knows nothing of how rare a word is. How many items have each word is counted, up
to a bound; the rare words choose the candidates, the index finds these, and BM25 ranks them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from daruma.graph.storage.items.index_words import IndexWords, all_of, either, quoted
from daruma.graph.storage.items.names import between
from daruma.graph.storage.pool import Connection
from daruma.tools.lexical import K1, B, rarity

CANDIDATES: Final = 1000
"""Items that are ranked for one query; a word that more have is a common one."""

_BENEATH: Final = """
SELECT (SELECT reltuples FROM pg_class WHERE oid = 'daruma_items'::regclass) AS all, count(*) AS few
FROM (
    SELECT FROM daruma_items WHERE namespace >= %s AND namespace < %s LIMIT %s
) AS bounded
"""
_COMMON: Final = """
SELECT word, share FROM pg_stats, unnest(most_common_elems::text::text[],
    most_common_elem_freqs) AS known (word, share)
WHERE schemaname = current_schema() AND tablename = 'daruma_items' AND attname = 'words'
AND word = ANY(%s)
"""
_COUNT: Final = """
SELECT (
    SELECT count(*) FROM (
        SELECT FROM daruma_items WHERE words @@ asked.query::tsquery LIMIT %s
    ) AS bounded
) AS having
FROM unnest(%s::text[]) WITH ORDINALITY AS asked (query, place) ORDER BY place
"""
_FOUND: Final = """
WITH candidates AS MATERIALIZED (
    SELECT id, words || '' AS words, length FROM daruma_items WHERE words @@ %s::tsquery LIMIT %s
), ranked AS (
    SELECT id, length / greatest(1, avg(length) OVER ()) AS length, {ranks} FROM candidates
)
SELECT id, {score} AS score FROM ranked ORDER BY score DESC, id DESC LIMIT %s
"""

_BY_INDEX: Final = """
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
"""
"""What the planner knows of a word may let it read the whole table, or compile what takes 1 ms."""

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

    ``wanted`` are plain values that they have to have. Of words that more than 1,000 items have,
    items are ranked that have all, and if those are too few, 1,000 of those that have any. Within a
    transaction.
    """
    asked = index.of_query(query)
    if not asked:
        return []
    await connection.execute(_BY_INDEX)
    among = index.among(prefix, wanted)
    every = await _beneath(connection, prefix)
    having = await _having(connection, among, asked, every)
    words = {quoted(word): count for word, count in having.items() if count}
    if not words:
        return []
    worth = {word: rarity(count, max(every, count)) for word, count in words.items()}
    found = await _ranked(connection, all_of([among, _candidates(words)]), worth, most)
    if len(found) < most and max(words.values()) >= CANDIDATES:
        found = await _ranked(connection, all_of([among, either(words)]), worth, most)
    return found


async def _beneath(connection: Connection, prefix: Sequence[str]) -> int:
    """Return how many items there are beneath a prefix; beyond the bound, all that there are."""
    counted = await connection.execute(_BENEATH, [*between(prefix), CANDIDATES])
    row = await counted.fetchone() or {"few": 0, "all": 0}
    few = int(row["few"])
    return few if few < CANDIDATES else max(CANDIDATES, int(row["all"]))


async def _having(
    connection: Connection, among: str, words: Sequence[str], every: int
) -> dict[str, int]:
    """Return how many items have each word, counted up to the bound.

    Where there are many items, Postgres' statistics know the common words, without any counting.
    """
    having = dict.fromkeys(words, 0)
    if every >= CANDIDATES:
        known = await connection.execute(_COMMON, [list(words)])
        shares = {row["word"]: float(row["share"]) for row in await known.fetchall()}
        having |= {word: round(share * every) for word, share in shares.items()}
    rest = [word for word, count in having.items() if count < CANDIDATES]
    queries = [all_of([among, quoted(word)]) for word in rest]
    counted = await connection.execute(_COUNT, [CANDIDATES, queries])
    counts = [int(row["having"]) for row in await counted.fetchall()]
    return having | dict(zip(rest, counts, strict=True))


def _candidates(words: Mapping[str, int]) -> str:
    """Return the query for what is ranked: any of the rare words, or all of the common ones."""
    rare, common, room = list[str](), list[str](), CANDIDATES
    for word, count in sorted(words.items(), key=lambda each: each[1]):
        room -= count
        (rare if room > 0 else common).append(word)
    return either([*rare, all_of(common)] if common else rare)


async def _ranked(
    connection: Connection, asked: str, worth: Mapping[str, float], most: int
) -> Ranked:
    """Rank what a query finds by BM25; ``worth`` says how much each word tells.

    ``ts_rank`` of one word that stands n times is ``(1 + 1/4 + ... + 1/n²) / 1.644934``: that is
    turned back into n, to a twentieth.
    """
    ranks = [f"ts_rank('{{1,1,1,1}}', words, %s::tsquery) AS r{n}" for n in range(len(worth))]
    times = [f"(1 / (1.644934 * (1.000001 - r{n})) - 0.5)" for n in range(len(worth))]
    norm = f"{K1} * ({1 - B} + {B} * length)"
    scores = [
        f"CASE WHEN r{n} > 0 THEN %s * {times[n]} * {K1 + 1} / ({times[n]} + {norm}) ELSE 0 END"
        for n in range(len(worth))
    ]
    statement = _FOUND.format(ranks=", ".join(ranks), score=" + ".join(scores))
    values = [asked, CANDIDATES, *worth, *worth.values(), most]
    found = await connection.execute(statement.encode(), values)
    return [(int(row["id"]), float(row["score"])) for row in await found.fetchall()]
