"""What a model call costs: by the settings' own prices, else by genai-prices' lists, offline."""

from collections.abc import Mapping
from functools import cache

from daruma.graph.models.answering_model import AnsweringModel
from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.names import follow_aliases
from daruma.state.settings.sections import LLM, ModelPrice
from daruma.state.usage import Usage

_MILLION = 1_000_000


def own_price(name: str, llm: LLM) -> ModelPrice | None:
    """Return what ``llm.prices`` says of a model: by its name, with or without prefix, or alias."""
    if not llm.prices:
        return None
    prices = {_bare(key, llm.model_aliases): price for key, price in llm.prices.items()}
    return prices.get(name.removeprefix("openai:"))


def usd_of(usage: Usage, model: object, llm: LLM) -> float | None:
    """Return what a call cost in US dollars, None where nobody knows the model's price.

    ``model`` is the chat model that answered. One of a script costs nothing. At an address whose
    provider is unknown a familiar name says nothing.
    """
    if price := own_price(usage.model, llm):
        cached_price = price.input if price.cached_input is None else price.cached_input
        cached = min(usage.cached_tokens, usage.input_tokens)
        spent = (usage.input_tokens - cached) * price.input + cached * cached_price
        return (spent + usage.output_tokens * price.output) / _MILLION
    if isinstance(model, AnsweringModel):
        return 0.0
    return listed(name_of(model), address_of(model), usage)


def name_of(model: object) -> str:
    """Return the name by which a provider knows a chat model; empty where it has none."""
    named = getattr(model, "model_name", None) or getattr(model, "model", None)
    return named if isinstance(named, str) else ""


def address_of(model: object) -> str | None:
    """Return the base URL that a chat model of OpenAI's protocol asks; None for other ones."""
    client = getattr(model, "root_async_client", None)
    found = getattr(client, "base_url", None)
    return str(found) if found else None


def listed(name: str, address: str | None, usage: Usage) -> float | None:
    """Return what the shipped lists say of a call; no network is used, ever."""
    if not name:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(calc_price(counted, name, provider_api_url=address).total_price)
    except (LookupError, ValueError):  # no such model or provider, or counts that do not add up
        return None


def look_up(model: object) -> None:
    """Load the lists, which takes a second, so that no answer waits for it; a script needs none."""
    if not isinstance(model, AnsweringModel):
        is_listed(name_of(model), address_of(model))


@cache
def is_listed(name: str, address: str | None) -> bool:
    """Whether the shipped lists know a model."""
    asked = Usage(role="main", model=name, input_tokens=1, output_tokens=1)
    return listed(name, address, asked) is not None


def _bare(name: str, aliases: Mapping[str, str]) -> str:
    try:
        return follow_aliases(name, aliases).removeprefix("openai:")
    except ModelUnavailable:
        return name
