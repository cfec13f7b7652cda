"""The messages of a thread are a fold over what was written, in whatever batches."""

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import GraphOutput, Overwrite
from tests.parts import memory

from daruma.graph.build import Channels
from daruma.state.channels import State
from daruma.state.messages import (
    NOTHING,
    Gathered,
    Growing,
    Messages,
    extend_known,
    holds_any,
    plain,
    reduce_messages,
    render_todo,
    todo_of,
)

CONFIG = {"configurable": {"thread_id": "t"}}


def human(id_: str | None, text: str = "hi") -> HumanMessage:
    return HumanMessage(text, id=id_)


def shown(messages: list[AnyMessage]) -> list[tuple[str | None, str]]:
    return [(message.id, message.text) for message in messages]


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


@pytest.mark.long
@given(st.lists(st.builds(human, IDS), max_size=4), WRITES, WRITES)
def test_batches_of_any_size_come_to_the_same(
    start: list[AnyMessage], first: list[Messages], second: list[Messages]
) -> None:
    """What a delta channel demands: ``reduce(reduce(s, xs), ys) == reduce(s, xs + ys)``."""
    at_once = reduce_messages(start, first + second)

    assert shown(reduce_messages(reduce_messages(start, first), second)) == shown(at_once)


def compiled() -> Any:
    graph: Any = StateGraph(Channels)
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


# --- What a list knows of itself is what a look at all of it finds; each value is seen once.

NONE_EVER: frozenset[int] = frozenset()
NEVER: tuple[int, ...] = ()
PARTS = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6)


def _sum(known: int, values: Sequence[int]) -> int:
    return known + sum(values)


def _looked_at(known: tuple[int, ...], values: Sequence[int]) -> tuple[int, ...]:
    return (*known, len(values))


def _ever(known: frozenset[int], values: Sequence[int]) -> frozenset[int]:
    return known.union(values)


def _multiples(known: tuple[int, int], values: Sequence[int]) -> tuple[int, int]:
    divisor, count = known
    return divisor, count + sum(value % divisor == 0 for value in values)


@pytest.mark.long
@given(PARTS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_what_is_known_is_what_all_values_come_to(
    parts: list[list[int]], asked: list[bool]
) -> None:
    """In whatever parts the list grew, and however often somebody asked in between."""
    grown: Growing[int] = Growing()
    for part, ask in zip(parts, asked, strict=False):
        grown = grown.with_more(part)
        if ask:
            grown.known(_sum, 0)

    whole = [value for part in parts for value in part]
    assert grown == whole
    assert grown.known(_sum, 0) == sum(whole)
    assert grown.known(_ever, NONE_EVER) == set(whole)


@given(PARTS, PARTS)
def test_two_lists_that_grew_from_one_know_nothing_of_each_other(
    left: list[list[int]], right: list[list[int]]
) -> None:
    """A fork has what its own history says; the one it came from stays as it was."""
    trunk = Growing([7])
    trunk.known(_ever, NONE_EVER)
    one, other = trunk, trunk
    for part in left:
        one = one.with_more(part)
        one.known(_ever, NONE_EVER)
    for part in right:
        other = other.with_more(part)
        other.known(_ever, NONE_EVER)

    assert other.known(_ever, NONE_EVER) == {7, *(value for part in right for value in part)}
    assert one.known(_ever, NONE_EVER) == {7, *(value for part in left for value in part)}
    assert trunk.known(_ever, NONE_EVER) == {7}


def test_each_value_is_looked_at_once() -> None:
    """A copy, as a channel makes one for each look of a router, knows it too."""
    first = Growing([1, 2, 3])
    first.known(_looked_at, NEVER)
    first.known(_looked_at, NEVER)
    second = copy(first.with_more([4])).with_more([5])

    assert second.known(_looked_at, NEVER) == (3, 2)


def test_what_else_it_follows_from_is_not_mixed_up() -> None:
    """Of another divisor all is found out anew, and only the last one's is remembered."""
    first = Growing([1, 2, 3])
    first.known(_multiples, (2, 0), of=2)
    second = first.with_more([4, 6])

    assert second.known(_multiples, (3, 0), of=3) == (3, 2)
    assert second.with_more([8]).known(_multiples, (3, 0), of=3) == (3, 2)
    assert second.with_more([8]).known(_multiples, (2, 0), of=2) == (2, 4)


def test_what_a_list_begins_with_is_looked_at_apart() -> None:
    """So that whatever else begins with it knows of that, and looks at its own end only."""
    first = Growing([1, 2, 3])
    first.followed_by([4]).with_more([5]).known(_looked_at, NEVER)

    assert first.with_more([6, 7]).followed_by([8]).known(_looked_at, NEVER) == (3, 2, 1)
    assert first.followed_by([9]).known(_multiples, (3, 0), of=3) == (3, 2)
    assert first.followed_by([9]).known(_multiples, (2, 0), of=2) == (2, 1)


def test_what_was_found_out_otherwise_is_known_too() -> None:
    """It goes on from there."""
    first = Growing([1, 2, 3])
    first.note(_sum, 100)

    assert first.known(_sum, 0) == 100
    assert first.with_more([4]).known(_sum, 0) == 104


def test_what_is_known_goes_nowhere_else() -> None:
    """What is read back, or copied whole, is found out anew: its values may be others by then."""
    known = Growing([1, 2])
    known.known(_looked_at, NEVER)

    assert deepcopy(known).with_more([3]).known(_looked_at, NEVER) == (3,)


def test_what_a_run_gives_back_holds_common_lists() -> None:
    """``asyncio`` shortens a list when it writes out what a coroutine returned, no other kind."""
    out = {"messages": Growing([1, 2]), "result": None, "plan": [3]}

    assert type(plain(out)["messages"]) is list
    assert plain(out) == {"messages": [1, 2], "result": None, "plan": [3]}
    assert type(plain(GraphOutput(value=out)).value["messages"]) is list
    assert plain(None) is None
    assert plain([out]) == [out]


# --- A set that grows in two parts is a set like any other.


@pytest.mark.long
@given(st.lists(st.lists(st.integers(0, 50), max_size=9)), st.lists(st.integers(0, 60)))
def test_it_holds_what_was_added_and_nothing_else(added: list[list[int]], asked: list[int]) -> None:
    """In whatever parts it came."""
    known: Gathered[int] = NOTHING
    for values in added:
        known = extend_known(known, values)

    assert holds_any(known, asked) == any(each in values for values in added for each in asked)


def test_what_is_known_stays_as_it_is() -> None:
    """Lists that grew from the same one share it."""
    known = extend_known(extend_known(NOTHING, [1, 2, 3]), [4])

    one, other = extend_known(known, [5]), extend_known(known, [6])

    assert (holds_any(one, [5]), holds_any(one, [6])) == (True, False)
    assert (holds_any(other, [5]), holds_any(other, [6])) == (False, True)
    assert not holds_any(known, [5, 6])


def test_adding_copies_little_of_what_there_is() -> None:
    """All of it for one in so many values as its square root."""
    known: Gathered[int] = NOTHING
    copied = 0
    for n in range(4096):
        most, _ = known
        known = extend_known(known, [n])
        copied += len(known[1]) + (len(known[0]) if known[0] is not most else 0)

    assert copied < 4096 * 150


# --- The model's own steps (PL-01b).


def test_the_steps_are_those_of_the_last_call_of_the_task() -> None:
    """PL-01b: an error, another task, and another tool of that name say nothing."""
    first = render_todo([("look", "done"), ("mend [x]", "in_progress")])
    told = [
        ("t/1:a", first, "success"),
        ("t/1:b", "1 of 1 steps done.\n[x] never", "error"),
        ("t/2:c", "1 of 1 steps done.\n[x] elsewhere", "success"),
        ("t/1:d", "added to your list", "success"),
    ]
    messages: Any = [
        ToolMessage(text, id=id_, name="todo", tool_call_id="c", status=status)
        for id_, text, status in told
    ]

    assert todo_of(messages, "t/1") == (("look", "done"), ("mend [x]", "in_progress"))
    assert todo_of(messages, "t/3") == ()
