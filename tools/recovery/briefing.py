"""What a model is told of a failure when it is asked for an action against it (RE-04). Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.progress import progress_of
from daruma.tools.context_window.shortening import ends
from daruma.tools.offer import Offer

EXCERPT: Final = 300
"""Characters of each fact and each call that are shown."""
LONGEST_GOAL: Final = 2000
"""Characters of the goal that are shown."""
LONGEST_PART: Final = 2500
"""Characters of each part: however many tools there are, all seven are some 5,000 tokens."""
FACTS: Final = 5
"""Results of tools that are shown as known facts, the newest."""


def briefing(state: State, failure: Failure, offer: Offer, stand_ins: Collection[str] = ()) -> str:
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
    bounded = {title: ends(text, LONGEST_PART) for title, text in parts.items()}
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


def _tools(failure: Failure, offer: Offer, others: Collection[str]) -> list[str]:
    shown = [f"{tool.name}: {_short(tool.description)}" for tool in offer.tools]
    return shown + ([f"could stand in for {failure.tool}: {', '.join(others)}"] if others else [])
