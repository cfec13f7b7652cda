"""Chat models that any loop may ask; those of OpenAI's protocol: how they are made and asked, and
which answers are none (TL-17a).
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from typing_extensions import override

from daruma.graph.models._faults import BrokenAnswer
from daruma.graph.models._providers import arguments_of, model_address, openai_key, openai_url
from daruma.state.messages import REASONING
from daruma.state.settings import ModelOptions, Requests
from daruma.state.usage import sound_usage
from daruma.tools.calls import keep_sent_calls
from daruma.tools.threads import in_model_thread

# --- Models that were passed in as objects, on any number of event loops, in turn or at once.
#
# An asynchronous HTTP client keeps connections, and these belong to the event loop that made them:
# on the next one a model that worked fails with "Event loop is closed". Packages even share one
# client between all their models. So a copy of the model is asked:
#
# - a client of OpenAI's or Anthropic's has one HTTP client for each loop put below it;
# - another package's is asked through its synchronous half, on threads, which belong to no loop;
# - a class of the user's own is left alone, and so is an HTTP client that was chosen on purpose:
#   `daruma.ClientPerLoop` is one that serves all loops.

_SDK: Final = "_async_client"
"""Where Anthropic's models keep what asks."""


def model_on_any_loop(model: BaseChatModel) -> BaseChatModel:
    """Return a model of a provider's package that any loop may ask (FA-08); another as it is."""
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


# --- What a model sent as the arguments of its calls, while its answer is streamed.


class HeardCalls:
    """Hears a stream, and tells what LangChain can not be trusted to have read.

    It completes arguments that were cut off, and they would run: half a path, half a name.
    """

    def __init__(self) -> None:
        self._calls: dict[object, dict[str, str]] = {}

    def hear(self, chunk: ChatGenerationChunk) -> None:
        """Keep the parts of calls in one piece of an answer."""
        parts: Any = getattr(chunk.message, "tool_call_chunks", ())
        for part in parts:
            # Without an index a part is a whole call.
            place = len(self._calls) if part["index"] is None else f"index {part['index']}"
            call = self._calls.setdefault(place, {"id": "", "name": "", "args": ""})
            for key in call:
                call[key] += part[key] or ""

    def unread(self) -> Iterator[ChatGenerationChunk]:
        """Yield one piece more, with all calls as they were sent, if one is not a JSON object."""
        if sent := keep_sent_calls(self._calls.values()):
            yield ChatGenerationChunk(message=AIMessageChunk(content="", additional_kwargs=sent))


# --- OpenAI's chat models as we use them: no call of an answer is read otherwise than it was sent.

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI
else:  # the import takes a second, and who passes in a model has done it
    BaseChatOpenAI = object


class HearingCalls(BaseChatOpenAI):
    """The stock client, but for calls whose arguments are no object of JSON.

    LangChain would refuse the whole answer for one such call; it is made one that can not be read.
    In a stream it would complete what was cut off; the call as it was sent goes with the answer.
    """

    @override
    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        plain = response[0] if isinstance(response, list) and response else response  # Gemini's
        plain = plain.model_dump(warnings=False) if hasattr(plain, "model_dump") else plain
        plain = _sound(plain, self)
        for choice in plain.get("choices") or ():
            for call in (choice.get("message") or {}).get("tool_calls") or ():
                function = call.get("function") or {}
                function["arguments"] = _readable(function.get("arguments"))
        result = super()._create_chat_result(plain, generation_info)
        for choice, made in zip(plain.get("choices") or (), result.generations, strict=False):
            _keep_reasoning(choice.get("message"), made.message)
        return result

    @override
    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *args: Any
    ) -> ChatGenerationChunk | None:
        chunk = _sound(chunk, self, part=True)
        made = super()._convert_chunk_to_generation_chunk(chunk, *args)
        if made and (choices := chunk.get("choices")):
            _keep_reasoning(choices[0].get("delta"), made.message)
        return made

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        heard, task = HeardCalls(), asyncio.current_task()
        async for chunk in super()._astream(*args, **kwargs):
            # Python 3.11 loses a cancellation that comes together with a chunk (`wait_for`).
            if task and task.cancelling():
                raise asyncio.CancelledError
            heard.hear(chunk)
            yield chunk
        for chunk in heard.unread():
            yield chunk


def _keep_reasoning(sent: Any, message: BaseMessage) -> None:
    """Keep what servers beside OpenAI send of a model's thoughts, which LangChain leaves out."""
    sent = sent if isinstance(sent, Mapping) else {}
    said = sent.get("reasoning_content") or sent.get("reasoning")
    if isinstance(said, str) and said:
        message.additional_kwargs[REASONING] = said


@cache
def hearing_class(kind: type["BaseChatOpenAI"]) -> type["BaseChatOpenAI"]:
    """Return a class of OpenAI's chat models that hears calls; its name stays what it was."""
    if issubclass(kind, HearingCalls):
        return kind
    return type(kind.__name__, (HearingCalls, kind), {"__module__": kind.__module__})


CONNECT_SECONDS: Final = 5.0


def openai_model(
    name: str, requests: Requests, options: ModelOptions | None = None
) -> "BaseChatOpenAI":
    """A chat model of OpenAI, or of a server that speaks its protocol at `OPENAI_BASE_URL`.

    `OPENAI_API_KEY` is required by OpenAI itself; another server gets a placeholder without it.
    It makes one request for a call: whoever calls counts them. Keep-alive comments hold off the
    limit on silence, but not the one on the time between two chunks of a stream. Raises
    `ModelUnavailable` when the environment lacks what is needed, or for an option that is none.
    """
    import openai
    from langchain_openai import ChatOpenAI

    from daruma.graph.models._client_per_loop import ClientPerLoop, certificates

    options = options or ModelOptions()
    base_url = openai_url(options)
    given: dict[str, Any] = {
        "name": ChatOpenAI.__name__,  # what traces and watchers know it by
        "model": name,
        "base_url": base_url,
        "api_key": openai_key(base_url),
        "timeout": openai.Timeout(requests.seconds, connect=CONNECT_SECONDS),
        "stream_chunk_timeout": requests.chunk_seconds,
        "stream_usage": True,
        "max_retries": 0,
        "http_async_client": ClientPerLoop(),
        "http_client": openai.DefaultHttpxClient(verify=certificates()),
        "http_socket_options": (),  # with any, it would warn that HTTPS_PROXY is passed by
    }
    return hearing_class(ChatOpenAI)(**given | arguments_of(ChatOpenAI, options))


def _readable(arguments: object) -> str:
    """Return arguments as they are if they are an object, or not JSON; else as no JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        return text if isinstance(json.loads(text), dict) else f"not an object: {text}"
    except (ValueError, RecursionError):
        return text or "nothing"


# --- Answers of OpenAI's protocol that are failures, though their status is 200 (TL-17a).

_FAILURES: Final = (
    *("errors", "detail", "message", "msg", "error_message", "error_msg", "base_resp"),
)
"""Where servers say what failed, in the place of ``choices``."""


def _sound(body: Any, model: "BaseChatOpenAI", *, part: bool = False) -> dict[str, Any]:
    """Return the body of an answer, or a part of its stream, with its usage read as counts.

    Raises OpenAI's own error for a body that says what failed, as its client does in a stream, and
    :class:`BrokenAnswer` for one that says nothing.
    """
    if isinstance(body, dict):
        if failed := _failure_in(body):
            raise _as_error(failed, model)
        if body.get("choices") or part:
            return {**body, "usage": sound_usage(body.get("usage")) or None}
    elif body and isinstance(body, str):
        raise _as_error(body, model)
    what = "it holds no choices" if body else "it is empty"
    raise BrokenAnswer(_with_address(model, f"the answer can not be read: {what}"))


def _failure_in(body: Mapping[str, Any]) -> Any:
    """Return what a body says of a failure; empty where it is an answer."""
    if failed := body.get("error"):
        return failed
    if choices := body.get("choices"):
        first = choices[0] if isinstance(choices, list) else None
        return first.get("error") if isinstance(first, Mapping) else None
    return body if any(body.get(name) for name in _FAILURES) else None


def _as_error(body: object, model: object) -> Exception:
    """Return what OpenAI's client makes of an error in a stream; a number in it may be a status."""
    from httpx2 import Request
    from openai import APIError

    request = Request("POST", model_address(model) or "")
    error = APIError("the answer is an error", request, body=body)
    if isinstance(body, Mapping):
        error.code = next((body[k] for k in ("code", "status", "status_code") if body.get(k)), None)
    return error


def _with_address(model: object, said: str) -> str:
    address = urlsplit(model_address(model) or "").netloc.rpartition("@")[2]
    return f"{address}: {said}" if address else said


# --- What is asked of OpenAI's chat models, ours or passed in: one request a call, whole answers.

_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What LangChain raises for answers without choices, without JSON, or with an error in them."""


def speaks_openai(model: object) -> bool:
    """Say whether a model is LangChain's client for OpenAI's protocol."""
    # The import takes a second; without it there is no such object.
    module: Any = sys.modules.get("langchain_openai.chat_models.base")
    return module is not None and isinstance(model, module.BaseChatOpenAI)


def per_loop_model(model: BaseChatModel) -> BaseChatModel:
    """Return a model that makes one request for a call, on any event loop (FA-08).

    The one that is given stays as it is. As a model of our own does, OpenAI's hears calls as they
    were sent and tells what a stream cost. Clients of other providers than OpenAI and Anthropic
    have to be made without retries.
    """
    if not speaks_openai(model):
        return model_on_any_loop(model)
    changes: dict[str, Any] = {"max_retries": 0}
    if getattr(model, "stream_usage", None) is None:  # False is somebody's choice
        changes["stream_usage"] = True
    if client := getattr(model, "root_client", None):
        changes["root_client"] = client.with_options(max_retries=0)
        changes["client"] = changes["root_client"].chat.completions
    if client := getattr(model, "root_async_client", None):
        if getattr(model, "http_async_client", None) is None:
            client = with_client_per_loop(client, getattr(model, "openai_proxy", None))
        changes["root_async_client"] = client.with_options(max_retries=0)
        changes["async_client"] = changes["root_async_client"].chat.completions
    copy = model.model_copy(update=changes)
    # Pydantic knows of no other way.
    object.__setattr__(copy, "__class__", hearing_class(type(copy)))
    return copy


class ReadableAnswers(AbstractContextManager[None]):
    """Turns what reading an answer raises into :class:`BrokenAnswer`."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, _UNREADABLE) or not speaks_openai(self._model):
            return
        response, page = getattr(error, "response", None), "?"
        with suppress(Exception):  # of a stream that was never read
            page = str(response.text).strip() if response is not None else "?"
        if page.startswith("<"):  # of a proxy, or of whoever asks for a password
            raise _as_error(page, self._model) from None
        why = f"the answer can not be read: {_why(error, page)}"
        raise BrokenAnswer(_with_address(self._model, why)) from error


def _why(error: BaseException, body: str) -> str:
    if not body or str(error).startswith("No generation"):
        return "it is empty"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, JSONDecodeError):
        return "it is no JSON"
    if "integer string conversion" in str(error):
        return "it holds a number of too many digits"
    return "it holds no choices" if isinstance(error, IndexError) else "it is no chat completion"


def check_whole(message: AIMessage, model: BaseChatModel) -> None:
    """Raise :class:`BrokenAnswer` for an answer that ended without a reason, as if cut off.

    Answers of the Responses API, which have no such reason, are told by what they are.
    """
    told = message.response_metadata
    if speaks_openai(model) and not told.get("finish_reason") and told.get("object") != "response":
        broke_off = "the answer broke off: it came without a finish_reason"
        raise BrokenAnswer(_with_address(model, broke_off))
