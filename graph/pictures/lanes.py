"""The moments of a run in sections: the task itself, its phases, and each member of a team."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.timeline import Timeline


@dataclass
class Lane:
    """A section: what it is called, and its moments with their numbers in the timeline."""

    title: str
    moments: list[tuple[int, Moment]] = field(default_factory=list)


def lanes_of(timeline: Timeline) -> list[Lane]:
    """Return the sections in the order that they began.

    A phase has one, whatever stands between its moments: those of a team go on side by side. What
    is no phase's begins a new one after each of them.
    """
    titles = _titles(timeline.moments)
    lanes = list[Lane]()
    known: dict[tuple[str, str], Lane] = {}
    for number, moment in enumerate(timeline.moments):
        key = (moment.task, moment.phase)
        lane = known.get(key)
        if lane is None or (not moment.phase and lane is not lanes[-1]):
            lane = known[key] = Lane(titles.get(key) or titles.get((moment.task, "")) or "")
            lanes.append(lane)
        lane.moments.append((number, moment))
    return lanes


def _titles(moments: Iterable[Moment]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for each in moments:
        if each.kind == "phase":
            found.setdefault((each.task, each.phase), each.title)
        elif each.kind == "request":
            found[each.task, ""] = f"Task: {each.title}"
    return found
