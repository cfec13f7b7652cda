"""Error handlers send a bug on: always by ``Command``, with what the next node needs."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.errors import NodeError
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command
from tests.parts import a_call, a_context, a_failure, a_phase, a_plan, a_state, a_task, settings

from daruma.graph.build import error_handler
from daruma.graph.errors import Leaving, Raised
from daruma.graph.machine import ON_BUG, TABLE
from daruma.nodes.emergency import emergency
from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.emergency import emergency_of
from daruma.state.errors import StorageUnavailable
from daruma.state.failure import Code, Failure, TaskFailed
from daruma.state.settings import Settings

BUG = ZeroDivisionError("planted")


async def handled(
    node: str, state: Any, error: Any = BUG, under: Settings | None = None
) -> tuple[Any, dict[str, Any]]:
    raised = NodeError(node=node, error=error)
    runtime: Runtime[Settings] = Runtime()
    handler = error_handler(under or Settings())
    command: Command[Any] = await handler(state, raised, runtime, {})
    update = command.update
    assert isinstance(update, dict)
    return command.goto, update


@pytest.mark.parametrize("node", sorted(set(TABLE) - {"tool"}))
async def test_a_bug_goes_where_the_machine_says(node: str) -> None:
    """A dict instead of a ``Command`` would end the run silently."""
    goto, update = await handled(node, a_state())

    assert goto == ON_BUG[node]
    assert update


@pytest.mark.parametrize("error", [BUG, "ZeroDivisionError('planted')"])
async def test_the_failure_names_node_and_bug(error: Any) -> None:
    """After a crash in the handler the exception comes as its ``repr``."""
    _, update = await handled("verify", a_state(), error)

    failure: Failure = update["failure"]
    assert (failure.code, failure.node) == ("internal_error", "verify")
    assert "planted" in failure.message


async def test_a_tools_bug_answers_its_call() -> None:
    """TL-03: so that it joins its siblings."""
    dispatch = Dispatch(task=a_task(), call=a_call("c1"))
    goto, update = await handled("tool", dispatch)

    assert goto == "main"
    assert update["calls"].status == "failed"
    (message,) = update["messages"]
    assert (message.tool_call_id, message.status) == ("c1", "error")
    assert message.text == "Error: ZeroDivisionError: planted"


async def test_a_bug_in_emergency_still_has_an_error() -> None:
    """Finish needs one."""
    goto, update = await handled("emergency", a_state())

    assert goto == "finish"
    assert update["error"].error_code == "internal_error"


async def test_a_bug_in_finish_still_has_a_result() -> None:
    """Never a silent end; the first failure is told, if there was one."""
    goto, update = await handled("finish", a_state())
    _, known = await handled("finish", a_state(error=emergency_of(a_failure())))

    assert goto == END
    assert (update["result"].status, update["result"].task_id) == ("failed", "t/1")
    assert update["result"].error_struct.error_code == "internal_error"
    assert known["result"].error_struct.error_code == "llm_failure"


def fallen(failure: Failure | None = None) -> State:
    """The state of a task whose phase has failed."""
    return a_state(plan=a_plan(a_phase("a", status="failed"), current="a"), failure=failure)


async def test_a_bug_in_rollback_has_a_code_of_its_own() -> None:
    """What it left behind is not known: nothing may be built on it."""
    _, update = await handled("rollback", fallen())

    assert update["failure"].code == "rollback_failed"


async def test_a_bug_in_hold_asks_once_more() -> None:
    """RO-03: the thread is still held; one whose question can not be asked is given up at last."""
    _, first = await handled("hold", fallen(a_failure("rollback_failed", "rollback")))
    _, second = await handled("hold", fallen(first["failure"]))

    assert first["failure"].code == "rollback_failed"
    assert second["failure"].code == "internal_error"


async def test_a_bug_in_intake_leaves_nothing_of_the_task_before() -> None:
    """Its plan and its verification are another's."""
    _, update = await handled("intake", a_state(origin=a_failure()))

    assert (update["plan"], update["verification"]) == (None, None)
    assert update["origin"] == update["failure"]


async def test_a_bug_in_recovery_does_not_hide_what_it_recovered_from() -> None:
    """EM-04: the code is that of the first failure, not of the recovery's."""
    state = a_state(failure=a_failure())
    _, update = await handled("recovery", state)
    error = (await emergency(a_state(**{"failure": state.failure} | update), a_context()))["error"]

    assert error is not None
    assert error.error_code == "llm_failure"


FAILURES = st.lists(
    st.sampled_from(["llm_failure", "timeout", "loop_detected", "workspace_conflict"]), min_size=1
)
LATE = st.lists(st.sampled_from(["recovery", "recovery again", "settle", "emergency"]), max_size=4)


@given(FAILURES, LATE)
def test_the_code_is_that_of_the_first_failure(codes: list[Code], late: list[str]) -> None:
    """EM-04: whatever fails after it, and whichever bugs what deals with it has."""

    async def walked() -> str:
        values: dict[str, Any] = {"failure": a_failure(codes[0])}
        for code in codes[1:]:  # recovery keeps the first one as the origin
            values = {"origin": values.get("origin") or values["failure"]}
            values |= {"failure": a_failure(code)}
        for node in late:
            _, update = await handled(node.partition(" ")[0], a_state(**values))
            values |= {key: update[key] for key in ("failure", "origin", "error") if key in update}
        stated = (await emergency(a_state(**values), a_context()))["error"]
        assert stated is not None
        return stated.error_code

    assert asyncio.run(walked()) == codes[0]


@pytest.mark.parametrize("node", ["emergency", "finish"])
async def test_handlers_speak_the_language_of_the_settings(node: str) -> None:
    """EM-03: a bug is told in it too."""
    chinese = settings(fallback_chain={"emergency": {"language": "zh"}})
    _, update = await handled(node, a_state(), under=chinese)

    told = update["error"] if node == "emergency" else update["result"].error_struct
    assert told.message == "内部错误：ZeroDivisionError: planted"
    if node == "finish":
        assert update["result"].output == f"任务以 failed 结束：{told.message}"


async def test_without_the_chain_a_handler_raises_what_it_was_called_for() -> None:
    """EM-05: such as a router's bug; after a crash, what is left of it."""
    off = settings(fallback_chain={"enabled": False})
    with pytest.raises(Leaving) as live:
        await handled("main", a_state(), under=off)
    with pytest.raises(Leaving) as stored:
        await handled("main", a_state(), "ZeroDivisionError('planted')", under=off)

    assert live.value.error is BUG
    assert isinstance(stored.value.error, TaskFailed)


async def test_without_emergency_a_bug_in_finish_is_what_the_run_ends_with() -> None:
    """EM-05: but for a failure before it, which comes first (EM-04)."""
    off = settings(fallback_chain={"emergency": {"enabled": False}})
    raised = Raised()
    runtime: Runtime[Settings] = Runtime()
    failed = a_state(failure=a_failure(), error=emergency_of(a_failure()))
    of_run, error = raised.noted(None), NodeError(node="finish", error=BUG)

    await error_handler(Settings())(a_state(), error, runtime, of_run)
    assert raised.end is None
    command = await error_handler(off)(a_state(), error, runtime, of_run)
    assert raised.end is BUG
    assert isinstance(command.update, dict)
    assert command.update["result"].error_struct is None
    raised.end = None
    await error_handler(off)(failed, error, runtime, of_run)
    assert raised.end is None


async def test_a_run_that_is_cut_off_from_its_storage_is_left_at_once() -> None:
    """DU-04: also where that was found out beside the node itself."""
    gone = StorageUnavailable("gone")

    with pytest.raises(Leaving) as left:
        await handled("main", a_state(), gone)

    assert left.value.error is gone
