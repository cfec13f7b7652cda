"""All that is learned from one ended task, step by step (EV-03)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from langgraph.store.base import BaseStore

from daruma.state.experience import Experience
from daruma.state.settings import Settings
from daruma.state.would_have import WouldHave
from daruma.tools.evolution.advising import advised
from daruma.tools.evolution.detecting import detect
from daruma.tools.evolution.experience_items import experience_in, key_of, put_experience
from daruma.tools.evolution.optimiser import optimise
from daruma.tools.evolution.outcomes import count_outcomes
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.recovery_patterns import learn_recoveries
from daruma.tools.evolution.retention import let_go
from daruma.tools.evolution.would_have import would_have


async def nobody(prompt: str, text: str) -> str:  # noqa: ARG001 - an asking
    """Answer nothing: there is no model to ask."""
    return ""


@dataclass(frozen=True)
class Learning:
    """What evolution works with.

    ``ask`` asks the auxiliary model, given a system prompt and a text; it answers with nothing
    where none may be asked.
    """

    store: BaseStore
    settings: Settings = field(default_factory=Settings)
    ask: Callable[[str, str], Awaitable[str]] = nobody


async def learn(experience: Experience, learning: Learning) -> None:
    """Put a task on record, and learn from it. Done twice, it changes nothing the second time."""
    store, given = learning.store, learning.settings.evolution
    pitfalls = Pitfalls(store, experience.owner, shared=given.shared)
    experience = await _reflected(experience, learning)
    await put_experience(experience, store)
    await pitfalls.settle_sharing()
    await detect(experience, pitfalls, given.min_confidence)
    await learn_recoveries(experience, store)
    await count_outcomes(experience, store)
    await optimise(experience, store, given, learning.ask)
    await let_go(pitfalls, given.keep_days, experience.at)


async def _reflected(experience: Experience, learning: Learning) -> Experience:
    """Settle what is said of a task, once: a model is not asked again.

    What it would have been given is worked out before anything of the task itself is learned: of a
    task that was taken up again it stays as it was, since its own failures are known by then.
    """
    place = shelf(experience.owner, "experiences")
    known = experience_in(await learning.store.aget(place, key_of(experience)))
    before = known if known and known.reflected else None
    if before and before.at == experience.at:
        return before
    would_have = before.would_have if before else await would_have_of(experience, learning)
    advised_of = await advised(replace(experience, would_have=would_have), learning.ask)
    return replace(advised_of, reflected=True)


async def would_have_of(experience: Experience, learning: Learning) -> WouldHave | None:
    """Return what a task would have been given, where learning only observes."""
    if not learning.settings.evolution.observe_only:
        return None
    return await would_have(experience, learning.store, learning.settings)
