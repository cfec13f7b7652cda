"""Rules of the policy have to be about something: checked when the graph is built. Pure."""

from collections.abc import Mapping
from difflib import get_close_matches

from daruma.state.policy_key import PolicyKey, policy_key
from daruma.state.settings_errors import SettingsError
from daruma.state.settings_tools import Tools
from daruma.tools.names import name_key
from daruma.tools.tool import Tool


def check_policy(settings: Tools, tools: Mapping[str, Tool]) -> None:
    """Raise ``SettingsError`` for a rule whose tool or argument is plainly misspelt.

    A name that resembles none is let be: settings are shared by graphs with other tools.
    """
    for text in settings.policy:
        key = policy_key(text)
        said = _misspelt(key, tools) if key.exact else None
        if said:
            raise SettingsError(f"setting 'tools.policy.{text}': {said}")


def _misspelt(key: PolicyKey, tools: Mapping[str, Tool]) -> str | None:
    tool = tools.get(key.name)
    if tool is None:
        meant = _meant(key.name, tools)
        return f"there is no tool {key.name!r}; did you mean {meant!r}?" if meant else None
    known = tool.parameters.get("properties", {})
    if tool.parameters.get("additionalProperties", True) is not False:
        return None
    for name, _ in key.globs:
        if name not in known:
            return f"{key.name!r} has no argument {name!r}; it has: {', '.join(known)}"
    return None


def _meant(name: str, tools: Mapping[str, Tool]) -> str | None:
    for each in tools:
        if name_key(each) == name_key(name):
            return each
    builtin = [each for each, tool in tools.items() if tool.builtin]
    return next(iter(get_close_matches(name, builtin, n=1, cutoff=0.8)), None)
