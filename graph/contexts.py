"""What nodes work with: live things under the run's settings, checked before they are used."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from daruma.graph.asker import Asker
from daruma.graph.errors import Node, Noting, Raised, run_node
from daruma.graph.learning import HandingOver
from daruma.graph.models import (
    SCRIPTED,
    AnsweringModel,
    Models,
    check_model,
    check_name,
    check_names,
    configured_price,
    full_name,
    is_known_model,
    keys_of,
    model_address,
    model_name,
    openai_url,
    tokens_of,
)
from daruma.graph.scope import Carrying, CommonGround, FirstLook, Member, RunTurns
from daruma.graph.storage import (
    JournalsOfARun,
    journal_of,
    journals_of,
    outputs_of,
    workspace_files_id,
)
from daruma.graph.tracing import is_tracing, node_traced, trace_metadata, with_trace_metadata
from daruma.state.channels import State, Update
from daruma.state.events import EVENTS, Event
from daruma.state.record import copied
from daruma.state.savepoint import reduce_drifted
from daruma.state.settings import LLM, ModelOptions, Settings, SettingsError, Team
from daruma.state.text import digest
from daruma.tools.calls import ExactCalls, Outputs, ProcessOutputs, Registry
from daruma.tools.context import Context, not_handed_over
from daruma.tools.sandbox import open_sandbox, require_mechanism
from daruma.tools.team import template_named
from daruma.tools.text import mask_error, mask_keys, note_secrets

# --- Whether money can be counted: a budget of it needs the price of each model that may be asked.

OPENAI = "https://api.openai.com/v1"


def check_prices(settings: Settings, main: BaseChatModel | str | None) -> None:
    """Look at the models of settings that limit money; others cost nothing, and import nothing.

    Raises :class:`~daruma.state.settings.SettingsError`, naming a model without a price.
    """
    if settings.budgets.usd is None and settings.budgets.per_phase.usd is None:
        return
    for where, model, options in _models(settings, main):
        name = _unpriced(model, settings.llm, options)
        if name is not None:
            raise SettingsError(
                f"budgets.usd: nobody knows the price of {name!r} ({where}): set llm.prices, e.g. "
                f'{{"{name}": {{"input": 1.0, "output": 4.0}}}} in US dollars per million tokens'
            )


def _models(
    settings: Settings, main: BaseChatModel | str | None
) -> Iterator[tuple[str, BaseChatModel | str, ModelOptions]]:
    llm, options = settings.llm, settings.llm.options
    named: list[tuple[str, BaseChatModel | str | None, ModelOptions]] = [
        ("the main model", main, options.main),
        ("llm.auxiliary_model", llm.auxiliary_model, options.auxiliary),
        *(("llm.fallback_models", name, options.fallback) for name in llm.fallback_models),
    ]
    if settings.mode == "team_collab" or settings.team != Team():
        template = template_named(None, settings.team, settings.tools)
        named += [(f"expert {e.name!r}", e.model, ModelOptions()) for e in template.experts]
    yield from ((where, model, given) for where, model, given in named if model is not None)


def _unpriced(model: BaseChatModel | str, llm: LLM, options: ModelOptions) -> str | None:
    """Return the name to give a price to, None where there is one."""
    if isinstance(model, str):
        spec = full_name(model, llm.model_aliases)
        prefix, _, rest = spec.partition(":")
        address = (openai_url(options) or OPENAI) if prefix == "openai" else options.base_url
        known = prefix == SCRIPTED or configured_price(spec, llm) or is_known_model(rest, address)
        return None if known else rest or spec
    shown = Models(model).name("main")
    if isinstance(model, AnsweringModel) or configured_price(shown, llm):
        return None
    return None if is_known_model(model_name(model), model_address(model)) else shown


# --- Whether the team that settings name could work: its file, its tool profiles, its models.


def check_team(settings: Settings) -> None:
    """Look at the team of settings that ask for one; others cost nothing.

    One that a message names, ``@team:NAME``, is looked at when that message comes. Raises
    :class:`~daruma.tools.team.TemplateRefused`, and
    :class:`~daruma.graph.models.ModelUnavailable` for an expert's model of no use.
    """
    if settings.mode != "team_collab" and settings.team == Team():
        return
    template = template_named(None, settings.team, settings.tools)
    for expert in template.experts:
        where = f"team template {template.name!r}, model of expert {expert.name!r}: "
        check_name(expert.model, settings.llm.model_aliases, ModelOptions(), where)


# --- Giving nodes what they work with: the graph's own live things, under the run's settings.

COUNTING: Final = frozenset({"main", "plan", "reflect", "compress"})
"""The nodes that count tokens, where there is a budget of them."""

_EMPTY: Final = (lambda _: None).__code__

_OUTPUTS: Final = 50
"""Large outputs that are kept for runs without a checkpointer."""


class UndeclaredEvent(Exception):
    """Raised when something is emitted that ``state/events.py`` does not declare (FA-06)."""


class Contexts:
    """Makes the context of every node call.

    Raises :class:`~daruma.graph.models.ModelUnavailable` for a model that is none,
    :class:`~daruma.tools.sandbox.SandboxUnavailable` for settings that ask for
    more than there can be (whether it holds is proved when the first command is run), and what
    :meth:`~daruma.tools.calls.Registry.check` raises.
    """

    def __init__(
        self,
        model: BaseChatModel | str | None,
        tools: Registry,
        settings: Settings,
        store: BaseStore | None = None,
    ) -> None:
        check_model(model)
        note_secrets(keys_of(model))
        self._model = model
        self._tools = tools
        self._store = store
        self.settings = settings
        self._askers: dict[str, Asker] = {}
        self._newest: tuple[LLM | None, Asker | None] = None, None
        self._outputs = ProcessOutputs(most=_OUTPUTS)
        self._exact = ExactCalls()
        self.check(settings)
        require_mechanism(settings.sandbox.require)

    def check(self, settings: Settings) -> None:
        """Check that a run's settings fit the tools and name models that could be made.

        Raises what the registry's ``check`` does,
        :class:`~daruma.graph.models.ModelUnavailable` for a name of a model that could not
        be made (FA-09), and :class:`~daruma.tools.team.TemplateRefused` for a team
        that can not be used. For money that nobody could count it raises
        :class:`~daruma.state.settings.SettingsError`.
        """
        self._tools.check(settings.tools)
        main = self._main(settings.llm)
        check_names(settings.llm, main)
        check_team(settings)
        check_prices(settings, main)

    def bound(self, node: Node) -> Callable[..., Coroutine[Any, Any, Update]]:
        """Return a node in the form that LangGraph calls: its context comes from the run."""

        async def call(state: Any, runtime: Runtime[Settings], config: RunnableConfig) -> Update:
            member = Member.found_in(config)
            told = partial(trace_metadata, node.__name__, state, member.phase_id if member else "")
            with_trace_metadata(config, told)
            handing = None if member else HandingOver.found_in(config)
            context = self._context(runtime, config, member, handing)
            if not is_tracing(config):
                return await self._called(node, state, context, config, handing)
            with node_traced(config, told, context, nested=member is not None) as (context, span):
                update = await self._called(node, state, context, config, handing)
                span.returned(update, state)
                return update

        call.__name__ = call.__qualname__ = node.__name__
        return call

    async def _called(
        self,
        node: Node,
        state: Any,
        context: Context,
        config: RunnableConfig,
        handing: HandingOver | None,
    ) -> Update:
        look = FirstLook.found_in(config)
        if node.__name__ in COUNTING and context.settings.llm.context_window_tokens:
            model = self.asker(context.settings.llm).model
            context = copied(context, tokens=await tokens_of(model))
        if handing:
            handing.entered(node.__name__, state, context)
        found = await look.at(node.__name__, state, context) if look else None
        if found and isinstance(state, State):
            state = replace(state, drifted=reduce_drifted(state.drifted, found))
        try:
            update = await run_node(node, state, context, Raised.of(config))
        except GraphInterrupt as asked:
            for each in asked.args[0] if asked.args else ():
                each.value = mask_keys(each.value)
            if handing:
                handing.waits()
            raise
        except GraphBubbleUp as leaving:
            leaving.args = mask_keys(leaving.args)
            raise
        except Exception as error:
            stored = mask_error(error)  # LangGraph stores what a node raised (SE-08)
            if stored is error:
                raise
            raise stored from None
        update = Update(**{**update, "drifted": found}) if found else update
        return self._exact.stored(context.thread_id, update)

    def _context(
        self,
        runtime: Runtime[Settings],
        config: RunnableConfig,
        member: Member | None,
        handing: HandingOver | None,
    ) -> Context:
        # A run that is resumed without a context gets None from LangGraph, silently.
        settings = runtime.context or self.settings
        given = config.get("configurable", {})
        saver, thread_id = given.get(CONFIG_KEY_CHECKPOINTER), str(given.get("thread_id", "local"))
        make = partial(self._in_common, config)
        ground = CommonGround.of(config)
        # Within a graph that has no store LangGraph gives none, whatever this one was built with.
        store = self._store if runtime.store is None else runtime.store
        common, journals = ground.made(make, settings, saver, store, thread_id)
        emit = member.tell if member else emitter(runtime)
        context = copied(
            common,
            emit=emit,
            carry_out=Carrying(config, emit),
            journal=journal_of(config, journals),
            hand_over=handing.ended if handing else not_handed_over,
        )
        if member:
            asker = self.asker(settings.llm).of_member(member.phase_id)
            return copied(context, ask=Noting(asker, Raised.of(config)))
        return context

    def _in_common(
        self,
        config: RunnableConfig,
        settings: Settings,
        saver: Any,
        store: BaseStore | None,
        thread_id: str,
    ) -> tuple[Context, JournalsOfARun | None]:
        """Return what the contexts of a run have in common, and where its journals are."""
        asker, run = self.asker(settings.llm), RunTurns.of(config)
        context = Context(
            settings=settings,
            ask=Noting(asker, Raised.of(config)),
            tools=self._tools,
            open_sandbox=partial(open_sandbox, settings.sandbox),
            thread_id=thread_id,
            files_id=workspace_files_id(saver, thread_id),
            namespace=_namespace(config),
            outputs=Outputs(outputs_of(saver) if saver else self._outputs, thread_id),
            exact_calls=self._exact,
            turns=run.turns,
            servers=run.servers,
            store=store,
            own_auxiliary=asker.own_auxiliary,
            can_ask=saver is not None,
        )
        return context, JournalsOfARun(journals_of(saver), run.run) if saver else None

    def _main(self, llm: LLM) -> BaseChatModel | str | None:
        own = self.settings.llm.model
        return self._model or own if llm.model in (None, own) else llm.model

    def asker(self, llm: LLM) -> Asker:
        """Return what asks models under these settings: the same one for the same settings."""
        last, asker = self._newest
        if last is llm and asker:
            return asker
        key = llm.model_dump_json()
        if key not in self._askers:
            self._askers.setdefault(key, Asker(Models.of(llm, self._main(llm))))
        self._newest = llm, self._askers[key]
        return self._askers[key]


def _namespace(config: RunnableConfig) -> str:
    """Return what a run within another graph is called there; empty for one of its own.

    Whoever runs several on one thread, one after the other or at once, gets all their messages:
    none may have the id of another's (FA-08).
    """
    own = str(config.get("configurable", {}).get("checkpoint_ns", "")).rpartition("|")[0]
    return digest(own)[:8] if own else ""


def emitter(runtime: Runtime[Any]) -> Callable[[Event], None]:
    """Return what sends typed events to the run's ``custom`` stream, if anybody reads that."""
    send = runtime.stream_writer
    read = not _does_nothing(send)

    def emit(event: Event) -> None:
        if EVENTS.get(event.type) is not type(event):
            raise UndeclaredEvent(f"{type(event).__name__} is not declared in state/events.py")
        if read:
            send(mask_keys(event.to_dict()))

    return emit


def _does_nothing(function: object) -> bool:
    """Whether a function is known to do nothing: LangGraph has such a one where nobody reads."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_code == _EMPTY.co_code
