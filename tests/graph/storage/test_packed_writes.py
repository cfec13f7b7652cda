"""What a task wrote stands in few rows, and is read as if each write had its own (DU-05)."""

from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from tests.crash.scenes import NEVER, graph_over
from tests.damages import KEY, THREAD, finished, killed_before, restored

from daruma.graph.storage.postgres import open_postgres
from daruma.graph.storage.rows import opened, sealed_writes
from daruma.graph.storage.saving import CHANNEL, together, writes_in
from daruma.graph.storage.sealing import Checked, Sealed
from daruma.state.channels import DELTA, KEPT_WHOLE
from daruma.state.errors import DamagedState

AT = ("t", "", "c1", "task", "~__pregel_pull, tool")
WRITTEN = ("messages", "calls", "plan", "branch:to:main", "__pregel_tasks", "steps")
ROWS = [(*AT, number, name, "msgpack", f"{name} 1".encode()) for number, name in enumerate(WRITTEN)]
PASSING = frozenset({"calls", "plan"})


def found(rows: list[Any]) -> list[tuple[int, str, str, bytes]]:
    """What a checkpoint reads of its tasks' rows."""
    pending = [
        [
            *(str(row[at]).encode() for at in (3, 6, 7)),
            row[8],
            *(str(row[at]).encode() for at in (4, 5)),
        ]
        for row in rows
    ]
    row = {
        "thread_id": "t",
        "checkpoint_ns": "",
        "checkpoint_id": "c1",
        "checkpoint": {
            "v": 4,
            "id": "c1",
            "ts": "2026-11-22T06:30:00+00:00",
            "channel_values": {},
            "channel_versions": {},
            "versions_seen": {},
        },
        "metadata": {},
        "channel_values": None,
        "pending_writes": pending,
    }
    read = opened(row, Checked())["pending_writes"]
    return sorted(
        (int(number), channel.decode(), kind.decode(), value)
        for _, channel, kind, value, _, number in read
    )


def test_rows_that_are_found_by_their_channel_stay() -> None:
    """Delta channels are replayed from them; all else that is not LangGraph's own is one."""
    asked = (*AT, -3, "__interrupt__", "msgpack", b"?")

    made = together([*ROWS, asked], PASSING)

    assert [row[6] for row in made] == ["messages", "steps", "__interrupt__", CHANNEL]
    assert [each.channel for each in writes_in(made[-1])] == [*WRITTEN[1:5]]


def test_one_write_stays_as_it_is() -> None:
    """And in a graph of another kind, all that may be replayed."""
    assert together(ROWS[:2], PASSING) == ROWS[:2]
    assert [row[6] for row in together(ROWS, ())] == ["messages", "calls", "plan", "steps", CHANNEL]


def test_they_are_read_as_if_each_had_a_row() -> None:
    """Rows from before there were packed ones are, too."""
    alone, packed = (sealed_writes(ROWS, Checked(), passing) for passing in (None, PASSING))

    assert len(alone) == 6
    assert len(packed) == 3
    assert found(alone) == found(packed) == [row[5:] for row in ROWS]


def test_what_stood_there_first_stays() -> None:
    """A task that failed once it had written is done again: its rows are there, and count."""
    first = [(*row[:8], b"first") for row in ROWS[:3]]
    rows = [*sealed_writes(ROWS, Checked(), PASSING), *sealed_writes(first[1:], Checked())]

    read = found(rows)

    assert [each[0] for each in read] == [*range(6)]
    assert [each[3] for each in read[1:3]] == [b"first", b"first"]


def test_what_is_edited_by_hand_has_rows_of_its_own() -> None:
    """It takes the place of a task that may have written already, and may write more than that."""
    by_hand = [(*row[:4], "~__interrupt__, 0000000000", *row[5:]) for row in ROWS]
    first, later = (sealed_writes(rows, Checked(), PASSING) for rows in (ROWS[:3], by_hand))
    there = {row[5] for row in first}

    read = found([*first, *(row for row in later if row[5] not in there)])

    assert [each[0] for each in read] == [*range(6)]


@pytest.mark.parametrize("gone", range(3))
def test_any_row_that_is_lost_is_missed(gone: int) -> None:
    """Each of them tells how many writes there were."""
    rows = sealed_writes(ROWS, Checked(), PASSING)
    lost = 4 if rows[gone][6] == CHANNEL else 1

    with pytest.raises(DamagedState, match=f"{lost} of the writes of task task are lost"):
        found(rows[:gone] + rows[gone + 1 :])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        ormsgpack.packb({"a": 1}),
        ormsgpack.packb([[0, "plan", "msgpack"]]),
        ormsgpack.packb([[0, "plan", "msgpack", "no bytes"]]),
        ormsgpack.packb([[True, "plan", "msgpack", b""]]),
        ormsgpack.packb([7]),
    ],
)
def test_what_is_no_row_of_writes_is_refused(payload: bytes) -> None:
    """Whoever writes into the database."""
    with pytest.raises(DamagedState, match="the writes of a task are not what was stored"):
        writes_in((*AT, -100, CHANNEL, "packed", payload))
    with pytest.raises(DamagedState, match="the writes of a task are not what was stored"):
        writes_in((*AT, -100, CHANNEL, "msgpack", ormsgpack.packb([])))


def test_the_machines_delta_channels_are_not_among_the_others() -> None:
    """Their writes would be found no more."""
    assert {"messages", "steps", "savepoints"} == DELTA.keys()
    assert not DELTA.keys() & KEPT_WHOLE
    assert {"task", "plan", "calls", "result"} <= KEPT_WHOLE


@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_a_killed_run_goes_on_with_what_is_in_them(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """What its last tasks wrote waits in such rows, also in a copy of the thread."""
    with open_postgres(postgres_url, key=key) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle", after=True)
        waiting = [task.result for task in graph.get_state(THREAD).tasks]
        pg.checkpointer.copy_thread("t", "u")
        with restored(postgres_url) as connection:
            rows = "SELECT channel FROM checkpoint_writes WHERE thread_id = 't'"
            channels = {row["channel"] for row in connection.execute(rows)}
        copied = graph.get_state({"configurable": {"thread_id": "u"}})
        ended = graph.invoke(None, THREAD)

    assert any(waiting)
    assert [task.result for task in copied.tasks] == waiting
    assert ended["result"].completed
    assert {CHANNEL, "messages"} <= channels


def test_sealed_ones_are_bound_to_their_place() -> None:
    """As any other row."""
    sealing = Sealed(bytes(32))
    row = sealed_writes(ROWS, sealing, PASSING)[-1]

    kind, payload = sealing.open((row[7], row[8]), [*map(str, row[:7])])
    assert len([*writes_in((*row[:7], kind.partition("/")[0], payload))]) == 4
    with pytest.raises(DamagedState, match="its place"):
        sealing.open((row[7], row[8]), ["u", *map(str, row[1:7])])
