"""What the models that are asked for a summary can do, and who has then made it (CX-02, CX-03)."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.context_window.thread_server import Provider
from tests.context_window.threads import thread
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault

SAYS: Mapping[str, Callable[[], Answer]] = {
    "nothing": Reply,
    "white space": lambda: Reply(" \n\u200b "),
    "a refusal": lambda: Reply(refusal="I can not help with that."),
    "half of it": lambda: Reply("They", finish_reason="length"),
    "a tool call": lambda: Reply("x", calls=[{"name": "look", "arguments": {"at": 1}}]),
    "404": lambda: Fault(404),
    "401": lambda: Fault(401),
    "500": lambda: Fault(500),
    "too long": lambda: Fault(
        400,
        {"error": {"message": "maximum context length is 10", "code": "context_length_exceeded"}},
    ),
    "nothing in time": lambda: Fault(hang=threading.Event()),
}
OWN: Mapping[str, Any] = {"auxiliary_model": "openai:small"}


@dataclass(frozen=True)
class Row:
    """Who is asked, in turn, and who has made the summary.

    ``auxiliary`` and ``main`` are what they say in place of a summary; empty: a good one.
    """

    asked: str
    by: str
    auxiliary: str = ""
    main: str = ""
    llm: Mapping[str, Any] = field(default_factory=lambda: OWN)


def to_main(wrong: str, times: int = 1) -> Row:
    """The auxiliary model is asked so often, then the main one."""
    return Row(" ".join(["small"] * times + ["big"]), "main", auxiliary=wrong)


def to_rules(wrong: str, main: str = "nothing", times: int = 1) -> Row:
    """Then nobody is left."""
    return Row(" ".join(["small"] * times + ["big"] * times), "rules", wrong, main)


ROWS: Mapping[str, Row] = {
    "answers": Row("small", "auxiliary"),
    **{f"says {wrong}": to_main(wrong) for wrong in list(SAYS)[:5]},
    "404": to_main("404"),
    "401": to_main("401"),
    "finds it too long": to_main("too long"),
    "500": to_main("500", times=3),
    "no answer in time": to_main("nothing in time", times=3),
    "says nothing, main too": to_rules("nothing"),
    "401, main too": to_rules("401", "401"),
    "500, main too": to_rules("500", "500", times=3),
    "not set": Row("big", "main", llm={}),
    "not set, main says nothing": Row("big", "rules", main="nothing", llm={}),
    "the main model by name": Row("big", "main", llm={"auxiliary_model": "openai:big"}),
    "the main model by alias": Row(
        "big", "main", llm={"auxiliary_model": "it", "model_aliases": {"it": "openai:big"}}
    ),
    "the main model by alias, and says nothing": Row(
        "big",
        "rules",
        main="nothing",
        llm={"auxiliary_model": "it", "model_aliases": {"it": "openai:big"}},
    ),
    "404, with a fallback model": Row(
        "small big", "main", "404", llm={**OWN, "fallback_models": ["openai:spare"]}
    ),
    "404, main too, with a fallback model": Row(
        "small big spare", "main", "404", "404", {**OWN, "fallback_models": ["openai:spare"]}
    ),
}
TALK = [
    ("ai" if number % 2 else "user", f"NEEDLE-{number}=v{number} " + "and so on " * 15)
    for number in range(34)
]


@dataclass(frozen=True)
class Seen:
    """What came of a row: who was asked for a summary, who made it, how the task ended."""

    asked: str
    by: str
    status: str
    output: str
    size: int


@cache
def seen(name: str, way: str) -> Seen:
    """Go on with a conversation that is too long, once."""
    row = ROWS[name]
    wrong = {"small": row.auxiliary, "big": row.main}
    provider = Provider(
        rounds=0, summaries={model: SAYS[said]() for model, said in wrong.items() if said}
    )
    limits = {"seconds": 0.8} if "nothing in time" in wrong.values() else {"seconds": 10.0}
    with thread(
        provider, way=way, model="openai:big", budget=2000, tools=(), requests=limits, **row.llm
    ) as it:
        it.ask("What do you know?", TALK, mode="direct_chat")
        result = it.state.result
        assert result is not None
        (cost,) = result.context_cost
        return Seen(it.summarised_by, cost.by, result.status, result.output, cost.after)
