"""Long threads over the real client: what was sent in them, and how they end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from tests.context_window.thread_server import Provider, is_summary, look
from tests.fault_matrix.runs import CONFIG, WAYS, reached
from tests.openai_server import OpenAIServer, openai_server
from tests.parts import memory, settings

from daruma.graph.build import build_graph
from daruma.graph.models._providers import tokenizer
from daruma.state.channels import State


@dataclass
class Thread:
    """A thread of one graph, and the server that it talks to."""

    graph: Any
    server: OpenAIServer
    way: str
    events: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, text: str, before: Sequence[tuple[str, str]] = (), **request: Any) -> str:
        """Send a request, after what was said ``before``, and return what it ended with."""
        messages = [*before, ("user", text)]
        self.events += WAYS[self.way](self.graph, {"messages": messages, **request})
        result = self.state.result
        assert result is not None
        return result.output

    @property
    def state(self) -> State:
        return State(**self.graph.get_state(CONFIG).values)

    @property
    def messages(self) -> Sequence[AnyMessage]:
        return self.state.messages

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The requests of the agent itself."""
        return [request for request in self.server.requests if not is_summary(request)]

    @property
    def summarised_by(self) -> str:
        """The models that were asked for summaries, in turn."""
        asked = [request["model"] for request in self.server.requests if is_summary(request)]
        return " ".join(asked)


@contextmanager
def thread(
    provider: Provider,
    *,
    way: str = "invoke",
    model: str | Callable[[str], BaseChatModel] = "openai:gpt-4o",
    budget: int | None = 8000,
    tools: Sequence[Callable[..., Any]] = (look,),
    verification: Mapping[str, Any] | None = None,
    **llm: Any,
) -> Iterator[Thread]:
    """Serve a provider and open a thread that talks to it; an illegal request fails the test.

    ``model`` is a name, or makes a model of the server's address.
    """
    tokenizer("o200k_base")  # the first time takes a second, which is no request's
    with openai_server(provider) as server, reached(server.url):
        requests = {"seconds": 10.0, "wait_seconds": 0} | llm.pop("requests", {})
        given = settings(
            llm={"context_window_tokens": budget, "requests": requests, **llm},
            budgets={"max_steps": 500},
            spec_review={"enabled": False},
            verification=verification or {},
            fallback_chain={"recovery": {"wait_seconds": 0}},
        )
        asked = model if isinstance(model, str) else model(server.url)
        yield Thread(build_graph(asked, tools, given, checkpointer=memory()), server, way)
