"""Policy profiles: which tools the model is shown at all (TL-06). Pure."""

from difflib import get_close_matches
from fnmatch import fnmatchcase

from daruma.state.settings_errors import SettingsError
from daruma.state.settings_tools import Tools
from daruma.tools.tool import Tool

LIBRARIAN_RETRIEVAL = (
    "search_knowledge",
    "hybrid_search",
    "web_search",
    "get_knowledge_graph_context",
)
"""The names of AS-02."""

BUILTIN_PROFILES = ("all", "read_only", "librarian_retrieval")


def shows(settings: Tools, tool: Tool) -> bool:
    """Whether the profile in use shows a tool. One's own profile goes before a built-in one.

    Raises :class:`~daruma.state.settings_errors.SettingsError` for a profile that is not there.
    """
    profile = settings.profile or "all"
    if profile == "all" and not settings.profiles:
        return True
    check_profile(settings)
    if profile in settings.profiles:
        return any(fnmatchcase(tool.name, pattern) for pattern in settings.profiles[profile])
    if profile == "read_only":
        return tool.effect == "none"
    return profile == "all" or tool.name in LIBRARIAN_RETRIEVAL


def check_profile(settings: Tools) -> None:
    """Raise ``SettingsError`` for a profile that is not there, naming those that are."""
    try:
        check_named(settings.profile, settings)
    except SettingsError as error:
        raise SettingsError(f"setting 'tools.profile': {error}") from None


def check_named(profile: str | None, settings: Tools) -> None:
    """Raise ``SettingsError`` for the name of a profile that is not there; None is no name."""
    known = list(dict.fromkeys((*BUILTIN_PROFILES, *settings.profiles)))
    if profile is None or profile in known:
        return
    close = get_close_matches(profile, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise SettingsError(f"there is no profile {profile!r}{hint} There are: {', '.join(known)}")
