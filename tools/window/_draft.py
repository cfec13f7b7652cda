"""A request that holds the history, before it is sent: what it weighs, and if that is too much.

Main, plan and reflect make one, and do not ask where it is over its budget: the machine then brings
it under that, and comes back."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from langchain_core.messages import AnyMessage

from daruma.state.budget import latest_of_task
from daruma.state.channels import State, Update
from daruma.state.failure import Failure, ModelFailed
from daruma.state.steps import Asking, Crowded, StepKind
from daruma.tools.calls import Tool
from daruma.tools.context import Context
from daruma.tools.provider_messages import Sendable, request
from daruma.tools.tokens import REPLY
from daruma.tools.window._view import view

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
        if step.counted and step.usage and not step.usage.estimated and step.usage.input_tokens:
            return min(max(1.0, step.usage.input_tokens / step.counted), MOST_FACTOR)
    return 1.0


def budget_of(state: State, context: Context) -> int | None:
    """Return the most tokens of a request: of the settings, or learnt from a refusal."""
    learnt = state.compaction and state.compaction.limit_of == state.task_id
    limits = (
        context.settings.llm.context_window_tokens,
        state.compaction.limit if state.compaction and learnt else None,
    )
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
    if _compactions_in_a_row(state) >= MOST_IN_A_ROW:
        return weight.counted, too_large(draft, weight, budget, limit_named(state, context))
    return weight.counted, _crowded(draft, weight, budget)


def _compactions_in_a_row(state: State) -> int:
    """Count the compactions that the task has just made, with nothing but their calls between."""
    count = 0
    for step in latest_of_task(state):
        if step.kind not in ("compress", "summarise"):
            break
        count += step.kind == "compress"
    return count


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
        if step.kind == STEP_OF[node] and step.ok:
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
