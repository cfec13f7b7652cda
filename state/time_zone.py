"""Names of time zones."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def checked_time_zone(name: str) -> str:
    """Return the IANA name of a time zone. Raises ValueError for one that is not known here."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}: take one like Europe/Berlin") from None
    return name
