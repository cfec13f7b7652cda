"""The small values that tests of nodes, routers and budgets are made of."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from daruma.graph.build import SHIPPED_TOOLS, Channels
from daruma.state.calls import ToolTask, ToolTaskStatus
from daruma.state.channels import State, Update
from daruma.state.conversation import Clarification
from daruma.state.events import Event, ModelCallStarted
from daruma.state.failure import Code, Failure, Recovered, Strategy
from daruma.state.mode import Mode
from daruma.state.plan import Phase, Plan
from daruma.state.savepoint import Savepoint, When
from daruma.state.serializer import STORED_TYPES, StrictSerializer
from daruma.state.settings import Sandbox as SandboxSettings
from daruma.state.settings import Settings
from daruma.state.steps import Step, StepKind
from daruma.state.task import Limits, Task
from daruma.state.usage import Role, Usage
from daruma.state.verification import Check, Verification
from daruma.tools.calls import Registry, Tool
from daruma.tools.context import Answer, Context, Sampling
from daruma.tools.sandbox import Sandbox, SandboxUnavailable, open_sandbox

RED = Verification(checks=(Check(command="false", passed=False, exit_code=1, output="it is red"),))
GREEN = Verification(checks=(Check(command="true", passed=True, exit_code=0),))


async def unconfined() -> Sandbox:
    """The sandbox that is none: quick to open, and there on every system."""
    return await open_sandbox(SandboxSettings(require="none"))


async def at_once(_: float) -> None:
    """Wait for no time at all."""


async def no_sandbox() -> Sandbox:
    """What the settings require can not be had."""
    raise SandboxUnavailable("not here")


def settings(**sections: Any) -> Settings:
    """Settings from plain values, section by section; what is not given has its default."""
    return Settings.model_validate(sections)


def a_task(mode: Mode = "react", *, limits: dict[str, Any] | None = None, **changes: Any) -> Task:
    """A task with 3 thinks, 2 verifications and 1 reflection, unless told otherwise."""
    given = replace(Limits(think=3, verify=2, reflect=1), **(limits or {}))
    return replace(Task(id="t/1", goal="Do it", mode=mode, limits=given), **changes)


def a_phase(id_: str, *depends_on: str, **changes: Any) -> Phase:
    return replace(Phase(id=id_, title=id_.upper(), depends_on=depends_on), **changes)


def a_plan(*phases: Phase, current: str | None = None) -> Plan:
    return Plan(id="t/1/plan-1", goal="Do it", phases=phases, current=current)


def a_call(id_: str = "c1", status: ToolTaskStatus = "ready", **changes: Any) -> ToolTask:
    call = ToolTask(id=id_, message_id="m1", name="shout", requested_name="shout", args={})
    return replace(call, status=status, **changes)


def a_savepoint(id_: str, **changes: Any) -> Savepoint:
    """A savepoint of ``id_``, as in ``1/p1/done``, with a snapshot unless told otherwise."""
    number, _, rest = id_.partition("/")
    phase, _, done = rest.partition("/")
    when: When = "done" if done else "phase" if phase else "task"
    made = Savepoint(
        id=id_,
        task_id=f"t/{number}",
        phase_id=phase or None,
        when=when,
        workspace="/ws",
        snapshot=f"snapshot of {id_}",
        at=float(number),
    )
    return replace(made, **changes)


def a_clarification(task: str = "t/1", **changes: Any) -> Clarification:
    """An open question after the ``text`` of a call of shout, unless told otherwise."""
    asked = Clarification(
        task_id=task,
        call_id="m1:c1",
        target_action="shout",
        question="What should I shout?",
        missing_fields=("text",),
    )
    return replace(asked, **changes)


def a_failure(code: Code = "llm_failure", node: str = "main", message: str = "broken") -> Failure:
    return Failure(code=code, node=node, message=message)


def a_state(**values: Any) -> State:
    """A state with a task and nothing else, unless told otherwise."""
    given: dict[str, Any] = {"task": a_task()} | values
    return State(**given)


def a_recovery(strategy: Strategy = "retry", **changes: Any) -> Recovered:
    """What is on record of a recovery that was carried out, unless told otherwise."""
    done = Recovered(code="llm_failure", strategy=strategy, by="model", carried="executed")
    return replace(done, **changes)


def taken(
    *kinds: StepKind, phase: str | None = None, task: str = "t/1", **details: Any
) -> list[Step]:
    """One step of each kind named, in that order."""
    return [Step(kind=kind, task_id=task, phase_id=phase, **details) for kind in kinds]


def calling(*names: str, **args: Any) -> AIMessage:
    """A model's answer that calls tools, each with the same arguments."""
    calls = [{"name": name, "args": args, "id": f"c{n}"} for n, name in enumerate(names, 1)]
    return AIMessage("", tool_calls=calls)


class Says:
    """An ``Ask`` that gives its answers in turn, the last for ever, and keeps what it was asked."""

    def __init__(self, *answers: AIMessage | str | Exception) -> None:
        self.answers = answers
        self.requests: list[list[BaseMessage]] = []
        self.offered: list[list[str]] = []
        self.sampled: list[Sampling | None] = []

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        emit: Callable[[Event], None],
    ) -> Answer:
        emit(ModelCallStarted(node=node, model=f"stub {call}"))
        given = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        self.sampled.append(sampling)
        if isinstance(given, Exception):
            raise given
        message = given if isinstance(given, AIMessage) else AIMessage(given)
        return Answer(message=message, usage=Usage(role=role, model="stub", input_tokens=1))


WORKSPACE_TOOLS = tuple(each for each in SHIPPED_TOOLS if each.toolset == "workspace")
TOOLSET_TOOLS = tuple(each for each in SHIPPED_TOOLS if each.toolset != "workspace")


def a_registry(tools: Iterable[BaseTool | Callable[..., Any]] = ()) -> Registry:
    """The tools that ship, and these."""
    return Registry(SHIPPED_TOOLS, tools)


def a_context(
    *answers: AIMessage | str | Exception,
    ask: Says | None = None,
    tools: Iterable[BaseTool | Callable[..., Any]] = (),
    events: list[Event] | None = None,
    given: Settings | None = None,
) -> Context:
    """A context whose clock stands at 100 s and whose model gives the answers.

    Commands are not confined, unless the settings require a level.
    """
    used = given or Settings()
    required = used.sandbox.require is not None
    return Context(
        settings=used,
        ask=ask or Says(*answers),
        tools=a_registry(tools),
        open_sandbox=partial(open_sandbox, used.sandbox) if required else unconfined,
        thread_id="t",
        emit=(events if events is not None else []).append,
        now=lambda: 100.0,
        sleep=at_once,
    )


def memory() -> InMemorySaver:
    """A saver that reads as strictly as the one in use."""
    return InMemorySaver(serde=StrictSerializer(STORED_TYPES))


async def asked(
    node: Callable[[State, Context], Awaitable[Update]],
    values: dict[str, Any],
    reply: object,
    context: Context | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a node that asks a person, answer it, and return the question and the state after it."""
    used = context or a_context()

    async def it(state: State) -> Update:
        return await node(state, used)

    graph: Any = StateGraph(Channels)
    compiled = graph.add_node("it", it).add_edge(START, "it").compile(checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    waiting = await compiled.ainvoke(values, config)
    question = waiting["__interrupt__"][0]
    after = await compiled.ainvoke(Command(resume={question.id: reply}), config)
    return question.value, after


def refusal(after: dict[str, Any]) -> str:
    """Why a reply was refused, after which the question is open as before."""
    return str(after["__interrupt__"][0].value["refused"])
