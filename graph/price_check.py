"""Whether money can be counted: a budget of it needs the price of each model that may be asked."""

import os
from collections.abc import Iterator

from langchain_core.language_models import BaseChatModel

from daruma.graph.models.answering_model import AnsweringModel
from daruma.graph.models.by_role import Models
from daruma.graph.models.names import follow_aliases
from daruma.graph.models.prices import address_of, is_listed, name_of, own_price
from daruma.state.settings import Settings
from daruma.state.settings.errors import SettingsError
from daruma.state.settings.sections import Team
from daruma.tools.team.templates import template_named

OPENAI = "https://api.openai.com/v1"


def check_prices(settings: Settings, main: BaseChatModel | str | None) -> None:
    """Look at the models of settings that limit money; others cost nothing, and import nothing.

    Raises :class:`~daruma.state.settings.errors.SettingsError`, naming a model without a price.
    """
    if settings.budgets.usd is None and settings.budgets.per_phase.usd is None:
        return
    for where, model in _models(settings, main):
        name = _unpriced(model, settings)
        if name is not None:
            raise SettingsError(
                f"budgets.usd: nobody knows the price of {name!r} ({where}): set llm.prices, e.g. "
                f'{{"{name}": {{"input": 1.0, "output": 4.0}}}} in US dollars per million tokens'
            )


def _models(
    settings: Settings, main: BaseChatModel | str | None
) -> Iterator[tuple[str, BaseChatModel | str]]:
    llm = settings.llm
    named: list[tuple[str, BaseChatModel | str | None]] = [
        ("the main model", main),
        ("llm.auxiliary_model", llm.auxiliary_model),
        *(("llm.fallback_models", name) for name in llm.fallback_models),
    ]
    if settings.mode == "team_collab" or settings.team != Team():
        template = template_named(None, settings.team, settings.tools)
        named += [(f"expert {each.name!r}", each.model) for each in template.experts]
    yield from ((where, model) for where, model in named if model is not None)


def _unpriced(model: BaseChatModel | str, settings: Settings) -> str | None:
    """Return the name to give a price to, None where there is one."""
    llm = settings.llm
    if isinstance(model, str):
        spec = follow_aliases(model, llm.model_aliases)
        prefix, _, rest = spec.partition(":")
        address = os.environ.get("OPENAI_BASE_URL") or OPENAI
        known = prefix == "scripted" or own_price(spec, llm) or is_listed(rest, address)
        return None if known else rest or spec
    shown = Models(model).name("main")
    if isinstance(model, AnsweringModel) or own_price(shown, llm):
        return None
    return None if is_listed(name_of(model), address_of(model)) else shown
