"""An approval: exactly what will run if a person says yes, and the digests that prove it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from daruma.state.record import record
from daruma.state.tool_task import ToolTask
from daruma.state.visible_text import revealed, revealed_line, warnings


@record
class Approval:
    """One open approval. An answer must name its id and digest (TL-13).

    ``digest`` proves what was shown, the state of the workspace included; ``exact`` is without
    that state, which calls that run beside this one may change. ``shown`` is the call with control,
    bidirectional and invisible characters spelled out, ``warnings`` says that there are any.
    """

    approval_id: str
    digest: str
    exact: str
    tool: str
    args: dict[str, Any]
    reason: str
    required: bool
    deny_effect: Literal["block", "continue"]
    command: str | None = None
    cwd: str | None = None
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    shown: str = ""
    warnings: tuple[str, ...] = ()
    schema_version: int = 1


@dataclass(frozen=True)
class Grounds:
    """What an approval rests on beside the call: how it would be confined, in what state of things.

    ``environment`` are the variables of a command, ``tree`` is the id of the workspace's content.
    """

    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    tree: str = ""


def approval_of(call: ToolTask, workspace: str | None, grounds: Grounds | None = None) -> Approval:
    """Describe a call for the person who decides; the digest covers all that will run.

    The call's place in the history is part of it: models repeat ids, and a yes is for one call.
    """
    grounds = grounds or Grounds()
    command = str(call.args.get("command")) if call.name == "run_command" else None
    cwd = _directory(call, workspace) if command else workspace
    exact = _digest(
        {
            "call": call.result_id,
            "tool": call.name,
            "args": call.args,
            "cwd": cwd,
            "sandbox": grounds.sandbox,
            "not_covered": list(grounds.not_covered),
            "environment": dict(grounds.environment),
        }
    )
    plain = command or json.dumps(call.args, ensure_ascii=False, indent=1, default=str)
    return Approval(
        approval_id=call.id,
        digest=_digest({"exact": exact, "tree": grounds.tree}),
        exact=exact,
        tool=call.name,
        args=call.args,
        reason=call.reason,
        required=call.required,
        deny_effect=call.deny_effect,
        command=command,
        cwd=cwd,
        sandbox=grounds.sandbox,
        not_covered=grounds.not_covered,
        shown=revealed(plain),
        warnings=_warnings(call),
    )


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _directory(call: ToolTask, workspace: str | None) -> str | None:
    within = call.args.get("cwd")
    return str(PurePath(workspace or "", str(within))) if within else workspace


def _warnings(call: ToolTask) -> tuple[str, ...]:
    """Return what to look at in a call, each time with the argument that it stands in."""
    own = warnings(call.name)
    return (
        *own,
        *(f"{name}: {each}" for name, text in _texts(call.args) for each in warnings(text)),
    )


def _texts(args: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in args.items():
        yield "the name of an argument", name
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )
        yield revealed_line(name), text
