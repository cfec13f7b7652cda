"""Models that were passed in as objects, on any number of event loops: in turn, or at once (FA-08).

An asynchronous HTTP client keeps connections, and these belong to the event loop that made them: on
the next one a model that worked fails with "Event loop is closed". Packages even share one client
between all their models. So a copy of the model is asked:

- a client of OpenAI's or Anthropic's has one HTTP client for each loop put below it;
- another package's is asked through its synchronous half, on threads, which belong to no loop;
- a class of the user's own is left alone, and so is an HTTP client that was chosen on purpose:
  `daruma.ClientPerLoop` is one that serves all loops.
"""

from collections.abc import AsyncIterator
from functools import cache
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from typing_extensions import override

from daruma.tools.threads import in_model_thread

_SDK: Final = "_async_client"
"""Where Anthropic's models keep what asks."""


def model_on_any_loop(model: BaseChatModel) -> BaseChatModel:
    """Return a model of a provider's package that any loop may ask; another one as it is."""
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "langchain_anthropic" in packages and (sdk := getattr(model, _SDK, None)):
        copy = model.model_copy()
        proxy = getattr(model, "anthropic_proxy", None)
        copy.__dict__[_SDK] = with_client_per_loop(sdk, proxy)  # where it is made when first used
        return copy
    if any(each.startswith("langchain_") and each != "langchain_core" for each in packages):
        copy = model.model_copy()
        object.__setattr__(copy, "__class__", _on_threads(type(copy)))  # as pydantic forbids it
        return copy
    return model


def with_client_per_loop(sdk: Any, proxy: str | None) -> Any:
    """Return OpenAI's or Anthropic's own client, without retries, over an HTTP client per loop."""
    from daruma.graph.models._client_per_loop import ClientPerLoop

    options = {"proxy": proxy} if proxy else {}
    return sdk.with_options(max_retries=0, http_client=ClientPerLoop(**options))


class _OnThreads(BaseChatModel):
    """Asks through the synchronous half of a model.

    A request that is cancelled is left to itself: it ends with its client's own time limit.
    """

    @override
    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        manager = run_manager.get_sync() if run_manager else None
        return await in_model_thread(self._generate, messages, stop, manager, **kwargs)


class _StreamingOnThreads(_OnThreads):
    @override
    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        manager = run_manager.get_sync() if run_manager else None
        chunks = await in_model_thread(self._stream, messages, stop, manager, **kwargs)
        while chunk := await in_model_thread(next, chunks, None):
            yield chunk


@cache
def _on_threads(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    if issubclass(kind, _OnThreads):
        return kind
    streams = kind._stream is not BaseChatModel._stream
    asked = _StreamingOnThreads if streams else _OnThreads
    made: type[BaseChatModel] = type(kind.__name__, (asked, kind), {"__module__": kind.__module__})
    return made
