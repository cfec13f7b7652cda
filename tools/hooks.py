"""Hooks: functions and programs that see what a run does, change it, or say no."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, Literal, get_args

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from daruma.state.calls import ToolTask
from daruma.state.errors import DarumaError
from daruma.state.events import CallRefused, Event, HookApplied, VerificationStarted, unheard
from daruma.state.failure import ModelFailed
from daruma.state.record import copy_with
from daruma.state.settings import HookCommand, HookPoint
from daruma.state.steps import Audit, HookNote
from daruma.state.text import digest
from daruma.state.usage import Attempt, Failover
from daruma.state.verification import Check, Verification, excerpt
from daruma.tools.calls import resolve_program, tool_result
from daruma.tools.commands import Started, ask_program, end_program, host_environment
from daruma.tools.text import mask_keys, without_keys
from daruma.tools.threads import to_thread

# --- What a hook is, what it is given, and what it may answer.

_CHANGES: Final[Mapping[str, tuple[str, type | tuple[type, ...]]]] = {
    "before_model": ("messages", (list, tuple)),
    "after_model": ("message", AIMessage),
    "before_call": ("args", Mapping),
    "after_call": ("output", str),
}
"""What a hook may change, where it may: the field of its input, and the type of the answer."""

TIMEOUT: Final = 30.0
"""Seconds."""

LONGEST_REASON: Final = 1000
"""Characters."""


@dataclass(frozen=True, kw_only=True)
class HookInput:
    """What a hook is given; the fields that do not concern its ``event`` are empty.

    ``messages`` are a request to a model, ``message`` its answer, ``node`` who asks. ``tool``,
    ``call_id`` and ``args`` are a call's, ``output`` and ``ok`` its result's. ``passed`` and
    ``summary`` are a verification's. ``status`` and ``output`` are those of a task that has ended.
    """

    event: HookPoint
    thread_id: str = ""
    task_id: str = ""
    workspace: str | None = None
    node: str = ""
    messages: Sequence[BaseMessage] = ()
    message: AIMessage | None = None
    tool: str = ""
    call_id: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    ok: bool = True
    passed: bool = True
    summary: str = ""
    status: str = ""

    def to_json(self) -> bytes:
        """Return it as a program reads it: messages as their role and text, no empty fields."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told["messages"] = [{"role": each.type, "text": each.text} for each in self.messages]
        told["message"] = self.message and {"text": self.message.text}
        kept = {key: value for key, value in told.items() if value not in (None, "", [], {})}
        return json.dumps(kept, default=str).encode()


@dataclass(frozen=True)
class Deny:
    """What a hook answers to say no: the model, or who watches, is told the reason."""

    reason: str


@dataclass(frozen=True)
class Hook:
    """A function at a point of the run. ``on_error`` says what a failure of its own means."""

    point: HookPoint
    run: Callable[[HookInput], Awaitable[Any]]
    name: str
    match: str = "*"
    timeout: float = TIMEOUT
    on_error: Literal["deny", "go_on"] = "go_on"


def hook(
    point: HookPoint,
    *,
    match: str = "*",
    timeout: float = TIMEOUT,
    on_error: Literal["deny", "go_on"] | None = None,
) -> Callable[[Callable[[HookInput], Awaitable[Any]]], Hook]:
    """Make an async function a hook, to be given to ``build_graph(hooks=[...])``.

    It answers None to go on, :class:`Deny`, or what takes the place of what it was given:
    ``before_model`` a list of messages, ``after_model`` an ``AIMessage``, ``before_call`` a dict of
    arguments, ``after_call`` the text of the result. ``match`` is a pattern of tool names. One that
    takes more than ``timeout`` seconds, or raises, denies or goes on as ``on_error`` says: where
    that is not given, ``before_call`` denies and the others go on.

    Raises :class:`~daruma.state.errors.DarumaError` for another point, or no async function.
    """
    if point not in get_args(HookPoint):
        raise DarumaError(f"{point!r} is no point for a hook: {', '.join(get_args(HookPoint))}")
    if not isinstance(match, str):
        raise DarumaError(f"a hook's match has to be a text, not {match!r}")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise DarumaError(f"a hook's timeout has to be seconds, more than 0, not {timeout!r}")
    if on_error not in (None, "deny", "go_on"):  # a slip must not let calls through
        raise DarumaError(f"a hook's on_error has to be deny or go_on, not {on_error!r}")

    def made(function: Callable[[HookInput], Awaitable[Any]]) -> Hook:
        name = getattr(function, "__name__", type(function).__name__)
        if not inspect.iscoroutinefunction(function):
            raise DarumaError(f"the hook {name!r} has to be an async function: async def")
        return Hook(point, function, name, match, timeout, _on_error(point, on_error))

    return made


def _on_error(point: str, given: Literal["deny", "go_on"] | None) -> Literal["deny", "go_on"]:
    return given or ("deny" if point == "before_call" else "go_on")


# --- Hooks of the settings: programs that get JSON, and answer with JSON or an exit code.

DENIED: Final = 2
"""The exit code that says no; the reason is on standard error."""

_MOST: Final = 1024 * 1024


def hooks_in(settings: Mapping[HookPoint, Sequence[HookCommand]]) -> tuple[Hook, ...]:
    """Return the hooks of the settings; only those that somebody has trusted come here (SE-02)."""
    return tuple(
        Hook(
            point,
            partial(_ask_program, each),
            " ".join(each.run),
            each.match,
            each.timeout,
            _on_error(point, each.on_error),
        )
        for point, commands in settings.items()
        for each in commands
    )


def protect_programs(commands: Iterable[Sequence[str]], workspace: str | None) -> None:
    """Have no task write the programs of settings (SE-05); what is wrong with one is told later."""
    for argv in commands:
        with suppress(DarumaError):
            resolve_program(argv, workspace, "a program of the settings")


async def _ask_program(setting: HookCommand, given: HookInput) -> Any:
    begun: list[Started] = []
    try:
        return await to_thread(_run_program, setting, given, begun.append)
    except asyncio.CancelledError:
        for each in begun:
            end_program(each)
        raise


def _run_program(setting: HookCommand, given: HookInput, begun: Callable[[Started], None]) -> Any:
    argv = resolve_program(setting.run, given.workspace, f"hooks.{given.event}")
    environment = host_environment(Path(given.workspace) if given.workspace else None)
    with TemporaryFile() as out, TemporaryFile() as err:  # a pipe could be kept open by a child
        how: dict[str, Any] = {"stdout": out, "stderr": err, "env": environment}
        code = ask_program(argv, given.to_json(), setting.timeout, begun, **how)
        out.seek(0)
        err.seek(0)
        said, why = out.read(_MOST), err.read(_MOST).decode(errors="replace").strip()
    if code == DENIED:
        return Deny(why or "no reason given")
    if code:
        raise DarumaError(f"exit code {code}: {why[:200]}")
    return _answer_in(said, given.event) if said.strip() else None


def _answer_in(said: bytes, point: HookPoint) -> Any:
    answer = json.loads(said)
    if not isinstance(answer, dict) or len(answer) > 1:
        raise DarumaError('the answer has to be a JSON object: {}, {"deny": "why"} or one change')
    if "deny" in answer:
        return Deny(str(answer["deny"]))
    changed = {"before_call": "args", "after_call": "output"}.get(point)
    if answer and changed not in answer:
        raise DarumaError(f"{', '.join(answer)} can not be changed at {point}")
    if answer and answer[changed] is None:
        raise DarumaError(f"{changed} is null")
    return answer.get(changed)


# --- The hooks of one call of a node, and what they did.


@dataclass(frozen=True)
class Denied:
    """A no, and whose it was."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"denied by the hook {self.name}: {self.reason}"


@dataclass(frozen=True)
class NodeHooks:
    """The hooks of one call of a node; ``common`` is what the inputs of all of them have.

    ``notes`` are what they did, for the record of the node's step.
    """

    hooks: tuple[Hook, ...] = ()
    emit: Callable[[Event], None] = unheard
    common: Mapping[str, Any] = field(default_factory=dict)
    notes: list[HookNote] = field(default_factory=list)

    async def run(self, point: HookPoint, **given: Any) -> tuple[HookInput, Denied | None]:
        """Ask the hooks of a point, one after the other; return what they made of the input."""
        this = HookInput(event=point, **self.common, **given)
        for each in self.hooks:
            if each.point != point or not fnmatchcase(this.tool, each.match):
                continue
            answer = await self._ask(each, this)
            if isinstance(answer, Deny):
                return this, Denied(each.name, answer.reason[:LONGEST_REASON])
            if answer is not None:
                this = replace(this, **{_CHANGES[point][0]: answer})
        return this, None

    async def _ask(self, each: Hook, this: HookInput) -> Any:
        """Ask one hook; what goes wrong with it is told, and means what its ``on_error`` says."""
        try:
            own = deepcopy(this)  # what is changed in place would be neither gated nor told
            answer = _checked(each.point, await _within(each.timeout, each.run(own)))
        except Exception as error:  # noqa: BLE001 - anybody's function
            why = " ".join(without_keys(str(error)).split()) or type(error).__name__
            self._note(each, this, "failed", why)
            return Deny(f"it failed: {why}") if each.on_error == "deny" else None
        if isinstance(answer, Deny):
            self._note(each, this, "denied", answer.reason)
        elif answer is not None:
            self._note(each, this, "changed", "")
        return answer

    def _note(
        self, each: Hook, this: HookInput, did: Literal["changed", "denied", "failed"], reason: str
    ) -> None:
        told: dict[str, Any] = {"hook": each.name, "point": each.point, "did": did}
        told |= {"reason": reason[:LONGEST_REASON], "call_id": this.call_id}
        self.notes.append(mask_keys(HookNote(**told)))
        self.emit(HookApplied(**told))

    # --- What they are asked about, by the nodes and by who runs these.

    def around_model(self, ask: Any) -> Any:
        """Return what asks models, with the hooks before and after it; a no is a failed call."""

        async def asked(node: str, messages: Sequence[BaseMessage], **options: Any) -> Any:
            given, denied = await self.run("before_model", node=node, messages=messages)
            if denied:
                raise ModelFailed(str(denied), final=True)
            answer = await ask(node, given.messages, **options)
            seen, denied = await self.run("after_model", node=node, message=answer.message)
            if denied:  # what it cost is counted all the same
                model = answer.usage.model
                told, used = str(denied), answer.usage
                attempt = Attempt(model=model, error=told, then="gave up", usage=used)
                failover = Failover(requested=model, attempts=(attempt,))
                raise ModelFailed(str(denied), final=True, failover=failover)
            return copy_with(answer, message=seen.message)

        return asked

    async def around_checks(self, check: Callable[[], Awaitable[Verification]]) -> Verification:
        """Check, with the hooks before and after that; a no is a check that is red."""
        _, denied = await self.run("before_verification")
        if denied:
            self.emit(VerificationStarted(commands=()))
            return Verification(checks=(_red(denied),))
        verification = await check()
        _, denied = await self.run(
            "after_verification", passed=verification.passed, summary=excerpt(verification)
        )
        if denied is None:
            return verification
        return replace(verification, checks=(*verification.checks, _red(denied)))

    async def around_update(
        self, update: dict[str, Any], evaluate: Callable[[ToolTask, Mapping[str, Any]], ToolTask]
    ) -> dict[str, Any]:
        """Ask about what a node has returned: calls before the gate, results, the task's end.

        ``evaluate`` decides anew on a call with other arguments: what a person is shown, and what
        runs, is what the hooks left (TL-13).
        """
        calls, messages = update.get("calls"), [*update.get("messages", ())]
        if isinstance(calls, tuple):
            after = [await self._before_call(call, evaluate) for call in calls]
            pairs = zip(calls, after, strict=True)
            failed = [n for o, n in pairs if n.status == "failed" and o.status != "failed"]
            ended = [each for each in calls if each.delegated and each.status in ("done", "failed")]
            helped = {each.result_id: each for each in ended}
            of = [(helped.get(str(each.id)), each) for each in messages]
            messages = [await self._after_call(call, each) if call else each for call, each in of]
            results = refuse(failed, self.emit)
            update = {**update, "calls": tuple(after), "messages": [*messages, *results]}
        elif isinstance(calls, ToolTask):
            seen = [await self._after_call(calls, each) for each in messages]
            update = {**update, "messages": seen}
        if result := update.get("result"):
            await self.run("on_end", status=result.status, output=result.output)
            told = (f"the hook {note.hook} failed: {note.reason}" for note in self.notes)
            update = {**update, "result": replace(result, notes=(*result.notes, *told))}
        steps = [*update.get("steps", ())]
        if self.notes and steps:
            audit = steps[-1].audit or Audit(message_id="")
            steps[-1] = replace(steps[-1], audit=replace(audit, hooks=tuple(self.notes)))
            update = {**update, "steps": steps}
        return update

    async def _before_call(
        self, call: ToolTask, evaluate: Callable[[ToolTask, Mapping[str, Any]], ToolTask]
    ) -> ToolTask:
        if call.status not in ("ready", "awaiting") or call.hooked == _content(call):
            return call
        about = {"tool": call.name, "call_id": call.id, "args": call.args}
        given, denied = await self.run("before_call", **about)
        if denied:
            return replace(call, status="failed", reason=f"not run: {denied}")
        if given.args is call.args:
            return replace(call, hooked=_content(call))
        after = evaluate(call, given.args)
        if after.status not in ("ready", "awaiting"):  # no model repairs what a hook has said
            reason = f"not run: what a hook made of it can not be used: {after.reason}"
            return replace(after, status="failed", reason=reason)
        return replace(after, hooked=_content(after))

    async def _after_call(self, call: ToolTask, message: BaseMessage) -> BaseMessage:
        if not isinstance(message, ToolMessage) or call.status == "awaiting":
            return message
        ok, text = message.status == "success", message.text
        seen, denied = await self.run(
            "after_call", tool=call.name, call_id=call.id, args=call.args, output=text, ok=ok
        )
        if denied:
            return tool_result(call, f"Error: its result is withheld: {denied}", ok=False)
        return message if seen.output is text else tool_result(call, seen.output, ok=ok)


def refuse(calls: Iterable[ToolTask], emit: Callable[[Event], None]) -> list[ToolMessage]:
    """Answer calls that do not run with their reasons, and tell it to who watches (TL-03)."""
    results = [(call, tool_result(call, call.reason, ok=False)) for call in calls]
    for call, told in results:
        name, said = str(told.name), told.text[:2000]
        emit(CallRefused(call_id=call.id, tool=name, args=call.args, reason=said))
    return [told for _, told in results]


async def _within(seconds: float, work: Awaitable[Any]) -> Any:
    """Await a hook for so long; one that ignores its cancellation is left to itself."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise TimeoutError(f"it did not end in {seconds:g} s")
    if task.cancelled():
        raise DarumaError("it was cancelled from within")
    return task.result()


def _checked(point: HookPoint, answer: Any) -> Any:
    """Return an answer that is one of those that there are at a point. Raises DarumaError."""
    if answer is None:
        return None
    if isinstance(answer, Deny) and point != "on_end":
        if not isinstance(answer.reason, str):
            raise DarumaError(f"the reason of its Deny is no text: {answer.reason!r:.80}")
        return answer
    kind: Any = _CHANGES.get(point, ("", ()))[1]
    if not isinstance(answer, kind):
        raise DarumaError(f"it answered {type(answer).__name__}, which says nothing at {point}")
    if point == "before_call":  # as it is kept, and shown
        return json.loads(json.dumps(dict(answer)))
    if point == "before_model" and not all(isinstance(each, BaseMessage) for each in answer):
        raise DarumaError("it answered a list of what are no messages")
    return answer


def _red(denied: Denied) -> Check:
    return Check(command=f"hook {denied.name}", passed=False, exit_code=1, output=str(denied))


def _content(call: ToolTask) -> str:
    return digest([call.name, mask_keys(dict(call.args))])
