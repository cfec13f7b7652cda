"""What the names of models stand for; nothing is made of them here."""

from collections.abc import Mapping
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel

from daruma.graph.models.errors import ModelUnavailable
from daruma.state.settings.sections import LLM

PREFIXES: Mapping[str, str] = MappingProxyType({"openai": "NAME", "scripted": "FILE"})
"""What may stand before the colon, and what stands behind it."""


def meant_by(name: str, aliases: Mapping[str, str]) -> str:
    """What a name stands for, as `PREFIX:REST`; `ModelUnavailable` if that is nothing we know."""
    spec = follow_aliases(name, aliases)
    prefix, _, rest = spec.partition(":")
    if prefix not in PREFIXES or not rest:
        raise ModelUnavailable(_unknown(spec, aliases))
    return spec


def follow_aliases(name: str, aliases: Mapping[str, str]) -> str:
    """The name at the end of a chain of aliases; `ModelUnavailable` when the chain is a circle."""
    chain = [name]
    while chain[-1] in aliases:
        chain.append(aliases[chain[-1]])
        if chain[-1] in chain[:-1]:
            raise ModelUnavailable(f"llm.model_aliases go in a circle: {' -> '.join(chain)}")
    return chain[-1]


def check_model(model: object) -> None:
    """Raise `ModelUnavailable` for what is neither a chat model nor a name, but wraps one."""
    if not isinstance(model, BaseChatModel | str | None):
        raise ModelUnavailable(
            f"model has to be a chat model or a name, not {type(model).__name__}: retries and"
            " fallbacks belong into llm.requests and llm.fallback_models, options into the model"
        )


def check_fallbacks(llm: LLM) -> None:
    """Raise `ModelUnavailable` for a fallback whose name means nothing."""
    for name in llm.fallback_models:
        try:
            meant_by(name, llm.model_aliases)
        except ModelUnavailable as error:
            raise ModelUnavailable(f"llm.fallback_models: {error}") from error


def _unknown(spec: str, aliases: Mapping[str, str]) -> str:
    known = " or ".join(f"{prefix}:{what}" for prefix, what in PREFIXES.items())
    also = f" or one of llm.model_aliases: {', '.join(aliases)}" if aliases else ""
    return f'unknown model "{spec}": write {known}{also}'
