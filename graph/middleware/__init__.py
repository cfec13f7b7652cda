"""The parts of the machine that are of use alone, as middleware of LangChain's ``create_agent``.

``Gate`` puts calls under a policy and asks a person, ``RepairLadder`` repairs broken calls,
``Failover`` goes through a chain of models. Each is imported when it is used: what is missing for
it (the extra ``middleware``) is said then, in one line.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.middleware._middleware import Failover, Gate, RepairLadder
else:

    def _explain(name: str) -> "MiddlewareMissing | None":
        said = "middleware needs LangChain's agents: pip install 'daruma-agent[middleware]'"
        return MiddlewareMissing(said) if name == "langchain" else None

    __getattr__ = open_late(__name__, {"_middleware": "Failover Gate RepairLadder"}, _explain)


class MiddlewareMissing(DarumaError, ImportError):
    """Raised when LangChain's agents are not installed."""


__all__ = ["Failover", "Gate", "RepairLadder"]
