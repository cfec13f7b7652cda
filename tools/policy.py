"""The policy: whether a call may run, may not, or waits for a person. Pure."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from daruma.state.policy_key import SHELL_TOOL, PolicyKey, policy_key
from daruma.state.settings_tools import PolicyRule, Tools
from daruma.tools.argument_policy import NONE, UNTOLD, argument, may_fit, surely_fits
from daruma.tools.command_policy import is_plainly, may_run, may_start
from daruma.tools.tool import Tool

_ALLOW = PolicyRule(decision="allow")
_CONFIRM_COMMAND = PolicyRule(decision="confirm", reason="commands are confirmed unless known safe")
_CONFIRM_MCP = PolicyRule(
    decision="confirm", reason="tools of an MCP server are confirmed unless they only look"
)

_PATHS = r"(?: (?!-|/|~|\S*\.\.)[\w./:-]+)*"
_SAFE_COMMANDS = re.compile(
    rf"(?:python3? -m )?pytest(?: -(?:x|q|v|vv|s))*{_PATHS}"
    rf"|ruff (?:check|format --check){_PATHS}"
    r"|git (?:status|diff|log --oneline)"
)
"""Commands that only look, or run the tests as verification does anyway: whole lines, no shell."""


def decide(tool: Tool, args: Mapping[str, Any], settings: Tools) -> PolicyRule:
    """Return the rule for a call, whatever its arguments hold.

    Of the rules whose key fits, one that denies wins. Else a key with arguments goes before one
    without, an exact name before a pattern, and what stands first in the settings before the rest.
    In doubt whether a key fits, ``deny`` and ``confirm`` hold and ``allow`` does not.

    Without a rule, commands are confirmed unless known safe, and so are tools of an MCP server
    unless they change nothing. All else is allowed: reading and writing in the workspace, and the
    tools that the application passed in.
    """
    if not settings.policy:
        return _without_rule(tool, args)
    fitting = sorted(_fitting(tool, args, settings), key=lambda found: _rank(*found))
    return fitting[0][1] if fitting else _without_rule(tool, args)


def _fitting(
    tool: Tool, args: Mapping[str, Any], settings: Tools
) -> Iterator[tuple[PolicyKey, PolicyRule]]:
    for text, given in settings.policy.items():
        rule = given if isinstance(given, PolicyRule) else PolicyRule(decision=given)
        key = policy_key(text)
        if fnmatchcase(tool.name, key.name) and _fits(key, tool, args, rule):
            yield key, rule


def _rank(key: PolicyKey, rule: PolicyRule) -> tuple[bool, bool, bool]:
    return rule.decision != "deny", key.bare, not key.exact


def _fits(key: PolicyKey, tool: Tool, args: Mapping[str, Any], rule: PolicyRule) -> bool:
    allows = rule.decision == "allow"
    if key.words is not None:
        line = args.get("command")
        if not isinstance(line, str):
            return not allows
        return is_plainly(line, key) if allows else may_run(line, key)
    return all(_argument_fits(tool, args, name, glob, allows=allows) for name, glob in key.globs)


def _argument_fits(
    tool: Tool, args: Mapping[str, Any], name: str, glob: str, *, allows: bool
) -> bool:
    value = argument(args, tool.parameters, name)
    if value is NONE or value is UNTOLD:
        return value is UNTOLD and not allows
    shell = tool.name == SHELL_TOOL and name == "command"
    if not allows:
        return may_fit(value, glob) or (shell and may_start(str(value), glob))
    return surely_fits(name, value, glob) and (not shell or is_plainly(str(value), _ANY_COMMAND))


_ANY_COMMAND = PolicyKey(SHELL_TOOL, words=(), open_end=True)


def _without_rule(tool: Tool, args: Mapping[str, Any]) -> PolicyRule:
    if tool.origin == "mcp":
        return _ALLOW if tool.effect == "none" else _CONFIRM_MCP
    if tool.builtin and tool.name == SHELL_TOOL:
        return _ALLOW if is_known_safe(args) else _CONFIRM_COMMAND
    return _ALLOW


def is_known_safe(args: Mapping[str, Any]) -> bool:
    """Whether a call of ``run_command`` only looks, or runs the tests as verification does."""
    line = args.get("command")
    safe = isinstance(line, str) and _SAFE_COMMANDS.fullmatch(line.strip(" \t\n"))
    return bool(safe) and not args.get("cwd")
