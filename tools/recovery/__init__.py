"""Recovery: the action that is taken against a failure, chosen, put to people, and carried out.

A model proposes it from a briefing, a rule stands in for the model, and what can not be allowed
becomes the next weaker action (RE-04 to RE-08).
"""

from daruma.tools.recovery._action import (
    RecoveryCase,
    action_by_rule,
    allowed_action,
    apply_reply,
    carry_out_action,
    close_on_bug,
    give_up,
    give_up_reason,
    question_of,
)
from daruma.tools.recovery._proposal import action_in, learned_against, render_briefing

__all__ = [
    "RecoveryCase",
    "action_by_rule",
    "action_in",
    "allowed_action",
    "apply_reply",
    "carry_out_action",
    "close_on_bug",
    "give_up",
    "give_up_reason",
    "learned_against",
    "question_of",
    "render_briefing",
]
