"""What is spent of each budget, as all who show it count it."""

from tests.parts import a_state, a_task, taken

from daruma.state.spending import standing


def test_steps_are_counted_in_whole_numbers() -> None:
    """Nobody thinks 2.0 times; amounts of money and time keep their fractions."""
    task = a_task("react")

    told = standing(a_state(task=task, steps=taken("think", "think")))

    assert str(told["think"][0]) == "2"
    assert str(told["think"][1]) == str(task.limits.think)
