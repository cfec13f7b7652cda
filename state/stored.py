"""The types that a checkpoint may hold: what else is found in one is refused.

Their full names are part of the storage format: renaming or moving one needs a migration.
"""

from daruma.state.amounts import Amounts
from daruma.state.assignment import Assignment, Report
from daruma.state.audit import ArgumentRepair, Audit, LeftOut, NameChange, RepairRound
from daruma.state.clarification import Clarification
from daruma.state.compaction import Compaction, Crowded
from daruma.state.context_cost import ContextCost
from daruma.state.continuity import Continuity
from daruma.state.drifted import Drifted
from daruma.state.emergency import EmergencyError
from daruma.state.failover import Attempt, Failover
from daruma.state.failure import Failure
from daruma.state.grant import Grant, Overrun
from daruma.state.lessons import Instruction, KnownPitfall, Lessons
from daruma.state.plan import Phase, Plan
from daruma.state.recalled import Recalled, Remembered
from daruma.state.recovery import Recovered, RecoveryAction
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.state.step import Step
from daruma.state.task import Limits, Task
from daruma.state.tool_task import Dispatch, ToolTask
from daruma.state.usage import Usage
from daruma.state.verification import Check, Verification

STORED_TYPES: tuple[type, ...] = (
    Amounts,
    ArgumentRepair,
    Assignment,
    Attempt,
    Audit,
    Check,
    Clarification,
    Continuity,
    Compaction,
    ContextCost,
    Crowded,
    Dispatch,
    Drifted,
    EmergencyError,
    Failover,
    Failure,
    Grant,
    Instruction,
    KnownPitfall,
    LeftOut,
    Lessons,
    Limits,
    NameChange,
    Overrun,
    Phase,
    Plan,
    Recalled,
    Recovered,
    RecoveryAction,
    Remembered,
    RepairRound,
    Report,
    Savepoint,
    Step,
    Task,
    TaskResult,
    ToolTask,
    Usage,
    Verification,
)
