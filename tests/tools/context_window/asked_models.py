"""Models by role that answer as told, for what asks one after the other."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from tests.parts import a_context, a_state, a_task

from daruma.state.channels import State
from daruma.state.failure import ModelFailed
from daruma.state.steps import Compaction, Crowded
from daruma.state.usage import Role, Usage
from daruma.tools.context import Answer, Context
from daruma.tools.window import CompactionResult, compact_history

Says = Callable[[Sequence[BaseMessage]], AIMessage | str]
T = TypeVar("T")


def fails(_: Sequence[BaseMessage]) -> str:
    raise ModelFailed("down")


def reads(messages: Sequence[BaseMessage]) -> str:
    """Summarise as a model does that reads: what is marked as to be remembered."""
    words = " ".join(each.text for each in messages[1:]).split()
    return (
        " ".join(dict.fromkeys(word for word in words if word.startswith("NEEDLE"))) or "Nothing."
    )


SAYS: Mapping[str, Says] = {
    "well": lambda _: "They talked.",
    "reads": reads,
    "fails": fails,
    "blank": lambda _: " \n\u200b",
    "refuses": lambda _: AIMessage("", additional_kwargs={"refusal": "no"}),
    "is cut off": lambda _: AIMessage("They", response_metadata={"finish_reason": "length"}),
    "calls": lambda _: AIMessage("x", tool_calls=[{"name": "look", "args": {}, "id": "c"}]),
    "talks": lambda _: "They talked about it. " * 3000,
}


class Models:
    """An ``Ask`` with a model for each role; ``asked`` is who was asked for what, in turn."""

    def __init__(self, main: str = "well", auxiliary: str = "well") -> None:
        self.says = {"main": SAYS[main], "auxiliary": SAYS[auxiliary]}
        self.asked: list[tuple[Role, list[BaseMessage]]] = []
        self.numbers: list[int] = []

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        **_: Any,
    ) -> Answer:
        assert node == "compress"
        self.asked.append((role, list(messages)))
        self.numbers.append(call)
        said = self.says[role](messages)
        message = said if isinstance(said, AIMessage) else AIMessage(said)
        return Answer(message=message, usage=Usage(role=role, model=role, input_tokens=1))

    @property
    def order(self) -> list[Role]:
        return [role for role, _ in self.asked]


def driven(work: Coroutine[Any, Any, T]) -> T:
    """Run what waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits for something")


def context_of(models: Models, *, own_auxiliary: bool = True) -> Context:
    return replace(a_context(), ask=models, own_auxiliary=own_auxiliary)


def state_of(messages: list[AnyMessage], compaction: Compaction | None = None) -> State:
    return a_state(messages=messages, compaction=compaction, task=a_task(request="first"))


def compact(
    messages: list[AnyMessage],
    models: Models,
    *,
    budget: int = 2000,
    fixed: int = 300,
    before: Compaction | None = None,
    own_auxiliary: bool = True,
    **crowded: Any,
) -> CompactionResult:
    """Bring a request of main with this history under a budget."""
    given = Crowded(node="main", budget=budget, fixed=fixed, **crowded)
    context = context_of(models, own_auxiliary=own_auxiliary)
    return driven(compact_history(state_of(messages, before), given, context))
