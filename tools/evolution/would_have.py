"""What a task would have been given, worked out after it has ended: for who only looks on."""

import logging
from typing import Final

from langgraph.store.base import BaseStore

from daruma.state.experience import Experience
from daruma.state.settings import Settings
from daruma.state.would_have import WouldHave
from daruma.tools.evolution.looking_up import About, looked_up

LOG: Final = logging.getLogger("daruma.evolution")


async def with_would_have(
    experience: Experience, store: BaseStore, settings: Settings
) -> Experience:
    """Return an experience with what its task would have been given, and say so in the log.

    To be asked before anything of the task itself is learned. Where that was done already, and what
    it came to is on record, that stands: by now the task's own failures are among what is known.
    """
