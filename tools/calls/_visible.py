"""What a task's model is offered: the tools that it sees (TL-06), the rules, and the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

from daruma.state.calls import ToolTask
from daruma.state.conversation import Clarification
from daruma.state.settings import Settings, Tools
from daruma.tools.calls._tool import Tool, Toolset

# --- The time zone of the machine, with its rules for every date and not just today's offset.


class MachineZone(tzinfo):
    """What the operating system says of a local time."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002 - a tzinfo
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().tzname()


def local_time(seconds: float, zone: str | None) -> datetime:
    """Return a Unix time in a zone by its IANA name, in the machine's own where that is None."""
    if zone is None:
        return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=MachineZone())
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))


LIBRARIAN: Final = "librarian_retrieval"
"""The profile whose tools are those of the knowledge set."""


def usable_tool_sets(settings: Settings, *, workspace: bool, store: bool) -> frozenset[Toolset]:
    """Return the sets of tools that a task can use: what it has, and what settings ask for."""
    there: set[Toolset] = set()
    if workspace:
        there.add("workspace")
    if settings.skills.folders:
        there.add("skills")
    if store:
        there.update(settings.tools.toolsets)
        if settings.memory.enabled:
            there.add("memory")
        if settings.tools.profile == LIBRARIAN:
            there.add("knowledge")
    return frozenset(there)


# --- What a task's model is offered: the tools it is shown, and the rules for calling them.


@dataclass(frozen=True)
class VisibleTools:
    """The tools that are shown, the names of those that are there but not shown, the settings.

    Dates are read as of ``now``, where it is given: where a tool that is shown takes some.
    ``asks`` says that the user can be asked for what a call lacks; calls go on with what is in
    ``resuming``. ``unconfined`` says that commands run at sandbox level none. ``ran_as`` are the
    definitions that MCP tools had when they ran on the thread.
    """

    tools: tuple[Tool, ...] = ()
    hidden: frozenset[str] = frozenset()
    settings: Tools = field(default_factory=Tools)
    now: datetime | None = None
    asks: bool = False
    resuming: tuple[Clarification, ...] = ()
    unconfined: bool = False
    ran_as: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Tool | None:
        """Return the shown tool of a name. What is not shown can not be called (TL-06)."""
        return self._named.get(name)

    def after(self, task: ToolTask) -> "VisibleTools":
        """Return what the next call of an answer is offered: no two go on with the same."""
        rest = tuple(each for each in self.resuming if each.call_id != task.continues)
        return replace(self, resuming=rest) if len(rest) < len(self.resuming) else self

    def cautious(self, tool: Tool) -> Tool:
        """Return a tool with the effect of what its calls may be promoted to.

        Its calls are repaired with the care that such an effect asks for.
        """
        target = self.find(tool.canonical.promote_to or "") if tool.canonical else None
        if tool.effect != "none" or target is None:
            return tool
        return replace(tool, effect=self.cautious(target).effect)

    @cached_property
    def _named(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in reversed(self.tools)}  # the first of a name counts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tools that are shown."""
        return tuple(tool.name for tool in self.tools)
