"""What goes wrong silently in an agent, with and without the parts: run it for the table."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelFallbackMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tests.graph.middleware.agents import (
    REQUEST,
    THREAD,
    Desk,
    Says,
    agent,
    broken,
    call,
    calling,
    decided,
)

from daruma.graph.middleware import Failover, Gate, RepairLadder
from daruma.state.settings import PolicyRule, Tools

REQUIRED = Tools(policy={"pay": PolicyRule(decision="confirm", required=True)})
PAY = calling(call("pay", amount=5))
STOCK = HumanInTheLoopMiddleware(interrupt_on={"pay": True})

Probe = Callable[[bool], bool]


def other_name(ours: bool) -> bool:
    """``readFile`` for ``read_file`` costs no turn."""
    desk, model = Desk(), Says(answers=[calling(call("readFile", path="a")), "Done.", "Done."])
    agent(model, desk, [RepairLadder()] if ours else []).invoke(REQUEST)
    return desk.done == ["read a"] and len(model.asked) == 2


def only_malformed(ours: bool) -> bool:
    """An answer that holds only one malformed call does not end the run."""
    desk = Desk()
    model = Says(answers=[broken("pay", "{'amount': 3,}"), "Done.", "Done."])
    agent(model, desk, [RepairLadder()] if ours else []).invoke(REQUEST)
    return desk.done == ["paid 3 to shop"]


def cut_off(ours: bool) -> bool:
    """A payload that was cut off does not run."""
    desk = Desk()
    said = calling(call("pay", amount=1), response_metadata={"finish_reason": "length"})
    agent(Says(answers=[said, "I see."]), desk, [RepairLadder()] if ours else []).invoke(REQUEST)
    return desk.done == []


def failover_record(ours: bool) -> bool:
    """An answer from another model says that it is."""
    gone = ConnectionError("gone")
    other = Says(answers=["Done."])
    own = Failover(other, luck=lambda: 0.0)
    middleware = [own if ours else ModelFallbackMiddleware(other)]
    out = agent(Says(answers=[gone] * 5), Desk(), middleware).invoke(REQUEST)
    return "failover" in out["messages"][-1].response_metadata


def approval_for_other(ours: bool) -> bool:
    """A yes to something else than what is asked about runs nothing."""
    desk = Desk()
    made = _guarded(ours, desk, [PAY, "Done."])
    asked = made.invoke(REQUEST, THREAD)
    digest = {"approval_id": "c1", "digest": "0" * 64, "decision": "approve"}
    reply = digest if ours else {"type": "approve", "digest": "0" * 64}
    (question,) = asked["__interrupt__"]
    made.invoke(Command(resume={question.id: {"decisions": [reply]}}), THREAD)
    return desk.done == []


def required_denied(ours: bool) -> bool:
    """After a required approval was denied the model is not asked again."""
    model = Says(answers=[PAY, "Done."])
    made = _guarded(ours, Desk(), model)
    asked = made.invoke(REQUEST, THREAD)
    (question,) = asked["__interrupt__"]
    stock: Any = Command(resume={question.id: {"decisions": [{"type": "reject"}]}})
    made.invoke(decided(asked, "deny") if ours else stock, THREAD)
    return len(model.asked) == 1


PROBES: tuple[Probe, ...] = (
    other_name,
    only_malformed,
    cut_off,
    failover_record,
    approval_for_other,
    required_denied,
)


def _guarded(ours: bool, desk: Desk, model: Says | Sequence[Any]) -> Any:
    model = model if isinstance(model, Says) else Says(answers=list(model))
    gate = Gate(desk.tools, REQUIRED) if ours else STOCK
    return agent(model, desk, [gate], checkpointer=InMemorySaver())


def table() -> str:
    """Return the published table."""
    rows = [
        f"| {(probe.__doc__ or '').rstrip('.')} | {mark(probe(False))} | {mark(probe(True))} |\n"
        for probe in PROBES
    ]
    head = "| | create_agent with LangChain's own | with these |\n|---|---|---|\n"
    return head + "".join(rows)


def mark(is_right: bool) -> str:
    return "✔" if is_right else "✘"


if __name__ == "__main__":
    sys.stdout.write(table())
