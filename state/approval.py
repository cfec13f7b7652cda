"""An approval: exactly what will run if a person says yes, and the digest that proves it."""

import hashlib
import json
from pathlib import PurePath
from typing import Any, Literal

from daruma.state.record import record
from daruma.state.tool_task import ToolTask


@record
class Approval:
    """One open approval. An answer must name its id and digest (TL-13)."""

    approval_id: str
    digest: str
    tool: str
    args: dict[str, Any]
    reason: str
    required: bool
    deny_effect: Literal["block", "continue"]
    command: str | None = None
    cwd: str | None = None
    sandbox: str = "none"
    schema_version: int = 1


def approval_of(call: ToolTask, workspace: str | None, *, sandbox: str = "none") -> Approval:
    """Describe a call for the person who decides; the digest covers all that will run."""
    command = str(call.args.get("command")) if call.name == "run_command" else None
    cwd = _directory(call, workspace) if command else workspace
    content = {"tool": call.name, "args": call.args, "cwd": cwd, "sandbox": sandbox}
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return Approval(
        approval_id=call.id,
        digest=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        tool=call.name,
        args=call.args,
        reason=call.reason,
        required=call.required,
        deny_effect=call.deny_effect,
        command=command,
        cwd=cwd if command else None,
        sandbox=sandbox,
    )


def _directory(call: ToolTask, workspace: str | None) -> str | None:
    within = call.args.get("cwd")
    return str(PurePath(workspace or "", str(within))) if within else workspace
