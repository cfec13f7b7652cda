"""Accepted replies in Postgres, from any thread, loop and process."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from daruma.graph.storage.ledgers import replies_of
from daruma.graph.storage.postgres import aopen_postgres, open_postgres


def test_of_many_replies_at_once_one_is_accepted(postgres_url: str) -> None:
    """Forty at the same moment, through two pools as from two processes."""
    with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        places = [replies_of(pg.checkpointer) for pg in (one, two)]

        with ThreadPoolExecutor(40) as pool:
            accepted = list(
                pool.map(lambda n: places[n % 2].accept("t", {"q": {"n": n}}), range(40))
            )

        assert accepted.count(True) == 1
        assert places[0].accepted("t", ["q"]) == {"q": {"n": accepted.index(True)}}


def test_replies_to_several_questions_are_accepted_together_or_not_at_all(
    postgres_url: str,
) -> None:
    """The row that was there goes on to hold what it held."""
    with open_postgres(postgres_url) as pg:
        replies = replies_of(pg.checkpointer)
        replies.accept("t", {"b": 1})

        assert not replies.accept("t", {"a": 2, "b": 2})
        assert replies.accepted("t", ["a", "b"]) == {"b": 1}


async def test_odd_replies_are_kept_as_they_are(postgres_url: str) -> None:
    """NUL and lone surrogates, which no text column takes."""
    odd = {"answer": "a\0b\ud800", "n": [1, None, 2.5]}
    async with aopen_postgres(postgres_url) as pg:
        replies = replies_of(pg.checkpointer)

        assert await replies.aaccept("t", {"q": odd})
        found = (await replies.aaccepted("t", ["q"]))["q"]

        assert found["n"] == odd["n"]
        assert found["answer"].startswith("a\0b")


async def test_a_deleted_thread_takes_its_replies_along(postgres_url: str) -> None:
    """DU-08: all that belongs to it."""
    async with aopen_postgres(postgres_url) as pg:
        replies = replies_of(pg.checkpointer)
        await replies.aaccept("t", {"q": 1})
        await replies.aaccept("other", {"q": 1})

        await pg.checkpointer.adelete_thread("t")

        assert await replies.aaccepted("t", ["q"]) == {}
        assert await replies.aaccepted("other", ["q"]) == {"q": 1}


async def test_a_database_of_before_gets_the_table(empty_postgres_url: str) -> None:
    """Opening it makes what is not there, and keeps what is."""
    async with aopen_postgres(empty_postgres_url) as pg, pg.pool.connection() as connection:
        await connection.execute("DROP TABLE daruma_replies, daruma_version")

    async with aopen_postgres(empty_postgres_url) as pg:
        accepted = await asyncio.gather(
            *(replies_of(pg.checkpointer).aaccept("t", {"q": n}) for n in range(3))
        )

    assert sorted(accepted) == [False, False, True]
