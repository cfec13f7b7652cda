"""What is done about a failure: the action that recovery chose, and what is on record of it."""

from typing import Any, Final, Literal

from daruma.state.record import plain_values, record

Strategy = Literal["retry", "alternative-tool", "parameter-adjustment", "escalate", "give-up"]
"""The five strategies of RE-04."""

ChosenBy = Literal["model", "rule", "learned"]

Assent = Literal["", "approval", "question"]
"""What a person is asked before an action is done: nothing, whether to do it, or what to do."""


@record
class RecoveryAction:
    """One action against a failure (RE-04). ``confidence`` is from 0 to 1.

    ``tool_name`` is the tool that the action is about: the one to call with ``parameters``, or the
    one to use in place of what failed. ``escalation_message`` is the question to a person;
    ``assent`` says what a person is asked before anything is done.
    """

    strategy: Strategy
    reasoning: str = ""
    tool_name: str | None = None
    parameters: dict[str, Any] | None = None
    escalation_message: str = ""
    expected_outcome: str = ""
    confidence: float = 0.0
    by: ChosenBy = "model"
    assent: Assent = ""
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of RE-04 as JSON-able values, and who chose it."""
        return {
            "strategy": self.strategy,
            "reasoning": self.reasoning,
            "action": {
                "tool_name": self.tool_name,
                "parameters": self.parameters,
                "escalation_message": self.escalation_message,
            },
            "expected_outcome": self.expected_outcome,
            "confidence": self.confidence,
            "by": self.by,
        }


Carried = Literal["executed", "approved", "denied", "instructed", "answered", "observed"]
"""What became of an action: done at once or after a yes, replaced by a person's, or only seen."""

DONE: Final = ("executed", "approved")
"""The action itself was done."""


@record
class Recovered:
    """What the record of steps keeps of a recovery. ``code`` is that of the failure.

    ``tool`` is the tool that is tried again, ``hides`` the one that the next request does not show,
    ``instead`` the one to use in its place; ``reasoning`` is the chooser's, cut short.
    ``worked`` is set in a task's result: whether work went on and the failure did not come again.
    """

    code: str
    strategy: Strategy
    by: ChosenBy
    carried: Carried
    confidence: float = 0.0
    tool: str = ""
    hides: str = ""
    instead: str = ""
    reasoning: str = ""
    worked: bool | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return plain_values(self)
