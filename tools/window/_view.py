"""A request that holds the history: what is sent of that, what it weighs, and if that is too
much.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import ceil
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from daruma.state.budget import latest_of_task
from daruma.state.channels import State, Update
from daruma.state.failure import Failure, ModelFailed
from daruma.state.messages import Growing, growing
from daruma.state.steps import Asking, Compaction, ContextUsage, Crowded, StepKind
from daruma.state.text import REFERENCE, left_out, storable_text
from daruma.tools.calls import Tool
from daruma.tools.context import Context
from daruma.tools.model_requests import (
    REPLY,
    Sendable,
    Tokens,
    pitfall_messages,
    repository_instructions,
    request,
)

# --- Showing less of one message: a placeholder for a tool's output, or the two ends of long texts.
#
# What is short enough stays as it is, so that shortening twice is shortening once.

PRUNED: Final = 300
"""Characters of a tool's output that stay in a pruned history; a placeholder is shorter."""
SHRUNK: Final = 600
"""Characters of a text in a shrunk turn: a paragraph from each end, or so."""

M = TypeVar("M", bound=BaseMessage)


def text_ends(text: str, most: int) -> str:
    """Return at most so many characters: the text, or its ends and how much is between them."""
    if len(text) <= most:
        return text
    mark = f"\n[... {len(text)} characters, shortened ...]\n"
    room = most - len(mark)
    if room <= 0:
        return text[:most]
    return f"{text[: room - room // 2]}{mark}{text[len(text) - room // 2 :]}"


def prune_output(message: M) -> M:
    """Return a tool's output as one line that says whose it was, and how to read it again."""
    if not isinstance(message, ToolMessage):
        return message
    whole = message.content if isinstance(message.content, str) else message.text
    if len(whole) <= PRUNED and isinstance(message.content, list):
        images = sum(not _is_text(part) for part in message.content)
        note = f"{whole}\n[images left out to save room: {images}]"
        return message.model_copy(update={"content": note}) if images else message
    if len(whole) <= PRUNED:  # of a string LangChain's ``text`` would be a copy
        return message
    size, reference = len(whole), message.additional_kwargs.get(REFERENCE)
    line = left_out(size, reference) if reference else f"[{size} characters left out to save room]"
    return message.model_copy(update={"content": f"{(message.name or 'tool')[:64]}: {line}"})


def shorten_message(message: M, most: int) -> M:
    """Return a message of which no text is longer than ``most``; what is no text is named only."""
    changes: dict[str, Any] = {}
    content = _content(message, most)
    if content != message.content:
        changes["content"] = content
    if isinstance(message, AIMessage):
        changes |= _calls(message, most)
    return message.model_copy(update=changes) if changes else message


def _content(message: BaseMessage, most: int) -> Any:
    if isinstance(message.content, str):
        return text_ends(message.content, most)
    others = [part for part in message.content if not _is_text(part)]
    if not others and len(message.text) <= most:
        return message.content
    note = f"[{len(others)} parts that are no text, left out]" if others else ""
    return text_ends(message.text, max(0, most - len(note) - 1)) + ("\n" + note if note else "")


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")


def _calls(message: AIMessage, most: int) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    calls = [{**call, "args": _args(call["args"], most)} for call in message.tool_calls]
    if calls != message.tool_calls:
        changes["tool_calls"] = calls
    broken = message.invalid_tool_calls
    if any(len(call["args"] or "") > most for call in broken):
        short = [{**call, "args": text_ends(call["args"] or "", most)} for call in broken]
        changes["invalid_tool_calls"] = short
    return changes


def _args(args: dict[str, Any], most: int) -> dict[str, Any]:
    """Return arguments with the ends of their long texts; where that is not enough, their size."""
    size = len(json.dumps(args, default=str))
    if size <= most:
        return args
    short = {
        key: text_ends(each, most // 2) if isinstance(each, str) else each
        for key, each in args.items()
    }
    if len(json.dumps(short, default=str)) <= 2 * most:
        return short
    return {"left_out": f"{size} characters of arguments"}


# --- What of a history is sent: all of it, or what its compaction says. Pure.
#
# Messages are only ever added to a history, so what is shown of it between two compactions only
# ever grows at its end: providers cache the beginning of a request.

SUMMARY_ID: Final = "daruma:summary"
_MOST_KNOWN: Final = 3
"""Views of one history: the last one, and what is tried beside it to bring it under its budget."""

_SUMMARY: Final = """\
<summary_of_earlier_messages count="{count}">
{text}
</summary_of_earlier_messages>
The {count} messages that stood here are left out; this is a record of them, not a new request."""


def view(messages: Sequence[AnyMessage], compaction: Compaction | None) -> list[AnyMessage]:
    """Return the messages as they are sent. Viewing a view changes nothing.

    A place that is not in the history any more is one that nothing was done through.
    """
    history = growing(messages)
    if compaction is None:
        return history
    known, told = history.known(_grown, _NO_VIEWS), _told(compaction)
    shown = next((each for each in known if _told(each.compaction) == told), None)
    shown = shown or _gone_on(history, compaction, known) or _begun(history, compaction)
    if not known or shown is not known[0]:
        others = [each for each in known if each is not shown]
        history.note(_grown, (shown, *others)[:_MOST_KNOWN])
    return shown.messages


_told: Final = attrgetter(
    "summary",
    "summarised",
    "summarised_through",
    "kept",
    "pruned_through",
    "shrunk_through",
    "cut",
    "cut_through",
)
"""All of a compaction that what is shown depends on."""
_head: Final = attrgetter("summary", "summarised", "summarised_through", "kept")
"""What of it says which messages are sent, shortened or not."""


class Places(NamedTuple):
    """How many messages of a view, from its beginning, each measure is for."""

    pruned: int = 0
    shrunk: int = 0
    cut: int = 0


@dataclass(frozen=True)
class Shown:
    """What is sent of a history under a compaction, for as long as the history only grows.

    The ``head`` is as many messages as stand before those of the history from ``begins`` on;
    ``older`` is what is sent through the last of the ``places``: behind it all is as it was said.
    """

    compaction: Compaction
    head: int
    begins: int
    places: Places
    older: Growing[AnyMessage]
    messages: Growing[AnyMessage]


_NO_VIEWS: Final[tuple[Shown, ...]] = ()


def _grown(known: tuple[Shown, ...], messages: Sequence[AnyMessage]) -> tuple[Shown, ...]:
    """Return the last view with messages added; none if they hold a place: it is another then."""
    return tuple(
        replace(shown, messages=shown.messages.with_more(messages))
        for shown in known[:1]
        if not _holds_a_place(messages, shown.compaction)
    )


def _holds_a_place(messages: Sequence[AnyMessage], told: Compaction) -> bool:
    places = (SUMMARY_ID, told.summarised_through, *_ends(told))
    return any(message.id and message.id in places for message in messages)


def _ends(told: Compaction) -> tuple[str, str, str]:
    """Return the ids of the last messages that each measure is for."""
    return told.pruned_through, told.shrunk_through, told.cut_through


def _begun(history: Sequence[AnyMessage], told: Compaction) -> Shown:
    """View a history from its beginning."""
    begins = after(history, told.summarised_through)
    head = [each for each in history[:begins] if stays(each, told.kept)]
    there = begins < len(history) and history[begins].id == SUMMARY_ID
    if begins and told.summary and not there:
        text = told.summary.replace("</summary_of", "< /summary_of")
        stands_for = _SUMMARY.format(count=told.summarised, text=text)
        head.append(HumanMessage(stands_for, id=SUMMARY_ID))
    whole = [*head, *history[begins:]]
    places = Places(*(after(whole, id_) for id_ in _ends(told)))
    older = growing(_shortened(whole[: max(places)], told, places))
    messages = older.followed_by(whole[max(places) :])
    return Shown(told, len(head), begins, places, older, messages)


def _gone_on(
    history: Sequence[AnyMessage], told: Compaction, known: Sequence[Shown]
) -> Shown | None:
    """View a history from where a known view of it begins to differ; None where all may."""
    base = next((each for each in known if _head(each.compaction) == _head(told)), None)
    if base is None:
        return None
    before, ends = _ends(base.compaction), _ends(told)
    places = Places(
        *(
            place if end == was else _place(history, end, base)
            for place, was, end in zip(base.places, before, ends, strict=True)
        )
    )
    same = _same(base, told, places)
    if same < base.head:
        return None
    last = max(places)
    raw = history[same - base.head + base.begins :]
    older = base.older if same == len(base.older) else Growing(base.older[:same])
    older = older.with_more(_shortened(raw[: last - same], told, places, at=same))
    messages = older.followed_by(raw[last - same :])
    return Shown(told, base.head, base.begins, places, older, messages)


def _place(history: Sequence[AnyMessage], id_: str, base: Shown) -> int:
    """Return the place in a view behind the message of an id."""
    found = after(history, id_, base.begins)
    return found - base.begins + base.head if found else after(base.messages[: base.head], id_)


def _same(base: Shown, told: Compaction, places: Places) -> int:
    """Return how many messages are shown in both views, and in the same way."""
    moved = (min(pair) for pair in zip(base.places, places, strict=True) if pair[0] != pair[1])
    same = min(moved, default=len(base.older))
    return 0 if places.cut and base.places.cut and told.cut != base.compaction.cut else same


def after(messages: Sequence[BaseMessage], id_: str, begins: int = 0) -> int:
    """Return the place behind the message of an id, which is mostly one of the last; else 0."""
    found = (n for n in range(len(messages), begins, -1) if messages[n - 1].id == id_)
    return next(found, 0) if id_ else 0


def stays(message: BaseMessage, kept: Collection[str]) -> bool:
    """Whether a message is sent beside a summary that reaches beyond it."""
    return isinstance(message, SystemMessage) or message.id in kept


def _shortened(
    messages: Sequence[AnyMessage], told: Compaction, places: Places, *, at: int = 0
) -> list[AnyMessage]:
    """Return messages of a view, the first of which stands at a place, as they are sent."""
    return [_less(message, n, told, places) for n, message in enumerate(messages, at)]


def _less(message: AnyMessage, at: int, told: Compaction, places: Places) -> AnyMessage:
    whole = message.id == SUMMARY_ID or stays(message, told.kept)
    less = prune_output(message) if at < places.pruned else message
    less = shorten_message(less, SHRUNK) if at < places.shrunk and not whole else less
    return shorten_message(less, told.cut) if at < places.cut else less


# --- Which part of a history may be left out, and which is the latest: rounds are never torn apart.


def starts(messages: Sequence[BaseMessage]) -> Iterator[int]:
    """Yield where each part begins, the last first: a message, or an answer with its results.

    Of a long history only the end is looked at.
    """
    places = range(len(messages) - 1, -1, -1)
    return (n for n in places if not isinstance(messages[n], ToolMessage))


def latest(messages: Sequence[AnyMessage], room: int, weigh: Callable[[AnyMessage], int]) -> int:
    """Return where the latest part begins, which is left as it is.

    That is as many of the last parts as ``room`` has tokens for, and always the last answer with
    all that follows it. What is before ends with a message that has an id.
    """
    answers = (n for n in starts(messages) if isinstance(messages[n], AIMessage))
    begins, weight, end = next(answers, next(starts(messages), 0)), 0, len(messages)
    for start in starts(messages):
        weight += sum(map(weigh, messages[start:end]))
        end = start
        if weight > room:
            break
        begins = min(begins, start)
    return _named(messages, begins)


def _named(messages: Sequence[AnyMessage], begins: int) -> int:
    """Return the nearest place before which there is a message with an id."""
    places = (n for n in starts(messages[: begins + 1]) if n > 0)
    return next((n for n in places if messages[n - 1].id not in (None, SUMMARY_ID)), 0)


# --- A request that holds the history, before it is sent: what it weighs, and if that is too much.
#
# Main, plan and reflect make one, and do not ask where it is over its budget: the machine then
# brings it under that, and comes back.

MOST_FACTOR: Final = 2.0
"""By how much more a provider may be seen to count than we do; beyond it is something else."""
SETTING: Final = "llm.context_window_tokens"
BELOW_REFUSED: Final = 0.7
"""Part of a request that was refused as too long which the next one may have."""
MOST_IN_A_ROW: Final = 2
STEP_OF: Final[dict[Asking, StepKind]] = {"main": "think", "plan": "plan", "reflect": "reflect"}


@dataclass(frozen=True)
class Draft:
    """``head`` is the prompt, ``recalled`` what memory holds of the task, ``tail`` notes.

    ``history`` is what is shown of it: made once, as it takes time for each message.

    What was recalled stands at one place for a whole task, and is not sent once it was dropped.
    """

    node: Asking
    head: Sequence[AnyMessage]
    history: Sequence[AnyMessage]
    recalled: Sequence[AnyMessage] = ()
    tail: Sequence[AnyMessage] = ()
    tools: Sequence[Tool] = ()

    def messages(self, state: State) -> Sendable:
        """Return the messages of the request, as they are sent."""
        return request([*self.head, *self.remembered(state)], self.history, self.tail)

    def remembered(self, state: State) -> Sequence[AnyMessage]:
        """Return what of the recalled is sent."""
        dropped = state.compaction is not None and state.compaction.memory == state.task_id
        return () if dropped else self.recalled


def sent_history(state: State) -> list[AnyMessage]:
    """Return the history as it is sent."""
    return view(state.messages, state.compaction)


@dataclass(frozen=True)
class Weight:
    """What a request weighs in tokens by our own count: its parts, and in all ``counted``."""

    fixed: int
    memory: int
    history: int
    factor: float

    @property
    def counted(self) -> int:
        """Our own count."""
        return self.fixed + self.memory + self.history

    @property
    def tokens(self) -> int:
        """What the provider counts, as far as it was seen to count more than we do."""
        return ceil(self.counted * self.factor)


def weight_of(draft: Draft, state: State, context: Context) -> Weight:
    """Weigh a request as it is sent."""
    tokens = context.tokens
    return Weight(
        fixed=tokens.of_messages([*draft.head, *draft.tail]) + tokens.of_tools(draft.tools) + REPLY,
        memory=tokens.of_messages(draft.remembered(state)),
        history=tokens.of_history(draft.history),
        factor=factor_of(state),
    )


def factor_of(state: State) -> float:
    """Return how much more than we a provider counted when it was last asked: 1 to 2."""
    for step in reversed(state.steps):
        told = step.usage and not step.usage.estimated and not step.helper
        if step.counted and told and step.usage and step.usage.input_tokens:
            return min(max(1.0, step.usage.input_tokens / step.counted), MOST_FACTOR)
    return 1.0


def budget_of(state: State, context: Context) -> int | None:
    """Return the most tokens of a request: of the settings, or learnt from a refusal."""
    learnt = state.compaction and state.compaction.limit_of == state.task_id
    own = state.compaction.limit if state.compaction and learnt else None
    limits = (context.settings.llm.context_window_tokens, own)
    return min((each for each in limits if each), default=None)


def limit_named(state: State, context: Context) -> str:
    """Say where the budget of a request comes from, and what to do where it is too small."""
    if budget_of(state, context) == context.settings.llm.context_window_tokens:
        return f"of {SETTING}: raise it"
    return "that the provider was found to take: take another model"


def check_size(
    draft: Draft, state: State, context: Context
) -> tuple[int, Crowded | Failure | None]:
    """Return our count of a request, and what is wrong with it; 0 where there is no budget.

    After two compactions in a row nothing more can be done about a request that is too large: the
    second is for what came in beside the first, such as a note about changed files.
    """
    budget = budget_of(state, context)
    if budget is None:
        return 0, None
    weight = weight_of(draft, state, context)
    if weight.tokens <= budget:
        return weight.counted, None
    # What the task has just done, with nothing but the calls of compactions between.
    lately = takewhile(lambda step: step.kind in ("compress", "summarise"), latest_of_task(state))
    if sum(step.kind == "compress" for step in lately) >= MOST_IN_A_ROW:
        return weight.counted, too_large(draft, weight, budget, limit_named(state, context))
    return weight.counted, _crowded(draft, weight, budget)


def after_provider_refusal(
    draft: Draft, state: State, context: Context, error: ModelFailed
) -> Crowded | None:
    """Return what there is to do about a request that a provider found too long; None if nothing.

    Once: when the next one is refused too, it is a failure like any other.
    """
    if error.too_long is None or _was_refused(state, draft.node):
        return None
    weight = weight_of(draft, state, context)
    most, sent = error.too_long
    meant = most * weight.tokens / (sent or weight.tokens) if most else weight.tokens
    budget = int(BELOW_REFUSED * min(weight.tokens, meant))
    return _crowded(draft, weight, budget, error)


def _was_refused(state: State, node: Asking) -> bool:
    """Whether a refusal has led to a compaction since the node was last answered."""
    for step in latest_of_task(state):
        if step.kind in (STEP_OF[node], "look") and step.ok:
            return False
        if step.context_cost and step.context_cost.refused:
            return True
    return False


def _crowded(
    draft: Draft, weight: Weight, budget: int, error: ModelFailed | None = None
) -> Crowded:
    return Crowded(
        node=draft.node,
        budget=budget,
        fixed=weight.fixed,
        memory=weight.memory,
        tools=len(draft.tools),
        factor=weight.factor,
        refused=str(error) if error else "",
        failover=error.failover if error else None,
    )


def too_large(draft: Draft, weight: Weight, budget: int, limit: str) -> Failure:
    """Return the failure of a request that is over its budget though all was done about it."""
    said = f"the request takes {weight.tokens} of the {budget} tokens {limit}"
    return Failure(code="bad_request", node=draft.node, message=said)


def too_large_update(found: Crowded | Failure) -> Update:
    """Return the update of a node whose request was not answered, as it was too large."""
    return {"failure": found, "calls": ()} if isinstance(found, Failure) else {"crowded": found}


# --- What the window is spent on: the tokens of a request by its parts (CX-08).

_MOST_TOOLS: Final = 20
"""Tools whose results are counted apart: the model writes their names."""
_OURS: Final = re.compile(
    r"/[0-9]+(?:/plan-[0-9]+)?:(begin|plan|verification|reflection|recovery)\b"
)
_PART: Final = {"begin": "plan", "plan": "plan"}

_Sizes = tuple[Tokens, dict[str, int]]


def context_usage(draft: Draft, state: State, context: Context) -> ContextUsage:
    """Return what a request is made of, counted as its budget is."""
    tokens = context.tokens
    nothing: _Sizes = (tokens, {})
    _, said = growing(draft.history).known(_by_part, nothing, of=tokens)
    recalled = tokens.of_messages(draft.remembered(state))
    pitfalls = tokens.of_messages(pitfall_messages(state, "main")) if recalled else 0
    own = tokens.of(repository_instructions(state))
    parts = {
        "system prompt": tokens.of_messages(draft.head) - own + REPLY,
        "project instructions": own,
        "tools": tokens.of_tools(draft.tools),
        "memory": recalled - pitfalls,
        "pitfalls": pitfalls,
        **said,
    }
    parts["notes"] = parts.get("notes", 0) + tokens.of_messages(draft.tail)
    shown = sum(said.values())
    whole = tokens.of_history(state.messages) if state.compaction else 0
    used = (step.usage for step in latest_of_task(state) if step.kind == "think" and step.usage)
    last = next(used, None)
    told = last is not None and not last.estimated
    return ContextUsage(
        parts={part: size for part, size in parts.items() if size},
        limit=budget_of(state, context),
        saved=max(0, whole - shown),
        exact=tokens.exact,
        told=last.input_tokens if last and told else 0,
        cached=last.cached_tokens if last and told else 0,
    )


def _by_part(known: _Sizes, messages: Sequence[BaseMessage]) -> _Sizes:
    tokens, sizes = known[0], dict(known[1])
    for message in messages:
        part = _part_of(message)
        if part not in sizes and part.startswith("results") and len(sizes) >= _MOST_TOOLS:
            part = "results of other tools"
        sizes[part] = sizes.get(part, 0) + tokens.of_message(message)
    return tokens, sizes


def _part_of(message: BaseMessage) -> str:
    if message.id == SUMMARY_ID:
        return "summary"
    if found := _OURS.search(str(message.id)):
        return _PART.get(found[1], "notes")
    if isinstance(message, ToolMessage):
        return f"results of {storable_text((message.name or 'unknown')[:64])}"
    return "model" if isinstance(message, AIMessage) else "user"
