"""Giving nodes what they work with: the graph's own live things, under the run's settings."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from daruma.graph.asking import Asker
from daruma.graph.common_ground import CommonGround
from daruma.graph.first_look import FirstLook
from daruma.graph.handing_over import HandingOver
from daruma.graph.journals import JournalsOfARun, journal_of, journals_of
from daruma.graph.members import Carrying, Member
from daruma.graph.models.by_role import Models
from daruma.graph.models.names import check_fallbacks, check_model
from daruma.graph.models.tokenizers import tokens_of
from daruma.graph.outputs import outputs_of
from daruma.graph.price_check import check_prices
from daruma.graph.raising import Raised
from daruma.graph.team_check import check_team
from daruma.graph.tiers import Node, Noting, run_node
from daruma.graph.tracing.about import about
from daruma.graph.tracing.callbacks import inherited
from daruma.graph.tracing.switch import is_recorded, node_traced
from daruma.graph.turns import RunTurns
from daruma.state.channels import State, Update
from daruma.state.events import EVENTS, Event
from daruma.state.record import copied
from daruma.state.savepoint import reduce_drifted
from daruma.state.settings import Settings
from daruma.state.settings.sections import LLM
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.results import Outputs, ProcessOutputs
from daruma.tools.context import Context, not_handed_over
from daruma.tools.sandbox.opening import open_sandbox, require_mechanism

COUNTING: Final = frozenset({"main", "plan", "reflect", "compress"})
"""The nodes that count tokens, where there is a budget of them."""

_EMPTY: Final = (lambda _: None).__code__

_OUTPUTS: Final = 50
"""Large outputs that are kept for runs without a checkpointer."""


class UndeclaredEvent(Exception):
    """Raised when something is emitted that ``state/events.py`` does not declare (FA-06)."""


class Contexts:
    """Makes the context of every node call.

    Raises :class:`~daruma.graph.models.errors.ModelUnavailable` for a model that is none,
    :class:`~daruma.tools.sandbox.sandbox.SandboxUnavailable` for settings that ask for
    more than there can be (whether it holds is proved when the first command is run), and what
    :meth:`~daruma.tools.calls.registry.Registry.check` raises.
    """

    def __init__(
        self, model: BaseChatModel | str | None, tools: Registry, settings: Settings
    ) -> None:
        check_model(model)
        self._model = model
        self._tools = tools
        self.settings = settings
        self._askers: dict[str, Asker] = {}
        self._newest: tuple[LLM | None, Asker | None] = None, None
        self._outputs = ProcessOutputs(most=_OUTPUTS)
        self.check(settings)
        require_mechanism(settings.sandbox.require)

    def check(self, settings: Settings) -> None:
        """Check that a run's settings fit the tools and name models that could be made.

        Raises what the registry's ``check`` does,
        :class:`~daruma.graph.models.errors.ModelUnavailable` for a fallback or an expert's model
        that means nothing, and :class:`~daruma.tools.team.templates.TemplateRefused` for a team
        that can not be used. For money that nobody could count it raises
        :class:`~daruma.state.settings.errors.SettingsError`.
        """
        self._tools.check(settings.tools)
        check_fallbacks(settings.llm)
        check_team(settings)
        check_prices(settings, self._main(settings.llm))

    def bound(self, node: Node) -> Callable[..., Coroutine[Any, Any, Update]]:
        """Return a node in the form that LangGraph calls: its context comes from the run."""

        async def call(state: Any, runtime: Runtime[Settings], config: RunnableConfig) -> Update:
            member = Member.found_in(config)
            told = partial(about, node.__name__, state, member.phase_id if member else "")
            inherited(config, told)
            handing = None if member else HandingOver.found_in(config)
            context = self._context(runtime, config, member, handing)
            if not is_recorded(config):
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
        except GraphInterrupt:
            if handing:
                handing.waits()
            raise
        return Update(**{**update, "drifted": found}) if found else update

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
        common, journals = ground.made(make, settings, saver, runtime.store, thread_id)
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
            outputs=Outputs(outputs_of(saver) if saver else self._outputs, thread_id),
            turns=run.turns,
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
            main = self._main(llm)
            models = Models(
                main,
                llm.auxiliary_model,
                llm.model_aliases,
                llm.fallback_models,
                llm.requests,
                pricing=llm,
            )
            self._askers.setdefault(key, Asker(models))
        self._newest = llm, self._askers[key]
        return self._askers[key]


def emitter(runtime: Runtime[Any]) -> Callable[[Event], None]:
    """Return what sends typed events to the run's ``custom`` stream, if anybody reads that."""
    send = runtime.stream_writer
    read = not _does_nothing(send)

    def emit(event: Event) -> None:
        if EVENTS.get(event.type) is not type(event):
            raise UndeclaredEvent(f"{type(event).__name__} is not declared in state/events.py")
        if read:
            send(event.to_dict())

    return emit


def _does_nothing(function: object) -> bool:
    """Whether a function is known to do nothing: LangGraph has such a one where nobody reads."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_code == _EMPTY.co_code
