"""What goes wrong silently in an agent goes right with the parts."""

import pytest
from tests.graph.middleware.probes import PROBES, Probe


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_it_goes_right_with_the_parts(probe: Probe) -> None:
    """Each situation of the table, as LangChain's own middleware leaves it and as ours."""
    assert (probe(False), probe(True)) == (False, True)
