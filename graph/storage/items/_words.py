"""Finding items by words, ranked by BM25."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from daruma.graph.storage._pool import Connection
from daruma.graph.storage.items._values import IndexWords, all_of, between, either, quoted
from daruma.tools.text import K1, B, rarity

# --- How many items have a word: counted up to a bound, and known from statistics where many do.

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


# --- Finding items by words, ranked by BM25 among those that have the rarest of them.
#
# Postgres' own rank knows nothing of how rare a word is. How many items have each word is counted,
# up to a bound; the rare words choose the candidates, the index finds these, and BM25 ranks them.

_FOUND: Final = """
WITH candidates AS MATERIALIZED (
    {candidates}
), ranked AS (
    SELECT id, length / greatest(1, avg(length) OVER ()) AS length, {ranks} FROM candidates
)
SELECT id, {score} AS score FROM ranked ORDER BY score DESC, id DESC LIMIT %s
"""

_CANDIDATES: Final = """
(SELECT id, words || '' AS words, length FROM daruma_items WHERE words @@ %s::tsquery LIMIT %s)
"""
BY_INDEX: Final = """
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
"""
"""What the planner knows of a word may let it read the whole table, or compile what takes 1 ms."""

_OF_OTHERS: Final = 300
"""Items that are ranked though they have some of the common words alone, which tells less."""
_RAREST: Final = 2
"""Of the common words, so many are looked for alone: what has none of these ranks low anyway."""

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
    least: float = 0.0,
) -> Ranked:
    """Return at most ``most`` items beneath a prefix that share words with a query.

    ``wanted`` are plain values that they have to have; those whose words weigh less than the share
    ``least`` of the query's are left out. Of words that more than 1,000 items have,
    those are ranked that have all, and 300 of those that have several; if they are too few, 300 of
    those that have one of the two rarest. Within a transaction.
    """
    looked_for = index.of_query(query)
    if not looked_for:
        return []
    await connection.execute(BY_INDEX)
    among = index.among(prefix, wanted)
    every = await beneath(connection, prefix)
    having = await having_each(connection, among, looked_for, every)
    words = {quoted(word): count for word, count in having.items() if count}
    if not words:
        return []
    worth = {word: rarity(count, max(every, count)) for word, count in words.items()}
    asked = {all_of([among, query]): CANDIDATES for query in _candidates(words)}
    if some := _some(words, every):
        asked[all_of([among, some])] = _OF_OTHERS
    found = await _ranked(connection, asked, worth, most)
    if len(found) < most and max(words.values()) >= CANDIDATES:
        asked[_others(among, words)] = max(most, _OF_OTHERS)
        found = await _ranked(connection, asked, worth, most)
    whole = sum(rarity(count, max(every, count)) for count in having.values())
    return [(item, score) for item, score in found if score >= least * whole]


def _candidates(words: Mapping[str, int]) -> list[str]:
    """Return the queries for what is ranked: any of the rare words; and all of the common ones.

    No item fits both: what has a rare word is never left out for want of room.
    """
    rare, common = _rare_and_common(words)
    if not common:
        return [either(rare)]
    together = all_of(common)
    return [either(rare), f"({together}) & !({either(rare)})"] if rare else [together]


def _some(words: Mapping[str, int], every: int) -> str:
    """Return the query for what has several of the common words; empty where all have to be had.

    The rarest are asked for, so many that about 300 items are to be expected, were words to come
    without regard to each other. It finds what is nearly alike, without reading much.
    """
    rare, common = _rare_and_common(words)
    expected, several = float(every), list[str]()
    for word in common:
        if expected <= _OF_OTHERS:
            break
        expected *= min(1.0, words[word] / max(1, every))
        several.append(word)
    if len(several) == len(common):
        return ""
    without = [f"!({either(rare)})"] if rare else []
    return all_of([*several, f"!({all_of(common)})", *without])


def _others(among: str, words: Mapping[str, int]) -> str:
    """Return the query for what has one of the rarest common words, and is no candidate yet.

    To look for any of the common ones would read nearly all that there is.
    """
    rare, common = _rare_and_common(words)
    without = [f"!({either(rare)})"] if rare else []
    return all_of([among, either(common[:_RAREST]), f"!({all_of(common)})", *without])


def _rare_and_common(words: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Split words: of the rarest, as many as there is room for the items that have them."""
    rare, common, room = list[str](), list[str](), CANDIDATES
    for word, count in sorted(words.items(), key=lambda each: each[1]):
        room -= count
        (rare if room > 0 else common).append(word)
    return rare, common


async def _ranked(
    connection: Connection, asked: Mapping[str, int], worth: Mapping[str, float], most: int
) -> Ranked:
    """Rank what queries find, so many of each, by BM25; ``worth`` says how much each word tells.

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
    candidates = " UNION ALL ".join([_CANDIDATES] * len(asked))
    statement = _FOUND.format(
        candidates=candidates, ranks=", ".join(ranks), score=" + ".join(scores)
    )
    bounded = [value for each in asked.items() for value in each]
    values = [*bounded, *worth, *worth.values(), most]
    found = await connection.execute(statement.encode(), values)
    return [(int(row["id"]), float(row["score"])) for row in await found.fetchall()]
