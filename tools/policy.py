"""The policy: whether a call may run, may not, or waits for a person. Pure."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from daruma.state.settings import PolicyRule, Tools
from daruma.tools.tool import Tool

_ALLOW = PolicyRule(decision="allow")
_CONFIRM_COMMAND = PolicyRule(decision="confirm", reason="commands are confirmed unless known safe")

_PATHS = r"(?: (?!-|/|~|\S*\.\.)[\w./:-]+)*"
_SAFE_COMMANDS = re.compile(
    rf"(?:python3? -m )?pytest(?: -(?:x|q|v|vv|s))*{_PATHS}"
    rf"|ruff (?:check|format --check){_PATHS}"
    r"|git (?:status|diff|log --oneline)"
)
"""Commands that only look, or run the tests as verification does anyway: whole lines, no shell."""


def decide(tool: Tool, args: Mapping[str, Any], settings: Tools) -> PolicyRule:
    """Return the rule for a call: the user's first match by exact name, then by pattern.

    Without one, commands are confirmed unless known safe; everything else is allowed: reading and
    writing in the workspace, and the tools that the application passed in.
    """
    for pattern, rule in sorted(settings.policy.items(), key=lambda item: item[0] != tool.name):
        if fnmatchcase(tool.name, pattern):
            return rule if isinstance(rule, PolicyRule) else PolicyRule(decision=rule)
    if tool.builtin and tool.name == "run_command":
        safe = _SAFE_COMMANDS.fullmatch(str(args.get("command", "")).strip())
        return _ALLOW if safe and not args.get("cwd") else _CONFIRM_COMMAND
    return _ALLOW
