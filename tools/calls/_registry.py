"""The tools of one graph: which there are, which a task may see, and which stands in for which."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from daruma.state.settings import Settings, Tools
from daruma.state.text import READER
from daruma.tools.calls._langchain import wrap_tool
from daruma.tools.calls._tool import (
    Effect,
    Surroundings,
    Tool,
    Toolset,
    check_names,
    check_promotions,
    name_key,
    shipped_tool,
)
from daruma.tools.calls.policy._policy import check_policy, check_profile, profile_shows
from daruma.tools.errors import ToolError

LIBRARIAN: Final = "librarian_retrieval"
"""The profile whose tools are those of the knowledge set."""


def usable_tool_sets(settings: Settings, *, workspace: bool, store: bool) -> frozenset[Toolset]:
    """Return the sets of tools that a task can use: what it has, and what settings ask for."""
    there: set[Toolset] = set()
    if workspace:
        there.add("workspace")
    if settings.skills.folders:
        there.add("skills")
    if settings.team.delegate:
        there.add("team")
    if store:
        there.update(settings.tools.toolsets)
        if settings.memory.enabled:
            there.add("memory")
        if settings.tools.profile == LIBRARIAN:
            there.add("knowledge")
    return frozenset(there)


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
        check_names(tools, {}, normalize=False)
        self._tools = {tool.name: tool for tool in tools}
        self._shown: tuple[Settings | None, dict[object, Shown]] = None, {}

    @property
    def has_servers(self) -> bool:
        """Whether any of the tools is one of an MCP server."""
        return any(tool.origin == "mcp" for tool in self._tools.values())

    def check(self, settings: Tools) -> None:
        """Check what depends on the settings of a run.

        Raises :class:`ToolNameConflictError` for names and aliases that could mean two tools,
        ``PromotionRefused`` for a promotion that leads nowhere, and
        :class:`~daruma.state.settings.SettingsError` for a profile that is not there and for a rule
        that is about nothing.
        """
        named = [tool for tool in self._tools.values() if not _gives_way(tool, settings)]
        check_names(named, settings.name_aliases, normalize=settings.normalize_names)
        check_promotions(self._tools)
        check_profile(settings)
        check_policy(settings, self._tools)

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        """Return the tools that the model is shown: the profile's; of ours those that are usable.

        See :func:`usable_tool_sets`.
        """
        return tuple(
            tool
            for tool in self._tools.values()
            if (tool.toolset is None or tool.toolset in usable)
            and profile_shows(settings, tool)
            and tool is not READ_OUTPUT
        )

    def shown(
        self,
        settings: Settings,
        without: frozenset[str],
        *,
        workspace: bool,
        store: bool,
        reading: bool,
        planning: frozenset[str] = frozenset(),
    ) -> Shown:
        """Return what a task is shown ``without`` some of it, and what is left out.

        It has a ``workspace`` and the graph a ``store``, or not; ``reading`` adds the tool that
        reads on in long results, where there are others, ``planning`` are those that are shown with
        others to plan with. It is looked for once, as long as a run's
        settings are the same.
        """
        of, found = self._shown
        if of is not settings:
            of, found = self._shown = settings, {}
        key = without, workspace, store, reading, planning
        if key not in found:
            usable = usable_tool_sets(settings, workspace=workspace, store=store)
            visible = self.visible(settings.tools, usable)
            reader = (READ_OUTPUT,) if visible and reading else ()
            beside = (
                tool
                for tool in self._tools.values()
                if visible and tool.toolset == "planning" and tool.name in planning
                if profile_shows(settings.tools, tool) and not _gives_way(tool, settings.tools)
            )
            tools = tuple(tool for tool in (*visible, *beside, *reader) if tool.name not in without)
            hidden = frozenset(self._tools) - {tool.name for tool in tools}
            dated = any(tool.canonical and tool.canonical.dates for tool in tools)
            found[key] = Shown(tools, hidden, dated)
        return found[key]

    def stand_ins(self, name: str, shown: Collection[str]) -> tuple[str, ...]:
        """Return the best stand-ins for a tool among those that are shown (RE-08a)."""
        return tuple(each for each in self._ranked.get(name, ()) if each in shown)[:MOST]

    @cached_property
    def _ranked(self) -> Mapping[str, tuple[str, ...]]:
        return rank_stand_ins(self._tools.values())

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


def _gives_way(tool: Tool, settings: Tools) -> bool:
    """Whether a tool of planning has a name that the settings give to another tool."""
    aliases = settings.name_aliases
    return tool.toolset == "planning" and name_key(tool.name) in map(name_key, aliases)


# --- The words that tools are named and described with, and which of their verbs mean the same.

_VERBS = {
    "search": "search find lookup look query retrieve seek grep",
    "read": "read get fetch load download view show open cat inspect scrape crawl extract",
    "list": "list ls browse enumerate",
    "create": "create add insert new make write save store upload generate",
    "update": "update edit modify change replace set patch rename move",
    "delete": "delete remove drop clear purge cancel revoke",
    "send": "send post notify publish reply pay charge",
    "run": "run execute exec start launch invoke call",
}
_ACTIONS = {verb: action for action, verbs in _VERBS.items() for verb in verbs.split()}

_LOOKING = frozenset({"search", "read", "list"})

_FILLING = """
a an and any are as at be by can for from given has if in into is it its of on one or that the
then there this to tool use used uses using was what when where which will with you your return
"""
_EMPTY = frozenset(_FILLING.split())


def words(text: str) -> Iterator[str]:
    """Yield the words of a name or a text in lower case, a plural as its singular."""
    for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+", text):
        word = part.lower()
        yield word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


def terms(text: str) -> list[str]:
    """Return the words that tell something, verbs of one action as that action."""
    return [_ACTIONS.get(word, word) for word in words(text) if word not in _EMPTY]


@cache
def kind_of_action(name: str) -> str:
    """Return what a tool does by the first verb of its name that is known; empty for none.

    Searching, reading and listing are all looking: one may do for the other.
    """
    action = next((_ACTIONS[word] for word in words(name) if word in _ACTIONS), "")
    return "look" if action in _LOOKING else action


# --- Which tool can stand in for which, worked out from their definitions alone (RE-08a). Pure.

MOST: Final = 3
"""Stand-ins of one tool that are named."""

_ALIKE: Final = 0.12
"""The least likeness, a cosine, of two tools whose names say that they do the same."""
_ALIKE_UNSAID: Final = 0.3
"""The same where a name does not say what its tool does. Both are from the tests' tools."""

_NAME_WEIGHT: Final = 3
"""A word of the name counts as much as so many of the description."""
_READ: Final = 60
"""Words of a description that count: what follows is mostly about arguments."""

_STRENGTH: Final[Mapping[Effect, int]] = {"none": 0, "workspace": 1, "external": 2}


def rank_stand_ins(tools: Collection[Tool]) -> Mapping[str, tuple[str, ...]]:
    """Return all stand-ins for each tool, the best first; none for one without a like (RE-08a).

    A stand-in never has a stronger effect, its promotions included: a read that failed is not
    replaced by a write. It does the same kind of thing, to something that both speak of.
    """
    vectors = _vectors(tools)
    by_name = {tool.name: tool for tool in tools}
    strength = {tool.name: _strength(tool, by_name) for tool in tools}
    ranked: dict[str, tuple[str, ...]] = {}
    for tool in tools:
        scores = {
            other.name: _likeness(tool, other, vectors)
            for other in tools
            if other is not tool and strength[other.name] <= _STRENGTH[tool.effect]
        }
        fitting = [name for name, score in scores.items() if score > 0]
        ranked[tool.name] = tuple(sorted(fitting, key=scores.__getitem__, reverse=True))
    return ranked


def _likeness(tool: Tool, other: Tool, vectors: Mapping[str, Mapping[str, float]]) -> float:
    """Return how well one fits in the other's place, 0 where it does not.

    Likeness of what is said of both counts, and how much of what the other needs the one's
    arguments could give, from 0.5 to 1.
    """
    own, their = kind_of_action(tool.name), kind_of_action(other.name)
    about = [{*terms(t.name), *terms(t.description)} - _VERBS.keys() for t in (tool, other)]
    if (own and their and own != their) or not about[0] & about[1]:
        return 0.0
    theirs = vectors[other.name]
    alike = sum(weight * theirs.get(term, 0.0) for term, weight in vectors[tool.name].items())
    if alike < (_ALIKE if own and their else _ALIKE_UNSAID):
        return 0.0
    given, wanted = (each.parameters.get("properties", {}) for each in (tool, other))
    needed = other.parameters.get("required", ())
    types = {str(each.get("type")) for each in given.values()}
    met = sum(name in given or str(wanted.get(name, {}).get("type")) in types for name in needed)
    return alike * (0.5 + 0.5 * met / len(needed) if needed else 1.0)


def _strength(tool: Tool, by_name: Mapping[str, Tool]) -> int:
    """Return the strongest effect that a call of a tool may come to have by promotion."""
    passed: list[str] = []
    strongest = 0
    while tool.name not in passed:
        passed.append(tool.name)
        strongest = max(strongest, _STRENGTH[tool.effect])
        target = tool.canonical.promote_to if tool.canonical else None
        tool = by_name.get(target or "", tool)
    return strongest


def _vectors(tools: Collection[Tool]) -> dict[str, dict[str, float]]:
    """Weigh a term by its rarity: what all tools speak of tells none of them apart."""
    counts = {}
    for tool in tools:
        counts[tool.name] = Counter(dict.fromkeys(terms(tool.name), _NAME_WEIGHT))
        counts[tool.name].update(terms(tool.description)[:_READ])
        for name in tool.parameters.get("properties", {}):
            counts[tool.name].update(terms(name))
    in_tools = Counter(term for counted in counts.values() for term in counted)
    rarity = {term: math.log(1 + len(counts) / number) for term, number in in_tools.items()}
    vectors = {}
    for name, counted in counts.items():
        weighed = {term: (1 + math.log(number)) * rarity[term] for term, number in counted.items()}
        length = math.hypot(*weighed.values()) or 1.0
        vectors[name] = {term: weight / length for term, weight in weighed.items()}
    return vectors


MANY: Final = 50
"""Lines that are shown of those which hold a text."""

_LONGEST_LINE: Final = 200


class ReadOutputArgs(BaseModel):
    """Read the part of a long result that was left out, by the id that stands in its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(description="The id, as in: read_output shows them: id 0123456789abcdef")
    offset: int = Field(default=0, ge=0, description="Character to begin with, from 0.")
    length: int = Field(default=8000, ge=1, le=20_000, description="Characters to show.")
    find: str | None = Field(
        default=None,
        min_length=1,
        description="Show the lines after the offset that hold this text, in any case, instead.",
    )


async def _read_output(args: ReadOutputArgs, at: Surroundings) -> str:
    """Show a part, or the lines that hold a text and where each begins. Raises ToolError."""
    text = await at.outputs.read(args.id.strip())
    if text is None:
        raise ToolError(
            f"there is no output {args.id!r} of this thread: take the id from the line "
            "that says how many characters were left out"
        )
    if args.offset >= len(text):
        raise ToolError(f"the output has {len(text)} characters: nothing at {args.offset}")
    if args.find is not None:
        return _lines_with(text, args.find, args.offset)
    end = min(len(text), args.offset + args.length)
    return f"[characters {args.offset} to {end} of {len(text)}]\n{text[args.offset : end]}"


def _lines_with(text: str, wanted: str, offset: int) -> str:
    wanted = wanted.casefold()
    hits, at = list[str](), 0
    for line in text.splitlines(keepends=True):
        if at >= offset and wanted in line.casefold():
            if len(hits) == MANY:
                return "\n".join([*hits, f"[more from offset {at} on]"])
            hits.append(f"{at}: {line.rstrip()[:_LONGEST_LINE]}")
        at += len(line)
    return "\n".join(hits) or f"no line from offset {offset} on holds that"


READ_OUTPUT = shipped_tool(READER, ReadOutputArgs, "none", _read_output)
"""Shown where there is something to read, with or without a workspace."""
