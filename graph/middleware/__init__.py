"""The parts of the machine that are of use alone, as middleware of LangChain's ``create_agent``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daruma.graph.middleware.failover import Failover
    from daruma.graph.middleware.gate import Gate
    from daruma.graph.middleware.repair_ladder import RepairLadder

__all__ = ["Failover", "Gate", "RepairLadder"]

_HOMES = {"Failover": "failover", "Gate": "gate", "RepairLadder": "repair_ladder"}


def __getattr__(name: str) -> Any:
    """Import a part when it is used: what is missing for it is said then, in one line."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
