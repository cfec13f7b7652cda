"""A refusal for length is told from others by its words, with the figures that it names."""

import pytest

from daruma.graph.models.faults import too_long
from daruma.state.failure import TooLong

SAID: dict[str, tuple[str, TooLong]] = {
    "OpenAI": (
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in"
            " 9034 tokens (8800 in the messages, 234 in the functions). Please reduce the length of"
            " the messages or functions."
        ),
        TooLong(8192, 9034),
    ),
    "OpenAI, newer": (
        (
            "Your input exceeds the context window of this model. Please adjust your input and try"
            " again. context_length_exceeded"
        ),
        TooLong(),
    ),
    "OpenAI, with an answer": (
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens"
            " (4000 in the messages, 1000 in the completion)."
        ),
        TooLong(4097, 5000),
    ),
    "vLLM": (
        (
            "This model's maximum context length is 4096 tokens. However, your request has 5012"
            " input tokens. Please reduce the length of the input messages."
        ),
        TooLong(4096),
    ),
    "llama.cpp": (
        "the request exceeds the available context size. try increasing the context size",
        TooLong(),
    ),
    "Anthropic, by a proxy": (
        "prompt is too long: 210000 tokens > 200000 maximum",
        TooLong(200000, 210000),
    ),
    "Google, by a proxy": (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        TooLong(1048576, 1200000),
    ),
    "Mistral, by a proxy": (
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        TooLong(32768, 40000),
    ),
}
NOT_SO = [
    "Invalid schema for function 'look'",
    "max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
    "Rate limit reached: 30000 tokens per min",
    "messages: at least one message is required",
    "Invalid value: 'context'",
]


@pytest.mark.parametrize("who", SAID)
def test_the_words_of_providers_are_understood(who: str) -> None:
    """Under each status that they are known to come with."""
    words, meant = SAID[who]

    assert [too_long(words, status) for status in (400, 413, 422)] == [meant] * 3


@pytest.mark.parametrize("words", NOT_SO)
def test_other_refusals_are_not_about_length(words: str) -> None:
    """Making the request smaller would not help them."""
    assert too_long(words, 400) is None


@pytest.mark.parametrize("status", [None, 401, 429, 500])
def test_other_statuses_are_not_about_length(status: int | None) -> None:
    """A limit of tokens a minute passes by itself."""
    assert too_long(SAID["OpenAI"][0], status) is None
