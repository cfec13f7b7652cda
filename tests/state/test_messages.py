"""The messages of a thread are a fold over what was written, in whatever batches."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite
from tests.parts import memory

from daruma.state.channels import State
from daruma.state.messages import Messages, reduce_messages

CONFIG = {"configurable": {"thread_id": "t"}}


def human(id_: str | None, text: str = "hi") -> HumanMessage:
    return HumanMessage(text, id=id_)


def shown(messages: list[AnyMessage]) -> list[tuple[str | None, str]]:
    return [(message.id, message.text) for message in messages]


def test_new_messages_are_appended_in_order() -> None:
    """Also across several writes of one superstep, and without ids."""
    reduced = reduce_messages([human("a")], [[human("b"), human(None, "x")], [human(None, "x")]])

    assert shown(reduced) == [("a", "hi"), ("b", "hi"), (None, "x"), (None, "x")]


def test_what_is_written_in_other_forms_becomes_messages() -> None:
    """Callers of ``update_state`` write what LangChain takes for one, also beside messages."""
    writes: Any = [[human("a"), ("user", "b")], ({"role": "user", "content": "c"},)]
    reduced = reduce_messages([], writes)

    assert [(type(each), each.text) for each in reduced] == [
        (HumanMessage, "hi"),
        (HumanMessage, "b"),
        (HumanMessage, "c"),
    ]


def test_a_known_id_takes_the_old_place() -> None:
    """An update of a message does not move it, and may change its kind."""
    reduced = reduce_messages([human("a"), human("b")], [[AIMessage("new", id="a")]])

    assert shown(reduced) == [("a", "new"), ("b", "hi")]
    assert isinstance(reduced[0], AIMessage)


def test_an_id_is_known_however_long_ago_it_was_written() -> None:
    """A list that grew write by write knows all of its ids."""
    reduced: list[AnyMessage] = []
    for write in ("a", "b", "c"):
        reduced = reduce_messages(reduced, [[human(write)]])

    assert shown(reduce_messages(reduced, [[human("a", "new")]]))[0] == ("a", "new")


def test_a_removed_message_is_gone() -> None:
    """Removing what is not there does nothing; what is added again afterwards comes last."""
    reduced = reduce_messages(
        [human("a"), human("b")],
        [[RemoveMessage(id="a"), RemoveMessage(id="none")], [human("a", "again")]],
    )

    assert shown(reduced) == [("b", "hi"), ("a", "again")]


def test_a_compaction_empties_the_history_and_writes_it_anew() -> None:
    """``REMOVE_ALL_MESSAGES`` counts for what stood before it, not for what follows."""
    write: Messages = [human("lost"), RemoveMessage(id=REMOVE_ALL_MESSAGES), human("kept")]

    assert shown(reduce_messages([human("a")], [write])) == [("kept", "hi")]


def test_what_was_there_is_not_changed_in_place() -> None:
    """An older checkpoint's list must stay what it was."""
    before: list[AnyMessage] = [human("a")]
    reduce_messages(before, [[human("a", "new"), human("b")]])

    assert shown(before) == [("a", "hi")]


IDS = st.sampled_from(["a", "b", "c", None])
MESSAGE = st.one_of(
    st.builds(human, IDS, st.sampled_from(["x", "y"])),
    st.builds(lambda id_: RemoveMessage(id=id_), st.sampled_from(["a", "b", REMOVE_ALL_MESSAGES])),
)
WRITES = st.lists(st.lists(MESSAGE, max_size=4), max_size=5)


@given(st.lists(st.builds(human, IDS), max_size=4), WRITES, WRITES)
def test_batches_of_any_size_come_to_the_same(
    start: list[AnyMessage], first: list[Messages], second: list[Messages]
) -> None:
    """What a delta channel demands: ``reduce(reduce(s, xs), ys) == reduce(s, xs + ys)``."""
    at_once = reduce_messages(start, first + second)

    assert shown(reduce_messages(reduce_messages(start, first), second)) == shown(at_once)


def compiled() -> Any:
    graph: Any = StateGraph(State)
    said = iter(range(100))

    async def say(_: State) -> dict[str, Any]:
        number = next(said)
        return {"messages": [AIMessage(str(number), id=f"answer {number}")]}

    return graph.add_node("say", say).add_edge(START, "say").compile(checkpointer=memory())


async def test_every_checkpoint_has_the_history_of_its_time() -> None:
    """A thread taken up from an old checkpoint does not see what came later."""
    graph = compiled()
    await graph.ainvoke({"messages": [human("q 1")]}, CONFIG)
    old = (await graph.aget_state(CONFIG)).config
    await graph.ainvoke({"messages": [human("q 2")]}, CONFIG)

    forked = await graph.ainvoke({"messages": [human("q 3")]}, old)

    assert [m.id for m in forked["messages"]] == ["q 1", "answer 0", "q 3", "answer 2"]
    assert [m.id for m in (await graph.aget_state(old)).values["messages"]] == ["q 1", "answer 0"]


async def test_an_update_by_hand_appends_changes_and_overwrites() -> None:
    """``update_state`` goes through the same reducer; ``Overwrite`` puts a new history in place."""
    graph = compiled()
    await graph.ainvoke({"messages": [human("q 1")]}, CONFIG)
    await graph.aupdate_state(CONFIG, {"messages": [human("q 1", "changed"), human("more")]})
    changed = (await graph.aget_state(CONFIG)).values["messages"]
    await graph.aupdate_state(CONFIG, {"messages": Overwrite([human("only")])})
    await graph.ainvoke({"messages": [human("q 2")]}, CONFIG)

    overwritten = (await graph.aget_state(CONFIG)).values["messages"]

    assert shown(changed) == [("q 1", "changed"), ("answer 0", "0"), ("more", "hi")]
    assert [m.id for m in overwritten] == ["only", "q 2", "answer 1"]
