"""What each of several team members may spend: together no more than is left."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_state, a_task

from daruma.state.spending import allowed, with_shares
from daruma.state.steps import Grant, Step
from daruma.state.task import Amounts
from daruma.state.usage import Usage


def spent(tokens: int, usd: float, phase: str | None = None) -> Step:
    usage = Usage(role="main", model="m", input_tokens=tokens, usd=usd)
    return Step(kind="think", task_id="t/1", phase_id=phase, usage=usage, seconds=2.0)


@given(st.integers(1, 1000), st.integers(0, 1500), st.integers(1, 5))
def test_shares_are_what_is_left(limit: int, used: int, members: int) -> None:
    """BU-04: of tokens and money, to the last one; all have the same time, as it passes at once."""
    task = a_task(limits={"spend": Amounts(tokens=limit, usd=float(limit), seconds=9.0)})
    state = a_state(task=task, steps=[spent(used, float(used))])
    names = [f"p{n}" for n in range(members)]

    shared = with_shares(state, [task] * members, names)

    own = [allowed(a_state(task=each), "task") for each in shared]
    left = max(limit - used, 0)
    assert sum(each.tokens or 0 for each in own) == left
    assert abs(sum(each.usd or 0.0 for each in own) - left) < 1e-6
    assert {each.seconds for each in own} == {7.0}


def test_a_phase_that_is_tried_again_has_what_it_left() -> None:
    """Its own grants count, other phases do not."""
    task = a_task(limits={"spend_in_phase": Amounts(tokens=10)})
    grant = Grant(node="main", scope="phase", more=Amounts(tokens=5))
    more = Step(kind="pause", task_id="t/1", phase_id="a", grant=grant)
    tasks = replace(more, grant=replace(grant, scope="task"))
    state = a_state(task=task, steps=[spent(8, 0.0, "a"), more, tasks, spent(3, 0.0, "b")])

    first, second, third = with_shares(state, [task] * 3, ["a", "b", "c"])

    own = [allowed(a_state(task=each), "phase").tokens for each in (first, second, third)]
    assert own == [7, 7, 10]


def test_who_said_to_stop_is_not_asked_by_each_member() -> None:
    """Neither is anybody asked whose task has no such budget."""
    end = Grant(node="main", scope="task", more=Amounts(), stopped=True)
    state = a_state(task=a_task(), steps=[Step(kind="pause", task_id="t/1", grant=end)])
    assert state.task is not None

    (told,) = with_shares(state, [state.task], ["a"])
    assert told.limits.when_spent == "stop"
    assert told.limits.taken is None
