"""What the calls of the last answer came to."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_call, a_state

from daruma.state.progress import Observed, observed

ID = "t/1:answer:0"


def asked(number: int, id_: str = ID) -> AIMessage:
    calls = [{"name": "shout", "args": {}, "id": f"c{n}"} for n in range(number)]
    return AIMessage("", id=id_, tool_calls=calls)


def result(text: str, n: int = 0, *, ok: bool = True) -> ToolMessage:
    return ToolMessage(
        text, tool_call_id=f"c{n}", id=f"{ID}:c{n}", status="success" if ok else "error"
    )


def seen(*messages: AnyMessage, **values: Any) -> Observed:
    return observed(a_state(messages=[HumanMessage("Do it"), *messages], **values))


def test_nothing_is_seen_before_a_call() -> None:
    """Nor after an answer without one, nor of another task."""
    nothing = Observed("", ())

    assert seen() == nothing
    assert seen(asked(1), result("x"), AIMessage("Done.", id="t/1:answer:1")) == nothing
    other = result("x").model_copy(update={"id": "t/0:answer:0:c0"})
    assert seen(asked(1, "t/0:answer:0"), other) == nothing


def test_results_are_taken_in_the_order_of_the_calls() -> None:
    """They stand in the history as they came."""
    one, other = result("a", 0), result("b", 1)

    assert seen(asked(2), one, other) == seen(asked(2), other, one)
    assert seen(asked(2), one, other) != seen(asked(2), result("b", 0), result("a", 1))


def test_what_comes_between_does_not_count() -> None:
    """Advice of a recovery, and model calls that failed, leave what was seen as it is."""
    assert seen(asked(1), result("x"), HumanMessage("Go on.")) == seen(asked(1), result("x"))


def test_errors_alone_are_marked_and_told_in_short() -> None:
    """``!`` says that all calls failed; of the errors at most three are kept, each once."""
    errors = [
        result(f"Error: {'x' * 300} {n}"[: 20 + 400 * (n > 0)], n, ok=False) for n in range(5)
    ]

    failed = seen(asked(5), *errors)
    mixed = seen(asked(2), result("fine", 0), result("Error: no", 1, ok=False))

    assert failed.saw.startswith("!")
    assert len(failed.saw) == len("!") + 16 + len("/") + 16
    assert not mixed.saw.startswith("!")
    assert mixed.blockers == ("Error: no",)
    assert 1 <= len(failed.blockers) <= 3
    assert max(map(len, failed.blockers)) == 200


def test_an_error_and_a_success_in_the_same_words_differ() -> None:
    """What they say of the world is not the same."""
    assert seen(asked(1), result("x")).saw != seen(asked(1), result("x", ok=False)).saw.strip("!")


def test_numbers_count_in_results_and_not_in_errors() -> None:
    """A counter is progress; the line of an error is not."""
    assert seen(asked(1), result("37 %")) != seen(asked(1), result("38 %"))
    assert (
        seen(asked(1), result("line 3", ok=False)).saw
        == seen(asked(1), result("line 4", ok=False)).saw
    )


def test_what_a_person_denied_is_no_failure_of_the_same_kind() -> None:
    """Three calls denied in the same words are three answers, not one error three times."""
    denied = a_call("c0", "rejected", message_id=ID)

    found = seen(asked(1), result("A person denied this call", ok=False), calls=(denied,))

    assert not found.saw.startswith("!")
    assert found.blockers == ("A person denied this call",)


def test_three_errors_at_most_are_kept() -> None:
    """They stand in every step of a task."""
    errors = [result(f"Error {n}", n, ok=False) for n in range(5)]

    assert seen(asked(5), *errors).blockers == ("Error 0", "Error 1", "Error 2")


def test_results_of_calls_that_could_not_be_read_are_seen() -> None:
    """A model that goes on sending the same broken call sees the same error."""
    broken = [
        {"name": "shout", "args": "{", "id": "c0", "error": None, "type": "invalid_tool_call"}
    ]
    answer = AIMessage("", id=ID, invalid_tool_calls=broken)

    assert seen(answer, result("not JSON", ok=False)).blockers == ("not JSON",)
