"""When a server wants to be asked again, as its headers say it."""

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds to wait: `Retry-After-Ms`, else `Retry-After` in seconds or as a date.

    `now` is the time as `time.time` tells it. None where there is nothing that can be read.
    """
    given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    milliseconds = _number(given.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = given.get("retry-after", "")
    seconds = _number(said)
    return _until(said, now) if seconds is None else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _until(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(aware.timestamp() - now, 0.0)
