"""What a model is told of a failure, and the action that it proposes (RE-04, RE-05, RE-08)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, get_args

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.progress import progress_of
from daruma.state.recovery import RecoveryAction, Strategy
from daruma.state.text import storable_text, unstorable_part
from daruma.tools.calls import VisibleTools
from daruma.tools.calls.repair import read_object
from daruma.tools.context import Context
from daruma.tools.evolution import MetFailure, finish_within, learned_action
from daruma.tools.text import without_keys
from daruma.tools.window import text_ends

# --- What a model is told of a failure when it is asked for an action against it (RE-04). Pure.

EXCERPT: Final = 300
"""Characters of each fact and each call that are shown."""
LONGEST_GOAL: Final = 2000
"""Characters of the goal that are shown."""
LONGEST_PART: Final = 2500
"""Characters of each part: however many tools there are, all seven are some 5,000 tokens."""
FACTS: Final = 5
"""Results of tools that are shown as known facts, the newest."""


def render_briefing(
    state: State, failure: Failure, offer: VisibleTools, stand_ins: Collection[str] = ()
) -> str:
    """Return goal, progress, latest step, known facts, blockers and analysis, in that order.

    ``stand_ins`` are tools that could be used in place of the one that failed.
    """
    progress = progress_of(state)
    parts = {
        "Goal": state.task.goal[:LONGEST_GOAL] if state.task else "",
        "Progress": f"{progress.percent} %. {progress.reasoning} Next: {progress.next_milestone}",
        "Latest step": _latest(state.messages),
        "Known facts": _lines(_facts(state.messages)),
        "Blockers": _lines(dict.fromkeys((failure.message, *progress.blockers))),
        "Analysis": _lines(_analysis(state, failure)),
        "Tools": _lines(_tools(failure, offer, stand_ins)),
    }
    bounded = {title: text_ends(text, LONGEST_PART) for title, text in parts.items()}
    return "\n\n".join(f"{title}:\n{text or '(none)'}" for title, text in bounded.items())


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]} ..."


def _latest(messages: Sequence[AnyMessage]) -> str:
    answers = [m for m in messages if isinstance(m, AIMessage)]
    if not answers:
        return ""
    last = answers[-1]
    called = [_short(f"called {call['name']}({call['args']})") for call in last.tool_calls]
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    came = [results[str(c["id"])] for c in last.tool_calls if str(c["id"]) in results]
    said = [_short(last.text)] if last.text.strip() else []
    return _lines([*said, *called, *(_short(f"{m.name} gave: {m.text}") for m in came)])


def _facts(messages: Sequence[AnyMessage]) -> list[str]:
    found = [
        m
        for m in messages
        if isinstance(m, ToolMessage) and m.status == "success" and m.text.strip()
    ]
    return [_short(f"{m.name}: {m.text}") for m in found[-FACTS:]]


def _analysis(state: State, failure: Failure) -> list[str]:
    said = [f"code {failure.code}, in {failure.node}"]
    said += [f"caused by {failure.original_error}"] if failure.original_error else []
    said += [f"about the tool {failure.tool}"] if failure.tool else []
    tried = [s.recovery for s in budget.in_scope(state) if s.recovery]
    said += [f"tried before: {each.strategy} ({each.code})" for each in tried]
    spent = budget.in_phase(state, "think")
    limit = state.task.limits.think if state.task else 0
    said.append(f"model calls spent: {spent} of {limit}")
    instructed = [m for m in state.messages if isinstance(m, HumanMessage)]
    return said + ([f"last instruction: {_short(instructed[-1].text)}"] if instructed else [])


def _tools(failure: Failure, offer: VisibleTools, others: Collection[str]) -> list[str]:
    shown = [f"{tool.name}: {_short(tool.description)}" for tool in offer.tools]
    return shown + ([f"could stand in for {failure.tool}: {', '.join(others)}"] if others else [])


# --- What has worked before against a failure, where there is a record of that (RE-08).

LEARNED_SECONDS: Final = 2.0
"""Longer it is not waited for: a model is asked instead."""


async def learned_against(
    state: State, failure: Failure, context: Context, *, seconds: float = LEARNED_SECONDS
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    None unless what was learned is fed back. It never raises, and waits no longer: a fault of the
    store is as good as knowing nothing.
    """
    store, given, task = context.store, context.settings.evolution, state.task
    if store is None or task is None or not given.enabled or given.observe_only:
        return None
    signature = without_keys(storable_text(failure.signature))  # as it is kept
    met = MetFailure(task.experience_owner, actor_of(state, failure), signature)
    with suppress(Exception):
        return await finish_within(
            learned_action(store, met, context.settings, context.now()), seconds
        )
    return None


def actor_of(state: State, failure: Failure) -> str:
    """Return whom a failure happened to: a member of the team, ``plan`` or ``main``."""
    if state.task and state.task.expert:
        return state.task.expert
    return "plan" if failure.node == "plan" else "main"


# --- Reading the action that a model proposes against a failure. Pure; it never raises (RE-05).

LONGEST: Final = 2000
"""Characters of each text of an action that are kept."""


def action_in(text: str) -> RecoveryAction | None:
    """Return the one action that an answer holds; None if it holds none, or several.

    What is said of its confidence counts only as a number from 0 to 1: anything else is no
    confidence at all, so that a person is asked.
    """
    said = read_object(text) or {}
    strategy = _strategy(said.get("strategy"))
    if strategy is None:
        return None
    action = said.get("action")
    details = action if isinstance(action, Mapping) else said
    parameters = details.get("parameters")
    if unstorable_part(parameters):
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


def _strategy(said: object) -> Strategy | None:
    name = said.strip().lower().replace("_", "-").replace(" ", "-") if isinstance(said, str) else ""
    return next((known for known in get_args(Strategy) if known == name), None)


def _text(said: object) -> str:
    return storable_text(said).strip()[:LONGEST] if isinstance(said, str) else ""


def _confidence(said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0.0
    return float(said) if 0 <= said <= 1 else 0.0
