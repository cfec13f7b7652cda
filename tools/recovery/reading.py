"""Reading the action that a model proposes against a failure. Pure; it never raises (RE-05)."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.texts import readings
from daruma.tools.results import clean
from daruma.tools.storable_args import unstorable

LONGEST: Final = 2000
"""Characters of each text of an action that are kept."""


def action_in(text: str) -> RecoveryAction | None:
    """Return the one action that an answer holds; None if it holds none, or several.

    What is said of its confidence counts only as a number from 0 to 1: anything else is no
    confidence at all, so that a person is asked.
    """
    said = _object_in(text)
    strategy = _strategy(said.get("strategy"))
    if strategy is None:
        return None
    action = said.get("action")
    details = action if isinstance(action, Mapping) else said
    parameters = details.get("parameters")
    if unstorable(parameters):
        return None
    return RecoveryAction(
        strategy=strategy,
        reasoning=_text(said.get("reasoning")),
        tool_name=_text(details.get("tool_name")) or None,
        parameters=dict(parameters) if isinstance(parameters, Mapping) else None,
        escalation_message=_text(details.get("escalation_message")),
        expected_outcome=_text(said.get("expected_outcome")),
        confidence=_confidence(said.get("confidence")),
    )


def _object_in(text: str) -> Mapping[str, Any]:
    try:
        found = readings(text, frozenset())
    except Unreadable:
        return {}
    value = found[0].value
    whole = len(found) == 1 and not found[0].unclosed
    return value if whole and isinstance(value, Mapping) else {}


def _strategy(said: object) -> Strategy | None:
    name = said.strip().lower().replace("_", "-").replace(" ", "-") if isinstance(said, str) else ""
    return next((known for known in get_args(Strategy) if known == name), None)


def _text(said: object) -> str:
    return clean(said).strip()[:LONGEST] if isinstance(said, str) else ""


def _confidence(said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0.0
    return float(said) if 0 <= said <= 1 else 0.0
