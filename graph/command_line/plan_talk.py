"""Asking about a plan: it is shown with all that it brings along, and can be changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from daruma.graph.command_line.choosing import Read, choice, words
from daruma.graph.command_line.drafts import Drafts
from daruma.graph.command_line.pager import paged
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.plan_lines import review_lines
from daruma.state.interrupts import read_reply
from daruma.state.plan_reading import FIELDS

_OFFERED: Final = {
    "c": "[c]onfirm",
    "r": "[r]eject",
    "e": "[e]dit",
    "s": "[s]how whole",
    "l": "[l]ater",
}


@dataclass
class PlanTalk:
    """How a plan is decided. ``checks`` are the commands that judge the work at its end.

    ``drafts`` keeps a plan that a person is editing.
    """

    paper: Paper
    read: Read
    drafts: Drafts
    checks: Sequence[str] = ()

    def decide(self, value: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
        """Return the reply to a review. A ``known`` plan stands right above the question.

        Raises :class:`~daruma.graph.command_line.choosing.Later`.
        """
        own: dict[str, Any] | None = None
        parked = "parked: it waits, without a deadline" if value.get("parked") else ""
        self.paper.put(Line("head", "Is this plan right?", parked))
        self.paper.put(*review_lines(value, self.checks, known=known))
        while True:
            said = choice(_OFFERED, self.read)
            if said == "c":
                return {"decision": "edit", "plan": own} if own else {"decision": "confirm"}
            if said == "r":
                return {"decision": "reject", "feedback": words(_FEEDBACK, self.read)}
            if said == "s":
                paged(self.paper, review_lines({**value, **(own or {})}, self.checks))
            elif changed := self._edited(value, own):
                own = changed
                self.paper.put(Line("head", "Is this plan right?", "as you changed it"))
                self.paper.put(*review_lines({**value, **own}, self.checks))

    def _edited(
        self, value: Mapping[str, Any], own: Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        from daruma.graph.command_line.yaml_text import from_yaml  # when one edits

        def check(text: str) -> dict[str, Any]:
            plan = from_yaml(text)
            read_reply(value, {"decision": "edit", "plan": plan})
            return plan

        text = plan_text({**value, **(own or {})})
        return self.drafts.written(value["id"], text, check, self.paper, self.read)


_FEEDBACK: Final = "What should change (empty: later)"


def plan_text(value: Mapping[str, Any]) -> str:
    """Return a plan as YAML, with what of it can be changed."""
    from daruma.graph.command_line.yaml_text import to_yaml

    phases = [{k: v for k, v in phase.items() if k in FIELDS} for phase in value["phases"]]
    return to_yaml({"goal": value["goal"], "phases": phases})
