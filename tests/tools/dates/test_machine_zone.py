"""Local time is that of a zone by its name, or of the machine."""

import time
from datetime import UTC, datetime

import pytest

from daruma.tools.calls.visible import local_time

WINTER, SUMMER = 1796040000.0, 1783080000.0


def test_a_zone_is_named() -> None:
    """Whatever the machine's is."""
    assert local_time(WINTER, "Asia/Tokyo").isoformat() == "2026-11-30T21:00:00+09:00"


def test_the_machines_own_zone_knows_summer_and_winter(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset of today would move a date of the other half of the year by an hour."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = local_time(WINTER, None)
        summer = datetime(2026, 7, 1, 9, 0, tzinfo=now.tzinfo)

        assert now == datetime.fromtimestamp(WINTER, UTC)
        assert now.isoformat() == "2026-11-30T13:00:00+01:00"
        assert summer.isoformat() == "2026-07-01T09:00:00+02:00"
        assert (now.tzname(), now.dst()) == ("CET", None)
    finally:
        monkeypatch.undo()
        time.tzset()
