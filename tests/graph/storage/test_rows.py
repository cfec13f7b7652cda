"""Small values that change at each superstep stand in the checkpoint's row (DU-05)."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from psycopg.rows import DictRow
from tests.crash.scenes import NEVER, graph_over
from tests.damages import KEY, ROW, THREAD, finished, restored

from daruma.graph.storage import PostgresSaver, open_postgres
from daruma.graph.storage._rows import is_small, typed_within, values_within
from daruma.graph.storage._saving import SAVE, SAVE_AGAIN
from daruma.state.errors import DamagedState

DAMAGES = {
    "lost": "checkpoint = checkpoint #- '{daruma,values}'",
    "one lost": "checkpoint = checkpoint #- '{daruma,values,calls}'",
    "other bytes": "checkpoint = jsonb_set(checkpoint, '{daruma,values,calls,1}', '\"AAAA\"')",
    "no bytes": "checkpoint = jsonb_set(checkpoint, '{daruma,values,calls,1}', '\"A\"')",
    "no text": "checkpoint = jsonb_set(checkpoint, '{daruma,values,calls,1}', '7')",
    "no kind": "checkpoint = jsonb_set(checkpoint, '{daruma,values,calls,0}', '7')",
    "no pair": "checkpoint = jsonb_set(checkpoint, '{daruma,values,calls}', '[]')",
    "no values": "checkpoint = jsonb_set(checkpoint, '{daruma,values}', '[7]')",
    "nothing": "checkpoint = jsonb_set(checkpoint, '{daruma,values}', 'null')",
}
LONG = "".join(f"{number:x} " for number in range(1000))
SAID = [["a"], [LONG], [LONG], ["b"], ["b"]]


class Notes(TypedDict):
    turn: int
    calls: list[str]


def note(state: Notes) -> dict[str, Any]:
    said = SAID[state["turn"]]
    return {"turn": state["turn"] + 1} | ({} if said == state["calls"] else {"calls": said})


def test_a_value_comes_back() -> None:
    """With its kind, and of a size that a row has room for."""
    row = ("t", "", "calls", "1", "small:msgpack", b"\x00\xff")

    assert typed_within({"values": values_within([row])}) == {"calls": row[4:]}
    assert is_small(bytes(300))
    assert not is_small(bytes(301))
    assert not is_small(None)
    assert base64.b64encode(row[5]).decode() in str(values_within([row]))


def test_calls_and_sends_have_no_rows_of_their_own(postgres_url: str, tmp_path: Path) -> None:
    """Where they are small."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")
        with restored(postgres_url) as connection:
            short = "SELECT channel FROM checkpoint_blobs WHERE octet_length(blob) <= 300"
            blobs = connection.execute(short).fetchall()
            held = connection.execute(
                "SELECT DISTINCT jsonb_object_keys(checkpoint #> '{daruma,values}') AS channel "
                "FROM checkpoints"
            ).fetchall()

    assert not {"calls", "__pregel_tasks"} & {row["channel"] for row in blobs}
    assert {"calls"} <= {row["channel"] for row in held} <= {"calls", "__pregel_tasks"}


def test_where_values_are_hidden_they_have(postgres_url: str, tmp_path: Path) -> None:
    """Each is bound to its place; a copy of the thread seals it anew."""
    with open_postgres(postgres_url, key=KEY) as pg:
        finished(pg, tmp_path / "paid")
        with restored(postgres_url) as connection:
            held = "SELECT FROM checkpoints WHERE checkpoint #> '{daruma,values}' IS NOT NULL"
            assert connection.execute(held).rowcount == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told(postgres_url: str, tmp_path: Path, damage: str) -> None:
    """To a value, or to what says that it is there."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        with restored(postgres_url) as connection:
            assert connection.execute(ROW.format(DAMAGES[damage]).encode()).rowcount == 1
            with pytest.raises(DamagedState):
                graph.get_state(THREAD)


def test_one_that_gets_long_has_a_row_until_it_is_short_again(postgres_url: str) -> None:
    """Also where it stays as it is for a while: it is there already then."""
    with open_postgres(postgres_url) as pg:
        graph = StateGraph(Notes).add_node(note).add_edge(START, "note")
        graph.add_conditional_edges("note", lambda state: "note" if state["turn"] < 5 else "end")
        compiled = graph.add_node("end", lambda _: {}).compile(pg.checkpointer)
        compiled.invoke({"turn": 0, "calls": ["first"]}, THREAD)
        states = [*compiled.get_state_history(THREAD)][::-1]
        read = [state.values["calls"] for state in states if state.values.get("turn")]

    assert read == [*SAID, SAID[-1]]


class Counting(PostgresSaver):
    """Notes in which way checkpoints were stored."""

    ways: ClassVar[list[str]] = []

    async def statement(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        self.ways.append(statement)
        return await super().statement(statement, values)


def test_a_long_one_that_stays_as_it_is_is_no_error_of_the_database(postgres_url: str) -> None:
    """Each checkpoint of a graph whose ``calls`` are long and old would be sent twice."""
    with open_postgres(postgres_url) as pg:
        saver = Counting.__new__(Counting)  # as a copy: it is made on the database's loop
        vars(saver).update(vars(pg.checkpointer))
        graph = StateGraph(Notes).add_node(note).add_edge(START, "note")
        graph.add_conditional_edges("note", lambda state: "note" if state["turn"] < 5 else END)
        graph.compile(saver).invoke({"turn": 0, "calls": ["first"]}, THREAD)

    saved = [way for way in saver.ways if way in (SAVE, SAVE_AGAIN)]
    assert [*map([SAVE, SAVE_AGAIN].index, saved)] == [0, 0, 0, 0, 1, 0, 0]
