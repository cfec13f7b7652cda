"""Which action against a failure may be taken, and whether a person is asked first. Pure."""

from collections.abc import Collection
from dataclasses import replace

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.recoveries import MAX_TOOL_RETRIES, retries_of
from daruma.state.recovery import Assent, RecoveryAction, Strategy
from daruma.state.settings_fallback import Recovery

_AGAIN = ("retry", "parameter-adjustment")


def hopeless(state: State, failure: Failure) -> str:
    """Say why nothing more can be tried against a failure; empty if something can (RE-07)."""
    limit = state.task.limits.recoveries if state.task else 0
    if failure.final:
        return "trying again can not help"
    if budget.recoveries(state, failure) >= limit:
        return "it came again after it had been dealt with" if limit else "recovery is switched off"
    if not _room(state, failure):
        return "the budget is spent"
    return ""


def by_rule(state: State, failure: Failure) -> RecoveryAction:
    """Return RE-05's action: adjust after a first failure, ask a person after a repeated one."""
    if why := hopeless(state, failure):
        return RecoveryAction(strategy="give-up", reasoning=why, confidence=1.0, by="rule")
    again = budget.recoveries(state, failure) > 0
    strategy: Strategy = "escalate" if again else "parameter-adjustment"
    return RecoveryAction(strategy=strategy, confidence=1.0, by="rule")


def allowed(
    action: RecoveryAction, state: State, failure: Failure, names: Collection[str]
) -> RecoveryAction:
    """Return an action, or what comes next to it where it can not be taken.

    ``names`` are the tools that are shown. A tool is tried again ``MAX_TOOL_RETRIES`` times, then
    another has to be chosen (RE-07); without any other, a person. A plan calls no tools.
    """
    if failure.node == "plan" and action.strategy in ("alternative-tool", "parameter-adjustment"):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    if action.strategy == "alternative-tool" and not hides(action, failure, names):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    again = action.strategy in _AGAIN and tool_of(action, failure)
    if again and retries_of(state, again) >= MAX_TOOL_RETRIES:
        other = replace(action, strategy="alternative-tool", tool_name=None, parameters=None)
        action = other if hides(other, failure, names) else replace(other, strategy="escalate")
    if action.strategy == "alternative-tool" and action.tool_name not in names:
        action = replace(action, tool_name=None)
    return action


def tool_of(action: RecoveryAction, failure: Failure) -> str:
    """Return the tool that an action has tried again; empty if none."""
    if action.strategy not in _AGAIN:
        return ""
    return action.tool_name or failure.tool


def hides(action: RecoveryAction, failure: Failure, names: Collection[str]) -> str:
    """Return the tool that an action hides: the one that failed, if there is any other."""
    if action.strategy != "alternative-tool" or action.tool_name == failure.tool:
        return ""
    return failure.tool if failure.tool in names and len(names) > 1 else ""


def with_assent(action: RecoveryAction, settings: Recovery) -> RecoveryAction:
    """Return an action with what a person is asked before it: by how sure it is (RE-06).

    To escalate is to ask, whatever the confidence.
    """
    if action.strategy == "escalate":
        return replace(action, assent="question")
    if action.confidence >= settings.execute_above:
        return replace(action, assent="")
    asked: Assent = "approval" if action.confidence >= settings.ask_above else "question"
    return replace(action, assent=asked)


def _room(state: State, failure: Failure) -> bool:
    if failure.node == "plan":
        return budget.can_plan(state)
    verified = failure.node != "verify" or budget.can_verify(state)
    return verified and budget.can_think(state)
