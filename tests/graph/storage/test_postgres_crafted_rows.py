"""A row that names a function of Python's is refused wherever it lies, and runs nothing (DU-05)."""
# ruff: noqa: S608 - statements are made of constants

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import _msgpack_enc
from tests.crash.scenes import NEVER, graph_over
from tests.damages import NEWEST, OWN_BLOB, PARENT, THREAD, finished

from daruma.graph.storage import open_postgres
from daruma.graph.storage._sealing import Checked
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import DamagedState


def attack(trace: Path) -> Any:
    """A value that runs a command where it is read as LangGraph reads it by default."""
    return ormsgpack.Ext(0, _msgpack_enc(("os", "system", f"touch {trace}")))


PLACES = {
    "a channel's value": "UPDATE daruma_blobs SET type = %s, blob = %s WHERE " + OWN_BLOB,
    "a write that waits": "INSERT INTO daruma_writes (thread_id, checkpoint_id, task_id, slot,"
    f" channels, type, blob) SELECT 't', checkpoint_id, 'x', 0, '{{plan}}', %s, %s FROM"
    f" daruma_checkpoints WHERE {NEWEST}",
    "a write of old": "UPDATE daruma_writes SET channels = '{messages}', type = %s, blob = %s "
    f"WHERE 'messages' = ANY(channels) AND {PARENT}",
}
SHAPES: dict[str, Callable[[Any], Any]] = {
    "bare": lambda ext: ext,
    "in a list": lambda ext: [ext],
    "in a mapping": lambda ext: {"deep": [{"deeper": ext}]},
    "in a snapshot": lambda ext: ormsgpack.Ext(7, ormsgpack.packb([ext])),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", PLACES)
def test_a_crafted_row_of_a_thread_runs_nothing(
    postgres_url: str, tmp_path: Path, place: str
) -> None:
    """As a value of its own, and nested in others."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        for shape in SHAPES.values():
            with psycopg.connect(postgres_url) as connection:
                crafted = ormsgpack.packb(shape(attack(tmp_path / "trace")))
                value = ("msgpack", crafted)
                if place != "a channel's value":
                    channel = "plan" if place == "a write that waits" else "messages"
                    value = ("writes", ormsgpack.packb([1, [[channel, *value]]]))
                connection.execute("DELETE FROM daruma_writes WHERE task_id = 'x'")
                assert (
                    connection.execute(
                        PLACES[place].encode(), [*Checked().seal(value, ())]
                    ).rowcount
                    > 0
                )

            with pytest.raises(DamagedState, match=r"'os\.system' is no type that is stored"):
                graph.get_state(THREAD)
            with pytest.raises(DamagedState, match=r"os\.system"):
                graph.invoke(None, THREAD)

    assert not (tmp_path / "trace").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_crafted_reply_runs_nothing(postgres_url: str, tmp_path: Path, shape: str) -> None:
    """Replies are read back as values are."""
    crafted = ormsgpack.packb(SHAPES[shape](attack(tmp_path / "trace")))
    with open_postgres(postgres_url) as pg:
        run_on_loop(pg.checkpointer.replies.accept("t", {"one": True}))
        with psycopg.connect(postgres_url) as connection:
            values = Checked().seal(("msgpack", crafted), ())
            connection.execute("UPDATE daruma_replies SET kind = %s, reply = %s", [*values])

        with pytest.raises(DamagedState, match=r"the reply to one on thread 't': 'os\.system'"):
            run_on_loop(pg.checkpointer.replies.find("t", ["one"]))

    assert not (tmp_path / "trace").exists()
