"""Tokenizers are known by the names of models, and nothing is fetched for them."""

import pytest

from daruma.graph.models import tokens_of
from daruma.graph.models._providers import encoding_of, tokenizer
from daruma.tools.model_requests import ESTIMATE


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("openai:gpt-4o", "o200k_base"),
        ("openai:gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("openai:gpt-5", "o200k_base"),
        ("openai:gpt-5.1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("openai:openai/gpt-4o", "o200k_base"),
        ("openai:gpt-4", "cl100k_base"),
        ("openai:gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
        ("openai:qwen3-32b", None),
        ("openai:gpt-oss-20b", None),
        ("openai:o30", None),
        ("scripted:gpt-4o.yaml", None),
        ("", None),
    ],
)
def test_a_tokenizer_is_known_by_the_model_s_name(model: str, encoding: str | None) -> None:
    """And is nobody's who only looks alike."""
    assert encoding_of(model) == encoding


async def test_a_known_model_is_counted_exactly() -> None:
    """As OpenAI's own examples have it."""
    tokens = await tokens_of("openai:gpt-4o")

    assert (tokens.exact, tokens.of("antidisestablishmentarianism")) == (True, 6)
    assert tokenizer("cl100k_base").of("2 + 2 = 4") == 7


async def test_an_unknown_model_is_estimated() -> None:
    """That is said of each count."""
    assert await tokens_of("openai:a") is ESTIMATE


def test_texts_of_any_length_and_kind_are_counted() -> None:
    """The package refuses long ones; marks of its own are text like any other."""
    tokens = tokenizer("o200k_base")

    assert tokens.of("hello " * 250_000) == pytest.approx(250_000, rel=0.01)
    assert tokens.of("<|endoftext|>") > 1
    assert tokens.of("a\ud800b") > 1
