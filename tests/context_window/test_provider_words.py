"""What is too large in any provider's words comes again smaller, and the task completes."""

import pytest
from tests.context_window.provider_figures import CASES, STEPS, run
from tests.graph.models.provider_words import Row

SOME = (
    *("OpenAI, newer", "OpenAI, more than a minute's tokens", "Azure", "Anthropic"),
    *("Anthropic, with the answer", "Gemini", "Groq", "Groq, more than a minute's tokens", "xAI"),
    *(
        "Mistral",
        "Cohere",
        "Ollama",
        "Together",
        "Moonshot",
        "Bedrock",
        "vLLM",
        "llama.cpp",
        "nginx",
    ),
)
"""The others are read alike; ``provider_figures`` runs them all."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    ("client", "row"),
    [(client, row) for client, row in CASES if row.who in SOME],
    ids=lambda each: getattr(each, "who", each),
)
def test_a_task_goes_on_with_less(client: str, row: Row, steps: int) -> None:
    """TL-17a: compaction, then completion; once the limit is learnt nothing else is refused."""
    told = run(client, row, steps)

    assert (told["status"], told["steps"]) == ("completed", steps), told["error"]
    assert told["compactions"] >= 1
    assert told["refused"] == 1
