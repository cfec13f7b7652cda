"""How long something took, and how long ago it was, in the same words on every face."""

from typing import Final

_LEAST: Final = 0.05
"""Seconds that are told at all; less would read as none."""


def duration(seconds: float, *, whole: bool = False) -> str:
    """Return a time in the two units that matter: ``0.4 s``, ``2 min 5 s``, ``3 h 2 min``.

    ``whole`` leaves out tenths of seconds, for a time that still runs.
    """
    if seconds < 60:
        return f"{int(seconds)} s" if whole else f"{min(seconds, 59.9):.1f} s"
    minutes, rest = divmod(int(seconds) if whole else round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def duration_if_any(seconds: float | None) -> str:
    """Return the same, or nothing for what took no time worth telling."""
    return duration(seconds) if seconds and seconds >= _LEAST else ""


def ago(seconds: float) -> str:
    """Return how long ago something was, in its largest unit: ``3 h ago``."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"
