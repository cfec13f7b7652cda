"""How many tasks of a superstep a synchronous run has going on at once.

LangGraph has a thread wait for each of them, and another write what it came to. By Python's own
measure these are six on two cores: the seventh tool would begin when the first has ended.
"""

from typing import Final

from langchain_core.runnables import RunnableConfig

from daruma.tools.threads import MOST_TOOL_THREADS

AT_ONCE: Final = 2 * MOST_TOOL_THREADS
"""A thread for each blocking tool that can run, and one for what is to be written of it."""


def at_once(config: RunnableConfig | None, asked: int | None) -> RunnableConfig:
    """Return the config of a run with room for all its tasks, or with what was ``asked`` for."""
    given = config or RunnableConfig()
    return RunnableConfig(**{**given, "max_concurrency": asked or AT_ONCE})
