"""Nothing is traced or counted where nobody hears of it."""

import subprocess
import sys

import pytest

NOBODY = "import opentelemetry.trace, opentelemetry.metrics"
TRACES = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""
METRICS = """
from opentelemetry import metrics
import opentelemetry.trace
from opentelemetry.sdk.metrics import MeterProvider
metrics.set_meter_provider(MeterProvider())
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("set_up", "heard"), [("", False), (NOBODY, False), (TRACES, True), (METRICS, True)]
)
def test_somebody_has_to_provide_traces_or_metrics(set_up: str, *, heard: bool) -> None:
    """To import the API, as other libraries do, is not to listen."""
    code = f"{set_up}\nfrom daruma.graph.tracing._switch import is_there\nprint(is_there())"

    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )

    assert said.stdout.strip() == str(heard)
