"""The four modes of a task (MO-01), and how a message asks for one."""

import re
from typing import Literal, get_args

Mode = Literal["direct_chat", "react", "plan_exec", "team_collab"]
MODES: tuple[Mode, ...] = get_args(Mode)

KEEP_WORKING: frozenset[Mode] = frozenset({"plan_exec", "team_collab"})
"""The modes that plan, verify by default and have quotas for every phase (MO-05)."""

_PREFIX = re.compile(r"\s*@(team|plan|chat)(?::(\S*))?(?:\s+|$)")
_MODE_OF: dict[str, Mode] = {"team": "team_collab", "plan": "plan_exec", "chat": "direct_chat"}


def split_prefix(text: str) -> tuple[Mode | None, str | None, str]:
    """Split ``@team:web build it`` into its mode, its team template and the goal (MO-02).

    Without one of the prefixes ``@team``, ``@team:TEMPLATE``, ``@plan`` and ``@chat`` the text is
    the goal as it stands. Whatever is named as a template counts as one: a name that can be none is
    refused where templates are looked for, and nothing falls back to another mode (MO-06).
    """
    found = _PREFIX.match(text)
    if not found or (found[2] is not None and found[1] != "team"):
        return None, None, text
    return _MODE_OF[found[1]], found[2] or None, text[found.end() :]
