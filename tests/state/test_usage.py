"""What models cost is summed by the role they were asked in."""

from daruma.state.usage import Usage, usage_by_role


def test_calls_and_tokens_are_summed_by_role() -> None:
    """MO-07: main and reflect apart, both tokens in and out."""
    usages = [
        Usage(role="main", model="m", input_tokens=10, output_tokens=1),
        Usage(role="reflect", model="m", input_tokens=5),
        Usage(role="main", model="other", input_tokens=20, output_tokens=2),
    ]

    assert usage_by_role(usages) == {
        "main": {"calls": 2, "input_tokens": 30, "output_tokens": 3},
        "reflect": {"calls": 1, "input_tokens": 5, "output_tokens": 0},
    }
    assert usage_by_role([]) == {}


def test_calls_whose_tokens_are_estimated_are_counted() -> None:
    """BU-05: the mark is in the row."""
    told = Usage(role="main", model="m", input_tokens=10, output_tokens=1)
    guessed = Usage(role="main", model="m", input_tokens=10, output_tokens=1, estimated=True)

    (row,) = usage_by_role([told, guessed, guessed]).values()
    assert row == {"calls": 3, "input_tokens": 30, "output_tokens": 3, "estimated": 2}
