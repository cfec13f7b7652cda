"""What a call costs: by the settings, else by the shipped lists, and never by a guess."""

from typing import Any

import pytest
from tests.failing_models import passed_in

from daruma.graph.models import (
    ScriptedChatModel,
    model_address,
)
from daruma.graph.models._providers import (
    is_known_model,
    listed_price,
    look_up,
    model_name,
    usd_of,
)
from daruma.state.settings import LLM
from daruma.state.usage import Usage

OPENAI = "https://api.openai.com/v1"
CALL = Usage(
    role="main",
    model="openai:gpt-4o",
    input_tokens=1_000_000,
    cached_tokens=400_000,
    output_tokens=100_000,
)


def priced(key: str, **price: float) -> LLM:
    aliases = {"best": "openai:gpt-4o"}
    return LLM.model_validate({"prices": {key: price}, "model_aliases": aliases})


@pytest.mark.parametrize("key", ["gpt-4o", "openai:gpt-4o", "best"])
def test_the_settings_price_wins(key: str) -> None:
    """By the name with or without its prefix, or by an alias; cached input has its own."""
    model = ScriptedChatModel(script={})

    assert usd_of(CALL, model, priced(key, input=1.0, output=10.0)) == pytest.approx(2.0)
    cached = priced(key, input=1.0, cached_input=0.5, output=10.0)
    assert usd_of(CALL, model, cached) == pytest.approx(1.8)
    assert usd_of(CALL, model, priced("other", input=1.0, output=10.0)) == 0.0


def test_a_call_never_earns_money() -> None:
    """Whatever a server says of its cache: what is spent does not decrease."""
    odd = Usage(role="main", model="gpt-4o", input_tokens=10, cached_tokens=1_000_000)
    price = priced("gpt-4o", input=1.0, cached_input=0.0, output=10.0)

    assert usd_of(odd, ScriptedChatModel(script={}), price) == 0.0


def test_a_listed_price_knows_of_cached_input() -> None:
    """What the provider had kept is cheaper than what it had to read."""
    fresh = listed_price("gpt-4o", OPENAI, Usage(role="main", model="m", input_tokens=1000))
    kept = listed_price(
        "gpt-4o", OPENAI, Usage(role="main", model="m", input_tokens=1000, cached_tokens=1000)
    )

    assert fresh is not None
    assert kept is not None
    assert 0 < kept < fresh


@pytest.mark.parametrize(
    ("name", "address", "known"),
    [
        ("gpt-4o", OPENAI, True),
        ("gpt-4o-2024-08-06", OPENAI, True),
        ("ft:gpt-4o-mini-2024-07-18:me::x", OPENAI, True),
        ("claude-sonnet-4-20250514", None, True),
        ("no-such-model", OPENAI, False),
        ("gpt-4o", "http://127.0.0.1:1/v1", False),
        ("", None, False),
    ],
)
def test_what_the_lists_know(name: str, address: str | None, known: bool) -> None:
    """Dated and fine-tuned names; at an unknown address a familiar name says nothing."""
    assert is_known_model(name, address) is known


def test_a_client_tells_its_name_and_address() -> None:
    """Whether it was made by us or passed in."""
    model: Any = passed_in("http://127.0.0.1:1/v1")

    look_up(model)

    assert (model_name(model), model_address(model)) == ("m", "http://127.0.0.1:1/v1/")
    assert usd_of(CALL, model, LLM()) is None
