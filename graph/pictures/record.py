"""What is on record of a run: a state, the walk that led to it, and those of team members."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.types import StateSnapshot

from daruma.graph.pictures.superstep import Superstep, Walk, walk_of
from daruma.state.channels import State
from daruma.state.task import Task

MEMBER = "member:"
"""What the namespace of a team member begins with."""


@dataclass(frozen=True)
class Record:
    """A state and the walk to it; ``member`` is the phase of the member whose they are.

    ``opened`` are the ids of the questions that are open.
    """

    thread: str
    state: State
    walk: Walk
    member: str = ""
    opened: frozenset[str] = field(default_factory=frozenset)

    @property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks of the thread by the message that asked for them, as far as they are known."""
        written = (task for each in self.walk.walked for task in each.values("task"))
        known = [*written, self.state.task]
        return {task.request: task for task in known if isinstance(task, Task) and task.request}


def record_of(thread: str, snapshot: StateSnapshot, supersteps: Iterable[Superstep]) -> Record:
    """Return the record of the task itself."""
    own = [each for each in supersteps if not each.namespace]
    head = snapshot.config["configurable"]["checkpoint_id"]
    opened = frozenset(each.id for each in snapshot.interrupts)
    return Record(thread, State(**snapshot.values), walk_of(own, head), opened=opened)


def member_record(
    task: Record, snapshot: StateSnapshot, supersteps: Sequence[Superstep]
) -> Record | None:
    """Return the record of a team member; None for one that has not begun."""
    state = State(**snapshot.values)
    if state.plan is None or state.plan.current is None:
        return None
    phase = state.plan.current
    walk = walk_of(supersteps, snapshot.config["configurable"]["checkpoint_id"], phase)
    return Record(task.thread, state, walk, phase, task.opened)


def members_in(supersteps: Iterable[Superstep], walk: Walk) -> dict[str, list[Superstep]]:
    """Return the supersteps of the members that the task's own walk has sent, by namespace."""
    on_walk = {each.superstep.id for each in walk.walked}
    found: dict[str, list[Superstep]] = {}
    for each in supersteps:
        if each.namespace.startswith(MEMBER) and each.root in on_walk:
            found.setdefault(each.namespace, []).append(each)
    return found
