"""What a model sent as the arguments of its calls, while its answer is streamed."""

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from daruma.tools.calls.parse import SENT_CALLS, is_object


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
        if all(is_object(call["args"]) for call in self._calls.values()):
            return
        # Under the provider's own name for them LangChain would read them as calls once more.
        sent = {SENT_CALLS: list(self._calls.values())}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", additional_kwargs=sent))
