"""What a run tells is kept beside it, whatever its tools tell."""

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.workers.execution import Announcing


async def test_what_is_no_json_is_left_out(postgres_url: str) -> None:
    """An application's tool may stream anything: the run's own events are told all the same."""
    circle: dict[str, object] = {"type": "circle"}
    circle["self"] = circle
    async with aopen_postgres(postgres_url) as pg:
        log = pg.checkpointer.events
        async with Announcing.of(log, "t", "r") as announcing:
            announcing.tell({"type": "first"})
            announcing.tell({"type": "keys", (1, 2): 3})
            announcing.tell(circle)
            announcing.tell("words")
            announcing.tell({"type": "last"})
        heard = await log.read("t", 0)

    assert [each.type for each in heard] == ["first", "last"]
