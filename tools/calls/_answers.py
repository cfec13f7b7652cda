"""A model's answer: its calls, how many are kept, if it can be used, the form it is to have."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from itertools import count
from math import isfinite
from typing import Any, Final, Self

from langchain_core.messages import AIMessage
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import is_typeddict

from daruma.state.calls import ToolTask
from daruma.state.failure import Failure
from daruma.state.messages import REASONING, cut_off_reason
from daruma.state.steps import (
    MAX_NAMES,
    SAMPLE,
    SAMPLE_BYTES,
    ArgumentRepair,
    Audit,
    LeftOut,
    NameChange,
    RepairRound,
)
from daruma.state.text import DEEPEST, LARGEST, SMALLEST, is_blank, storable_text, unstorable_part
from daruma.state.usage import Failover, sound_usage
from daruma.tools.calls._answer_text import read_written_calls
from daruma.tools.calls._repair import read_structured
from daruma.tools.calls._schema import object_schema_problem
from daruma.tools.calls._tool import Tool
from daruma.tools.errors import ToolError

# --- The calls of a streamed answer as the model sent them, where they are not what was read. Pure.

_SENT_CALLS: Final = "sent_calls"
"""Where an answer holds its calls as they were sent: `id`, `name`, and `args` as text."""


def keep_sent_calls(calls: Collection[Mapping[str, str]]) -> dict[str, Any]:
    """Return what a streamed answer has to hold of its calls; nothing where all were read whole.

    Each has ``id``, ``name`` and ``args``, as text. Under the provider's own name for them
    LangChain would read them as calls once more.
    """
    whole = all(_is_object(call["args"]) for call in calls)
    return {} if whole else {_SENT_CALLS: list(calls)}


def _as_it_was_sent(message: AIMessage) -> AIMessage:
    """Return an answer whose calls are those that were sent, if it holds them; else as it is.

    Read from a stream, LangChain completes arguments that were cut off: they must not run.
    """
    sent = message.additional_kwargs.get(_SENT_CALLS)
    if sent is None:
        return message
    others = {k: v for k, v in message.additional_kwargs.items() if k != _SENT_CALLS}
    changes = {
        "additional_kwargs": others,
        "tool_calls": [
            {**call, "type": "tool_call", "args": json.loads(call["args"] or "{}")}
            for call in sent
            if _is_object(call["args"])
        ],
        "invalid_tool_calls": [
            {**call, "type": "invalid_tool_call", "error": None}
            for call in sent
            if not _is_object(call["args"])
        ],
    }
    return message.model_copy(update=changes)


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object, to its end. No text at all stands for no arguments."""
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except (ValueError, RecursionError):
        return False


# --- The tool calls of a model's answer, in whichever way it made them. Pure.

_ID = re.compile(r"\w[\w.:|/+=-]{0,199}", re.ASCII)
"""What providers write. An approval goes by it on the command line, where ``*`` and ``--yes`` mean
something else."""


@dataclass(frozen=True)
class Call:
    """One call as the model made it; ``args`` is None where ``raw`` could not be read.

    ``doubt`` says why nobody may try to read it (TL-18).
    """

    id: str
    name: str
    args: dict[str, Any] | None
    raw: str
    doubt: str = ""


def with_text_calls(message: AIMessage, visible: Collection[str]) -> AIMessage:
    """Return an answer with the calls that it only wrote into its text as real ones (TL-18)."""
    message = _as_it_was_sent(message)
    if message.tool_calls or message.invalid_tool_calls or not visible:
        return message
    written = read_written_calls(message.text, visible)
    if all(call.args is not None for call in written):
        calls: list[Any] = [
            {"type": "tool_call", "name": call.name, "args": call.args, "id": None}
            for call in written
        ]
        changes = {"tool_calls": calls}
    else:  # one list keeps their order
        calls = [
            {
                "type": "invalid_tool_call",
                "name": call.name,
                "args": call.raw or "{}",
                "id": None,
                "error": _DOUBT + call.doubt if call.doubt else None,
            }
            for call in written
        ]
        changes = {"invalid_tool_calls": calls}
    return message.model_copy(update=changes) if written else message


_DOUBT: Final = "in doubt: "
"""How what LangChain has for errors begins where a call is in doubt."""


def with_own_ids(message: AIMessage, message_id: str) -> AIMessage:
    """Return a model's message under an id of ours, every call in it with an id that is its own.

    Servers repeat ids from one answer to the next, and within one: a history keyed by them would
    lose messages. An id that a person could not name safely is not kept. A call whose arguments can
    not be stored is one that was not read.
    """
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    seen: set[str] = set()
    free = (name for n in count() if (name := f"call_{n}") not in {c["id"] for c in calls})

    def named(call: dict[str, Any]) -> dict[str, Any]:
        own = call.get("id") or ""
        own = own if _ID.fullmatch(own) and own not in seen else next(free)
        seen.add(own)
        return {**call, "id": own}

    readable = [named(dict(call)) for call in message.tool_calls]
    unreadable = [named(dict(call)) for call in message.invalid_tool_calls]
    bad = [call for call in readable if unstorable_part(call["args"])]
    for call in bad:
        try:
            text = json.dumps(call["args"])
        except RecursionError:
            text = ""
        unreadable.append({**call, "type": "invalid_tool_call", "args": text, "error": None})
    kept = [call for call in readable if call not in bad]
    changes = {"id": message_id, "tool_calls": kept, "invalid_tool_calls": unreadable}
    return message.model_copy(update=changes)


def calls_of(message: AIMessage) -> tuple[Call, ...]:
    """Return the calls in the order in which the model made them, readable or not."""
    readable, unreadable = [], []
    for good in message.tool_calls:
        args = good["args"] if isinstance(good.get("args"), dict) else {}
        readable.append(Call(str(good["id"]), good.get("name") or "", args, _written(args)))
    for bad in message.invalid_tool_calls:
        raw, error = bad.get("args"), bad.get("error") or ""
        doubt = error.removeprefix(_DOUBT) if error.startswith(_DOUBT) else ""
        raw = raw if isinstance(raw, str) else ""
        unreadable.append(Call(str(bad["id"]), bad.get("name") or "", None, raw, doubt))
    if not readable or not unreadable:
        return (*readable, *unreadable)
    # LangChain keeps the two kinds apart; only what the provider sent tells how they were mixed.
    calls: list[Call] = []
    for sent in message.additional_kwargs.get("tool_calls") or []:
        function = (sent.get("function") if isinstance(sent, dict) else None) or {}
        told = function.get("name") or "", function.get("arguments") or ""
        if unreadable and told == (unreadable[0].name, unreadable[0].raw):
            calls.append(unreadable.pop(0))
        elif readable:
            calls.append(readable.pop(0))
    return (*calls, *readable, *unreadable)


_written: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""What ``json.dumps`` makes anew for each call."""


# --- An answer as it can be stored, whatever its provider put into it (DU-05). Pure.


def storable_answer(message: AIMessage) -> AIMessage:
    """Return an answer that any checkpoint takes; itself where it is one already, as most are.

    Arguments of calls stay as they are: ``with_own_ids`` makes a call
    that can not be stored one that can not be read, so that no other one runs in its place.
    """
    told = sound_usage(message.usage_metadata)
    counts: dict[str, Any] = {name: told.get(name, 0) for name in _COUNTS}
    counts |= {name: told[name] for name in _DETAILS if name in told}
    changes = {
        "content": _storable(message.content),
        "additional_kwargs": _storable(message.additional_kwargs),
        "response_metadata": _storable(message.response_metadata),
        "usage_metadata": counts if message.usage_metadata else None,
    }
    same = all(getattr(message, name) == value for name, value in changes.items())
    return message if same else message.model_copy(update=changes)


_THOUGHT: Final = re.compile(
    r"\s*(?:<(?P<tag>think|thinking)>(.*?)(?:</(?P=tag)>|\Z)|\[THINK\](.*?)(?:\[/THINK\]|\Z))",
    re.DOTALL,
)


def with_reasoning_apart(message: AIMessage) -> AIMessage:
    """Return an answer without what its model thought in tags before it: that stands beside it.

    A server's template may have opened the first one; one that is not closed holds all there is.
    """
    content, thoughts = message.content, list[str]()
    first = content[0] if isinstance(content, list) and content else None
    block = first if isinstance(first, dict) and "text" in first else {}
    rest = block.get("text", content)
    if not isinstance(rest, str):
        return message
    if "<think>" not in rest and "\n</think>\n" in rest:
        rest = f"<think>{rest}"
    end = 0
    while found := _THOUGHT.match(rest, end):
        thoughts.append((found[2] or found[3] or "").strip())
        end = found.end()
    rest = rest[end:]
    if not thoughts:
        return message
    more = message.additional_kwargs
    reasoning = "\n\n".join(each for each in (more.get(REASONING), *thoughts) if each)
    answer = [{**block, "text": rest.strip()}, *content[1:]] if block else rest.strip()
    changes = {"content": answer, "additional_kwargs": {**more, REASONING: reasoning}}
    return message.model_copy(update=changes)


_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = ("input_token_details", "output_token_details")


def _storable(value: Any, depth: int = 0) -> Any:
    """Return a value that msgpack and JSON know; a number that they do not is told as a text."""
    if isinstance(value, str) or depth > DEEPEST:
        return storable_text(value) if isinstance(value, str) else "..."
    if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        return hex(value)  # decimals of so many digits can not be written
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(k): _storable(each, depth + 1) for k, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_storable(each, depth + 1) for each in value)
    return value


# --- The most calls that are kept of one answer (TL-16). Pure.


def limit_calls(message: AIMessage, limit: int | None) -> tuple[AIMessage, LeftOut | None]:
    """Keep the first calls of an answer, in order, also in the history; say what was left out."""
    if limit is None or len(message.tool_calls) + len(message.invalid_tool_calls) <= limit:
        return message, None
    calls = calls_of(message)
    kept = {call.id for call in calls[:limit]}
    omitted, content = calls[limit:], message.content
    if isinstance(content, list):  # some providers repeat their calls there
        gone = {call.id for call in omitted}
        content = [p for p in content if not (isinstance(p, dict) and p.get("id") in gone)]
    changes = {
        "tool_calls": [call for call in message.tool_calls if call["id"] in kept],
        "invalid_tool_calls": [call for call in message.invalid_tool_calls if call["id"] in kept],
        "content": content,
        # What the provider sent stands here too.
        "additional_kwargs": {
            k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"
        },
    }
    left_out = LeftOut(
        total=len(calls),
        executed=limit,
        omitted=len(omitted),
        limit=limit,
        names=tuple(
            call.name.encode("utf-8", "replace")[:SAMPLE_BYTES].decode("utf-8", "ignore")
            for call in omitted[:SAMPLE]
        ),
    )
    return message.model_copy(update=changes), left_out


# --- The audit of an answer: what was changed or left out between its words and what runs. Pure.


def audit_answer(
    message_id: str = "",
    tasks: Sequence[ToolTask] = (),
    *,
    left_out: LeftOut | None = None,
    asked: RepairRound | None = None,
    failover: Failover | None = None,
) -> Audit | None:
    """Return what changed on the way from an answer to what runs (TL-11); None for nothing.

    That is what was left out or repaired of its calls, the round of repair that was ``asked`` for,
    and the other model that answered. The answer itself stays as the model said it: a repair
    changes its task alone.
    """
    renamed = [task for task in tasks if task.name != task.requested_name]
    mended = [task for task in tasks if task.repaired_by or task.rungs]
    if not (left_out or asked or failover or renamed or mended):
        return None
    names = [
        NameChange(
            tool_call_id=task.id,
            requested_name=task.requested_name,
            name=task.name,
            # A tool may have passed the call on to another one; the name itself was right then.
            how="promoted" if task.name_resolution == "exact" else task.name_resolution,
        )
        for task in renamed
    ]
    arguments = [
        ArgumentRepair(
            tool_call_id=task.id,
            name=task.name,
            repaired_by=task.repaired_by or "rules",
            rungs=task.rungs,
        )
        for task in mended
    ]
    return Audit(
        message_id=message_id,
        names=tuple(names[:MAX_NAMES]),
        names_cut=len(names) > MAX_NAMES,
        arguments=tuple(arguments),
        left_out=left_out,
        round=asked,
        failover=failover,
    )


# --- Answers that are no end of the work: empty ones, refusals, what was cut off. Pure.


_NO_WORDS = re.compile(r"<[|｜][^<>|｜\n]+[|｜]>|<(?:/s|eos|end_of_turn)>|([`~]{3})[\w-]*\s*\1")
"""Tokens with which models end an answer and servers should; fences around nothing."""


def unusable_answer(message: AIMessage, node: str, asked: int = 1) -> Failure | None:
    """Return what is wrong with an answer without calls, None if it is one.

    ``asked`` is how often the model was asked in a row, this answer's request included.
    Its ``original_error`` is a name of :data:`daruma.state.failure.UNUSABLE`. A refusal that comes
    as ordinary text can not be told from an answer.
    """
    more = message.additional_kwargs
    if refused := more.get("refusal"):
        what, said = "refusal", f"the model refused: {storable_text(str(refused))[:300]}"
    elif reason := cut_off_reason(message):
        what, said = "answer_cut_off", f"the model's answer was cut off ({reason})"
    elif is_blank(_NO_WORDS.sub("", message.text)):
        parts = message.content if isinstance(message.content, list) else ()
        kinds = {part.get("type") for part in parts if isinstance(part, dict)}
        thought = kinds & {"reasoning", "thinking", "redacted_thinking"}
        reasons = thought or more.get("reasoning_content") or more.get("reasoning")
        but = " but its reasoning" if reasons else ""
        said = f"the model answered nothing{but} (requests in a row: {asked})"
        what, hint = "empty_answer", "put the task in other words, or choose another llm.model"
        said = f"{said}: {hint}"
    else:
        return None
    return Failure(code="llm_failure", node=node, message=said, original_error=what)


# --- The form that a task's answer is to have, and an answer read in it (FA-10).

WANTED: Final = "has to be a Pydantic class, a dataclass, a TypedDict or a JSON schema (a dict)"


@dataclass(frozen=True)
class ResponseFormat:
    """A JSON schema of objects; ``adapter`` makes instances of them, None where they stay dicts."""

    schema: dict[str, Any]
    adapter: TypeAdapter[Any] | None = None

    @classmethod
    def of(cls, given: object) -> Self:
        """Return the form that a class or a schema stands for. Raises ValueError, in one line."""
        adapter, schema = None, given
        if isinstance(given, type) and (
            issubclass(given, BaseModel) or is_dataclass(given) or is_typeddict(given)
        ):
            try:
                adapter = TypeAdapter[Any](given)
                schema = adapter.json_schema()
            except (PydanticUserError, NameError, TypeError) as error:
                said = " ".join(str(error).split())
                raise ValueError(f"is a class without a JSON schema: {said:.300}") from None
        if not isinstance(schema, dict):
            raise ValueError(f"{WANTED}, not {given!r:.80}")
        if problem := object_schema_problem(schema):
            raise ValueError(f"is no JSON schema of an object: {problem}")
        return cls(schema, adapter)

    @cached_property
    def asked(self) -> Tool:
        """The answer as the arguments of a call: by that it is read, and what a model is shown."""
        return Tool("answer", "", self.schema, _not_run, effect="none")

    def read(self, text: str, max_bytes: int) -> dict[str, Any] | str:
        """Return the one value that a text holds, as JSON, or what is wrong with it, in a line."""
        read = read_structured(text, self.asked, max_bytes=max_bytes)
        if isinstance(read, str):
            return read
        try:
            self._validated(read)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
        except Exception as error:  # noqa: BLE001 - anybody's validators
            return f"a validator of its class raised {type(error).__name__}: {error}"
        return unstorable_part(read) or read

    def typed(self, value: Any) -> Any:
        """Return the instance that a stored value is of; the value itself where it fits no more."""
        try:
            return self._validated(value) if isinstance(value, dict) else value
        except Exception:  # noqa: BLE001 - anybody's validators
            return value

    def _validated(self, value: dict[str, Any]) -> Any:
        # As JSON: a strict model takes a date from a text there only.
        return self.adapter.validate_json(json.dumps(value)) if self.adapter else value


async def _not_run(*_: object) -> str:
    raise ToolError("an answer is no call")
