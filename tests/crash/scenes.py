"""The scripted tasks that are killed, and the people who answer in them."""

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool

from daruma import Settings, build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres

NEVER = -1
BEFORE_PAYING = -2
AFTER_PAYING = -3
VIEW = {"name": "str_replace_editor", "args": {"command": "view", "path": "data.txt"}}
LOOK = {"name": "search", "args": {"pattern": "a"}}


def writing(text: str) -> dict[str, Any]:
    """A command that sets what it sets, so that running it again shows nowhere."""
    args = {"command": f"printf {text} > data.txt"}
    return {"calls": [{"name": "run_command", "args": args}]}


LOOP = {"calls": [{"name": "search", "args": {"pattern": "none"}}]}
CORRECTED: dict[str, Any] = {
    "strategy": "parameter-adjustment",
    "action": {"tool_name": "run_command", "parameters": {"command": "printf right > data.txt"}},
}
MENDED: dict[str, Any] = {
    "plan": [
        {"json": {"phases": [{"title": "Mend"}, {"title": "Look again", "depends_on": ["p1"]}]}}
    ],
    "main": [
        {"calls": [VIEW, LOOK]},
        writing("wrong"),
        {"say": "Done."},
        writing("right"),
        {"say": "Done now."},
        {"say": "It is right."},
    ],
    "reflect": [{"say": "It has to be right."}],
}
UNDONE: dict[str, Any] = {
    "plan": [
        {"json": {"phases": [{"title": "Mend", "rollback_command": "printf undone > data.txt"}]}}
    ],
    "main": [writing("wrong"), {"raise": "down"}, {"say": "Done."}, {"say": "Done again."}],
    "reflect": [{"say": "I see nothing wrong."}],
    "recovery": [{"say": "I have no idea."}],
}
FALLEN: dict[str, Any] = {
    "plan": [{"raise": "down"}, {"json": {"phases": [{"title": "Mend"}]}}],
    "main": [{"say": ""}, {"raise": "down"}, LOOP, LOOP, LOOP, LOOP, {"say": "Done."}],
    "recovery": [
        {"json": {"strategy": "retry", "confidence": 0.9}},
        {"json": CORRECTED | {"confidence": 0.6}},
        {"json": {"strategy": "escalate", "action": {"escalation_message": "What now?"}}},
        {"json": {"strategy": "alternative-tool", "confidence": 0.8}},
    ],
}
PAYING = {"calls": [{"name": "pay", "args": {"amount": 5}, "id": "pay"}, LOOK]}
PAID: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Pay"}]}}],
    "main": [
        PAYING,
        {"calls": [{"name": "payy", "args": {"amount": "7"}, "id": "b"}]},
        {"say": "Paid."},
    ],
    "repair": [{"json": {"repairs": [{"tool_call_id": "b", "name": "pay"}]}}],
}
RIGHT, WRONG = "printf right > data.txt", "rm -f note; mkdir -p d; printf wrong > data.txt"


def ruining() -> dict[str, Any]:
    args = {"command": WRONG}
    return {"calls": [{"name": "run_command", "args": args}]}


FAILING: dict[str, Any] = {
    "main": [ruining(), {"say": "Done."}, {"say": "Done again."}, writing("right"), {"say": "B."}],
    "reflect": [{"say": "I see nothing wrong."}],
}
RESTORED: dict[str, Any] = FAILING | {
    "plan": [
        {
            "json": {
                "phases": [
                    {
                        "id": "a",
                        "validation_command": "printf half > data.txt; false",
                        "rollback_command": "printf undone > half.txt",
                        "rollback": "snapshot",
                    },
                    {"id": "b"},
                ]
            }
        }
    ]
}
HELD: dict[str, Any] = FAILING | {
    "plan": [
        {
            "json": {
                "phases": [
                    {"id": "a", "rollback_command": "printf x >> data.txt; false"},
                    {"id": "b"},
                ]
            }
        }
    ]
}
TEAM: dict[str, Any] = {
    "plan": [
        {
            "json": {
                "phases": [
                    {"id": "a", "expert": "developer"},
                    {"id": "b", "expert": "tester"},
                    {"id": "c", "expert": "writer", "depends_on": ["a", "b"]},
                ]
            }
        }
    ],
    "main@a": [writing("right"), {"say": "A."}],
    "main@b": [
        {"calls": [{"name": "run_command", "args": {"command": "printf b > b.txt"}}]},
        {"say": "B."},
    ],
    "main@c": [
        {"calls": [{"name": "run_command", "args": {"command": "printf rightb > data.txt"}}]},
        {"say": "C."},
    ],
}
EDIT = {"command": "str_replace", "path": "data.txt", "old_str": "a", "new_str": "aright"}
COUNTING = {"command": "echo one >> count.txt; echo two >> count.txt"}
CONFINED: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Count"}]}}],
    "main": [
        {
            "calls": [
                {"name": "run_command", "args": COUNTING},
                {"name": "str_replace_editor", "args": EDIT},
                {"name": "run_command", "args": COUNTING | {"cwd": "."}},
            ]
        },
        {"calls": [{"name": "str_replace_editor", "args": EDIT | {"new_str": "b"}}]},
        {"calls": [{"name": "run_command", "args": COUNTING}]},
        {"say": "Counted."},
    ],
}
"""Commands that add, and edits that fit once: made twice, they show."""

KEYED: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Transfer"}]}}],
    "main": [
        {"calls": [{"name": "transfer", "args": {"amount": n}} for n in (5, 7)]},
        {"calls": [{"name": "transfer", "args": {"amount": 9}}]},
        {"say": "Transferred."},
    ],
}

ASKED: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Transfer"}]}}],
    "main": [
        {"calls": [{"name": "transfer", "args": {}}, LOOK]},
        {"calls": [{"name": "transfer", "args": {"amount": 5}}]},
        {"say": "Transferred."},
    ],
}
"""What a call lacks is asked for in the middle of a plan."""

FACT = {"name": "memory_store", "args": {"text": "The lamp is red."}}
OTHER = {"name": "memory_store", "args": {"text": "The lamp is old."}}
REMEMBERED: dict[str, Any] = {
    "main": [
        {"calls": [FACT, OTHER]},
        {"calls": [FACT]},
        {"calls": [{"name": "memory_search", "args": {"query": "lamp"}}]},
        {"say": "Remembered."},
    ],
}
"""What is stored twice would be found twice."""


def counting(number: int) -> dict[str, Any]:
    """A command that says a lot, and sets what it sets."""
    args = {"command": f"seq {number}000 {number}300; printf right > data.txt"}
    return {"calls": [{"name": "run_command", "args": args}]}


CROWDED: dict[str, Any] = {
    "main": [*(counting(number) for number in range(1, 4)), {"say": "Counted."}],
    "compress": [{"say": "Numbers were counted."}, {"say": ""}, {"raise": "down"}]
    + [{"say": "More numbers were counted."}] * 9,
}
"""Outputs that are more than the context has room for."""

DELEGATED: dict[str, Any] = {
    "main": [
        {
            "calls": [
                {"name": "delegate", "args": {"task": "Look around."}, "id": "look"},
                {"name": "delegate", "args": {"task": "Count.", "write": True}, "id": "count"},
                {"name": "delegate", "args": {"task": "Mend it.", "write": True}, "id": "mend"},
                {"name": "run_command", "args": COUNTING, "id": "first"},
            ]
        },
        {"calls": [{"name": "run_command", "args": COUNTING, "id": "last"}]},
        {"say": "All counted."},
    ],
    "main@look": [{"calls": [VIEW, LOOK]}, {"say": "There is an a."}],
    "main@count": [
        {"calls": [{"name": "run_command", "args": COUNTING}]},
        {"calls": [{"name": "pay", "args": {"amount": 5}}]},
        writing("right"),
        {"say": "Counted, and paid for."},
    ],
    "main@mend": [writing("wrong"), {"say": "Mended."}],
}
"""Three helpers at once: one that reads, one that adds to files and pays, one that conflicts."""

STEPS = {"items": [{"text": "count", "status": "in_progress"}, {"text": "say so"}]}
REPLANNED: dict[str, Any] = {
    "plan": [
        {"calls": [VIEW, LOOK]},
        {
            "json": {
                "phases": [
                    {"id": "a"},
                    {"id": "b", "depends_on": ["a"], "rollback": "snapshot"},
                    {"id": "c"},
                ]
            }
        },
        {"calls": [LOOK]},
        {"json": {"phases": [{"id": "b", "depends_on": ["a"]}]}},
    ],
    "main": [
        writing("right"),
        {"say": "It is right."},
        {"calls": [{"name": "todo", "args": STEPS}, {"name": "run_command", "args": COUNTING}]},
        {"calls": [{"name": "revise_plan", "args": {"why": "There are two."}}]},
        {"calls": [{"name": "run_command", "args": COUNTING}]},
        {"say": "Counted."},
    ],
}
"""The planner looks, a phase contradicts the plan and is rolled back, and the rest is made anew."""


def judging(quote: str) -> dict[str, Any]:
    """A verdict on the one criterion; it is met where there is a quote."""
    said = {"criterion": 1, "why": "as quoted", "evidence": quote, "met": bool(quote)}
    return {"json": {"verdicts": [said]}}


JUDGED: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Mend", "rubric": ["says right"]}]}}],
    "main": [writing("wrong"), {"say": "Done."}, writing("right"), {"say": "It is right."}],
    "judge": [{"say": "A fine text!"}, judging(""), judging("It is right.")],
    "reflect": [{"say": "It has to be right."}],
}
"""A judge who rambles, finds a fault, and finds none."""


USED = {"usage": {"input": 100, "output": 10}}
SPENT: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Transfer"}]}, **USED}],
    "main": [
        {"calls": [{"name": "transfer", "args": {"amount": 5}}], **USED},
        {"calls": [{"name": "transfer", "args": {"amount": 7}}], **USED},
        {"say": "Transferred.", **USED},
    ],
    "structure": [{"say": "Twelve.", **USED}, {"json": {"sum": "12"}, **USED}],
}
"""More is granted when the budget of tokens is spent; the answer is asked for in a form."""

STEERED: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Mend"}, {"title": "Look again"}]}}],
    "main": [
        {"calls": [{"name": "transfer", "args": {"amount": 5}}, LOOK]},
        writing("wrong"),
        {"calls": [{"name": "pay", "args": {"amount": 7}}]},
        writing("right"),
        {"say": "Done."},
        {"say": "It is right."},
    ],
}
SAID: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "spec_review_request": (("Look first.", {}), ("Then wait.", {"stop": True})),
    "question": (("It has to be right.", {"goal": "Make it right"}), ("Hurry.", {})),
    "approval_request": (("Pay no more.", {}),),
}
"""What a person says while the thread waits with each of these questions, before they reply."""

SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
}


@dataclass(frozen=True)
class Scene:
    """A script, how its task is checked and confined, and how it ends: status, code, the file."""

    script: dict[str, Any]
    ends: tuple[str, str | None, str]
    policy: str = "allow"
    check: str | None = "grep -q right data.txt"
    sandbox: str | None = None
    mode: str = "plan_exec"
    window: int | None = None
    tokens: int | None = None
    form: dict[str, Any] | None = None
    replan: int = 0
    delegate: bool = False
    said: Mapping[str, tuple[tuple[str, dict[str, Any]], ...]] = field(default_factory=dict)


_GAVE_UP = ("gave_up_after_reflections", "verification_failed")
SCENES = {
    "mended": Scene(MENDED, ("completed", None, "right")),
    "undone": Scene(UNDONE, (*_GAVE_UP, "undone"), policy="confirm"),
    "paid": Scene(PAID, ("completed", None, "a"), check=None),
    "keyed": Scene(KEYED, ("completed", None, "a"), check=None),
    "confined": Scene(CONFINED, ("completed", None, "bright")),
    "fallen": Scene(FALLEN, ("completed", None, "right"), policy="confirm"),
    "restored": Scene(RESTORED, (*_GAVE_UP, "right")),
    "held": Scene(HELD, (*_GAVE_UP, "right")),
    "asked": Scene(ASKED, ("completed", None, "a"), check=None),
    "spent": Scene(SPENT, ("completed", None, "a"), check=None, tokens=150, form=SUM),
    "steered": Scene(STEERED, ("completed", None, "right"), said=SAID),
    "remembered": Scene(REMEMBERED, ("completed", None, "a"), check=None, mode="react"),
    "crowded": Scene(CROWDED, ("completed", None, "right"), check=None, mode="react", window=3300),
    "replanned": Scene(REPLANNED, ("completed", None, "right"), replan=1),
    "judged": Scene(JUDGED, ("completed", None, "right"), check=None),
    "team": Scene(TEAM, ("completed", None, "rightb"), check=None, mode="team_collab"),
    "delegated": Scene(
        DELEGATED, ("completed", None, "right"), check=None, mode="react", delegate=True
    ),
}
"""Together they pass through every node."""


def graph_over(pg: Postgres, name: str, folder: Path, point: int) -> Any:
    """Build the graph of a scripted task; what its tools pay is written into a ledger."""
    scene, ledger = SCENES[name], folder.with_suffix(".ledger")

    def pay(amount: int) -> str:
        """Pay an amount."""
        mortal = not ledger.exists()
        ledger.touch()
        if mortal and point == BEFORE_PAYING:
            os.kill(os.getpid(), signal.SIGKILL)
        with ledger.open("a") as book:
            book.write(f"{amount}\n")
        if mortal and point == AFTER_PAYING:
            os.kill(os.getpid(), signal.SIGKILL)
        return "paid"

    def transfer(amount: int, request_id: str) -> str:
        """Transfer an amount, as a service does that knows a request when it comes again."""
        known = folder.with_suffix(f".{request_id}")
        if not known.exists():
            with ledger.open("a") as book:
                book.write(f"{amount}\n")
            known.touch()
        return "transferred"

    keyed = {"daruma": {"idempotency_key": "request_id", "ask_for": {"amount": "How much?"}}}
    tools: list[Any] = [pay, StructuredTool.from_function(transfer, metadata=keyed)]
    settings = {
        "verification": {"commands": [scene.check] if scene.check else []},
        "sandbox": {"require": scene.sandbox},
        "tools": {"policy": {"run_command": scene.policy, "pay": "confirm"}},
        "fallback_chain": {"recovery": {"wait_seconds": 0}},
        "llm": {"context_window_tokens": scene.window},
        "budgets": {"tokens": scene.tokens, "preset": "frugal", "replan": scene.replan}
        | ({"max_steps": 30} if scene.delegate else {}),
        "team": {"delegate": scene.delegate},
        "evolution": {"enabled": False},  # it writes beside the run, and would blur the points
    }
    model = ScriptedChatModel(script=scene.script)
    given = Settings.model_validate(settings)
    return build_graph(model, tools, given, persistence=pg, response_format=scene.form)


def reply_to(question: Any, folder: Path) -> dict[str, Any]:
    """Say yes to whatever it is; about a payment in doubt, what the ledger says."""
    if question["type"] == "question" and "happened" in question.get("options", ()):
        amount = re.search(r"pay\(amount=(\d+)", question["question"])
        paid = amount is not None and amount[1] in payments(folder)
        return {"answer": "happened" if paid else "again"}
    if question["type"] == "question":
        more = "go on with as much again"
        options = question.get("options", (None,))
        answer = more if more in options else "restore" if "restore" in options else "Go on."
        return {"answer": answer}
    if question["type"] == "recovery_request":
        return {"decision": "approve"}
    if question["type"] == "spec_review_request":
        return {"decision": "confirm"}
    keys = ("approval_id", "digest")
    yes = [{key: each[key] for key in keys} for each in question["approvals"]]
    return {"decisions": [each | {"decision": "approve"} for each in yes]}


def payments(folder: Path) -> list[str]:
    """What the ledger says was paid."""
    ledger = folder.with_suffix(".ledger")
    return ledger.read_text().split() if ledger.exists() else []
