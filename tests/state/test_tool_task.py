"""Tool tasks are replaced as a whole for a new turn, and one by one as they end."""

from tests.parts import a_call

from daruma.state.calls import moved, reduce_calls, with_status


def test_a_tuple_begins_a_new_turn() -> None:
    """Nothing of the turn before is left."""
    assert reduce_calls((a_call("a"),), (a_call("b"),)) == (a_call("b"),)
    assert reduce_calls((a_call("a"),), ()) == ()


def test_a_single_call_updates_its_own() -> None:
    """TL-02: calls that end at the same time do not undo each other, in either order."""
    turn = (a_call("a"), a_call("b"))
    a, b = moved(turn[0], "done"), moved(turn[1], "failed")

    assert reduce_calls(reduce_calls(turn, a), b) == (a, b)
    assert reduce_calls(reduce_calls(turn, b), a) == (a, b)


def test_a_call_of_no_open_turn_is_dropped() -> None:
    """A late result does not bring its call back."""
    assert reduce_calls((a_call("a"),), a_call("z")) == (a_call("a"),)


def test_calls_are_picked_by_status_in_order() -> None:
    """The order is that of the model's answer."""
    calls = (a_call("a"), a_call("b", "awaiting"), a_call("c"))

    assert [call.id for call in with_status(calls, "ready")] == ["a", "c"]


def test_results_of_equal_ids_in_two_answers_are_apart() -> None:
    """Servers repeat ids of calls from one answer to the next."""
    assert a_call("a", message_id="m1").result_id != a_call("a", message_id="m2").result_id
