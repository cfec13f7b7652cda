"""The parts of the machine that are of use alone, as middleware of LangChain's ``create_agent``.

``Gate`` puts calls under a policy and asks a person, ``RepairLadder`` repairs broken calls,
``Failover`` goes through a chain of models. Each is imported when it is used: what is missing for
it (the extra ``middleware``) is said then, in one line.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.graph.middleware._failover import Failover
    from daruma.graph.middleware._gate import Gate
    from daruma.graph.middleware._repair_ladder import RepairLadder
else:
    __getattr__ = open_late(
        __name__,
        {
            "_failover": "Failover",
            "_gate": "Gate",
            "_repair_ladder": "RepairLadder",
        },
    )

__all__ = ["Failover", "Gate", "RepairLadder"]
