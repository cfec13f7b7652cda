"""Chat models by role, and models that embed, made when they are first needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from daruma.graph.models._faults import ModelUnavailable
from daruma.graph.models._openai_answers import CONNECT_SECONDS, openai_model, per_loop_model
from daruma.graph.models._providers import (
    SCRIPTED,
    follow_aliases,
    full_name,
    look_up,
    make_model,
    meant_by,
    openai_key,
    openai_url,
    usd_of,
)
from daruma.graph.models._providers import model_name as named_by
from daruma.graph.models._scripted import ScriptedChatModel
from daruma.state.record import change_record
from daruma.state.settings import LLM, ModelOptions, Requests
from daruma.state.usage import Usage
from daruma.tools.threads import to_thread

# --- Models that turn a text into a vector, made from a name as chat models are.

_SECONDS = 30.0
"""For one request: a text that is not embedded is found by its words."""


def resolve_embeddings(given: Embeddings | str, aliases: Mapping[str, str]) -> Embeddings:
    """Return the model that ``openai:NAME``, or an alias of that, stands for; a model as it is.

    Raises :class:`~daruma.graph.models.ModelUnavailable`.
    """
    if isinstance(given, Embeddings):
        return given
    spec = follow_aliases(given, aliases)
    prefix, _, name = spec.partition(":")
    if prefix != "openai" or not name:
        raise ModelUnavailable(f'unknown embedding model "{spec}": write openai:NAME')
    import openai
    from langchain_openai import OpenAIEmbeddings

    from daruma.graph.models._client_per_loop import ClientPerLoop, certificates

    base_url = openai_url(ModelOptions())
    return OpenAIEmbeddings(
        model=name,
        base_url=base_url,
        api_key=openai_key(base_url),
        timeout=openai.Timeout(_SECONDS, connect=CONNECT_SECONDS),
        max_retries=0,
        http_async_client=ClientPerLoop(),
        http_client=openai.DefaultHttpxClient(verify=certificates()),
        check_embedding_ctx_length=False,  # it would fetch a tokenizer; texts are cut here
    )


def embeddings_name(embeddings: Embeddings) -> str:
    """Return what tells the vectors of one model from another's."""
    own = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    kind = type(embeddings).__name__
    return f"{kind}:{own}" if isinstance(own, str) else kind


# --- Chat models by role, made from names in the settings when they are first needed.

AUXILIARY = "auxiliary"


def resolve_model(
    name: str,
    *,
    aliases: Mapping[str, str],
    requests: Requests | None = None,
    options: ModelOptions | None = None,
) -> BaseChatModel:
    """Make the model that a name stands for: an alias, `PROVIDER:NAME`, a model's own name where
    its provider can be inferred, or `scripted:FILE`.

    Raises `ModelUnavailable` for a name that means nothing, aliases that go in a circle, a missing
    package or key, an option that the model's class does not take, or a script that cannot be read.
    """
    provider, _, rest = meant_by(name, aliases).partition(":")
    requests, options = requests or Requests(), options or ModelOptions()
    if provider == SCRIPTED:
        return ScriptedChatModel.from_file(rest)
    if provider == "openai":
        return openai_model(rest, requests, options)
    return per_loop_model(make_model(provider, rest, requests, options))


@dataclass(frozen=True)
class Models:
    """The models of one graph by role: `auxiliary` for cheap side work, else the main one.

    `main` is a model or a name, `auxiliary` a name; without one the main model does its work too,
    and so with the judge's.
    Behind each stand the `fallbacks`, in their order: together they are the role's chain. Behind an
    auxiliary model of its own stands nobody: who asks it asks the main model next.
    Nothing is made, and no key is asked for, before a place of a chain is first used.
    """

    main: BaseChatModel | str | None
    auxiliary: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Sequence[str] = ()
    requests: Requests = field(default_factory=Requests)
    pricing: LLM = field(default_factory=LLM)
    _made: dict[tuple[str, str], BaseChatModel] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, llm: LLM, main: BaseChatModel | str | None) -> Self:
        """Return the models of settings, with the main one that is meant."""
        return cls(
            main,
            llm.auxiliary_model,
            llm.model_aliases,
            llm.fallback_models,
            llm.requests,
            pricing=llm,
        )

    def chain(self, role: str) -> tuple[str, ...]:
        """The names of a role's models, aliases followed, each once, nothing made.

        Raises `ModelUnavailable` if there is no first one, or aliases go in a circle.
        """
        others = () if role == AUXILIARY and self.own_auxiliary else self.fallbacks
        names = (self.name(role), *(full_name(name, self.aliases) for name in others))
        return tuple(dict.fromkeys(names))

    @property
    def own_auxiliary(self) -> bool:
        """Whether side work has a model of its own, and not the main one under any name."""
        try:
            auxiliary = self.name(AUXILIARY)
        except ModelUnavailable:  # it is asked, and that fails
            return self.auxiliary is not None
        return auxiliary.removeprefix("openai:") != self.name("main").removeprefix("openai:")

    def get(self, role: str, place: int = 0) -> BaseChatModel:
        """The model at a place of a role's chain, made once, without retries of its own if we can.

        Raises `ModelUnavailable` when the settings name no usable one.
        """
        key, chosen = self._meant(role, place)
        if key not in self._made:
            # Two threads may both make it; both then use the one that was stored first.
            if isinstance(chosen, BaseChatModel):
                made = per_loop_model(chosen)
            else:
                options, aliases = self._options(key[1]), self.aliases
                made = resolve_model(
                    chosen, aliases=aliases, requests=self.requests, options=options
                )
            look_up(made)
            self._made.setdefault(key, made)
        return self._made[key]

    def made(self, role: str, place: int = 0) -> BaseChatModel | None:
        """Return the same if it was made before, else None."""
        key, _ = self._meant(role, place)
        return self._made.get(key)

    async def ready(self, role: str, place: int = 0) -> BaseChatModel:
        """Return the same; it is made in a thread, as that reads files and imports for a second."""
        made = self.made(role, place)
        return await to_thread(self.get, role, place) if made is None else made

    async def priced(self, usage: Usage, role: str, place: int = 0) -> Usage:
        """Return the usage of a call with what it cost, settled by the prices of today."""
        model = await self.ready(role, place)
        return change_record(usage, usd=usd_of(usage, model, self.pricing))

    def _meant(self, role: str, place: int) -> tuple[tuple[str, str], BaseChatModel | str]:
        """Return what a model is kept under, its name and whose options it has; and what it is."""
        chosen = self._chosen(role) if place == 0 else self.chain(role)[place]
        if not isinstance(chosen, str):
            return ("", "main"), chosen
        by = "fallback" if place else role if role in (AUXILIARY, "judge") else "main"
        by = "main" if self._options(by) == self.pricing.options.main else by
        return (full_name(chosen, self.aliases), by), chosen

    def _options(self, by: str) -> ModelOptions:
        """Return the options of a role; side tasks of the main model are over those of main."""
        options = self.pricing.options
        if by == "fallback":
            return options.fallback
        if by not in (AUXILIARY, "judge"):
            return options.main
        own = options.auxiliary if by == AUXILIARY else options.judge
        if self._named(by):
            return own
        return options.main.model_copy(update={n: getattr(own, n) for n in own.model_fields_set})

    def _named(self, role: str) -> str | None:
        return {AUXILIARY: self.auxiliary, "judge": self.pricing.judge_model}.get(role)

    def name(self, role: str) -> str:
        """The role's first model as the record shows it: aliases followed, nothing made."""
        chosen = self._chosen(role)
        if isinstance(chosen, str):
            return full_name(chosen, self.aliases)
        return named_by(chosen) or type(chosen).__name__

    def _chosen(self, role: str) -> BaseChatModel | str:
        chosen = self._named(role) or self.main
        if chosen is None:
            raise ModelUnavailable(
                "no model is configured: pass model=..., or set llm.model in daruma.yaml"
                " or DARUMA_LLM__MODEL"
            )
        return chosen
