"""Memories: what is remembered from one task to the next, by owner and role, in the graph's store.

``MEMORY_TOOLS`` lets the model keep and search them; ``recall`` finds those that fit a task when
it begins (CO-04).
"""

from daruma.tools.memory._memories import (
    COMMON_ROLE,
    MEMORY_TOOLS,
    Memories,
    memories_namespace,
    new_memory,
    owner_in,
    owner_of,
    recall,
    store_label,
)

__all__ = [
    "COMMON_ROLE",
    "MEMORY_TOOLS",
    "Memories",
    "memories_namespace",
    "new_memory",
    "owner_in",
    "owner_of",
    "recall",
    "store_label",
]
