"""A plan moves by pure steps: what is next, and what the end of a phase means for the others."""

from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_failure, a_phase, a_plan

from daruma.state import plan as phases
from daruma.state.plan import Plan

DIAMOND = a_plan(
    a_phase("top"), a_phase("left", "top"), a_phase("right", "top"), a_phase("low", "left", "right")
)


def statuses(plan: Plan) -> dict[str, str]:
    return {phase.id: phase.status for phase in plan.phases}


def test_a_phase_is_ready_when_all_it_depends_on_is_completed() -> None:
    """PL-05: one completed dependency of two is not enough."""
    after_top = phases.close(DIAMOND, "top", "completed")
    after_left = phases.close(after_top, "left", "completed")

    assert [p.id for p in phases.ready(DIAMOND)] == ["top"]
    assert [p.id for p in phases.ready(after_top)] == ["left", "right"]
    assert [p.id for p in phases.ready(after_left)] == ["right"]


def test_the_phase_that_starts_is_the_current_one() -> None:
    """A running phase is not ready a second time."""
    running = phases.start(DIAMOND, "top")

    assert running.current == "top"
    assert statuses(running)["top"] == "running"
    assert phases.ready(running) == ()


def test_a_failed_phase_fails_its_dependents_only() -> None:
    """PL-05: transitively; siblings and what is completed stay as they are."""
    failure = a_failure()
    plan = phases.close(DIAMOND, "top", "completed")
    plan = phases.close(plan, "left", "gave_up_after_reflections", failure)

    assert statuses(plan) == {
        "top": "completed",
        "left": "failed",
        "right": "pending",
        "low": "failed",
    }
    assert plan.phases[1].outcome == "gave_up_after_reflections"
    assert plan.phases[1].failure == failure
    assert (plan.phases[3].outcome, plan.phases[3].failure) == ("failed", None)


def test_dependents_are_found_through_others() -> None:
    """In the plan's order, without the phase itself."""
    assert [p.id for p in phases.dependents(DIAMOND, "top")] == ["left", "right", "low"]
    assert phases.dependents(DIAMOND, "low") == ()


def test_the_first_failure_is_the_one_that_came_first() -> None:
    """EM-04: in time, not in the plan's order; a phase that only fell with another has none."""
    plan = a_plan(a_phase("late", "early"), a_phase("bad"), a_phase("early"))
    plan = phases.close(phases.start(plan, "bad"), "bad", "failed", a_failure(message="first"))
    plan = phases.close(phases.start(plan, "early"), "early", "completed")
    plan = phases.close(phases.start(plan, "late"), "late", "failed", a_failure(message="second"))

    first = phases.first_failed(plan)

    assert first is not None
    assert first.failure == a_failure(message="first")


def test_a_plan_without_failures_has_no_first_one() -> None:
    """Neither has one whose phases only fell with another."""
    assert phases.first_failed(DIAMOND) is None


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan without cycles of up to 5 phases."""
    count = draw(st.integers(1, 5))
    ids = [f"p{n}" for n in range(count)]
    depends = [draw(st.lists(st.sampled_from(ids[:n]), unique=True)) if n else [] for n in range(5)]
    built = [a_phase(id_, *depends[n]) for n, id_ in enumerate(ids)]
    return a_plan(*draw(st.permutations(built)))


@given(plans(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_every_phase_ends_once_and_none_runs_before_its_time(
    plan: Plan, passing: list[bool]
) -> None:
    """PL-05: walked to its end, all phases are ended, and dependencies were completed before."""
    verdicts = iter(passing)
    ran: list[str] = []
    while ready := phases.ready(plan):
        ran.append(ready[0].id)
        completed = {p.id for p in plan.phases if p.status == "completed"}
        assert completed.issuperset(ready[0].depends_on)
        outcome = "completed" if next(verdicts) else "failed"
        plan = phases.close(phases.start(plan, ready[0].id), ready[0].id, outcome)  # type: ignore[arg-type]  # a Status

    assert len(ran) == len(set(ran))
    assert set(statuses(plan).values()) <= {"completed", "failed"}
    assert all(p.id in ran for p in plan.phases if p.status == "completed")
