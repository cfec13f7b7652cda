"""The time zone of the machine, with its rules for every date and not just today's offset."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo


class MachineZone(tzinfo):
    """What the operating system says of a local time."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002 - a tzinfo
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().tzname()


def local_time(seconds: float, zone: str | None) -> datetime:
    """Return a Unix time in a zone by its IANA name, in the machine's own where that is None."""
    if zone is None:
        return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=MachineZone())
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))
