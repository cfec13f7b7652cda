"""What is said of where a run stands."""

from tests.parts import a_call, a_phase, a_plan, a_state, a_task, taken

from daruma.graph.tracing.callbacks import About, about
from daruma.state.calls import Dispatch
from daruma.state.plan import Assignment

PLANNED = a_state(
    task=a_task("plan_exec"),
    plan=a_plan(a_phase("a"), a_phase("b"), current="b"),
    steps=[*taken("think", "think", phase="a"), *taken("think", "verify", phase="b")],
)


def test_a_node_of_a_phase_tells_of_that_phase() -> None:
    """Its budget is what the phase has spent, not the task."""
    told = about("main", PLANNED)

    assert told.metadata == {
        "daruma_node": "main",
        "daruma_task_id": "t/1",
        "daruma_mode": "plan_exec",
        "daruma_phase": "b",
        "daruma_member": "",
        "daruma_budget": {"think": "1/3", "verify": "1/2", "reflect": "0/1"},
    }
    assert told.attributes["daruma.budget.think.spent"] == 1
    assert "daruma.member" not in told.attributes


def test_intake_and_strangers_tell_of_no_task() -> None:
    """The one is given the task before, the others none."""
    assert about("intake", PLANNED) == about("intake", {"x": 1}) == About("intake")


def test_calls_and_members_tell_whose_they_are() -> None:
    """What is sent out has no budget of its own, but task, phase and member."""
    call = Dispatch(task=a_task(), call=a_call(), phase_id="b")
    phase = Assignment(task=a_task(), phase=a_phase("a"), plan_id="p", number=1, of=1)

    assert about("tool", call, "m") == About("tool", "t/1", "react", "b", "m")
    assert about("member", phase) == About("member", "t/1", "react", "a", "a")
