"""Which channels of the machine are replayed from what was written to them; the others are not."""

from collections.abc import Mapping
from typing import Any, Final, get_type_hints

from langgraph.channels import DeltaChannel

from daruma.state.channels import State

_HINTS: Final = get_type_hints(State, include_extras=True)

DELTA: Final[Mapping[str, DeltaChannel[Any]]] = {
    name: each
    for name, hint in _HINTS.items()
    for each in getattr(hint, "__metadata__", ())
    if isinstance(each, DeltaChannel)
}
"""The channels that are kept as writes."""

KEPT_WHOLE: Final = frozenset(_HINTS) - DELTA.keys()
"""Those whose value stands in a checkpoint by itself."""
