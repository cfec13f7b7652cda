"""Making the call of a chat model: as LangChain does where anybody listens, else by itself.

For listeners LangChain looks at every message of a request twice, and puts all settings of the
model together. That is more than a superstep takes, and grows with each step of a thread.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.uuid import uuid7

from daruma.graph.models.answering_model import AnsweringModel, with_metadata
from daruma.tools.calls.langchain import Own
from daruma.tools.window.provider_messages import Sendable

_ASKED: Final = Own(BaseChatModel, "ainvoke")
_ASKED_BY_US: Final = Own(AnsweringModel, "ainvoke")
_BETWEEN: Final = Own(
    BaseChatModel, "_convert_input", "agenerate_prompt", "agenerate", "_agenerate_with_cache"
)
"""What stands between a caller and the model's own function."""

_FOR_LISTENERS: Final = frozenset(
    {
        "callbacks",
        "tags",
        "metadata",
        "run_name",
        "run_id",
        "ls_structured_output_format",
        "structured_output_format",
    }
)
"""Options that LangChain keeps for itself."""


async def called(
    model: Runnable[LanguageModelInput, AIMessage],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    options: Mapping[str, Any],
) -> AIMessage:
    """Return the answer of a model, or of what its ``bind_tools`` made. Raises what that raises."""
    plain = isinstance(messages, Sendable) and not messages.to_translate
    if plain and isinstance(model, BaseChatModel) and _adds_nothing(model, options):
        whole = ensure_config(config)
        run = _unheard(model, whole)
        if run:
            return await _answered(model, messages, run, whole, options)
    return await model.ainvoke(_prompt(model, messages), config, **options)


def _adds_nothing(model: BaseChatModel, options: Mapping[str, Any]) -> bool:
    """Whether nobody has put anything between a caller and the model's own function."""
    asked = _ASKED.of(model) or (_ASKED_BY_US.of(model) and _ASKED.of(BaseChatModel))
    return asked and _BETWEEN.of(model) and _FOR_LISTENERS.isdisjoint(options)


def _unheard(model: BaseChatModel, config: RunnableConfig) -> AsyncCallbackManagerForLLMRun | None:
    """Return what a model tells of its call where nobody hears it; None where somebody listens.

    Handlers come from the run around it, the model, the process and the environment.
    """
    manager = AsyncCallbackManager.configure(
        config.get("callbacks"),
        model.callbacks,
        model.verbose,
        config.get("tags"),
        model.tags,
        config.get("metadata"),
        model.metadata,
    )
    if manager.handlers:
        return None
    return AsyncCallbackManagerForLLMRun(
        run_id=config.get("run_id") or uuid7(),
        handlers=[],
        inheritable_handlers=[],
        parent_run_id=manager.parent_run_id,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )


async def _answered(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    run: AsyncCallbackManagerForLLMRun,
    config: RunnableConfig,
    options: Mapping[str, Any],
) -> AIMessage:
    """Ask with the model's cache, its limit of requests and its way of streaming."""
    if isinstance(model, AnsweringModel):
        options = with_metadata(config, options)
    # A list of its own: some models change what they are given. A task of its own, as in LangChain:
    # some cancel the one they are in, or make something else of being cancelled.
    answer = model._agenerate_with_cache(list(messages), run_manager=run, **options)
    (result,) = await asyncio.gather(answer, return_exceptions=True)
    if isinstance(result, BaseException):
        raise result
    return cast(AIMessage, result.generations[0].message)  # as LangChain has it


def _prompt(
    asked: Runnable[LanguageModelInput, AIMessage], messages: Sequence[BaseMessage]
) -> LanguageModelInput:
    """Return messages as a prompt for whoever is known to take one, for others as the list.

    Of a prompt LangChain converts and checks nothing. A model whose ``ainvoke`` is its author's
    own, or what its ``bind_tools`` made, may know lists only.
    """
    known = isinstance(asked, AnsweringModel) or type(asked).ainvoke is BaseChatModel.ainvoke
    return ChatPromptValue.model_construct(messages=messages) if known else list(messages)
