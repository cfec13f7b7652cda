"""The agent of the Agent Client Protocol: an editor runs tasks, sees what is done, and is asked."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, Self

from acp import PROTOCOL_VERSION, RequestError, helpers, run_agent, schema
from acp.interfaces import Client
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.types import Command, StateSnapshot

from daruma.graph.protocols._threads import (
    ClientThreads,
    PlanView,
    question_text,
    request_of,
    status_of,
)
from daruma.graph.requests import RequestRefused
from daruma.graph.timeline import call_title
from daruma.state.calls import EXECUTED
from daruma.state.errors import DarumaError
from daruma.state.events import RunStopped
from daruma.state.interrupts import ReplyRefused, read_reply, summary_of
from daruma.state.messages import is_request, reasoning_of
from daruma.state.mode import MODES
from daruma.state.text import printable_line

Update = Any
"""One of the updates of a session, as the package has them."""

StopReason = Literal["end_turn", "cancelled", "max_turn_requests"]
Event = Mapping[str, Any]

# --- What a run does, as updates of a session: its answers, thoughts, calls, and its plan.

_TOOL_KINDS: Final = {
    "run_command": "execute",
    "run_tests": "execute",
    "str_replace_editor": "edit",
    "search": "search",
    "search_knowledge": "search",
    "hybrid_search": "search",
    "memory_search": "search",
}
_THOUGHTS: Final = {
    "verification_completed": "summary",
    "reflected": "text",
    "recovery_action": "reasoning",
    "plan_rejected": "reason",
    "model_attempt_failed": "error",
}
"""The events that are told as thoughts, each with the field that says it."""

_STATES: Final = {
    "pending": ("pending", ""),
    "running": ("in_progress", ""),
    "completed": ("completed", ""),
    "failed": ("completed", " (failed)"),  # the protocol has no word for it
}


@dataclass
class SessionView:
    """What an editor was shown of a session: the plan, calls by id, and the answers."""

    folder: str
    plan: PlanView
    calls: dict[str, dict[str, Any]]
    said: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str, snapshot: StateSnapshot | None) -> Self:
        """Return what was shown up to now of a thread: its plan, and the calls that may be open."""
        messages = snapshot.values.get("messages", ()) if snapshot else ()
        answers = (each for each in messages if isinstance(each, AIMessage))
        calls = {str(call["id"]): call["args"] for each in answers for call in each.tool_calls}
        decided = snapshot.values.get("calls", ()) if snapshot else ()
        return cls(folder, PlanView.of(snapshot), calls | {c.id: c.args for c in decided})

    def updates(self, mode: str, part: Any) -> Iterator[Update]:
        """Yield what a part of a run's stream shows."""
        if not isinstance(part, Mapping):
            return  # of an application's tool
        if mode == "custom":
            yield from self._event(part)
            return
        for update in part.values():
            written = update.get("messages", ()) if isinstance(update, Mapping) else ()
            for message in written if isinstance(written, list | tuple) else [written]:
                yield from self.answer(message)
            decided = update.get("calls") if isinstance(update, Mapping) else ()
            self.calls |= {c.id: c.args for c in decided} if isinstance(decided, tuple) else {}

    def answer(self, message: AnyMessage) -> Iterator[Update]:
        """Yield an answer of the model, once it is on record, with what it thought before."""
        name = str(message.id)
        if not isinstance(message, AIMessage) or ":answer:" not in name:
            return
        self.calls |= {str(call["id"]): call["args"] for call in message.tool_calls}
        if name in self.said:
            return
        self.said[name] = message.text
        if thought := reasoning_of(message):
            yield helpers.update_agent_thought_text(thought)
        if message.text:
            yield helpers.update_agent_message_text(message.text)

    def recorded(self, messages: Sequence[AnyMessage], thread: str) -> Iterator[Update]:
        """Yield a conversation again, from its record."""
        results = {str(each.id): each for each in messages if isinstance(each, ToolMessage)}
        for message in messages:
            if is_request(message, thread):
                yield helpers.update_user_message_text(message.text)
            yield from self.answer(message)
            answered = message if isinstance(message, AIMessage) else AIMessage("")
            for call in (*answered.tool_calls, *answered.invalid_tool_calls):
                result = results.get(f"{message.id}:{call['id']}")
                if result and EXECUTED in result.additional_kwargs:
                    self.calls[str(call["id"])] = result.additional_kwargs[EXECUTED]
                name = (result and result.name) or call["name"] or ""
                yield from self._started({"call_id": call["id"], "tool": name})
            if isinstance(message, ToolMessage):
                told = {"call_id": message.tool_call_id, "output": message.text}
                yield from self._completed(told | {"ok": message.status != "error"})

    def _event(self, event: Event) -> Iterator[Update]:
        type_ = str(event.get("type"))
        if self.plan.take(event):
            yield self.entries()
        elif type_ in _THOUGHTS:
            if said := event[_THOUGHTS[type_]]:
                yield helpers.update_agent_thought_text(str(said))
        elif type_ in _SHOWN:
            yield from _SHOWN[type_](self, event)

    def entries(self) -> Update:
        """Return the plan as it stands."""
        stated: list[Any] = [(title, *_STATES[state]) for title, state in self.plan.phases.values()]
        entries = [helpers.plan_entry(title + note, status=s) for title, s, note in stated]
        return helpers.update_plan(entries)

    def _started(self, event: Event) -> Iterator[Update]:
        args = self.calls.get(event["call_id"], {})
        told = describe_call(event["tool"], args, self.folder)
        yield helpers.start_tool_call(event["call_id"], status="in_progress", **told)

    def _completed(self, event: Event) -> Iterator[Update]:
        diff = edit_diff(self.calls.get(event["call_id"], {}), self.folder) if event["ok"] else []
        said = [helpers.text_block(event["output"])] if event["output"] else []
        content = [*diff, *map(helpers.tool_content, said)]
        status: Any = "completed" if event["ok"] else "failed"
        yield helpers.update_tool_call(event["call_id"], status=status, content=content)

    def _decided(self, event: Event) -> Iterator[Update]:
        if event["decision"] == "deny":
            yield helpers.update_tool_call(event["approval_id"], status="failed")


_SHOWN: Final[Mapping[str, Callable[[SessionView, Event], Iterator[Update]]]] = {
    "tool_started": SessionView._started,
    "tool_completed": SessionView._completed,
    "approval_completed": SessionView._decided,
}


def describe_call(tool: str, args: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return a call as an editor shows it: title, kind, the file that it is about, and a diff."""
    path, view = args.get("path"), args.get("command") == "view"
    kind = "read" if view else _TOOL_KINDS.get(tool, "other")
    here = [schema.ToolCallLocation(path=str(Path(folder) / path))] if isinstance(path, str) else []
    return {
        "title": call_title(tool, args),
        "kind": kind,
        "locations": here,
        "raw_input": dict(args),
        "content": edit_diff(args, folder),
    }


def edit_diff(args: Mapping[str, Any], folder: str) -> list[Any]:
    """Return the diff of a call that edits a file; empty for other calls."""
    path, old, new = (args.get(n) for n in ("path", "old_str", "new_str"))
    new = new if isinstance(new, str) else args.get("file_text")
    if not isinstance(path, str) or not isinstance(new, str):
        return []
    before = old if isinstance(old, str) else None
    return [helpers.tool_diff_content(str(Path(folder) / path), new, before)]


# --- What a person can choose where a thread asks, each with the reply that it stands for.

_TITLES: Final = {"spec_review_request": "Plan", "recovery_request": "Recovery"}

Choice = tuple[str, Any, Any]
"""Name, kind of the protocol, and reply; None leaves the question open."""


def choices_of(value: Mapping[str, Any], text: str) -> list[Choice]:
    """Return what can be chosen; ``text`` is what the person wrote while the question was open."""
    quoted = printable_line(text, 60)
    if value["type"] == "spec_review_request":
        reject = ("reject_once", {"decision": "reject", "feedback": text})
        change = [(f"Change it: {quoted}", *reject)] if text else []
        confirm: Choice = ("Carry it out", "allow_once", {"decision": "confirm"})
        return [confirm, *change, ("Not now", "reject_once", None)]
    if value["type"] == "recovery_request":
        instruct = ("allow_once", {"decision": "instruct", "text": text})
        return [
            ("Do it", "allow_once", {"decision": "approve"}),
            *([(f"Instead: {quoted}", *instruct)] if text else []),
            ("Do not", "reject_once", {"decision": "deny"}),
        ]
    return [(each, "allow_once", {"answer": each}) for each in value.get("options", ())]


def choices_of_approval(approval: Mapping[str, Any], text: str) -> list[Choice]:
    """Return what can be decided about one call: what was shown is what runs (TL-13, TL-14)."""
    named = {"approval_id": approval["approval_id"], "digest": approval["digest"]}
    yes = {**named, "decision": "approve"}
    choices: list[Choice] = [("Run it", "allow_once", yes)]
    if "thread" in approval.get("always", ()):
        lasting = {**yes, "always": "thread"}
        choices.append(("Run it, and exactly this from now on", "allow_always", lasting))
    deny = {**named, "decision": "deny", "reason": text}
    name = f"Do not run it: {printable_line(text, 60)}" if text else "Do not run it"
    return [*choices, (name, "reject_once", deny)]


# --- The agent: sessions are threads, in whichever process they were begun.

_AUTO: Final = "auto"
_GO_ON: Final = "resume"


@dataclass
class EditorSession:
    """A session of this process: the folder, the mode that was chosen, and what runs."""

    folder: str
    mode: str = _AUTO
    turn: asyncio.Task[StopReason] | None = None

    @property
    def modes(self) -> schema.SessionModeState:
        """What the editor offers as modes."""
        auto = schema.SessionMode(id=_AUTO, name="As the settings or the message say")
        own = [schema.SessionMode(id=each, name=each.replace("_", " ")) for each in MODES]
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=[auto, *own])


@contextmanager
def _refusing() -> Iterator[None]:
    """Say what is refused in one line, as the protocol's error."""
    try:
        yield
    except DarumaError as error:
        raise RequestError(-32602, str(error)) from None


class EditorAgent:
    """What an editor calls; the methods are those of the protocol."""

    client: Client

    def __init__(self, threads: ClientThreads) -> None:
        self.threads = threads
        self.sessions: dict[str, EditorSession] = {}

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
            ),
            agent_info=schema.Implementation(name="daruma", version=version("daruma-agent")),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        """Begin a thread. Servers that the editor names are not started (SE-03)."""
        with _refusing():
            await asyncio.to_thread(self._check, cwd)
        name = self.threads.new_name()
        self.sessions[name] = session = EditorSession(cwd)
        return schema.NewSessionResponse(session_id=name, modes=session.modes)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        """Show a thread again, from its record."""
        with _refusing():
            await asyncio.to_thread(self._check, cwd)
            snapshot = await self.threads.known(session_id, cwd)
            stop = await self.threads.stop(session_id, cwd)
        self.sessions[session_id] = session = EditorSession(cwd)
        view = SessionView.of(cwd, snapshot)
        await self._show(session_id, view.recorded(snapshot.values.get("messages", ()), session_id))
        await self._show(session_id, [view.entries()] if view.plan.phases else ())
        if stop.questions or stop.outcome == "unfinished":
            await self._say(session_id, _waiting(stop))
        return schema.LoadSessionResponse(modes=session.modes)

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> None:
        if mode_id not in (_AUTO, *MODES):
            raise RequestError(-32602, f"unknown mode {mode_id!r}; there are: {', '.join(MODES)}")
        self._session(session_id).mode = mode_id

    async def prompt(
        self, prompt: Sequence[Any], session_id: str, **_: Any
    ) -> schema.PromptResponse:
        """Run a task, or answer what is open, until it ends or asks what the person leaves open."""
        session = self._session(session_id)
        if session.turn:
            raise RequestError(-32600, "the session works on another prompt: cancel that first")
        work = self._turn(session_id, session, text_in(prompt).strip())
        session.turn = turn = asyncio.create_task(work)
        try:
            await asyncio.wait([turn])
        finally:
            turn.cancel()
            await asyncio.wait([turn])
            session.turn = None
        with _refusing():
            reason = "cancelled" if turn.cancelled() else turn.result()
            return schema.PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_: Any) -> None:
        if turn := self._session(session_id).turn:
            turn.cancel()

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self.sessions:
            raise RequestError(-32602, f"there is no session {session_id!r}: load it first")
        return self.sessions[session_id]

    def _check(self, folder: str) -> None:
        if not (Path(folder).is_absolute() and Path(folder).is_dir()):
            raise RequestRefused(f"the workspace {folder!r} is not a folder that is there")
        self.threads.keep(folder)

    # --- One turn: runs, and questions between them.

    async def _turn(self, thread: str, session: EditorSession, text: str) -> StopReason:
        given = await self._given(thread, session, text)
        while given:
            stop, view = await self._run(thread, session, given[0])
            replies = await self._replies(thread, session, stop, "")
            if not replies:
                return await self._end(thread, stop, view)
            given = [Command(resume=replies)]
        return "end_turn"

    async def _given(self, thread: str, session: EditorSession, text: str) -> Sequence[Any]:
        """Return what to run with, in a list; empty where the thread goes on waiting."""
        request = request_of(text, session.folder, None if session.mode == _AUTO else session.mode)
        if await self.threads.find(thread, session.folder) is None:
            return [request]
        stop = await self.threads.stop(thread, session.folder)
        if not stop.questions and stop.outcome == "unfinished" and text.lower() == _GO_ON:
            return [None]
        if not stop.questions and stop.outcome != "unfinished":
            return [request]
        if replies := await self._replies(thread, session, stop, text):
            return [Command(resume=replies)]
        await self._say(thread, _waiting(stop))
        return []

    async def _run(
        self, thread: str, session: EditorSession, given: Any
    ) -> tuple[RunStopped, SessionView]:
        snapshot = await self.threads.find(thread, session.folder)
        view = SessionView.of(session.folder, snapshot)
        async for mode, part in self.threads.run(thread, session.folder, given):
            await self._show(thread, view.updates(mode, part))
        return await self.threads.stop(thread, session.folder), view

    async def _end(self, thread: str, stop: RunStopped, view: SessionView) -> StopReason:
        """Say how a run ended, unless it is plain: what failed or was not checked is said so."""
        if stop.questions or stop.result is None:
            await self._say(thread, _waiting(stop))
            return "end_turn"
        output, headline = str(stop.result["output"]), status_of(stop)
        new = [] if output in view.said.values() else [output]
        new += [] if headline == "completed" else [f"*{headline}*"]
        await self._say(thread, "\n\n".join(new))
        over = stop.result["status"] == "max_steps_exceeded"
        return "max_turn_requests" if over else "end_turn"

    # --- Questions: each is a request for permission, or said where words are to answer it.

    async def _replies(
        self, thread: str, session: EditorSession, stop: RunStopped, text: str
    ) -> dict[str, Any]:
        """Ask what is open, first which of it a text answers, and return the replies (PL-04)."""
        asked = {each["id"]: each["value"] for each in stop.questions}
        meant = next(iter(asked), None)
        if text and len(asked) > 1:
            told = {"title": "Which question do you answer?", "kind": "think"}
            which = [(summary_of(value), "allow_once", id_) for id_, value in asked.items()]
            which.append(("None of them", "reject_once", None))
            meant = await self._choose(thread, f"{meant}:which", told, text, which)
        replies = {
            id_: await self._reply(thread, session, value, text if id_ == meant else "")
            for id_, value in asked.items()
        }
        return {id_: reply for id_, reply in replies.items() if reply is not None}

    async def _reply(self, thread: str, session: EditorSession, value: Any, text: str) -> Any:
        type_ = value.get("type") if isinstance(value, Mapping) else None
        if type_ == "approval_request":
            described = zip(value["approvals"], value["action_requests"], strict=True)
            decided = [
                await self._choose(
                    thread,
                    each["approval_id"],
                    describe_call(each["tool"], each["args"], session.folder),
                    shown["description"],
                    choices_of_approval(each, text),
                )
                for each, shown in described
            ]
            return {"decisions": made} if (made := [*filter(None, decided)]) else None
        if type_ == "question" and text:
            with suppress(ReplyRefused):
                read_reply(value, {"answer": text})
                return {"answer": text}
        choices = choices_of(value, text) if type_ else []
        if not choices:
            return None
        told = {"title": _TITLES.get(str(type_), "Question"), "kind": "think"}
        return await self._choose(thread, value["id"], told, question_text(value), choices)

    async def _choose(
        self, thread: str, id_: str, told: Mapping[str, Any], text: str, choices: Sequence[Choice]
    ) -> Any:
        """Let the person choose, and return the reply; None for what is none of the choices."""
        content = [helpers.tool_content(helpers.text_block(text)), *told.get("content", ())]
        shown = {**told, "status": "pending", "content": content}
        call = schema.ToolCallUpdate(tool_call_id=id_, **shown)
        options = [
            schema.PermissionOption(option_id=str(number), name=name, kind=kind)
            for number, (name, kind, _) in enumerate(choices)
        ]
        answered = await self.client.request_permission(
            session_id=thread, tool_call=call, options=options
        )
        chosen = getattr(answered.outcome, "option_id", "")
        return {str(number): reply for number, (_, _, reply) in enumerate(choices)}.get(chosen)

    async def _show(self, thread: str, updates: Any) -> None:
        for update in updates:
            await self.client.session_update(session_id=thread, update=update)

    async def _say(self, thread: str, text: str) -> None:
        if text:
            await self._show(thread, [helpers.update_agent_message_text(text)])


def _waiting(stop: RunStopped) -> str:
    """Say what a thread waits for, and how to go on."""
    if not stop.questions:
        return f"The work stopped in its midst. Send `{_GO_ON}` to go on with it."
    asked = "\n\n".join(question_text(each["value"]) for each in stop.questions)
    return f"{asked}\n\nThis waits for you: answer with your next message, or send any to be asked."


def text_in(blocks: Sequence[Any]) -> str:
    """Return what a prompt says: its texts, and the files that it names or brings."""
    parts = list[str]()
    for block in blocks:
        if block.type == "resource":
            parts.append(f"{block.resource.uri}:\n{getattr(block.resource, 'text', '')}")
        elif block.type in ("text", "resource_link"):
            parts.append(block.text if block.type == "text" else str(block.uri))
    return "\n".join(parts)


async def serve_acp(threads: ClientThreads) -> None:
    """Serve an editor over standard input and output until it goes away."""
    agent: Any = EditorAgent(threads)
    await run_agent(agent)
