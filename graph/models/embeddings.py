"""Models that turn a text into a vector, made from a name as chat models are."""

import os
from collections.abc import Mapping

from langchain_core.embeddings import Embeddings

from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.names import follow_aliases

_SECONDS = 30.0
"""For one request: a text that is not embedded is found by its words."""


def resolve_embeddings(given: Embeddings | str, aliases: Mapping[str, str]) -> Embeddings:
    """Return the model that ``openai:NAME``, or an alias of that, stands for; a model as it is.

    Raises :class:`~daruma.graph.models.errors.ModelUnavailable`.
    """
    if isinstance(given, Embeddings):
        return given
    spec = follow_aliases(given, aliases)
    prefix, _, name = spec.partition(":")
    if prefix != "openai" or not name:
        raise ModelUnavailable(f'unknown embedding model "{spec}": write openai:NAME')
    return _openai(name)


def _openai(name: str) -> Embeddings:
    import openai
    from langchain_openai import OpenAIEmbeddings

    from daruma.graph.models.client_per_loop import ClientPerLoop
    from daruma.graph.models.openai_client import CONNECT_SECONDS, key_for

    base_url = os.environ.get("OPENAI_BASE_URL") or None
    return OpenAIEmbeddings(
        model=name,
        base_url=base_url,
        api_key=key_for(base_url),
        timeout=openai.Timeout(_SECONDS, connect=CONNECT_SECONDS),
        max_retries=0,
        http_async_client=ClientPerLoop(),
        check_embedding_ctx_length=False,  # it would fetch a tokenizer; texts are cut here
    )


def name_of(embeddings: Embeddings) -> str:
    """Return what tells the vectors of one model from another's."""
    own = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    kind = type(embeddings).__name__
    return f"{kind}:{own}" if isinstance(own, str) else kind
