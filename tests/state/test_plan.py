"""A plan that can not be carried out can not be built."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_failure, a_phase, a_plan, a_savepoint, a_state, a_task, taken

from daruma.state import plan as phases
from daruma.state.channels import State
from daruma.state.plan import (
    MOST_CONFLICTS,
    Assignment,
    Phase,
    Plan,
    PlanRefused,
    Report,
    kept_phases,
    reduce_reports,
    with_conflicts,
    with_free_ids,
    with_red_checks,
)
from daruma.state.spending import assignments, describe_dependencies, shares


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ((), "the plan has no phases"),
        ((a_phase("a"), a_phase("b"), a_phase("a")), "phase ids are used more than once: a"),
        ((a_phase("a", "x", "b"), a_phase("b")), "phase 'a' depends on unknown phases: x"),
        ((a_phase("a", "a"),), "phases depend on each other: a -> a"),
        (
            (a_phase("a", "c"), a_phase("b", "a"), a_phase("c", "b")),
            "phases depend on each other: a -> b -> c -> a",
        ),
    ],
)
def test_a_plan_that_can_not_be_run_is_refused(phases: tuple[Phase, ...], said: str) -> None:
    """PL-01: no phases, an id twice, an unknown dependency and a cycle, each named."""
    with pytest.raises(PlanRefused) as refused:
        a_plan(*phases)

    assert sorted(str(refused.value)) == sorted(said)


def test_commands_that_are_not_set_are_absent() -> None:
    """PL-01: both commands are null by default, and then not in ``to_dict()``."""
    assert a_phase("a", title="A").to_dict() == {
        "id": "a",
        "title": "A",
        "instructions": "",
        "depends_on": [],
        "status": "pending",
    }


def test_what_is_set_is_shown() -> None:
    """Commands, expert, outcome and the failure's message stand in ``to_dict()``."""
    phase = a_phase(
        "b",
        "a",
        expert="e",
        validation_command="v",
        rollback_command="r",
        status="failed",
        outcome="gave_up_after_reflections",
        failure=a_failure(message="it is red"),
    )

    shown = phase.to_dict()

    assert shown["depends_on"] == ["a"]
    assert shown["expert"] == "e"
    assert (shown["validation_command"], shown["rollback_command"]) == ("v", "r")
    assert (shown["outcome"], shown["error"]) == ("gave_up_after_reflections", "it is red")


def test_a_plan_shows_its_id_goal_and_phases() -> None:
    """PL-01: what reviewers and events see."""
    plan = a_plan(a_phase("a"))

    assert plan.to_dict() == {
        "id": "t/1/plan-1",
        "goal": "Do it",
        "phases": [plan.phases[0].to_dict()],
    }


# --- A phase that settles what could not be merged, and who waits for it.

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


# --- What members are sent, and how what they report comes together.

PLAN_ASSIGNMENT = a_plan(
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
    found = sent(a_state(plan=PLAN_ASSIGNMENT))

    assert [(each.phase.id, each.number, each.of) for each in found] == [("b", 2, 4), ("d", 4, 4)]
    assert {each.plan_id for each in found} == {PLAN_ASSIGNMENT.id}


def test_it_names_the_newest_snapshot_from_before_the_phase() -> None:
    """A phase that is begun again begins from the workspace as it is then."""
    kept = [a_savepoint("1/b", snapshot="old"), a_savepoint("1/b", snapshot="new")]
    kept += [a_savepoint("2/b"), a_savepoint("1/b/done")]

    first, second = sent(a_state(plan=PLAN_ASSIGNMENT, savepoints=kept))

    assert first.snapshot == "new"
    assert second.snapshot is None


def test_it_holds_the_work_that_is_to_be_settled() -> None:
    """The first and the last snapshot of it."""
    phases = (
        replace(PLAN_ASSIGNMENT.phases[0], unmerged=("s1", "s2")),
        *PLAN_ASSIGNMENT.phases[1:],
    )

    first, second = sent(a_state(plan=replace(PLAN_ASSIGNMENT, phases=phases)))

    assert first.unmerged == ("s1", "s2")
    assert second.unmerged is None


@pytest.mark.parametrize("values", [{"task": None, "plan": PLAN_ASSIGNMENT}, {"plan": None}])
def test_without_task_and_plan_nothing_is_sent(values: dict[str, object]) -> None:
    """There is nobody to send it to."""
    assert assignments(a_state(**values)) == []


def test_a_member_knows_what_it_builds_on() -> None:
    """Only the phases that its own depends on; one that said nothing is named."""
    plan = a_plan(a_phase("a", answer="Said."), a_phase("x"), a_phase("b", "a", "x"), a_phase("z"))

    assert (
        describe_dependencies(plan, plan.phases[2])
        == "Done before, a: A\nSaid.\n\nDone before, x: X"
    )
    assert describe_dependencies(plan, plan.phases[3]) == ""


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


# --- A plan moves by pure steps: what is next, and what the end of a phase means for the others.

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


def test_the_first_failure_is_the_one_that_came_first() -> None:
    """EM-04: in time, not in the plan's order; a phase that only fell with another has none."""
    plan = a_plan(a_phase("late", "early"), a_phase("bad"), a_phase("early"))
    plan = phases.close(phases.start(plan, "bad"), "bad", "failed", a_failure(message="first"))
    plan = phases.close(phases.start(plan, "early"), "early", "completed")
    plan = phases.close(phases.start(plan, "late"), "late", "failed", a_failure(message="second"))

    first = phases.first_failed(plan)

    assert first is not None
    assert first.failure == a_failure(message="first")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan without cycles of up to 5 phases."""
    count = draw(st.integers(1, 5))
    ids = [f"p{n}" for n in range(count)]
    depends = [draw(st.lists(st.sampled_from(ids[:n]), unique=True)) if n else [] for n in range(5)]
    built = [a_phase(id_, *depends[n]) for n, id_ in enumerate(ids)]
    return a_plan(*draw(st.permutations(built)))


@pytest.mark.long
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


# --- PL-01b: what is left of a plan, planned anew.


def test_what_is_completed_but_not_merged_does_not_stay() -> None:
    """PL-06: its conflicts were to be settled by a phase that failed."""
    done = [a_phase(id_, status="completed") for id_ in "ab"]
    met = replace(done[1], conflicts=("f",))
    settling = a_phase("b-merge", "b", settles="b")

    failed = a_plan(done[0], met, replace(settling, status="failed"))
    settled = a_plan(done[0], met, replace(settling, status="completed"))

    assert [phase.id for phase in kept_phases(failed)] == ["a"]
    assert [phase.id for phase in kept_phases(settled)] == ["a", "b", "b-merge"]


def test_new_phases_have_ids_that_no_plan_has_used() -> None:
    """PL-01b: spent quotas go by them; what depends on a new phase follows it."""
    oldest = a_plan(a_phase("x"), a_phase("b-2"))
    before = replace(a_plan(a_phase("a", status="completed"), a_phase("b")), before=oldest)

    given = with_free_ids([a_phase("b", "a"), a_phase("x", "b"), a_phase("c", "x")], before)

    assert [(phase.id, phase.depends_on) for phase in given] == [
        ("b-3", ("a",)),
        ("x-2", ("b-3",)),
        ("c", ("x-2",)),
    ]
