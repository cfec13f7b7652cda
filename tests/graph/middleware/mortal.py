"""A guarded agent over Postgres, one step at a time; as a process it is killed in its tool."""

import os
import signal
import sys
from pathlib import Path
from typing import Any, Literal

from langchain.agents import create_agent
from tests.graph.middleware.agents import REQUEST, THREAD, Says, call, calling, decided

from daruma import open_postgres
from daruma.graph.middleware import Gate
from daruma.state.settings import Tools


def step(what: Literal["ask", "approve", "go"], url: str, file: Path) -> Any:
    """Have it ask; approve, and be killed for that; or go on. Return what came of it."""

    def pay(amount: int) -> str:
        """Pay somebody."""
        if what == "approve":
            os.kill(os.getpid(), signal.SIGKILL)
        with file.open("a") as paid:
            paid.write(f"{amount}\n")
        return "paid"

    answers = [calling(call("pay", amount=5), id="m1")] if what == "ask" else ["Done."]
    gate = Gate([pay], Tools(policy={"pay": "confirm"}))
    with open_postgres(url) as pg:
        model = Says(answers=answers)
        agent: Any = create_agent(model, [pay], middleware=[gate], checkpointer=pg.checkpointer)
        asked = {"__interrupt__": agent.get_state(THREAD).interrupts}
        given = {"ask": REQUEST, "go": None}.get(what) if what != "approve" else decided(asked)
        return agent.invoke(given, THREAD, durability="sync")


if __name__ == "__main__":
    step("approve", sys.argv[1], Path(sys.argv[2]))
