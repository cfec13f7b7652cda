"""Vectors of items: asking a model for them, and searching by nearness."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from langchain_core.embeddings import Embeddings
from psycopg import sql
from psycopg.errors import (
    Error,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)

from daruma.graph.storage._database import Connection
from daruma.graph.storage.items._rows import Ranked, between
from daruma.state.text import digest

# --- Asking a model for vectors, so that it can neither hold up nor lose what is put or looked for.

AT_ONCE: Final = 64
"""Texts of one request."""
LONGEST: Final = 6000
"""Characters of a text that are embedded: models take some 8,000 tokens, or cut earlier."""
SECONDS: Final = 20.0
"""For one request; what waits for it is found by its words meanwhile."""
REST_SECONDS: Final = 30.0
"""After a failure nothing is asked for that long, so that not everything waits for it in turn."""

Vector = list[float]


class NotEmbedded(Exception):
    """Raised with one line on why there are no vectors."""


@dataclass
class Embedding:
    """A model of one store; ``size`` of its vectors is known once it has made one."""

    model: Embeddings
    seconds: float = SECONDS
    size: int = 0
    failure: str = ""
    _rests_until: float = field(default=-math.inf, repr=False)

    @property
    def name(self) -> str:
        """What tells its vectors from those of another model, once it has made one."""
        from daruma.graph.models import embeddings_name

        return f"{embeddings_name(self.model)} ({self.size})"

    async def of_query(self, text: str) -> Vector:
        """Return the vector of a query. Raises :class:`NotEmbedded`."""

        async def ask() -> list[Vector]:
            return [await self.model.aembed_query(text[:LONGEST])]

        return (await self._asked(ask, 1))[0]

    async def of_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of at most 64 texts. Raises :class:`NotEmbedded`."""
        cut = [text[:LONGEST] for text in texts]
        return await self._asked(lambda: self.model.aembed_documents(cut), len(cut))

    async def _asked(self, ask: Callable[[], Awaitable[list[Vector]]], count: int) -> list[Vector]:
        if monotonic() < self._rests_until:
            raise NotEmbedded(self.failure)
        try:
            async with asyncio.timeout(self.seconds):
                vectors = self._sound(await ask(), count)
        except TimeoutError:
            raise self._failed(f"no answer within {self.seconds:g} s") from None
        except NotEmbedded as error:
            raise self._failed(str(error)) from None
        except Exception as error:  # any model, any fault: words are left
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise self._failed(told) from error
        self.failure = ""
        return vectors

    def _failed(self, told: str) -> NotEmbedded:
        self.failure = f"by words alone: the embedding model failed ({told})"
        self._rests_until = monotonic() + REST_SECONDS
        return NotEmbedded(self.failure)

    def _sound(self, vectors: Sequence[Sequence[float]], count: int) -> list[Vector]:
        made = [[float(number) for number in vector] for vector in vectors]
        sizes = {len(vector) for vector in made}
        if len(made) != count or len(sizes) != 1 or (self.size and sizes != {self.size}):
            raise NotEmbedded(f"{len(made)} vectors of {sorted(sizes)} numbers for {count} texts")
        if not all(any(vector) and all(map(math.isfinite, vector)) for vector in made):
            raise NotEmbedded("a vector without direction")
        self.size = sizes.pop()
        return [_of_length_one(vector) for vector in made]


def _of_length_one(vector: Vector) -> Vector:
    """Return the same direction in numbers that half precision has room for."""
    largest = max(map(abs, vector))
    near = [number / largest for number in vector]
    length = math.hypot(*near)
    return [number / length for number in near]


# --- Vectors of items in Postgres, by pgvector: made where they can be, and searched by nearness.

MOST_NUMBERS: Final = 4000
"""Numbers of a vector that pgvector indexes as ``halfvec``; longer ones are compared one by one."""
EXACT: Final = 5000
"""Items beneath a prefix that are compared one by one: for so few that is quick, and exact."""

VANISHED: Final = (UndefinedColumn, UndefinedFunction, UndefinedObject, UndefinedTable)
"""What is raised once somebody has dropped the extension, and with it the vectors."""

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('daruma.tables'))"
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS daruma_item_vectors (
    item bigint PRIMARY KEY REFERENCES daruma_items (id) ON DELETE CASCADE,
    model text NOT NULL,
    meant text NOT NULL,
    vector halfvec NOT NULL
)
"""
_IS_A_SHELL: Final = """
SELECT FROM pg_class WHERE oid = to_regclass('daruma_item_vectors') AND NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = oid AND attname = 'vector' AND NOT attisdropped
)
"""
_INDEX: Final = """
CREATE INDEX IF NOT EXISTS {name} ON daruma_item_vectors
USING hnsw ((vector::halfvec({size})) halfvec_cosine_ops) WHERE model = {model}
"""
_OTHERS: Final = """
SELECT indexname FROM pg_indexes
WHERE schemaname = current_schema() AND tablename = 'daruma_item_vectors'
AND indexname LIKE 'daruma_near_%%' AND indexname <> %s
"""
_IS_THERE: Final = "SELECT FROM pg_indexes WHERE schemaname = current_schema() AND indexname = %s"
_LACKING: Final = """
SELECT id, namespace, key, kind, value, fields, meant FROM daruma_items
WHERE meant <> '' AND NOT EXISTS (
    SELECT FROM daruma_item_vectors AS v WHERE v.item = id AND v.model = %s AND v.meant =
    daruma_items.meant
) AND (%s::bigint IS NULL OR id < %s) ORDER BY id DESC LIMIT %s
"""
_HAVING: Final = """
SELECT item FROM daruma_item_vectors AS v JOIN daruma_items ON id = item
AND v.meant = daruma_items.meant WHERE item = ANY(%s) AND model = %s
"""
_STORE: Final = """
INSERT INTO daruma_item_vectors (item, model, meant, vector)
SELECT id, %s, meant, %s::halfvec FROM daruma_items WHERE id = %s AND meant = %s
ON CONFLICT (item) DO UPDATE SET
    model = excluded.model, meant = excluded.meant, vector = excluded.vector
"""
_HOLD: Final = """
SELECT FROM daruma_items WHERE id = ANY(%s) ORDER BY namespace, key FOR SHARE
"""
"""In the order in which they are put, so that who does so is not waited for in a ring."""
_COMPARED: Final = """
SELECT id, 1 - (vector <=> %s::halfvec) AS score
FROM daruma_items JOIN daruma_item_vectors AS v ON v.item = id AND v.meant = daruma_items.meant
WHERE namespace >= %s AND namespace < %s AND (%s::tsquery IS NULL OR words @@ %s::tsquery)
AND model = {model} ORDER BY vector <=> %s::halfvec, id DESC LIMIT %s
"""
_NEAREST: Final = """
SELECT id, 1 - distance AS score FROM (
    SELECT id, vector::halfvec({size}) <=> %s::halfvec AS distance
    FROM daruma_item_vectors AS v JOIN daruma_items ON v.item = id AND v.meant = daruma_items.meant
    WHERE model = {model} AND namespace >= %s AND namespace < %s
    AND (%s::tsquery IS NULL OR words @@ %s::tsquery)
    ORDER BY vector::halfvec({size}) <=> %s::halfvec LIMIT %s
) AS near ORDER BY distance, id DESC
"""
_ALONG_THE_INDEX: Final = """
SELECT set_config(name, value, true) FROM (VALUES
    ('enable_seqscan', 'off'), ('enable_sort', 'off'), ('enable_hashjoin', 'off'),
    ('enable_mergejoin', 'off'), ('enable_bitmapscan', 'off'), ('jit', 'off'),
    ('hnsw.ef_search', '100'), ('hnsw.iterative_scan', 'relaxed_order'),
    ('plan_cache_mode', 'force_custom_plan')
) AS wanted (name, value)
"""
"""The index is walked on until enough of it lies beneath the prefix (pgvector 0.8).

A plan for any vector, which Postgres makes when it has seen a few, would take no index at all.
"""


class NoVectors(Exception):
    """Raised with one line on why the database can hold no vectors."""


@dataclass(frozen=True)
class Model:
    """A model whose vectors are kept: its name, and how many numbers one has."""

    name: str
    size: int

    @property
    def index(self) -> str:
        """The name of the index of its vectors."""
        return f"daruma_near_{digest(self.name)}"


async def make_room(connection: Connection, model: Model) -> None:
    """Make what vectors of a model need. Raises :class:`NoVectors`. Within a transaction."""
    if (await connection.execute(_IS_THERE, [model.index])).rowcount:
        return
    try:
        async with connection.transaction():
            await connection.execute(_LOCK)
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            if (await connection.execute(_IS_A_SHELL)).rowcount:
                await connection.execute("DROP TABLE daruma_item_vectors")
            await connection.execute(_TABLE)
            if model.size <= MOST_NUMBERS:
                await connection.execute(_of(_INDEX, model, name=sql.Identifier(model.index)))
    except Error as error:
        if error.sqlstate is None or error.sqlstate[:2] not in ("0A", "42", "58"):
            raise
        told = str(error).splitlines()[0]
        raise NoVectors(
            f"by words alone: the database has no room for vectors ({told}); pgvector 0.8 is "
            "needed, and `CREATE EXTENSION vector` by its owner"
        ) from None


async def drop_others(connection: Connection, model: Model) -> None:
    """Drop the vectors of other models, and their indexes."""
    await connection.execute("DELETE FROM daruma_item_vectors WHERE model <> %s", [model.name])
    for row in await (await connection.execute(_OTHERS, [model.index])).fetchall():
        drop = sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(row["indexname"]))
        await connection.execute(drop)


async def lacking(
    connection: Connection, model: Model, most: int, before: int | None = None
) -> list[Any]:
    """Return the rows of items that have no vector of a model, the newest first.

    ``before`` is the number of one that they come before.
    """
    values = [model.name, before, before, most]
    return await (await connection.execute(_LACKING, values)).fetchall()


async def having(connection: Connection, model: Model, items: Sequence[int]) -> set[int]:
    """Return those of the items that have a vector of a model for what they mean now."""
    found = await connection.execute(_HAVING, [list(items), model.name])
    return {row["item"] for row in await found.fetchall()}


async def store(
    connection: Connection, model: Model, vectors: Sequence[tuple[int, str, Vector]]
) -> None:
    """Keep vectors by the number of their item and what it meant; one that has changed has none."""
    rows = [(model.name, _written(vector), item, meant) for item, meant, vector in sorted(vectors)]
    await connection.execute(_HOLD, [[item for item, _, _ in vectors]])
    async with connection.cursor() as cursor:
        await cursor.executemany(_STORE, rows)


async def nearest(
    connection: Connection,
    prefix: Sequence[str],
    vector: Vector,
    model: Model,
    *,
    signs: str | None,
    most: int,
    exact: bool,
) -> Ranked:
    """Return the items beneath a prefix that are nearest, those alone that have ``signs``.

    Each is compared with the vector if ``exact``, else those along the index nearly are the
    nearest. Within a transaction.
    """
    near = _written(vector)
    values = [near, *between(prefix), signs, signs, near, most]
    if not exact:
        await connection.execute(_ALONG_THE_INDEX)
    found = await connection.execute(_of(_COMPARED if exact else _NEAREST, model), values)
    return [(int(row["id"]), float(row["score"])) for row in await found.fetchall()]


def _of(statement: str, model: Model, **names: sql.Composable) -> sql.Composed:
    """Fill in a model: an index for one model is used where the query names it literally."""
    size, name = sql.Literal(model.size), sql.Literal(model.name)
    return sql.SQL(statement).format(size=size, model=name, **names)


def _written(vector: Vector) -> str:
    return f"[{','.join(f'{number:.6g}' for number in vector)}]"
