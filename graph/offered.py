"""Offering tools to a model: bound once for as long as both are the same, and asked directly."""

from collections.abc import Sequence
from typing import Any, TypeGuard

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from daruma.graph.model_call import called
from daruma.graph.models.errors import ModelUnavailable
from daruma.tools.calls.tool import Tool

Bound = Runnable[LanguageModelInput, AIMessage]


class Offered:
    """Asks models with tools; what was bound last is kept, as most requests are like the last."""

    def __init__(self) -> None:
        self._last: tuple[BaseChatModel, tuple[Tool, ...], Bound] | None = None

    async def asked(
        self,
        model: BaseChatModel,
        tools: Sequence[Tool],
        messages: Sequence[BaseMessage],
        metadata: dict[str, Any],
    ) -> AIMessage:
        """Ask the model once. Raises :class:`ModelUnavailable` for one that takes no tools."""
        bound = self._bound(model, tuple(tools))
        if not _is_plain(bound):
            return await bound.ainvoke(list(messages), RunnableConfig(metadata=metadata))
        # A binding that adds nothing to a config merges that of the node with itself, which comes
        # to the node's own again, and takes longer than all that is ours of a request.
        config = RunnableConfig(metadata=_of_the_node() | metadata)
        return await called(bound.bound, messages, config, bound.kwargs)

    def _bound(self, model: BaseChatModel, tools: tuple[Tool, ...]) -> Bound:
        last = self._last
        if last is None or last[0] is not model or last[1] != tools:
            last = self._last = model, tools, _binding(model, tools)
        return last[2]


def _binding(model: BaseChatModel, tools: Sequence[Tool]) -> Bound:
    try:
        return model.bind_tools([tool.as_function() for tool in tools])
    except NotImplementedError as error:  # as LangChain's base class has it
        raise ModelUnavailable(f"{type(model).__name__} takes no tools") from error


def _is_plain(bound: Bound) -> TypeGuard[RunnableBinding[LanguageModelInput, AIMessage]]:
    """Whether a binding only adds options to the model's."""
    return (
        isinstance(bound, RunnableBinding)
        and type(bound).ainvoke is RunnableBinding.ainvoke
        and not bound.config
        and not bound.config_factories
    )


def _of_the_node() -> dict[str, Any]:
    return (var_child_runnable_config.get() or {}).get("metadata") or {}
