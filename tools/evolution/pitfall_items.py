"""A pitfall as an item of a store, and back. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.store.base import Item, PutOp
from pydantic import TypeAdapter, ValidationError

from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.summing_up import Summary

PITFALL: TypeAdapter[Pitfall] = TypeAdapter(Pitfall)

FOUND_BY: Final = ["about"]
"""What a pitfall is searched by: the goals and skills of its tasks, and not its own text, whose
words any goal may have."""

_LONGEST_ABOUT: Final = 2000


@dataclass(frozen=True)
class Kept:
    """A pitfall as it was found. ``grave`` says that it is high wherever it is sure enough."""

    pitfall: Pitfall
    grave: bool


def put_of(summary: Summary, *, shared: bool) -> PutOp:
    """Return the operation that keeps a pitfall, with plain values that filters ask for."""
    pitfall = replace(summary.pitfall, shared=shared)
    return PutOp(shelf(pitfall.owner, "pitfalls"), pitfall.id, _value(pitfall, summary), FOUND_BY)


def _value(pitfall: Pitfall, summary: Summary) -> dict[str, Any]:
    return {
        "about": "\n".join((*pitfall.goals, *pitfall.skills))[:_LONGEST_ABOUT],
        "id": pitfall.id,
        "group": pitfall.id.partition("-")[0],
        "owner": pitfall.owner,
        "grave": summary.grave,
        "again": pitfall.tasks > 1,
        "shared": pitfall.shared,
        "last_at": pitfall.last_at,
        "pitfall": PITFALL.dump_python(pitfall, mode="json"),
    }


def marked(item: Item, *, shared: bool) -> PutOp:
    """Return the operation that marks an item as shared or not, and leaves it as it is else."""
    inner = item.value.get("pitfall")
    whole = {**inner, "shared": shared} if isinstance(inner, dict) else inner
    value = {**item.value, "shared": shared, "pitfall": whole}
    return PutOp(item.namespace, item.key, value, FOUND_BY)


def kept_in(items: Iterable[Item]) -> list[Kept]:
    """Return the pitfalls that items hold; what is none, or lies where it does not belong, is not.

    Whose it says it is has to be whose namespace it lies in, and its id its key.
    """
    found = (_kept(item) for item in items)
    return [each for each in found if each]


def _kept(item: Item) -> Kept | None:
    try:
        pitfall = PITFALL.validate_python(item.value.get("pitfall"))
    except ValidationError:
        return None
    shared = item.value.get("shared") is True
    ours = item.namespace == shelf(pitfall.owner, "pitfalls") and item.key == pitfall.id
    found = replace(pitfall, shared=shared)
    return Kept(found, item.value.get("grave") is True) if ours else None
