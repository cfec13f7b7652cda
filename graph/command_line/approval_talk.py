"""Asking about one call: everything is shown, and it can be changed before it is let run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from daruma.graph.command_line.assent import decision_on
from daruma.graph.command_line.choosing import Read, choice
from daruma.graph.command_line.cut import cut
from daruma.graph.command_line.drafts import Drafts
from daruma.graph.command_line.edit_preview import shown_approval
from daruma.graph.command_line.pager import paged
from daruma.graph.command_line.paper import Line, Paper

_OFFERED: Final = {
    "a": "[a]pprove",
    "d": "[d]eny",
    "e": "[e]dit",
    "s": "[s]how whole",
    "l": "[l]ater",
}


@dataclass
class ApprovalTalk:
    """How calls are decided. ``drafts`` keeps arguments that a person is editing."""

    paper: Paper
    read: Read
    drafts: Drafts

    def decide(self, approval: Mapping[str, Any], which: str = "") -> dict[str, Any]:
        """Return the decision on one call; ``which`` is its place, as in "3 of 5".

        What is agreed to is what was shown last. Raises
        :class:`~daruma.graph.command_line.choosing.Later`.
        """
        shown = approval
        self._show(shown, which)
        while True:
            said = choice(_OFFERED, self.read)
            if said == "a":
                return _agreed(approval, shown)
            if said == "d":
                return decision_on(
                    approval, "deny", self.read("  Why not (may be empty): ").strip()
                )
            if said == "s":
                paged(self.paper, shown_approval(shown))
            elif (args := self._edited(shown)) is not None:
                shown = edited_approval(approval, args)
                self._show(shown, "as you changed it")

    def _show(self, approval: Mapping[str, Any], which: str) -> None:
        self.paper.put(Line("head", "May this run?", which), *cut(shown_approval(approval)))

    def _edited(self, shown: Mapping[str, Any]) -> dict[str, Any] | None:
        from daruma.graph.command_line.yaml_text import from_yaml, to_yaml  # when one edits

        return self.drafts.written(
            shown["approval_id"], to_yaml(shown["args"]), from_yaml, self.paper, self.read
        )


def edited_approval(approval: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return an approval as it is with other arguments."""
    command = {"command": str(args.get("command", ""))} if approval.get("command") else {}
    return {**approval, **command, "args": dict(args), "warnings": ()}


def _agreed(approval: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    if shown["args"] == approval["args"]:
        return decision_on(approval, "approve")
    return decision_on(approval, "edit", args=shown["args"])
