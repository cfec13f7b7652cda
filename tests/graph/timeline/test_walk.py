"""The walk through the machine: supersteps, read without states, and visits."""

from pathlib import Path

import pytest
from tests.crash.scenes import NEVER, graph_over
from tests.damages import KEY, THREAD, finished

from daruma.graph.storage import open_postgres
from daruma.graph.sync import run
from daruma.graph.timeline import edges_walked, nodes_walked, read_supersteps
from daruma.graph.timeline._walk import READ, SENT, Visit

# --- Counting a walk: each member of a team goes its own way.

PATH = (
    Visit("begin", 1.0),
    Visit("member", 2.0, times=2),
    Visit("main", 3.0, member="a"),
    Visit("main", 3.5, member="b"),
    Visit("tool", 4.0, member="a"),
    Visit("merge", 5.0),
)


def test_edges_are_those_of_each_walk() -> None:
    """Nobody went from one member's node to another's."""
    assert edges_walked(PATH) == {
        ("begin", "member"): 1,
        ("member", "merge"): 1,
        ("main", "tool"): 1,
    }


def test_what_was_entered_for_several_counts_for_each() -> None:
    """As the picture says it."""
    assert nodes_walked(PATH) == {"begin": 1, "member": 2, "main": 2, "tool": 1, "merge": 1}


# --- Pictures read what tasks wrote out of their rows, without the checkpoints that hold them.


@pytest.mark.long
@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_they_are_what_the_checkpoints_hold(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """Whether a write has a row of its own or shares one."""
    with open_postgres(postgres_url, key=key) as pg:
        finished(pg, tmp_path / "paid")
        saver = graph_over(pg, "paid", tmp_path / "paid", NEVER).checkpointer
        held = {
            each.config["configurable"]["checkpoint_id"]: each.pending_writes or []
            for each in saver.looking().list(THREAD)
        }
        known = run(read_supersteps(saver, "t"))
        read = {each.id: each for each in known if not each.namespace}

    assert {at: each.sent for at, each in read.items()} == {
        at: sum(channel == SENT for _, channel, _ in writes) for at, writes in held.items()
    }
    assert any(each.sent for each in read.values())
    for at, writes in held.items():
        wanted = [each for each in writes if each[1] in READ and each[2] is not None]
        found = [(each.task, each.channel, each.value) for each in read[at].written]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
