"""OpenAI's client with our timeouts, as it is made from a name and the environment."""

import os
from urllib.parse import urlsplit

import openai
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from daruma.graph.models.client_per_loop import ClientPerLoop
from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.hearing import HearingCalls
from daruma.state.settings.sections import Requests

CONNECT_SECONDS = 5.0


class _Model(HearingCalls, ChatOpenAI):
    @property
    def circuit_key(self) -> str:
        """Equal for all models of one name at one address."""
        return f"{self.model_name} at {self.root_async_client.base_url}"


def openai_model(name: str, requests: Requests) -> ChatOpenAI:
    """A chat model of OpenAI, or of a server that speaks its protocol at `OPENAI_BASE_URL`.

    `OPENAI_API_KEY` is required by OpenAI itself; another server gets a placeholder without it.
    It makes one request for a call: whoever calls counts them. Keep-alive comments hold off the
    limit on silence, but not the one on the time between two chunks of a stream. Raises
    `ModelUnavailable` when the environment lacks what is needed.
    """
    base_url = os.environ.get("OPENAI_BASE_URL") or None
    return _Model(
        name=ChatOpenAI.__name__,  # what traces and watchers know it by
        model=name,
        base_url=base_url,
        api_key=key_for(base_url),
        timeout=openai.Timeout(requests.seconds, connect=CONNECT_SECONDS),
        stream_chunk_timeout=requests.chunk_seconds,
        stream_usage=True,
        max_retries=0,
        http_async_client=ClientPerLoop(),
        http_socket_options=(),  # with any, the synchronous client ignores HTTPS_PROXY
    )


def key_for(base_url: str | None) -> SecretStr:
    """Return the key for an address, None for OpenAI's own. Raises `ModelUnavailable`."""
    if base_url is not None and urlsplit(base_url).scheme not in {"http", "https"}:
        raise ModelUnavailable("OPENAI_BASE_URL has to start with http:// or https://")
    if os.environ.get("OPENAI_PROXY"):
        raise ModelUnavailable("OPENAI_PROXY is not supported: set HTTPS_PROXY in its place")
    key = os.environ.get("OPENAI_API_KEY") or None
    if key is None and (base_url is None or _is_openai(base_url)):
        raise ModelUnavailable(
            "OPENAI_API_KEY is not set: set it, or point OPENAI_BASE_URL at a server without keys"
        )
    return SecretStr(key or "no-key-needed")


def _is_openai(base_url: str) -> bool:
    return f".{urlsplit(base_url).hostname}".endswith(".openai.com")
