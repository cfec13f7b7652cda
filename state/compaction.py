"""How a history that has outgrown the context is shown: what is left out of it, and through where.

The history itself keeps everything. Places are named by the ids of messages, so that they mean the
same however the history grows.
"""

from typing import Literal

from daruma.state.failover import Failover
from daruma.state.record import record

Asking = Literal["main", "plan", "reflect"]
"""The nodes whose requests hold the history."""


@record
class Compaction:
    """What has been done so far, and for which node the last time.

    ``memory`` is the task whose recalled memory is no longer sent. Each ``*_through`` is the id of
    the last message that a measure is for: ``pruned`` tool outputs are placeholders, ``shrunk``
    texts are their two ends; ``summary`` stands in the place of all messages through
    ``summarised_through`` but those that are ``kept``, ``summarised`` counts them. ``cut`` is how
    many characters of a text are sent through ``cut_through``: the last resort. ``limit`` is a
    budget in tokens that was learnt from a refusal, in the task ``limit_of``.
    """

    asked_by: Asking = "main"
    memory: str = ""
    pruned_through: str = ""
    shrunk_through: str = ""
    summary: str = ""
    summarised_through: str = ""
    summarised: int = 0
    kept: tuple[str, ...] = ()
    cut: int = 0
    cut_through: str = ""
    limit: int = 0
    limit_of: str = ""
    schema_version: int = 1


@record
class Crowded:
    """A request that is over its budget, in tokens by our own count, and was not answered.

    ``fixed`` is what can not be left out: the prompt, notes, and the schemas of ``tools`` tools;
    ``memory`` is what was recalled. ``factor`` is by how much a provider was seen to count more.
    ``refused`` is what a provider said that had been sent it, ``failover`` what it took to hear it.
    """

    node: Asking
    budget: int
    fixed: int
    memory: int = 0
    tools: int = 0
    factor: float = 1.0
    refused: str = ""
    failover: Failover | None = None
    schema_version: int = 1
