"""What evolution asks the auxiliary model with: rarely, and whatever comes of it, work goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.graph.asking import AUXILIARY_SECONDS, Asker
from daruma.state.events import Event
from daruma.state.settings import Settings
from daruma.tools.evolution.learning import nobody

LOG: Final = logging.getLogger("daruma.evolution")

AskText = Callable[[str, str], Awaitable[str]]


def ask_with(asker: Asker, settings: Settings) -> AskText:
    """Return what asks the auxiliary model; nobody, unless settings allow it and there is one."""
    if not (settings.evolution.auxiliary and asker.own_auxiliary):
        return nobody

    async def ask(prompt: str, text: str) -> str:
        messages = [SystemMessage(prompt), HumanMessage(text)]
        asking = asker("evolution", messages, call=0, role="auxiliary", emit=_unheard)
        try:
            answer = await asyncio.wait_for(asking, AUXILIARY_SECONDS)
        except Exception as error:  # noqa: BLE001 - any provider's; what is learned by rule stands
            LOG.info("the auxiliary model was no help: %s", type(error).__name__)
            return ""
        used = answer.usage
        LOG.info("%s: %d tokens in, %d out", used.model, used.input_tokens, used.output_tokens)
        return answer.message.text

    return ask


def _unheard(event: Event) -> None:
    """Tell nobody: it happens beside the task."""
