"""How a task gets on: rounds of the tool loop, loops, no progress, the alarm (RE-01 to RE-03)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from daruma.state import budget
from daruma.state.calls import UNCHANGED, ToolTask, with_status
from daruma.state.channels import State
from daruma.state.failure import DONE, Failure
from daruma.state.messages import NOTHING, Gathered, extend_known, growing, holds_any
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.steps import Step
from daruma.state.text import (
    digest,
    fold_spellings,
    without_names,
    without_noise,
    without_numbers,
    without_reference,
)

# --- What a think step asked for, as a signature: equal for calls that are as good as the same.

_MAX_NAMES = 3
_UNREAD = frozenset({"invalid_json", "too_large", "cut_off"})


def signature_of(message: AIMessage, calls: Sequence[ToolTask]) -> str:
    """Return the names of the tools and a digest of the calls in their order; empty for none.

    The calls are taken in their canonical form, before a model repairs them or a person edits them:
    a model that asks for the same broken thing again asks for the same. Of a call that could not be
    read its text stands in.
    """
    if not calls:
        return ""
    raw = {call["id"]: call["args"] for call in message.invalid_tool_calls}
    given = [raw.get(call.id) if call.problem in _UNREAD else call.args for call in calls]
    asked = [(_key(c.name), fold_spellings(args)) for c, args in zip(calls, given, strict=True)]
    names = [*dict.fromkeys(_told(call.name) for call in calls)][:_MAX_NAMES]
    return f"{' + '.join(names)}#{digest(asked)}"


def tools_in(signature: str) -> tuple[str, ...]:
    """Return the names of the tools, each once, the first three of them."""
    names = signature.rpartition("#")[0]
    return tuple(names.split(" + ")) if names else ()


@lru_cache(maxsize=1000)
def _told(name: str) -> str:
    return re.sub(r"[^\w.:-]", "?", name, flags=re.ASCII)[:60] or "unnamed"


@lru_cache(maxsize=1000)
def _key(name: str) -> str:
    return re.sub(r"[\s._-]+", "", name).casefold()


# --- What the calls of the last answer came to, read from the history that the next request shows.

FAILED = "!"
KIND = "/"
"""Stands before the kind of a round that came to nothing."""
_COMMAND = "run_command"
_SUCCESS = "exit code: 0\n"
MAX_BLOCKERS = 3
_BLOCKER = 200
_SHORT = 500
"""Characters of a text among the arguments that an error may name."""


class Observed(NamedTuple):
    """``saw`` and ``blockers`` of a :class:`~daruma.state.steps.Step`."""

    saw: str = ""
    blockers: tuple[str, ...] = ()


def observe_results(state: State) -> Observed:
    """Read the results of the task's last answer, in the order of its calls.

    Results count as equal without what is noise, errors without numbers as well. What a person
    denied is an error like any other to the model, but no failure that could be the same again:
    denials of different calls are different answers.

    Where nothing came of any call, the kind of that is told as well, without the names in it: the
    tools with their errors, or what commands said that changed nothing (RE-01a).
    """
    answered = list(_results(state))
    if not answered:
        return Observed()
    results = [result for result, _ in answered]
    errors = [result for result in results if result.status == "error"]
    denied = {call.result_id for call in with_status(state.calls, "rejected")}
    failed = len(errors) == len(results) and not any(r.id in denied for r in results)
    short = dict.fromkeys(" ".join(error.text.split())[:_BLOCKER] for error in errors)
    saw = (FAILED if failed else "") + digest([_compared(result) for result in results])
    kinds = {_fruitless(result, args) for result, args in answered}
    if None not in kinds and not any(result.id in denied for result in results):
        saw += KIND + digest(sorted(filter(None, kinds)))
    return Observed(saw, tuple(short)[:MAX_BLOCKERS])


def _fruitless(result: ToolMessage, args: object) -> tuple[str, str] | None:
    """Return the tool and the kind of a call that nothing came of; None for any other.

    Those are errors, commands that failed, and commands that succeeded and changed nothing: of
    these the words count as they are, since they are what was asked for.
    """
    said = without_reference(_said(result))
    name = _key(result.name or "")
    failed = result.name == _COMMAND and not said.startswith(_SUCCESS)
    if result.status == "error" or failed:
        return name, without_names(said, set(_words(args)))
    if result.name == _COMMAND and result.additional_kwargs.get(UNCHANGED):
        return name, without_noise(said)
    return None


def _words(args: object) -> Iterator[str]:
    """Yield the words of the arguments' short texts: what an error may name."""
    if isinstance(args, str):
        yield from re.findall(r"\w+", args) if len(args) <= _SHORT else ()
    elif isinstance(args, dict | list):
        each: Iterable[object] = args.values() if isinstance(args, dict) else args
        for value in each:
            yield from _words(value)


def _said(result: ToolMessage) -> str:
    return result.content if isinstance(result.content, str) else result.text


def _compared(result: ToolMessage) -> tuple[str, str]:
    bare = without_numbers if result.status == "error" else without_noise
    return result.status, bare(without_reference(_said(result)))


def _results(state: State) -> Iterator[tuple[ToolMessage, object]]:
    """Yield the results that follow the task's last answer, each with the call's arguments."""
    after: dict[str, ToolMessage] = {}
    for message in reversed(state.messages):
        if isinstance(message, ToolMessage):
            after[str(message.id)] = message
        elif isinstance(message, AIMessage):
            if str(message.id).startswith(f"{state.task_id}:answer:"):
                calls = (*message.tool_calls, *message.invalid_tool_calls)
                asked = ((f"{message.id}:{call['id']}", call["args"]) for call in calls)
                yield from ((after[id_], args) for id_, args in asked if id_ in after)
            return


# --- Rounds of the tool loop: what was asked for, and what it came to. Read from the step record.

_BY_A_PERSON = frozenset({"approved", "instructed", "answered"})


class Round(NamedTuple):
    """``calls`` is the signature of what was asked for, ``outcome`` the digest of its results.

    Both are empty for an answer without calls, which never repeats another one.
    """

    calls: str
    outcome: str

    @property
    def failed(self) -> bool:
        return self.outcome.startswith(FAILED)

    @property
    def kind(self) -> str:
        """The kind of a round that nothing came of; empty for any other."""
        return self.outcome.partition(KIND)[2]

    @property
    def comparable(self) -> bool:
        return bool(self.calls and self.outcome)


def attempt(steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps since the last reflection (RE-02), word of a person, or retry.

    What recovery waited for before it is tried again may have changed: it is tried in earnest.
    """
    return steps[_after_last(steps, _begins_anew) :]


def rounds(steps: Sequence[Step], now: Step) -> list[Round]:
    """Return the rounds that ``now``, the think step at hand, has seen the end of.

    Model calls that failed, and calls that were not run because they would have repeated
    themselves, are no rounds: nothing came of them.
    """
    thinks = (*(step for step in steps if step.kind == "think"), now)
    return [Round(step.signature, after.saw) for step, after in pairwise(thinks) if step.ok]


def has_refused_calls(steps: Sequence[Step]) -> bool:
    """Whether calls were not run since the last round, because they repeated themselves."""
    thinks = [step for step in steps if step.kind == "think"]
    last = _after_last(thinks, lambda step: step.ok)
    return any(step.signature for step in thinks[last:])


def _begins_anew(step: Step) -> bool:
    done = step.recovery
    by_a_person = done is not None and done.carried in _BY_A_PERSON
    retried = done is not None and done.strategy == "retry" and done.carried in DONE
    return step.kind == "reflect" or by_a_person or retried


def _after_last(steps: Sequence[Step], wanted: Callable[[Step], bool]) -> int:
    found = (n for n in range(len(steps), 0, -1) if wanted(steps[n - 1]))
    return next(found, 0)


# --- Loops: the same calls with the same results, and now the same calls again (RE-02).

LONGEST = 4
"""Steps of the longest cycle that is looked for: A B C D A B C D."""


class Loop(NamedTuple):
    """One cycle of rounds, and how many times it was gone through."""

    cycle: tuple[Round, ...]
    times: int

    def __str__(self) -> str:
        names = ", then ".join(" + ".join(tools_in(each.calls)) for each in self.cycle)
        return f"{names}, {self.times} times with the same results"


def threshold_of(mode: Mode) -> int:
    """Return how many equal rounds make a loop: 2, or 3 in the modes that keep working (RE-02)."""
    return 3 if mode in KEEP_WORKING else 2


def repeating(steps: Sequence[Step], asked: Step, *, threshold: int) -> Loop | None:
    """Return the loop that the calls of ``asked`` would go on with; the shortest cycle there is.

    ``steps`` are those of the phase before it. Once calls were not run for a loop, any call of the
    same cycle goes on with it, until something else was done.
    """
    current = attempt(steps)
    if all(step.signature != asked.signature for step in current):
        return None
    past = rounds(current, asked)
    for length in range(1, LONGEST + 1):
        times, cycle = _times(past, length), tuple(past[-length:])
        goes_on = cycle[: None if has_refused_calls(current) else 1]
        if times >= threshold and asked.signature in {each.calls for each in goes_on}:
            return Loop(cycle, times)
    return None


def _times(past: Sequence[Round], length: int) -> int:
    """Count how often the last ``length`` rounds were gone through in a row; 0 for no cycle."""
    cycle = past[-length:]
    if len(cycle) < length or not all(each.comparable for each in cycle):
        return 0
    times = 1
    while tuple(past[-length * (times + 1) : -length * times]) == tuple(cycle):
        times += 1
    return times


# --- No progress: steps that told nothing new, although they were not all the same (RE-01, RE-03).

WINDOW = 3
"""Steps without anything new after which a model is stuck (RE-01)."""
MANY = 8
"""Steps from which on low progress counts (RE-03): more than a phase's default quota of 7, so that
it is asked only of long work."""
LOW = 0.25
"""The share of steps that brought something new below which progress is low."""


def news(past: Sequence[Round]) -> list[bool]:
    """Say of each round whether it brought something new.

    Nothing new is the same outcome of the same calls as before, an error that other calls have
    come to as well, and what is of the same kind as one that was there before (RE-01a). Calls that
    were made before and came to something else are news, whatever that is.
    """
    seen: set[Round] = set()
    made: set[str] = set()
    kinds: set[str] = set()
    outcomes = Counter(each.outcome for each in past)
    told = []
    for each in past:
        again = each.calls not in made and each.kind in kinds
        told.append(not (each in seen or again or (each.failed and outcomes[each.outcome] > 1)))
        seen.add(each)
        made.add(each.calls)
        kinds |= {each.kind} - {""}
    return told


def _is_new(past: Sequence[Round], n: int) -> bool:
    # As above, for one: to ask of the last few is quicker than to count all of a long thread.
    each, before = past[n], past[:n]
    if each in before:
        return False
    again = each.kind and any(o.kind == each.kind for o in before)
    if again and all(o.calls != each.calls for o in before):
        return False
    return not (each.failed and sum(o.outcome == each.outcome for o in past) > 1)


def is_stuck(past: Sequence[Round]) -> bool:
    """Whether the last three rounds brought nothing new (RE-01)."""
    return len(past) >= WINDOW and not any(
        _is_new(past, n) for n in range(len(past) - 1, len(past) - 1 - WINDOW, -1)
    )


def is_slow(fresh: Sequence[bool], blockers: Sequence[str]) -> bool:
    """Whether many steps brought little, and something is in the way (RE-03)."""
    return bool(blockers) and len(fresh) >= MANY and sum(fresh) < LOW * len(fresh)


def without_progress(steps: Sequence[Step], asked: Step) -> str:
    """Say how there is no progress, if the calls of ``asked`` are more of the same; else nothing.

    More of the same is what was done before, and another try of a tool that keeps failing. After a
    recovery it is at first only what was done last: whatever else is tried has its chance.
    """
    current = attempt(steps)
    past, recovered = rounds(current, asked), _after_last(current, lambda s: s.kind == "recover")
    since = sum(each.kind == "think" and each.ok for each in current[recovered:])
    if is_stuck(past) and _more(past, asked, recovering=not since):
        return f"no progress over the last {WINDOW} steps"
    if since and asked.blockers and is_slow(news(past)[-since:], asked.blockers):
        return f"little progress over the last {since} steps"
    return ""


def _more(past: Sequence[Round], asked: Step, *, recovering: bool) -> bool:
    last = past[-WINDOW:]
    if asked.signature in {each.calls for each in (last if recovering else past)}:
        return True
    failing = {name for each in last for name in tools_in(each.calls)}
    again = not failing.isdisjoint(tools_in(asked.signature))
    return again and not recovering and all(each.failed or each.kind for each in last)


# --- How far a task has come: an estimate by rule, for whoever has to decide how to go on (RE-01).

_WORK = 0.6
"""The most that steps alone can show of a phase: checks tell what they were worth."""
_CHECKED = 0.9
"""What a phase has come to when all but the last of its checks pass."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """An estimate: ``percent`` is from 0 to 100, ``reasoning`` says what it was made of.

    ``blockers`` are at most three errors that stand in the way, ``is_stuck`` is true where the
    last three steps brought nothing new, and for a loop.
    """

    percent: int
    reasoning: str
    next_milestone: str
    blockers: tuple[str, ...] = ()
    is_stuck: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self) | {"blockers": list(self.blockers)}


def progress_of(state: State) -> Progress:
    """Estimate the progress from the plan, the last verification and the record of steps.

    The percentage is that of completed phases (a task without a plan is one phase), and of the
    phase at hand its share: 100 % when its verification passed, else the greater of 60 % times
    steps that brought something new by the quota of thinks, and 90 % times checks that passed by
    checks that were run.
    """
    steps = list(budget.in_scope(state))
    latest = observe_results(state)
    now = Step(kind="think", task_id=state.task_id, saw=latest.saw)
    fresh = news(rounds(steps, now))
    looping = state.failure is not None and state.failure.code == "loop_detected"
    return Progress(
        percent=_percent(state, sum(fresh)),
        reasoning=_reasoning(state, fresh),
        next_milestone=_milestone(state),
        blockers=(state.failure.message,) if state.failure and looping else latest.blockers,
        is_stuck=looping or is_stuck(rounds(attempt(steps), now)),
    )


def _percent(state: State, fresh: int) -> int:
    phases = state.plan.phases if state.plan else ()
    completed = sum(phase.status == "completed" for phase in phases)
    current = state.plan.phase(state.plan.current) if state.plan else None
    open_ = state.plan is None or (current is not None and current.status == "running")
    share = _share(state, fresh) if open_ else 0.0
    return int(100 * (completed + share) / max(1, len(phases)))


def _share(state: State, fresh: int) -> float:
    checked = state.verification
    if checked and checked.passed:
        return 1.0
    quota = state.task.limits.think if state.task else 0
    work = _WORK * min(1.0, fresh / max(1, quota))
    checks = checked.checks if checked else ()
    return max(work, _CHECKED * sum(check.passed for check in checks) / max(1, len(checks)))


def _reasoning(state: State, fresh: Sequence[bool]) -> str:
    said = []
    if state.plan:
        completed = sum(phase.status == "completed" for phase in state.plan.phases)
        said.append(f"{completed} of {len(state.plan.phases)} phases are completed")
    said.append(f"{sum(fresh)} of {len(fresh)} steps brought something new")
    if state.verification:
        said.append(f"the last verification: {state.verification.summary}")
    return "; ".join(said)


def _milestone(state: State) -> str:
    if state.verification and not state.verification.passed:
        red = next(check for check in state.verification.checks if not check.passed)
        return f"{red.command} passes"
    current = state.plan.phase(state.plan.current) if state.plan else None
    if current and current.status == "running":
        return f"the phase {current.title!r} is completed"
    if state.plan is None and state.task and state.task.mode in KEEP_WORKING:
        return "a plan"
    return "an answer"


# --- The alarm: a model is about to go on in a way that has led nowhere (RE-01 to RE-03).


def alarm(state: State, asked: Step) -> Failure | None:
    """Return the failure that it would be to run the calls of ``asked``, the think step at hand.

    It follows from the record of steps alone, so that a resumed or forked thread is judged alike.
    An answer without calls is never a loop.
    """
    if not asked.signature or state.task is None or _goes_on(state, asked):
        return None
    steps = list(budget.in_scope(state))
    loop = repeating(steps, asked, threshold=threshold_of(state.task.mode))
    if loop:
        return _failure(str(loop), asked.signature)
    if said := without_progress(steps, asked):
        why = "; ".join(asked.blockers) or "what was done had been done before"
        return _failure(f"{said}: {why}", rounds(attempt(steps), asked)[-1].calls)
    return None


def _goes_on(state: State, asked: Step) -> bool:
    """Whether there is plainly no alarm, without a look at all the rounds.

    A loop goes on with calls that were made before. Who is stuck does so too, or has seen nothing
    but failures, or what nothing came of; slow is who has something in the way.
    """
    made = growing(state.steps).known(_made, NOTHING)
    nothing = asked.blockers or asked.saw.startswith(FAILED) or KIND in asked.saw
    if nothing or holds_any(made, [asked.signature]):
        return False
    last = next((step for step in budget.latest_in_scope(state) if step.kind == "think"), None)
    return last is None or last.ok


def _made(known: Gathered[str], steps: Sequence[Step]) -> Gathered[str]:
    return extend_known(known, [step.signature for step in steps])


def _failure(message: str, about: str) -> Failure:
    tool = next(iter(tools_in(about)), "")
    return Failure(code="loop_detected", node="main", message=message, tool=tool)
