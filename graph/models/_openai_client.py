"""OpenAI's client, made from a name and the environment; not imported early."""

from typing import Any

import openai
from langchain_openai import ChatOpenAI

from daruma.graph.models._client_per_loop import ClientPerLoop
from daruma.graph.models._openai_answers import HearingCalls
from daruma.graph.models._providers import arguments_of, openai_key, openai_url
from daruma.state.settings import ModelOptions, Requests

CONNECT_SECONDS = 5.0


class _Model(HearingCalls, ChatOpenAI):
    @property
    def circuit_key(self) -> str:
        """Equal for all models of one name at one address."""
        return f"{self.model_name} at {self.root_async_client.base_url}"


def openai_model(name: str, requests: Requests, options: ModelOptions | None = None) -> ChatOpenAI:
    """A chat model of OpenAI, or of a server that speaks its protocol at `OPENAI_BASE_URL`.

    `OPENAI_API_KEY` is required by OpenAI itself; another server gets a placeholder without it.
    It makes one request for a call: whoever calls counts them. Keep-alive comments hold off the
    limit on silence, but not the one on the time between two chunks of a stream. Raises
    `ModelUnavailable` when the environment lacks what is needed, or for an option that is none.
    """
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
        "http_socket_options": (),  # with any, the synchronous client ignores HTTPS_PROXY
    }
    return _Model(**given | arguments_of(ChatOpenAI, options))
