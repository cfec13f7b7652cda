"""Error handlers send a bug on: always by ``Command``, with what the next node needs."""

from typing import Any

import pytest
from langgraph.errors import NodeError
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command
from tests.parts import a_call, a_context, a_failure, a_state, a_task

from daruma.graph.handlers import handler_for
from daruma.graph.machine import ON_BUG, TABLE
from daruma.nodes.emergency import emergency
from daruma.state.emergency import emergency_of
from daruma.state.failure import Failure
from daruma.state.settings import Settings
from daruma.state.tool_task import Dispatch

BUG = ZeroDivisionError("planted")


async def handled(node: str, state: Any, error: Any = BUG) -> tuple[Any, dict[str, Any]]:
    raised = NodeError(node=node, error=error)
    runtime: Runtime[Settings] = Runtime()
    command: Command[Any] = await handler_for(node, Settings())(state, raised, runtime, {})
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


async def test_a_bug_in_recovery_does_not_hide_what_it_recovered_from() -> None:
    """EM-04: the code is that of the first failure, not of the recovery's."""
    state = a_state(failure=a_failure())
    _, update = await handled("recovery", state)
    error = (await emergency(a_state(**{"failure": state.failure} | update), a_context()))["error"]

    assert error is not None
    assert error.error_code == "llm_failure"
