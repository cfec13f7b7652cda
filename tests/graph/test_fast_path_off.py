"""The machine without any of the tricks: ``DARUMA_FAST_PATH=0`` runs it on the public API alone."""

import pytest
from tests.graph.test_in_another_graph import (  # noqa: F401 - its tests, once more
    test_streams,
    test_time_travel,
    test_two_graphs_deep,
)
from tests.graph.test_machine_paths import test_a_path_is_walked_to_its_end, workspace  # noqa: F401

from daruma.graph.fast_path import SWITCH, is_on

pytestmark = pytest.mark.sampled(8)


@pytest.fixture(autouse=True)
def _off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")


def test_it_is_off() -> None:
    """In all tests of this file."""
    assert not is_on()
