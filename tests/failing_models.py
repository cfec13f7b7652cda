"""A server whose models fail as told, and calls to them: what was asked, waited for and told."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.openai_answers import Reply
from tests.openai_server import Fault, OpenAIServer, openai_server

from daruma.graph.models import (
    Asker,
    Models,
)
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.settings import Requests
from daruma.tools.context import Answer

KEY = "sk-this-is-secret"


@dataclass
class Asking:
    """Calls to models whose waits take no time, but move the clock; and all that they told."""

    server: OpenAIServer
    events: list[Event] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    now: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def asker(
        self,
        main: Any = "openai:m",
        fallbacks: Sequence[str] = ("openai:n",),
        requests: Requests | None = None,
        auxiliary: str | None = None,
    ) -> Asker:
        models = Models(main, auxiliary, {}, fallbacks, requests or Requests())
        return Asker(models, sleep=self.sleep, luck=lambda: 1.0, clock=self.clock)

    def clock(self) -> float:
        return self.now

    async def ask(self, asker: Asker, **options: Any) -> Answer:
        return await asker("main", [HumanMessage("hi")], call=0, emit=self.events.append, **options)

    async def fail(self, asker: Asker, **options: Any) -> ModelFailed:
        with pytest.raises(ModelFailed) as raised:
            await self.ask(asker, **options)
        return raised.value

    @property
    def asked(self) -> str:
        """The models that were asked, one letter each."""
        return "".join(request["model"] for request in self.server.requests)


@contextmanager
def serving(*faults: Fault | Reply) -> Iterator[Asking]:
    """Serve model `m`, which answers as given, the last for ever, and others, which answer well."""
    left = list(faults)

    def reply(request: dict[str, Any]) -> Fault | Reply:
        if request["model"] != "m":
            return Reply(f"from {request['model']}", usage=(7, 3))
        return left.pop(0) if len(left) > 1 else left[0]

    with openai_server(reply) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_BASE_URL", server.url)
        environment.setenv("OPENAI_API_KEY", KEY)
        yield Asking(server)


def said(**error: str) -> dict[str, Any]:
    return {"error": {"message": "no"} | error}


def answer(**choice: Any) -> Fault:
    """An answer that is none."""
    message = {"role": "assistant", "content": "half an"}
    choices = [{"index": 0, "message": message, **choice}] if choice else []
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return Fault(200, {**head, "choices": choices})


def passed_in(url: str) -> ChatOpenAI:
    return ChatOpenAI(
        model="m", base_url=url, api_key=SecretStr(KEY), max_retries=5, stream_usage=True
    )


def streaming(url: str) -> ChatOpenAI:
    return passed_in(url).model_copy(update={"streaming": True})
