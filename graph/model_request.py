"""One request to a model: what is said, which tools are offered, how the answer is wanted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from daruma.graph.model_call import called
from daruma.graph.models.faults import Fault
from daruma.graph.offered import Offered
from daruma.tools.calls.tool import Tool
from daruma.tools.context import Sampling
from daruma.tools.window.provider_messages import sendable


@dataclass(frozen=True)
class Request:
    """What a model is sent. ``left_out`` names the options that it does not take.

    ``offered`` is what the asker offers its tools by.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[Tool] = ()
    sampling: Sampling | None = None
    left_out: frozenset[str] = frozenset()
    offered: Offered = field(default_factory=Offered, repr=False, compare=False)

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
        if self.tools:
            return await self.offered.asked(model, self.tools, messages, metadata)
        config = RunnableConfig(metadata=metadata)
        if self.sampling is None:
            return await called(model, messages, config, {})
        config["tags"] = [TAG_NOSTREAM]
        return await called(model, messages, config, {"stream": False, **self.options()})

    def options(self) -> dict[str, Any]:
        """Return how the answer is sampled, as far as the model takes it."""
        if self.sampling is None:
            return {}
        given = {"temperature": self.sampling.temperature, "max_tokens": self.sampling.max_tokens}
        return {k: v for k, v in given.items() if v is not None and k not in self.left_out}

    def without_refused(self, fault: Fault) -> Self:
        """Return the request without the options that a refusal names, itself if there are none.

        Models that reason take no temperature, and some servers know no limit of tokens.
        """
        if fault.kind == "again":
            return self
        # OpenAI's client sends the limit under its new name.
        words = fault.message.replace("max_completion_tokens", "max_tokens")
        refused = frozenset(name for name in self.options() if name in words)
        return replace(self, left_out=self.left_out | refused) if refused else self
