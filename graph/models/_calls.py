"""One request to a chat model: the call, the tools that it offers, what is said."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Self, TypeGuard

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.constants import TAG_NOSTREAM

from daruma.graph.models._faults import Fault, ToolsUnavailable
from daruma.graph.models._scripted import AnsweringModel, with_metadata
from daruma.tools.calls import OriginalMethods, Tool
from daruma.tools.context import Sampling
from daruma.tools.model_requests import ESTIMATE, REPLY, Sendable, sendable

# --- Marks behind which a provider keeps a request that begins alike (CX-07).

_MARKS: Final[dict[str, dict[str, Any]]] = {
    "cache_control": {"cache_control": {"type": "ephemeral"}},
    "cachePoint": {"cachePoint": {"type": "default"}},
}
"""What each interface takes: Anthropic's within a block, Bedrock's as one of its own."""
_KEEPS_IN_BEDROCK: Final = ("anthropic.", "amazon.nova")


def mark_of(model: object) -> str:
    """Return the mark that a model's provider takes; empty for those that need or know none."""
    kind: Any = type(model)
    mark, named = _mark_of_interface(kind), str(getattr(model, "model_id", ""))
    keeps = mark != "cachePoint" or any(each in named for each in _KEEPS_IN_BEDROCK)
    return mark if keeps else ""


@cache
def _mark_of_interface(kind: type) -> str:
    modules = {each.__module__.partition(".")[0] for each in kind.__mro__}
    if "langchain_anthropic" in modules:
        return "cache_control"
    named = any(each.__name__ == "ChatBedrockConverse" for each in kind.__mro__)
    return "cachePoint" if named and "langchain_aws" in modules else ""


def with_marks(messages: Sendable, mark: str) -> Sendable:
    """Return a request with marks behind what the next one begins with, too (CX-07).

    These are the prompt, with the tools before it, the end of the request before this one, which
    is read, and the end of this one, which the next will read: three of the four that may be.
    """
    answers = (n for n in range(len(messages) - 1, 0, -1) if isinstance(messages[n], AIMessage))
    places = {0, next(answers, 0) - 1, len(messages) - 1} - {-1}
    marked = {n: _marked(messages[n], mark) for n in places}
    whole = [marked.get(n, message) for n, message in enumerate(messages)]
    return Sendable(whole, to_translate=messages.to_translate)


def _marked(message: BaseMessage, mark: str) -> BaseMessage:
    content = message.content
    texts = [{"type": "text", "text": content}]
    parts: list[Any] = texts if isinstance(content, str) else [*content]
    last = parts[-1] if parts else None
    text = last.get("text") if isinstance(last, dict) and last.get("type") == "text" else None
    if isinstance(message, AIMessage) or not isinstance(text, str) or not text.strip():
        return message  # no provider takes a mark on what is empty
    given = _MARKS[mark]
    parts = [*parts, given] if mark == "cachePoint" else [*parts[:-1], {**parts[-1], **given}]
    return message.model_copy(update={"content": parts})


# --- Asking a model, or what its ``bind_tools`` made.

_ASKED_BY_US: Final = OriginalMethods(AnsweringModel, "ainvoke")


async def ask_model(
    model: Runnable[LanguageModelInput, AIMessage],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    options: Mapping[str, Any],
) -> AIMessage:
    """Return the answer of a model, or of what its ``bind_tools`` made. Raises what that raises."""
    from daruma.graph.fast_path import ask_unheard  # the engine: who only looks needs none (FA-13)

    if isinstance(messages, Sendable) and not messages.to_translate:
        if isinstance(model, BaseChatModel):
            own = isinstance(model, AnsweringModel)
            given = with_metadata(config, options) if own else options
            unheard = await ask_unheard(model, messages, config, given, _ASKED_BY_US)
            if unheard is not None:
                return unheard
    else:
        messages = with_images(model, messages)
    # Of a prompt LangChain converts and checks nothing. A model whose `ainvoke` is its author's
    # own, or what its `bind_tools` made, may know lists only.
    known = isinstance(model, AnsweringModel) or type(model).ainvoke is BaseChatModel.ainvoke
    prompt = ChatPromptValue.model_construct(messages=messages) if known else list(messages)
    return await model.ainvoke(prompt, config, **options)


# --- Images of tools: each provider has its place for them, and some models see none (FA-11).


def with_images(asked: Runnable[Any, Any], messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with the images of tools where the model's provider takes them.

    OpenAI's chat interface, and all that is like it, takes them from the user alone: there they
    follow the results. A model that is known to see none is told of them in words.
    """
    model = asked
    while isinstance(model, RunnableBinding):
        model = model.bound
    sees = (getattr(model, "profile", None) or {}).get("image_inputs") is not False
    apart = any(each.__module__.startswith("langchain_openai") for each in type(model).__mro__)
    done: list[BaseMessage] = []
    waiting: list[Any] = []
    for message in messages:
        if waiting and not isinstance(message, ToolMessage):
            done.append(HumanMessage(waiting))
            waiting = []
        told = isinstance(message, ToolMessage) and isinstance(message.content, list)
        parts = [each for each in message.content if isinstance(each, dict)] if told else []
        images = [each for each in parts if each.get("type") == "image"]
        if images and (apart or not sees):
            message = message.model_copy(update={"content": message.text})  # noqa: PLW2901
            said = f"Images of the result of {message.name}:"
            waiting += [{"type": "text", "text": said}, *images] if sees else []
        done.append(message)
    return [*done, HumanMessage(waiting)] if waiting else done


# --- Offering tools to a model: bound once for as long as both are the same, and asked directly.

Bound = Runnable[LanguageModelInput, AIMessage]


class ToolOfferingModel:
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
        """Ask the model once. Raises :class:`ToolsUnavailable` for one that takes none."""
        bound = self._bound(model, tuple(tools))
        if not _is_plain(bound):
            shown = with_images(model, messages)
            return await bound.ainvoke(shown, RunnableConfig(metadata=metadata))
        # A binding that adds nothing to a config merges that of the node with itself, which comes
        # to the node's own again, and takes longer than all that is ours of a request.
        own = (var_child_runnable_config.get() or {}).get("metadata") or {}
        config = RunnableConfig(metadata=own | metadata)
        return await ask_model(bound.bound, messages, config, bound.kwargs)

    def _bound(self, model: BaseChatModel, tools: tuple[Tool, ...]) -> Bound:
        last = self._last
        if last is None or last[0] is not model or last[1] != tools:
            try:
                bound = model.bind_tools([tool.as_function() for tool in tools])
            except NotImplementedError as error:  # as LangChain's base class has it
                raise ToolsUnavailable(f"{type(model).__name__} takes no tools") from error
            last = self._last = model, tools, bound
        return last[2]


def _is_plain(bound: Bound) -> TypeGuard[RunnableBinding[LanguageModelInput, AIMessage]]:
    """Whether a binding only adds options to the model's."""
    return (
        isinstance(bound, RunnableBinding)
        and type(bound).ainvoke is RunnableBinding.ainvoke
        and not bound.config
        and not bound.config_factories
    )


# --- One request to a model: what is said, which tools are offered, how the answer is wanted.


@dataclass(frozen=True)
class Request:
    """What a model is sent. ``left_out`` names the options that it does not take.

    ``offered`` is what the asker offers its tools by.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[Tool] = ()
    sampling: Sampling | None = None
    left_out: frozenset[str] = frozenset()
    offered: ToolOfferingModel = field(default_factory=ToolOfferingModel, repr=False, compare=False)

    async def sent(self, model: BaseChatModel, metadata: dict[str, Any]) -> AIMessage:
        """Ask the model once; ``metadata`` is what traces show of the request."""
        try:
            return await self._sent(model, metadata)
        except AttributeError as error:
            # LangChain takes a cancellation from within a model for its answer, and trips over it:
            # as over all that is no `Exception`, such as a panic of what is written in Rust.
            if isinstance(error.obj, BaseException) and not isinstance(error.obj, Exception):
                raise error.obj from None
            raise

    async def _sent(self, model: BaseChatModel, metadata: dict[str, Any]) -> AIMessage:
        messages = sendable(self.messages)
        if metadata.get("daruma_role") == "main" and messages:  # whose requests grow
            mark = mark_of(model)
            messages = with_marks(messages, mark) if mark not in {"", *self.left_out} else messages
        if self.tools:
            return await self.offered.asked(model, self.tools, messages, metadata)
        config = RunnableConfig(metadata=metadata)
        if self.sampling is None:
            return await ask_model(model, messages, config, {})
        config["tags"] = [TAG_NOSTREAM]
        options = {"stream": False, **self.options()}
        if not (getattr(model, "profile", None) or {}).get("structured_output"):
            options.pop("response_format", None)
        return await ask_model(model, messages, config, options)

    @property
    def tokens(self) -> int:
        """How many tokens it is by our own estimate."""
        return ESTIMATE.of_messages(self.messages) + ESTIMATE.of_tools(self.tools) + REPLY

    def options(self) -> dict[str, Any]:
        """Return how the answer is sampled, as far as the model takes it."""
        if self.sampling is None:
            return {}
        schema = self.sampling.schema
        form = {"name": "answer", "schema": schema}
        given = {
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
            # In OpenAI's form, which LangChain's models of other providers read too.
            "response_format": {"type": "json_schema", "json_schema": form} if schema else None,
        }
        return {k: v for k, v in given.items() if v is not None and k not in self.left_out}

    def without_refused(self, fault: Fault) -> Self:
        """Return the request without the options that a refusal names, itself if there are none.

        Models that reason take no temperature, and some servers know no limit of tokens.
        """
        if fault.kind == "again":
            return self
        # OpenAI's client sends the limit under its new name.
        words = fault.message.replace("max_completion_tokens", "max_tokens")
        words = re.sub(r"json_?schema|output_(?:config|format)", "response_format", words)
        known = (*self.options(), *_MARKS.keys() - self.left_out)
        refused = frozenset(name for name in known if name in words)
        return replace(self, left_out=self.left_out | refused) if refused else self
