"""How many items have a word: counted up to a bound, and known from statistics where many do."""

from collections.abc import Sequence
from typing import Final

from daruma.graph.storage.items.index_words import all_of, quoted
from daruma.graph.storage.items.names import between
from daruma.graph.storage.pool import Connection

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


async def beneath(connection: Connection, prefix: Sequence[str], bound: int = CANDIDATES) -> int:
    """Return how many items there are beneath a prefix; beyond the bound, all that there are."""
    counted = await connection.execute(_BENEATH, [*between(prefix), bound])
    row = await counted.fetchone() or {"few": 0, "all": 0}
    few = int(row["few"])
    return few if few < bound else max(bound, int(row["all"]))


async def having_each(
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
