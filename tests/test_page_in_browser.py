"""The page of a run in a real browser: quick, silent, and asking for nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser import CHROMIUM, opened
from tests.page_in_browser import long_run, seen

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


@pytest.mark.long
def test_a_thousand_steps_take_under_a_second_of_script(postgres_url: str, tmp_path: Path) -> None:
    """Rendered, searched and filtered; no request leaves it, and nothing is complained of."""
    run, _ = long_run(postgres_url, answers=10, each=25)
    timeline = replace(run, moments=run.moments * 4)  # 1,000 calls of its own take their time
    page = tmp_path / "page.html"
    page.write_text(timeline.page(), encoding="utf-8")

    found = seen(page)

    assert found.values["rows"] == len(timeline.moments) > 1000
    assert found.script < 1.0
    assert found.requested == [page.as_uri()]
    assert not found.came_to_a_host
    assert found.complaints == []
    assert found.values["images"] == 0
    assert found.values["found"] == "4 of 1052"
    assert (found.values["all"], found.values["filtered"]) == (1052, 0)


def test_a_page_that_asks_would_be_seen(tmp_path: Path) -> None:
    """What the other test rests on: a request to any host is noticed."""
    page = tmp_path / "page.html"
    page.write_text('<img src="http://elsewhere.example/x.png">')

    with opened() as tab:
        tab.open(page)

        assert "http://elsewhere.example/x.png" in tab.requested
        assert tab.came_to_a_host(within=20)
