"""Replies to open questions: asked for on the terminal, with an editor where that serves, or made
of what ``daruma answer`` gives.
"""

import json
import math
import os
import re
import shlex
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from langgraph.types import Interrupt

from daruma.graph.command_line._output import Later, Line, Paper, Read, choice, cut, words
from daruma.graph.command_line._questions import (
    AnswerRefused,
    approvals_named,
    how_to_answer,
    options_of,
    question_lines,
    review_lines,
    shown_approval,
)
from daruma.graph.command_line._thread_view import Stop
from daruma.state.calls import Allowance, read_pattern
from daruma.state.errors import DarumaError
from daruma.state.interrupts import is_question, read_reply
from daruma.state.plan import FIELDS
from daruma.state.serializer import Asked
from daruma.state.spending import amount_in
from daruma.state.text import is_hidden, spell_character
from daruma.tools.commands import find_program, host_environment, run_program

# --- What is given as JSON on the command line: a plan in a file, or the arguments of a call.


def plan_in(file: Path) -> dict[str, Any]:
    """Return the plan in a file. Raises :class:`AnswerRefused`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerRefused(f"the plan {file} can not be read: {error}") from None
    return _object(text, f"the plan {file}", "an object with phases")


def _object(text: str, what: str, form: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise AnswerRefused(f"{what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AnswerRefused(f"{what} is not {form}")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number that JSON knows")


# --- Values as YAML that a person can edit: nothing changes on the way there and back.

_KEPT: Final = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
_WIDTH: Final = 100


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # a value said twice is written twice
        return True


class _Loader(yaml.SafeLoader):
    """Reads what JSON knows: a date, or ``no``, is the text that it looks like."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(map(_hides, text)) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Loader.yaml_implicit_resolvers = {
    first: [each for each in known if each[0] not in _KEPT]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_KEPT[1], re.compile("^(?:true|false)$"), list("tf"))


def to_yaml(value: object) -> str:
    """Return a JSON-able value as YAML; what hides in its texts is spelled."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "".join(spell_character(char) if _hides(char) else char for char in text)


def _hides(char: str) -> bool:
    return char != "\n" and is_hidden(char)


def from_yaml(text: str) -> dict[str, Any]:
    """Return the object that is written there, in YAML or JSON. Raises :class:`AnswerRefused`."""
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506  # made of the safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AnswerRefused(f"this is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not _is_json(found):
        raise AnswerRefused("this is not an object with names and values, as JSON has them")
    return found


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_json(each) for each in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


# --- Having a person edit a text in an editor of their own.

Edit = Callable[[str, str], str]
"""Takes a text and the ending of its file's name, and returns the text as it was left."""


def edited(text: str, ending: str) -> str:
    """Open a text in ``$VISUAL`` or ``$EDITOR``, else in an editor that is there; return it after.

    It may not be one of the workspace's, and is started in a folder where no workspace can leave
    settings for it (SE-01): ``click.edit`` keeps neither. Ctrl-C is the editor's own meanwhile.
    Raises :class:`AnswerRefused` without an editor; where one fails, it names the file that holds
    what was written.
    """
    command = _editor()
    folder = Path(tempfile.mkdtemp(prefix="daruma-edit-"))
    file = folder / f"edit{ending}"
    file.write_text(text, encoding="utf-8", newline="")
    found, env = find_program(command[0]), host_environment()
    if found is None:
        raise AnswerRefused(f"the editor {command[0]!r} is not there, or lies in the workspace")
    try:
        with _interrupts_left_alone():
            code = run_program([found, *command[1:], str(file)], env=env, cwd=folder).returncode
        after = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerRefused(f"{command[0]}: {error}; what was written is in {file}") from None
    if code:
        raise AnswerRefused(f"{command[0]} ended with {code}; what was written is in {file}")
    shutil.rmtree(folder, ignore_errors=True)
    return after.replace("\r\n", "\n")


def _editor() -> list[str]:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        if words := shlex.split(named or ""):
            return words
    except ValueError as error:
        raise AnswerRefused(f"EDITOR can not be read ({error}): {named}") from None
    for name in ("nano", "vi"):
        if found := find_program(name):
            return [found]
    raise AnswerRefused("there is no editor: name one in EDITOR")


@contextmanager
def _interrupts_left_alone() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are none of this thread's
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be for programs too
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


T = TypeVar("T")


def edited_until(
    text: str, check: Callable[[str], T], edit: Edit, paper: Paper, read: Read
) -> T | None:
    """Have a text edited as YAML until ``check`` takes it; None where it is left as it was.

    What ``check`` raises (a :class:`~daruma.state.errors.DarumaError`) is told, and the text can be
    edited on.
    """
    before = text
    while True:
        try:
            after = edit(before, ".yaml")
            if after == text or not after.strip():
                paper.put(Line("note", "nothing was changed"))
                return None
            before = after
            return check(after)
        except DarumaError as error:
            paper.put(Line("bad", str(error)))
        if choice({"e": "[e]dit on", "b": "[b]ack"}, read) == "b":
            return None


# --- What is agreed to without asking: the reach of ``--yes``, and how one decision is worded.


def decision_on(
    approval: Mapping[str, Any],
    decision: str,
    reason: str = "",
    args: Mapping[str, Any] | None = None,
    always: str | None = None,
    pattern: str = "",
) -> dict[str, Any]:
    """Return a decision that names exactly what was asked: its id and its digest.

    A reason goes with ``deny``, new arguments go with ``edit``, ``always`` with ``approve``.
    """
    told: dict[str, Any] = {"reason": reason} if decision == "deny" else {}
    told |= {"args": dict(args)} if args is not None else {}
    if always and decision == "approve":
        told |= {"always": always, "pattern": pattern}
    return {
        "approval_id": approval["approval_id"],
        "digest": approval["digest"],
        "decision": decision,
        **told,
    }


def yes_to(questions: Collection[Interrupt | Asked]) -> dict[str, Any]:
    """Return what ``--yes`` says: plans, recoveries and optional approvals are fine.

    A required approval is a person's to give, and a question has no yes.
    """
    replies: dict[str, Any] = {}
    for question in questions:
        if question.value["type"] == "spec_review_request":
            replies[question.id] = {"decision": "confirm"}
        elif question.value["type"] == "recovery_request":
            replies[question.id] = {"decision": "approve"}
        elif question.value["type"] == "approval_request":
            optional = [each for each in question.value["approvals"] if not each["required"]]
            if decisions := [decision_on(each, "approve") for each in optional]:
                replies[question.id] = {"decisions": decisions}
    return replies


_OTHERWISE: Final = {"e": "[e]dit", "s": "[s]how whole", "l": "[l]ater"}
_CALL_CHOICES: Final = {"a": "[a]pprove", "d": "[d]eny", **_OTHERWISE}
_PLAN_CHOICES: Final = {"c": "[c]onfirm", "r": "[r]eject", **_OTHERWISE}
_ALWAYS: Final = {
    "t": ("thread", "always on this [t]hread"),
    "w": ("workspace", "always in this [w]orkspace"),
}
_PATTERN: Final = "  Pattern, as 'pytest *' or 'amount=*' (empty: exactly this call): "
_WHY_NOT: Final = "  Why not (may be empty): "


# --- Asking a person on the terminal, while nothing is running and no connection is open.


def ask(
    stop: Stop, paper: Paper, *, known: bool, read: Read = input, edit: Edit = edited
) -> dict[str, Any]:
    """Ask all open questions and return the replies by interrupt id; none for "later".

    A ``known`` plan stands right above the question. The end of the input means "later".
    """
    asking = _Asking(paper, read, edit, stop.checks)
    try:
        return {each.id: asking.about(each.value, known=known) for each in stop.questions}
    except (Later, EOFError):
        decisions = [len(each.value.get("approvals") or (None,)) for each in stop.questions]
        if sum(decisions) > 1:
            paper.put(Line("note", "nothing was answered: all of it stays open"))
        return {}


@dataclass(frozen=True)
class _Asking:
    """How things are decided. ``checks`` are the commands that judge the work at its end.

    Each method raises :class:`~daruma.graph.command_line._output.Later`.
    """

    paper: Paper
    read: Read
    edit: Edit
    checks: Sequence[str]

    def about(self, value: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
        if value["type"] == "approval_request":
            asked, of = enumerate(value["approvals"], 1), len(value["approvals"])
            decided = [self._call(each, f"{n} of {of}" if of > 1 else "") for n, each in asked]
            return {"decisions": decided}
        if value["type"] == "spec_review_request":
            return self._plan(value, known=known)
        self.paper.put(*question_lines(value, known=known))
        if value["type"] == "question":
            return {"answer": _answer(options_of(value), self.read, value.get("amounts") or ())}
        if value["type"] == "recovery_request":
            return _recover(self.read)
        raise Later

    # --- One call: everything is shown, and it can be changed before it is let run.

    def _call(self, approval: Mapping[str, Any], which: str) -> dict[str, Any]:
        """Return the decision on one call; ``which`` is its place, as in "3 of 5".

        What is agreed to is what was shown last.
        """
        shown = approval
        self._show(shown, which)
        while True:
            scopes = approval.get("always", ()) if shown is approval else ()
            always = {key: text for key, (scope, text) in _ALWAYS.items() if scope in scopes}
            said = choice({**_CALL_CHOICES, **always}, self.read)
            if said == "a":
                changed = shown["args"] != approval["args"]
                args = shown["args"] if changed else None
                return decision_on(approval, "edit" if changed else "approve", args=args)
            if said in _ALWAYS:
                return self._always(approval, _ALWAYS[said][0])
            if said == "d":
                return decision_on(approval, "deny", self.read(_WHY_NOT).strip())
            if said == "s":
                self.paper.put(*shown_approval(shown))
            elif (args := self._edited(shown["args"], from_yaml)) is not None:
                command = {"command": str(args.get("command", ""))}
                shown = {
                    **approval,
                    **(command if approval.get("command") else {}),
                    "args": args,
                    "warnings": (),
                }
                self._show(shown, "as you changed it")

    def _show(self, approval: Mapping[str, Any], which: str) -> None:
        self.paper.put(Line("head", "May this run?", which), *cut(shown_approval(approval)))

    def _always(self, approval: Mapping[str, Any], scope: str) -> dict[str, Any]:
        """Return a yes to calls to come, once it is said what it covers."""
        while True:
            pattern = self.read(_PATTERN).strip()
            try:
                args, free, words = read_pattern(approval["tool"], approval["args"], pattern)
            except ValueError as error:
                self.paper.put(Line("bad", str(error)))
            else:
                given = Allowance(tool=approval["tool"], args=args, free=free, words=words)
                self.paper.put(Line("note", f"from now on nobody is asked about {given.text}"))
                return decision_on(approval, "approve", always=scope, pattern=pattern)

    def _edited(
        self, value: object, check: Callable[[str], dict[str, Any]]
    ) -> dict[str, Any] | None:
        return edited_until(to_yaml(value), check, self.edit, self.paper, self.read)

    # --- A plan: it is shown with all that it brings along, and can be changed.

    def _plan(self, value: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
        """Return the reply to a review. A ``known`` plan stands right above the question."""

        def check(text: str) -> dict[str, Any]:
            plan = from_yaml(text)
            read_reply(value, {"decision": "edit", "plan": plan})
            return plan

        own: dict[str, Any] = {}
        self.paper.put(*question_lines(value, known=known, checks=self.checks))
        while True:
            said = choice(_PLAN_CHOICES, self.read)
            shown = {**value, **own}
            if said == "c":
                return {"decision": "edit", "plan": own} if own else {"decision": "confirm"}
            if said == "r":
                feedback = words("What should change (empty: later)", self.read)
                return {"decision": "reject", "feedback": feedback}
            if said == "s":
                self.paper.put(*review_lines(shown, self.checks))
                continue
            phases = [{k: v for k, v in each.items() if k in FIELDS} for each in shown["phases"]]
            if changed := self._edited({"goal": shown["goal"], "phases": phases}, check):
                own = changed
                self.paper.put(Line("head", "Is this plan right?", "as you changed it"))
                self.paper.put(*review_lines({**value, **own}, self.checks))


def _recover(read: Read) -> dict[str, Any]:
    offered = {"a": "[a]pprove", "d": "[d]eny", "i": "[i]nstruct", "l": "[l]ater"}
    said = choice(offered, read)
    if said == "i":
        return {"decision": "instruct", "text": words("What to do instead (empty: later)", read)}
    if said == "a":
        return {"decision": "approve"}
    return {"decision": "deny", "reason": read(_WHY_NOT).strip()}


def _answer(options: Sequence[str], read: Read, amounts: Sequence[str] = ()) -> str:
    """Return what is typed; of options, the only one that begins with it, or an amount."""
    if not options:
        return words("Your answer (empty: later)", read)
    while True:
        named = ", ".join([*options, *(f"{amount} NUMBER" for amount in amounts)])
        said = words(f"{named} (empty: later)", read).casefold()
        if (found := amount_in(said)) and found[0] in amounts:
            return said
        meant = [each for each in options if each.casefold().startswith(said)]
        if len(meant) == 1:
            return meant[0]


# --- Replies made of the options of ``daruma answer``.

ALL = "*"
"""Stands for all open approvals."""

_REVIEW = ("spec_review_request",)
_CALLS = ("approval_request", "recovery_request")
_WORDS = ("question", "recovery_request")


@dataclass(frozen=True)
class Given:
    """What was said on the command line. ``approve`` and ``deny`` hold approval ids, or ``ALL``.

    An id may be followed by the digest that was shown with it, as in ``ID@DIGEST``.

    ``edit`` names a file with a plan or, where there are ``args``, an approval: they are the JSON
    of the arguments that it is to run with. ``to`` is the id of the question that is answered,
    where several are open. ``always`` says where what is approved may also run from now on, and
    ``pattern`` what of it.
    """

    confirm: bool = False
    reject: str | None = None
    edit: str | None = None
    approve: Collection[str] = ()
    deny: Collection[str] = ()
    reason: str = ""
    text: str | None = None
    args: str | None = None
    to: str | None = None
    always: str | None = None
    pattern: str = ""

    def replies(self, thread: str, questions: Collection[Interrupt]) -> dict[str, Any]:
        """Return the replies by interrupt id. Raises :class:`AnswerRefused`."""
        questions = [each for each in questions if is_question(each.value)]
        if not questions:
            raise AnswerRefused(
                f"nothing is open here on thread {thread!r}: what a tool of yours or another graph "
                "asks is answered in your program, what a task ended with by the next message: "
                '`daruma run --thread THREAD "..."`'
            )
        kinds, _ = self._what()
        fitting = [question for question in questions if question.value["type"] in kinds]
        if not fitting:
            raise AnswerRefused(
                f"thread {thread!r} waits for another kind of answer: "
                + " or ".join(how_to_answer(thread, questions))
            )
        meant = self._meant(thread, fitting)
        return {question.id: self._reply(question.value) for question in meant}

    def _meant(self, thread: str, fitting: Sequence[Interrupt]) -> Sequence[Interrupt]:
        """Return those that ``to`` names; without it one text is no answer to several questions."""
        if self.to is not None:
            named = [each for each in fitting if each.value.get("id") == self.to]
            if not named:
                known = ", ".join(str(each.value.get("id")) for each in fitting)
                raise AnswerRefused(f"no question {self.to!r} is open; open: {known}")
            return named
        if self.text is not None and len(fitting) > 1:
            raise AnswerRefused(
                "several questions are open, say which one is answered: "
                + " or ".join(how_to_answer(thread, fitting))
            )
        return fitting

    def check(self) -> None:
        """Refuse no answer, and several that exclude each other. Raises :class:`AnswerRefused`."""
        self._what()
        self._edited()
        if self.always and not self.approve:
            raise AnswerRefused("--always goes with --approve")
        if self.pattern and not self.always:
            raise AnswerRefused("--pattern goes with --always thread or --always workspace")

    @property
    def _decides(self) -> bool:
        return bool(self.approve or self.deny) or self.args is not None

    def _what(self) -> tuple[tuple[str, ...], str]:
        said = {
            (_REVIEW, "--confirm"): self.confirm,
            (_REVIEW, "--reject"): self.reject is not None,
            (_REVIEW, "--edit FILE"): self.edit is not None and self.args is None,
            (_CALLS, "--approve/--deny/--edit ID --args"): self._decides,
            (_WORDS, "--text"): self.text is not None,
        }
        found = [what for what, given in said.items() if given]
        if len(found) == 1:
            return found[0]
        if found:
            raise AnswerRefused(f"give one of {', '.join(option for _, option in found)}")
        raise AnswerRefused(f"give an answer: one of {', '.join(option for _, option in said)}")

    def _reply(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if question["type"] == "recovery_request":
            return self._recovery(question)
        if self._decides:
            return {"decisions": self._decisions(question)}
        if self.confirm:
            return {"decision": "confirm"}
        if self.reject is not None:
            return {"decision": "reject", "feedback": self.reject}
        if self.edit is not None:
            return {"decision": "edit", "plan": plan_in(Path(self.edit))}
        return {"answer": self.text}

    def _recovery(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a recovery's question; an id has to be that of the question."""
        if self.text is not None:
            return {"decision": "instruct", "text": self.text}
        if self.args is not None:
            raise AnswerRefused("a recovery is not edited: say what to do instead with --text")
        if self.approve and self.deny:
            raise AnswerRefused("give one of --approve, --deny")
        if others := {*self.approve, *self.deny} - {ALL, question["id"]}:
            raise AnswerRefused(f"{min(others)!r} is not open: the recovery is {question['id']!r}")
        if self.approve:
            return {"decision": "approve"}
        return {"decision": "deny", "reason": self.reason}

    def _decisions(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        open_ones = {each["approval_id"]: each for each in question["approvals"]}
        given = self._edited()
        edited = dict(zip(approvals_named(given, open_ones), given.values(), strict=True))
        said: dict[str, Collection[str]] = {
            "edit": edited,
            "approve": approvals_named(self.approve, open_ones),
            "deny": approvals_named(self.deny, open_ones),
        }
        _check_names(said, open_ones)
        decided = dict.fromkeys(open_ones, "")
        for name in open_ones:  # its id counts before `ALL`, which may be nothing
            fitting = (
                how for which in (name, ALL) for how, names in said.items() if which in names
            )
            decided[name] = next(fitting, "")
        if self.pattern and list(decided.values()).count("approve") > 1:
            raise AnswerRefused("--pattern is about one call: name it, as in --approve ID")
        return [
            decision_on(
                open_ones[name], decision, self.reason, edited.get(name), self.always, self.pattern
            )
            for name, decision in decided.items()
            if decision
        ]

    def _edited(self) -> dict[str, dict[str, Any]]:
        if self.args is None:
            return {}
        if self.edit is None:
            raise AnswerRefused("--args goes with --edit ID: name the approval that they are for")
        example = 'an object such as {"command": "ls"}'
        return {self.edit: _object(self.args, "--args", example)}


def _check_names(said: Mapping[str, Collection[str]], open_ones: Collection[str]) -> None:
    for name in sorted({name for names in said.values() for name in names}):
        if name != ALL and name not in open_ones:
            raise AnswerRefused(f"no approval {name!r} is open; open: {', '.join(open_ones)}")
        found = [decision for decision, names in said.items() if name in names]
        if len(found) > 1:
            raise AnswerRefused(f"say one thing about {name!r}, not both {' and '.join(found)}")
