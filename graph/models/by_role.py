"""Chat models by role, made from names in the settings when they are first needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel

from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.scripted import ScriptedChatModel

AUXILIARY = "auxiliary"


def resolve_model(name: str, *, aliases: Mapping[str, str]) -> BaseChatModel:
    """Make the model that a name stands for: an alias, `openai:NAME` or `scripted:FILE`.

    Raises `ModelUnavailable` for a name that means nothing, aliases that go in a circle, a missing
    key or a script that cannot be read.
    """
    spec = follow_aliases(name, aliases)
    prefix, _, rest = spec.partition(":")
    if prefix not in _MAKERS or not rest:
        raise ModelUnavailable(_unknown(spec, aliases))
    return _MAKERS[prefix](rest)


def follow_aliases(name: str, aliases: Mapping[str, str]) -> str:
    """The name at the end of a chain of aliases; `ModelUnavailable` when the chain is a circle."""
    chain = [name]
    while chain[-1] in aliases:
        chain.append(aliases[chain[-1]])
        if chain[-1] in chain[:-1]:
            raise ModelUnavailable(f"llm.model_aliases go in a circle: {' -> '.join(chain)}")
    return chain[-1]


def _unknown(spec: str, aliases: Mapping[str, str]) -> str:
    known = [f"{prefix}:{what}" for prefix, what in (("openai", "NAME"), ("scripted", "FILE"))]
    also = f" or one of llm.model_aliases: {', '.join(aliases)}" if aliases else ""
    return f'unknown model "{spec}": write {" or ".join(known)}{also}'


def _openai(name: str) -> BaseChatModel:
    from daruma.graph.models.openai_client import openai_model

    return openai_model(name)


_MAKERS: Mapping[str, Callable[[str], BaseChatModel]] = MappingProxyType(
    {"openai": _openai, "scripted": ScriptedChatModel.from_file}
)


@dataclass(frozen=True)
class Models:
    """The models of one graph by role: `auxiliary` for cheap side work, else the main one.

    `main` is a model or a name, `auxiliary` a name; without one the main model does its work too.
    Nothing is made, and no key is asked for, before a role is first used.
    """

    main: BaseChatModel | str | None
    auxiliary: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    _made: dict[str, BaseChatModel] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def get(self, role: str) -> BaseChatModel:
        """The role's model, made once; `ModelUnavailable` when the settings name no usable one."""
        chosen = self._chosen(role)
        if isinstance(chosen, BaseChatModel):
            return chosen
        spec = follow_aliases(chosen, self.aliases)
        if spec not in self._made:
            # Two threads may both make it; both then use the one that was stored first.
            self._made.setdefault(spec, resolve_model(spec, aliases=self.aliases))
        return self._made[spec]

    def name(self, role: str) -> str:
        """The role's model as the record shows it: aliases followed, nothing made."""
        chosen = self._chosen(role)
        if isinstance(chosen, str):
            return follow_aliases(chosen, self.aliases)
        return str(getattr(chosen, "model_name", None) or type(chosen).__name__)

    def _chosen(self, role: str) -> BaseChatModel | str:
        chosen = self.auxiliary or self.main if role == AUXILIARY else self.main
        if chosen is None:
            raise ModelUnavailable(
                "no model is configured: pass model=..., or set llm.model in daruma.yaml"
                " or DARUMA_LLM__MODEL"
            )
        return chosen
