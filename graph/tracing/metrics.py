"""What is counted of requests to models: how long they took, and their tokens."""

from functools import cache
from typing import Any, Final

from langchain_core.messages import AIMessage
from opentelemetry import metrics
from opentelemetry.metrics import Histogram

_SCOPE: Final = "daruma"


def counted(asked: dict[str, Any], seconds: float, answer: AIMessage | None, error: str) -> None:
    """Count a request; ``error`` is its ``error.type``, empty for one that was answered."""
    durations, tokens = _instruments(metrics.get_meter_provider())
    durations.record(seconds, {**asked, **({"error.type": error} if error else {})})
    if answer is not None and (usage := answer.usage_metadata):
        tokens.record(usage["input_tokens"], {**asked, "gen_ai.token.type": "input"})
        tokens.record(usage["output_tokens"], {**asked, "gen_ai.token.type": "output"})


@cache
def _instruments(provider: metrics.MeterProvider) -> tuple[Histogram, Histogram]:
    meter = provider.get_meter(_SCOPE)
    return (
        meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long a request to a model took."
        ),
        meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens that a request to a model took."
        ),
    )
