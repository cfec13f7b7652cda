"""The state of the machine: what nodes may read, and what they may write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict  # Pydantic makes schemas of this one on Python 3.11 too

from daruma.state.assignment import Report, reduce_reports
from daruma.state.clarification import Clarification
from daruma.state.compaction import Compaction, Crowded
from daruma.state.continuity import Continuity, reduce_continuity
from daruma.state.delta import GrowingDelta, RareDelta
from daruma.state.drifted import Drifted, reduce_drifted
from daruma.state.emergency import EmergencyError
from daruma.state.failure import Failure
from daruma.state.grant import Overrun
from daruma.state.lessons import Lessons
from daruma.state.messages import Messages, reduce_messages
from daruma.state.mode import Mode
from daruma.state.plan import Plan
from daruma.state.recalled import Recalled
from daruma.state.recovery import RecoveryAction
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint, append_savepoints
from daruma.state.step import Step, append_steps
from daruma.state.task import Task
from daruma.state.tool_task import ToolTask, reduce_calls
from daruma.state.verification import Verification

FIRST_COPY: Final = 2500
"""Writes to a channel before the first whole copy of it: a thread of 1,250 steps."""

MessagesChannel = Annotated[
    list[AnyMessage], GrowingDelta(reduce_messages, snapshot_frequency=FIRST_COPY)
]
StepsChannel = Annotated[list[Step], GrowingDelta(append_steps, snapshot_frequency=FIRST_COPY)]
SavepointsChannel = Annotated[list[Savepoint], RareDelta(append_savepoints, snapshot_frequency=1)]
RequestedMode = Annotated[Mode | None, EphemeralValue]
RequestedWorkspace = Annotated[str | None, EphemeralValue]
ContinuityChannel = Annotated[Continuity | Mapping[str, Any] | None, reduce_continuity]
Result = Annotated[TaskResult | None, EphemeralValue]


@dataclass(frozen=True)
class State:
    """What nodes and routers read.

    ``mode`` and ``workspace`` are the request's own words and are gone after intake; what was made
    of them stands in ``task``. ``failure`` is what went wrong and is not yet dealt with, ``origin``
    what recovery is working on: the code of a task is that of the first failure (EM-04). ``action``
    is what recovery would do about it and a person has to agree to. ``overrun`` is the budget that
    is spent, until that is settled. ``drifted`` are the files that changed behind the thread's
    back, in this task. ``compaction`` says how the history is shown, ``crowded`` which request is
    too large as it stands. ``recalled`` are the memories that fitted the task, ``lessons`` what
    earlier ones have taught. ``clarification`` is the last question that a turn ended with;
    ``continuity`` whether the message at hand goes on with it, or a snapshot of an older form that
    intake has yet to read.
    """

    messages: MessagesChannel = field(default_factory=list)
    mode: RequestedMode = None
    workspace: RequestedWorkspace = None
    task: Task | None = None
    plan: Plan | None = None
    steps: StepsChannel = field(default_factory=list)
    savepoints: SavepointsChannel = field(default_factory=list)
    drifted: Annotated[Drifted | None, reduce_drifted] = None
    compaction: Compaction | None = None
    crowded: Crowded | None = None
    calls: Annotated[tuple[ToolTask, ...], reduce_calls] = ()
    continuity: ContinuityChannel = None
    clarification: Clarification | None = None
    reports: Annotated[tuple[Report, ...], reduce_reports] = ()
    verification: Verification | None = None
    failure: Failure | None = None
    origin: Failure | None = None
    action: RecoveryAction | None = None
    overrun: Overrun | None = None
    error: EmergencyError | None = None
    recalled: Recalled | None = None
    lessons: Lessons | None = None
    result: Result = None

    @property
    def task_id(self) -> str:
        """The id of the task at hand; empty before intake."""
        return self.task.id if self.task else ""


class Update(TypedDict, total=False):
    """What a node returns: only what it changes."""

    messages: Messages
    task: Task | None
    plan: Plan | None
    steps: list[Step]
    savepoints: list[Savepoint]
    drifted: Drifted | None
    compaction: Compaction | None
    crowded: Crowded | None
    calls: tuple[ToolTask, ...] | ToolTask
    continuity: Continuity | None
    clarification: Clarification | None
    reports: tuple[Report, ...] | Report
    verification: Verification | None
    failure: Failure | None
    origin: Failure | None
    action: RecoveryAction | None
    overrun: Overrun | None
    error: EmergencyError | None
    recalled: Recalled | None
    lessons: Lessons | None
    result: TaskResult | None


class Input(TypedDict, total=False):
    """What a caller gives: messages, and optionally the mode and the workspace of the task.

    ``continuity`` is what the application kept of the conversation, in any older form (CO-03).
    """

    messages: MessagesChannel
    mode: RequestedMode
    workspace: RequestedWorkspace
    continuity: ContinuityChannel


class Output(TypedDict, total=False):
    """What a caller gets back; ``result`` is absent while the task waits for a person."""

    messages: MessagesChannel
    plan: Plan | None
    result: Result
