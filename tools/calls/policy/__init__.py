"""The policy: whether a call runs, is refused, or waits for a person, and which tools a profile
shows.

Rules for commands are matched against shell lines, which are taken apart into the commands that
they may run.
"""

from daruma.tools.calls.policy._policy import (
    check_policy,
    check_profile,
    check_profile_name,
    profile_shows,
)
from daruma.tools.calls.policy._shell import (
    UNKNOWN_WORD,
    Line,
    Simple,
    Unclear,
    Words,
    is_one_command,
    line_of,
    place_outside,
    program_of,
    unassigned,
)

__all__ = [
    "UNKNOWN_WORD",
    "Line",
    "Simple",
    "Unclear",
    "Words",
    "check_policy",
    "check_profile",
    "check_profile_name",
    "is_one_command",
    "line_of",
    "place_outside",
    "profile_shows",
    "program_of",
    "unassigned",
]
