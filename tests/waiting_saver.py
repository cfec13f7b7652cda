"""A checkpointer for synchronous runs alone, as others have them."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from typing_extensions import override

from daruma.state.serializer import STORED_TYPES, StrictSerializer


class WaitingSaver(InMemorySaver):
    """Has no asynchronous methods."""

    @override
    async def aget_tuple(self, *_: Any) -> Any:
        raise NotImplementedError

    @override
    async def aput(self, *_: Any) -> Any:
        raise NotImplementedError

    @override
    async def aput_writes(self, *_: Any) -> Any:
        raise NotImplementedError


def waiting() -> WaitingSaver:
    """Return one that reads as strictly as the one in use."""
    return WaitingSaver(serde=StrictSerializer(STORED_TYPES))
