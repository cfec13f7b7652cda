"""The tools of one graph: which there are, and which a task may see."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool

from daruma.state.settings import Tools
from daruma.tools.calls._alternatives import MOST, ranked
from daruma.tools.calls._application_tool import wrap_tool
from daruma.tools.calls._names import check_aliases, check_names, check_promotions, name_key
from daruma.tools.calls._outputs import READ_OUTPUT
from daruma.tools.calls._tool import Tool, Toolset
from daruma.tools.calls.policy._policy import check_policy, check_profile, profile_shows

_Asked = tuple[frozenset[Toolset], frozenset[str], bool]


class Shown(NamedTuple):
    """The tools that a task is shown, the names of the others; ``dated`` if one takes dates."""

    tools: tuple[Tool, ...]
    hidden: frozenset[str]
    dated: bool


class Registry:
    """The tools that ship and the application's own, by name."""

    def __init__(
        self, shipped: Iterable[Tool], application_tools: Iterable[BaseTool | Callable[..., Any]]
    ) -> None:
        """Raises :class:`ToolNameConflictError` for two tools of one name (TL-05).

        An application's tool takes the place of a shipped one of the same name, unless that is one
        of the workspace's.
        """
        own = tuple(map(wrap_tool, application_tools))
        taken = {name_key(tool.name) for tool in own}
        left = (t for t in shipped if t.toolset == "workspace" or name_key(t.name) not in taken)
        tools = (*left, READ_OUTPUT, *own)
        check_names(tools, normalize=False)
        self._tools = {tool.name: tool for tool in tools}
        self._shown: tuple[Tools | None, dict[_Asked, Shown]] = None, {}

    def check(self, settings: Tools) -> None:
        """Check what depends on the settings of a run.

        Raises :class:`ToolNameConflictError` for names and aliases that could mean two tools,
        :class:`~daruma.tools.calls._names.PromotionRefused` for a promotion that leads nowhere, and
        :class:`~daruma.state.settings.SettingsError` for a profile that is not there and
        for a rule that is about nothing.
        """
        tools, normalize = self._tools.values(), settings.normalize_names
        check_names(tools, normalize=normalize)
        check_aliases(tools, settings.name_aliases, normalize=normalize)
        check_promotions(self._tools)
        check_profile(settings)
        check_policy(settings, self._tools)

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        """Return the tools that the model is shown: the profile's; of ours those that are usable.

        See :func:`daruma.tools.calls.usable_tool_sets`.
        """
        return tuple(
            tool
            for tool in self._tools.values()
            if (tool.toolset is None or tool.toolset in usable)
            and profile_shows(settings, tool)
            and tool is not READ_OUTPUT
        )

    def shown(
        self, settings: Tools, usable: frozenset[Toolset], without: frozenset[str], *, reading: bool
    ) -> Shown:
        """Return what is visible ``without`` some of it, and what is left out.

        ``reading`` adds the tool that reads on in long results, where there are others. It is
        looked for once, as long as a run's settings are the same.
        """
        of, found = self._shown
        if of is not settings:
            of, found = self._shown = settings, {}
        key = usable, without, reading
        if key not in found:
            found[key] = self._sorted_out(settings, *key)
        return found[key]

    def _sorted_out(
        self,
        settings: Tools,
        usable: Collection[Toolset],
        without: Collection[str],
        reading: bool,  # noqa: FBT001 - of a key
    ) -> Shown:
        visible = self.visible(settings, usable)
        reader = (READ_OUTPUT,) if visible and reading else ()
        tools = tuple(tool for tool in (*visible, *reader) if tool.name not in without)
        hidden = frozenset(self._tools) - {tool.name for tool in tools}
        dated = any(tool.canonical and tool.canonical.dates for tool in tools)
        return Shown(tools, hidden, dated)

    def stand_ins(self, name: str, shown: Collection[str]) -> tuple[str, ...]:
        """Return the best stand-ins for a tool among those that are shown (RE-08a)."""
        return tuple(each for each in self._ranked.get(name, ()) if each in shown)[:MOST]

    @cached_property
    def _ranked(self) -> Mapping[str, tuple[str, ...]]:
        return ranked(tuple(self._tools.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, shown or not."""
        return tuple(self._tools)

    def named(self, name: str) -> Tool | None:
        """Return the tool of a name, shown or not."""
        return self._tools.get(name)

    async def look_again(self, name: str) -> None:
        """Know a tool of an MCP server as the server tells it now (SE-06).

        Raises ``ToolError`` for one that is gone, or whose server is.
        """
        tool = self._tools[name]
        now = await tool.look_again() if tool.look_again else tool
        if now.definition != tool.definition:
            self._tools[name], self._shown = now, (None, {})
