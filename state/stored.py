"""The types that a checkpoint may hold: what else is found in one is refused.

Their full names are part of the storage format: renaming or moving one needs a migration.
"""

from daruma.state.allowances import Allowance
from daruma.state.calls import Dispatch, ToolTask
from daruma.state.conversation import Clarification, Continuity
from daruma.state.emergency import EmergencyError
from daruma.state.failure import Failure
from daruma.state.lessons import (
    Instruction,
    Instructions,
    KnownPitfall,
    Lessons,
    Recalled,
    Remembered,
)
from daruma.state.plan import Assignment, Phase, Plan, Report
from daruma.state.recovery import Recovered, RecoveryAction
from daruma.state.result import Checked, Structured, TaskResult
from daruma.state.savepoint import Drifted, Savepoint
from daruma.state.steps import (
    ArgumentRepair,
    Audit,
    Compaction,
    ContextCost,
    ContextUsage,
    Crowded,
    Grant,
    HookNote,
    LeftOut,
    NameChange,
    Overrun,
    RepairRound,
    Step,
)
from daruma.state.task import Amounts, Limits, Task
from daruma.state.usage import Attempt, Failover, Usage
from daruma.state.verification import Check, Verdict, Verification

STORED_TYPES: tuple[type, ...] = (
    Allowance,
    Amounts,
    ArgumentRepair,
    Assignment,
    Attempt,
    Audit,
    Check,
    Checked,
    Clarification,
    Continuity,
    Compaction,
    ContextCost,
    ContextUsage,
    Crowded,
    Dispatch,
    Drifted,
    EmergencyError,
    Failover,
    Failure,
    Grant,
    HookNote,
    Instruction,
    Instructions,
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
    Structured,
    Task,
    TaskResult,
    ToolTask,
    Usage,
    Verdict,
    Verification,
)
