"""What members are sent, and how what they report comes together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_phase, a_plan, a_savepoint, a_state, a_task, taken

from daruma.state.channels import State
from daruma.state.plan import Assignment, Report, reduce_reports
from daruma.state.spending import assignments, known, shares

PLAN = a_plan(
    a_phase("a", status="completed", answer="A is there."),
    a_phase("b", "a", status="running", settles="a"),
    a_phase("c"),
    a_phase("d", status="running"),
)


def sent(state: State) -> list[Assignment]:
    found = assignments(state)
    return [each for each in found if isinstance(each, Assignment)]


def test_each_running_phase_is_sent_with_its_place_in_the_plan() -> None:
    """PL-06: and nothing else is."""
    found = sent(a_state(plan=PLAN))

    assert [(each.phase.id, each.number, each.of) for each in found] == [("b", 2, 4), ("d", 4, 4)]
    assert {each.plan_id for each in found} == {PLAN.id}


def test_it_names_the_newest_snapshot_from_before_the_phase() -> None:
    """A phase that is begun again begins from the workspace as it is then."""
    kept = [a_savepoint("1/b", snapshot="old"), a_savepoint("1/b", snapshot="new")]
    kept += [a_savepoint("2/b"), a_savepoint("1/b/done")]

    first, second = sent(a_state(plan=PLAN, savepoints=kept))

    assert first.snapshot == "new"
    assert second.snapshot is None


def test_it_holds_the_work_that_is_to_be_settled() -> None:
    """The first and the last snapshot of it."""
    phases = (replace(PLAN.phases[0], unmerged=("s1", "s2")), *PLAN.phases[1:])

    first, second = sent(a_state(plan=replace(PLAN, phases=phases)))

    assert first.unmerged == ("s1", "s2")
    assert second.unmerged is None


@pytest.mark.parametrize("values", [{"task": None, "plan": PLAN}, {"plan": None}])
def test_without_task_and_plan_nothing_is_sent(values: dict[str, object]) -> None:
    """There is nobody to send it to."""
    assert assignments(a_state(**values)) == []


def test_a_member_knows_what_it_builds_on() -> None:
    """Only the phases that its own depends on; one that said nothing is named."""
    plan = a_plan(a_phase("a", answer="Said."), a_phase("x"), a_phase("b", "a", "x"), a_phase("z"))

    assert known(plan, plan.phases[2]) == "Done before, a: A\nSaid.\n\nDone before, x: X"
    assert known(plan, plan.phases[3]) == ""


def report(id_: str, answer: str = "") -> Report:
    return Report(phase=a_phase(id_, answer=answer))


def test_reports_join_and_the_newer_one_of_a_phase_counts() -> None:
    """A member that ran again reports again; a tuple takes the place of all."""
    both = reduce_reports((report("a"), report("b")), report("a", "again"))

    assert both == (report("b"), report("a", "again"))
    assert reduce_reports(both, ()) == ()
    assert reduce_reports(both, (report("c"),)) == (report("c"),)


def test_without_a_limit_for_the_turn_there_is_none_to_share() -> None:
    """TL-16."""
    assert shares(a_task(), taken("think"), 2) == [a_task(), a_task()]


@given(turn=st.integers(0, 30), spent=st.integers(0, 40), members=st.integers(1, 6))
def test_what_is_left_of_the_turn_is_shared(turn: int, spent: int, members: int) -> None:
    """TL-16: all of it, as evenly as can be; steps of other kinds and tasks do not count."""
    steps = [*taken("think") * spent, *taken("verify"), *taken("think", task="t/0")]

    tasks = shares(a_task(limits={"turn": turn}), steps, members)
    turns = [each.limits.turn or 0 for each in tasks]

    assert len(turns) == members
    assert sum(turns) == max(turn - spent, 0)
    assert max(turns) - min(turns) <= 1
