"""Looking pitfalls up among some hundred, as ``python -m tests.pitfalls_at_scale`` does it."""

import pytest
from tests.pitfalls_at_scale import Counted, asked, experience, fill, statements

from daruma.graph.storage import open_postgres
from daruma.tools.evolution._pitfalls import evidence_of_setback, summarise

COUNT = 300


@pytest.mark.long
def test_a_lookup_is_one_call_and_finds_what_was_met(postgres_url: str) -> None:
    """EV-05: of a goal that comes again, its own pitfall is among the three, if it is high."""
    with open_postgres(postgres_url) as pg:
        store = Counted(pg.store.database)
        fill(store, COUNT)
        looked_up = {number: asked(store, number) for number in range(0, COUNT, 29)}
        made = statements(store, 1)

    for number, (_, calls, found) in looked_up.items():
        told = experience(number)
        (own,) = summarise([evidence_of_setback(told.setbacks[0], told)], 0.5)
        assert calls == 1
        assert len(found) <= 3
        assert (own.pitfall.id in found) is own.grave
    assert made <= 7
