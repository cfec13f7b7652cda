"""The calls that a person is asked about, each with what its answer rests on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from daruma.state.approval import Approval, Grounds, approval_of
from daruma.state.errors import DarumaError
from daruma.state.interrupts import Decision
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.grounds import grounds_of, tree_now

UNAVAILABLE: Final = "unavailable"
"""In the place of a sandbox's level: as things stand the call could not run."""


@dataclass(frozen=True)
class OpenApproval:
    """One call, and the state of things in which it would run."""

    call: ToolTask
    workspace: str | None
    grounds: Grounds

    @property
    def approval(self) -> Approval:
        """What the person is shown."""
        return approval_of(self.call, self.workspace, self.grounds)

    @property
    def stands(self) -> bool:
        """Whether a yes that was given before, and waits for others, is one to this."""
        return bool(self.call.approved) and self.call.agreed == self.approval.digest

    def holds(self, decision: Decision) -> bool:
        """Whether a decision counts: a yes only for what would run now, a no in any case."""
        return decision.decision == "deny" or decision.digest == self.approval.digest

    def agreed(self, call: ToolTask) -> ToolTask:
        """Return the call, which may have been edited, as one that may run."""
        given = approval_of(call, self.workspace, self.grounds)
        return replace(call, status="ready", approved=given.exact, agreed=given.digest)


async def open_approvals(
    calls: Iterable[ToolTask], workspace: str | None, context: Context
) -> tuple[list[OpenApproval], dict[str, str]]:
    """Look at the calls as things stand; also return why some of them can not run at all, by id.

    A required one is asked about even so: a denial of it counts, whatever else there is.
    """
    opened: list[OpenApproval] = []
    hopeless: dict[str, str] = {}
    tree: str | None = None
    for call in calls:
        try:
            # Once for all of them: only now has the workspace to be there.
            known = context.tools.named(call.name)
            if tree is None and known is not None and known.builtin:
                tree = await tree_now(workspace, context)
            grounds = await grounds_of(call, workspace, context, tree=tree or "")
        except (ToolError, DarumaError) as error:
            if not call.required:
                hopeless[call.id] = f"not run: {error}"
                continue
            grounds = Grounds(sandbox=UNAVAILABLE)
        opened.append(OpenApproval(call, workspace, grounds))
    return opened, hopeless
