"""A phase that settles what could not be merged, and who waits for it."""

import pytest
from tests.parts import a_phase, a_plan

from daruma.state.plan import MOST_CONFLICTS, Plan, with_conflicts, with_red_checks

PLAN = a_plan(
    a_phase("a", status="completed", expert="developer"),
    a_phase("b", status="completed", expert="tester"),
    a_phase("c", "b"),
    a_phase("d", "a"),
    a_phase("e"),
    a_phase("f", "b", status="failed"),
)


def waits(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {phase.id: phase.depends_on for phase in plan.phases}


def test_a_conflict_is_noted_and_has_a_phase_that_settles_it() -> None:
    """PL-06: by the expert whose work it is, after it, and before what needs it."""
    plan = with_conflicts(PLAN, "b", ("x.txt (both)",), ("s1", "s2"))

    done, settling = plan.phases[1], plan.phases[-1]
    assert (done.conflicts, done.unmerged) == (("x.txt (both)",), ("s1", "s2"))
    assert (settling.id, settling.settles, settling.expert) == ("b-merge", "b", "tester")
    assert settling.status == "pending"
    assert settling.title == "Settle what b conflicts with"
    assert "x.txt (both)" in settling.instructions
    assert "'b' (B)" in settling.instructions
    assert waits(plan) == {
        "a": (),
        "b": (),
        "c": ("b", "b-merge"),
        "d": ("a",),
        "e": (),
        "f": ("b",),
        "b-merge": ("b",),
    }


def test_what_is_stored_of_many_conflicts_is_bounded() -> None:
    """The plan goes into every checkpoint."""
    many = tuple(f"{n}.txt" for n in range(MOST_CONFLICTS + 7))

    plan = with_conflicts(PLAN, "b", many, ("s1", "s2"))

    assert plan.phases[1].conflicts == (*many[:MOST_CONFLICTS], "and 7 more")
    assert many[-1] not in plan.phases[-1].instructions


def test_exactly_as_many_are_all_named() -> None:
    """Nothing is said of more."""
    many = tuple(f"{n}.txt" for n in range(MOST_CONFLICTS))

    assert with_conflicts(PLAN, "b", many, ("s1", "s2")).phases[1].conflicts == many


def test_red_checks_of_the_whole_hold_up_all_that_need_any_of_it() -> None:
    """The last of them settles it, knowing what the checks said."""
    plan = with_red_checks(PLAN, ("a", "b"), "1 failed")

    settling = plan.phases[-1]
    assert (settling.id, settling.settles, settling.depends_on) == ("b-merge", "b", ("b",))
    assert settling.title == "Make a and b work together"
    assert "1 failed" in settling.instructions
    assert "a, b" in settling.instructions
    assert waits(plan)["c"] == ("b", "b-merge")
    assert waits(plan)["d"] == ("a", "b-merge")
    assert waits(plan)["e"] == ()
    assert plan.phases[1].conflicts == ()


def test_its_id_is_one_that_is_free() -> None:
    """A plan may have such a phase of its own; a second try is another one."""
    plan = with_conflicts(PLAN, "b", ("x",), ("s1", "s2"))

    twice = with_red_checks(with_red_checks(plan, ("a", "b"), "red"), ("a", "b"), "red")

    assert [phase.id for phase in twice.phases[-3:]] == ["b-merge", "b-merge-2", "b-merge-3"]


def test_a_long_title_is_cut() -> None:
    """As those of plans are, at 120 characters."""
    long = a_phase("p" * 200, status="completed")

    plan = with_conflicts(a_plan(long), long.id, ("x",), ("s1", "s2"))

    assert len(plan.phases[-1].title) == 120


def test_an_unknown_phase_is_a_bug() -> None:
    """Only what was reported is settled."""
    with pytest.raises(LookupError):
        with_conflicts(PLAN, "nobody", ("x",), ("s1", "s2"))
