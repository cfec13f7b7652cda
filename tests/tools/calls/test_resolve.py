"""From the calls of a model's answer to tool tasks, in the order of TL-12. Pure."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from tests.parts import a_registry, settings

from daruma.state.calls import ToolTask
from daruma.state.conversation import Clarification
from daruma.tools.calls import Canonical, Tool, VisibleTools, resolve_calls, with_arguments
from daruma.tools.calls._answers import Call
from daruma.tools.calls._resolve import fill_in, resolve_call

# --- A call goes on with what was known of it, where it is the one that was meant.

MILK = Clarification(
    call_id="m:1",
    target_action="create_reminder",
    partial_args={"title": "Milk", "notes": "cold"},
    missing_fields=("reminder_date",),
    status="resumed",
)
BREAD = replace(MILK, call_id="m:2", partial_args={"title": "Bread"})
TIMED = replace(
    MILK, target_action="create_schedule_task", partial_args={"due_time": "09:00"}, call_id="m:3"
)
DAY = "2031-05-05"


def offer(*known: Clarification) -> VisibleTools:
    tools = a_registry().visible(settings().tools, {"assistant"})
    return VisibleTools(tools, asks=True, resuming=known)


def test_what_the_call_gives_wins() -> None:
    """One that says something else than was known is given only what it can not do without."""
    args: Any
    whole: Any
    for args, whole in [
        ({}, {"title": "Milk", "notes": "cold"}),
        ({"date": DAY}, {"title": "Milk", "notes": "cold", "reminder_date": DAY}),
        ({"title": "Milk", "date": DAY}, {"title": "Milk", "notes": "cold", "reminder_date": DAY}),
        ({"title": "Eggs", "date": DAY}, {"title": "Eggs", "reminder_date": DAY}),
        ({"notes": "warm"}, {"title": "Milk", "notes": "warm"}),
    ]:
        call, continues = fill_in("create_reminder", args, offer(MILK))

        assert (call.args, continues) == (whole, "m:1")


def test_a_call_of_another_tool_is_left_alone() -> None:
    """As is any call where nothing is known; but not by the name that it was promoted from."""
    promoted, _ = fill_in("create_todo", {"title": "Milk"}, offer(TIMED))

    assert fill_in("create_todo", {"title": "a"}, offer(MILK))[0].args == {"title": "a"}
    assert fill_in("create_reminder", {}, offer(), "m:9") == (
        ("create_reminder", {}, (), ()),
        "m:9",
    )
    assert promoted.name == "create_schedule_task"
    assert promoted.args == {"title": "Milk", "due_time": "09:00"}


def test_no_two_calls_go_on_with_the_same() -> None:
    """In their order, unless one names what it is about."""
    by_order = titles({"date": DAY}, {"date": DAY})
    by_name = titles({"title": "Bread", "date": DAY}, {"date": DAY})

    assert by_order == [("Milk", "m:1"), ("Bread", "m:2")]
    assert by_name == [("Bread", "m:2"), ("Milk", "m:1")]


def titles(*calls: dict[str, Any]) -> list[tuple[str, str]]:
    """The titles of the tasks that calls of create_reminder become, and what they go on with."""
    made = [{"name": "create_reminder", "args": a, "id": f"c{n}"} for n, a in enumerate(calls)]
    tasks = resolve_calls(AIMessage("", tool_calls=made, id="m"), offer(MILK, BREAD))
    return [(task.args["title"], task.continues) for task in tasks]


# --- A call lacks what its tool says is asked for, and nothing else is wrong with it.

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


@tool
def book(name: str, seats: int, day: str, note: str = "") -> str:
    """Book a table."""
    return name + str(seats) + day + note


book.metadata = {
    "daruma": {
        "argument_aliases": {"date": "day"},
        "dates": {"day": "date"},
        "ask_for": {"day": "On which day?", "name": "For whom?"},
    }
}
WHOLE = {"name": "Ann", "seats": 2, "day": "2026-11-25"}


def become(args: dict[str, Any] | str, *, asks: bool = True, **given: Any) -> ToolTask:
    """What a call becomes; arguments as a text are such as could not be read."""
    tools = settings(tools={"call_repair_attempts": 0} | given).tools
    offer = VisibleTools(a_registry([book]).visible(tools, ()), settings=tools, now=NOW, asks=asks)
    made = {"name": "book", "args": args, "id": "c1"}
    bad = [{**made, "type": "invalid_tool_call", "error": None}] if isinstance(args, str) else []
    good = [] if isinstance(args, str) else [made]
    (task,) = resolve_calls(AIMessage("", tool_calls=good, invalid_tool_calls=bad, id="m"), offer)
    return task


def test_what_is_missing_is_asked_for() -> None:
    """CO-01: missing, blank or in doubt; what is there is mended and canonical."""
    args: Any
    missing: Any
    for args, missing, question in [
        ({"name": "Ann", "seats": 2}, ("day",), "On which day?"),
        ({"seats": 2}, ("day", "name"), "On which day? For whom?"),
        ({"name": "Ann", "seats": "2"}, ("day",), "On which day?"),
        (WHOLE | {"day": " "}, ("day",), "On which day?"),
        (WHOLE | {"name": None}, ("name",), "For whom?"),
        (WHOLE | {"day": "soon"}, ("day",), "On which day? ('soon' leaves it open.)"),
        ('{"name": "Ann", "seats": 2,}', ("day",), "On which day?"),
    ]:
        task = become(args)

        assert (task.status, task.missing, task.reason) == ("lacking", missing, question)
        assert task.args == {key: value for key, value in WHOLE.items() if key not in missing}


def test_what_does_not_fit_for_another_reason_is_not_asked_for() -> None:
    """It is for the model to mend; TL-12: what is denied is not asked for either."""
    more = {"name": "Ann", "seats": 2, "colour": 1}
    args: Any
    for args in ({"name": "Ann"}, {"name": "Ann", "seats": "many"}, more):
        task = become(args)

        assert (task.status, task.problem) == ("failed", "invalid_args")
    task = become({"seats": 2}, policy={"book": "deny"})

    assert (task.status, task.reason) == ("failed", "denied by policy: book is not allowed here")


def test_what_is_whole_runs() -> None:
    """With its date in ISO form; a blank that nothing needs is no matter.

    A person's edit is not asked about: it can not be used, and is told to be so.
    """
    task = become({"name": "Ann", "seats": 2, "date": "on Wednesday", "note": ""})
    offer = VisibleTools(a_registry([book]).visible(settings().tools, ()), now=NOW)

    assert (task.status, task.args) == ("ready", WHOLE | {"note": ""})
    assert with_arguments(task, {"seats": 2}, offer).problem == "invalid_args"


def test_where_nobody_can_be_asked_the_model_is_told() -> None:
    """Also of a date that is in doubt: it is not run with a guess."""
    for args, said in (
        ({"name": "Ann", "seats": 2}, "$: 'day' is a required property"),
        (
            WHOLE | {"day": "soon"},
            "day: 'soon' is no day or time beyond doubt: give it as 2026-11-25T09:00",
        ),
    ):
        assert become(args, asks=False).reason == f"invalid_args: {said}"


# --- Every call of an answer becomes one tool task, in the order of TL-12.


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def hidden(text: str) -> str:
    """Not for this task."""
    return text


def count(number: int, unit: str = "") -> str:
    """Count to a number."""
    return f"{number}{unit}"


REGISTRY = a_registry([shout, count, hidden])


def offered(*, workspace: bool = False, **given: Any) -> VisibleTools:
    """Two tools, one more that is hidden; nothing that only a model could repair is repaired."""
    shown = {"profile": "some", "profiles": {"some": ["shout", "count", "run_*"]}}
    attempts = {"name_repair_attempts": 0, "call_repair_attempts": 0}
    tools = settings(tools=shown | attempts | given).tools
    visible = REGISTRY.visible(tools, {"workspace"} if workspace else ())
    return VisibleTools(visible, frozenset({"hidden"}), tools)


def called(name: str, args: dict[str, Any] | str, **given: Any) -> ToolTask:
    """The task of one call, its arguments read or not."""
    return resolve_call(a_raw_call(name, args), "m1", offered(**given))


def a_raw_call(name: str, args: dict[str, Any] | str) -> Call:
    if isinstance(args, str):
        return Call("c1", name, None, args)
    return Call("c1", name, args, json.dumps(args))


X = {"text": "x"}


REPAIRING: dict[str, Any] = {"name_repair_attempts": 1, "call_repair_attempts": 1}
BROKEN: tuple[tuple[str, Any, str], ...] = (
    ("nope", X, "tool_not_found"),
    ("nope", "nonsense", "tool_not_found"),
    ("hidden", X, "tool_not_in_profile"),
    ("shout", "nonsense", "invalid_json"),
    ("shout", {"words": "x"}, "invalid_args"),
    ("shout", {"text": "x" * 2000}, "too_large"),
    ("shout", {"text": "é" * 800}, "too_large"),
)


def test_what_a_model_may_repair_waits_for_it() -> None:
    """TL-08 and TL-09; without attempts it has failed, before the policy is asked (TL-12).

    Unparsable arguments come before the unknown tool then.
    """
    for name, args, problem in BROKEN:
        may = called(name, args, max_argument_bytes=1024, **REPAIRING)
        failed = called(name, args, max_argument_bytes=1024, policy={"*": "confirm"})

        assert (may.status, may.problem) == ("repairable", problem)
        first = "invalid_json" if args == "nonsense" else problem
        assert (failed.status, failed.problem) == ("failed", first)


def test_what_no_model_could_repair_has_failed() -> None:
    """What was cut off, and what nobody knows the meaning of (TL-04)."""
    raw = '{"command": "rm -rf build'
    cut = AIMessage("", id="m1", response_metadata={"finish_reason": "length"})
    cut = cut.model_copy(update={"tool_calls": [{"name": "shout", "args": X, "id": "c1"}]})
    (whole_looking,) = resolve_calls(cut, offered(**REPAIRING))

    for task, problem in (
        (called("run_command", raw, workspace=True, **REPAIRING), "cut_off"),
        (called("run_command", f'{raw}"', workspace=True, **REPAIRING), "cut_off"),
        (whole_looking, "cut_off"),
        (called(" ", X, **REPAIRING), "tool_not_found"),
        (called("count", {"number": "9" * 25}, **REPAIRING), "invalid_args"),
    ):
        assert (task.status, task.problem) == ("failed", problem)


def test_repaired_arguments_are_decided_on_as_they_are_after() -> None:
    """TL-12: a rule about arguments holds for what would run, however it was written.

    TL-09: what a model repaired fits now, or the call has failed: it is not repaired for ever.
    """
    rule = {"shout(text=secret*)": "deny"}
    given = offered(**REPAIRING)
    broken = called("shout", {"words": "x"}, **REPAIRING)

    assert called("shout", "{'text': 'secret plan'}", policy=rule).status == "failed"
    assert called("shout", {"Text": "secret plan"}, policy=rule).status == "failed"
    assert called("shout", {"Text": "a plan"}, policy=rule).status == "ready"
    assert with_arguments(broken, X, given, by="model").status == "ready"
    assert with_arguments(broken, {"still": "x"}, given, by="model").status == "failed"


def test_the_policy_decides_on_what_is_known_and_fits() -> None:
    """TL-12, TL-13: deny, allow, confirm; a required approval blocks unless told otherwise."""
    confirm = {"decision": "confirm"}
    denied = "denied by policy: shout is not allowed here"
    rule: Any
    for rule, status, reason, effect in (
        ("allow", "ready", "", "continue"),
        ("confirm", "awaiting", "", "continue"),
        (confirm | {"required": True}, "awaiting", "", "block"),
        (confirm | {"required": True, "deny_effect": "continue"}, "awaiting", "", "continue"),
        ("deny", "failed", denied, "continue"),
        ({"decision": "deny", "reason": "too loud"}, "failed", "denied by policy: too loud", ""),
    ):
        task = called("shout", X, policy={"shout": rule})

        assert (task.status, task.reason) == (status, reason)
        assert status == "failed" or task.deny_effect == effect
    assert called("run_command", {"command": ["ls"]}, workspace=True).status == "failed"
    assert called("shout", {"words": "x"}, validate_schema=False).status == "ready"


async def unused(*_: Any) -> str:
    raise AssertionError("nothing runs here")


SCHEMA = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "amount": {"type": "integer"}},
}
LOOK = Tool(
    "look",
    "Look at an account.",
    SCHEMA | {"required": ["account"]},
    unused,
    effect="none",
    canonical=Canonical({}, "pay", ("amount",)),
)
PAY = Tool("pay", "Pay into an account.", SCHEMA | {"required": ["account", "amount"]}, unused)


def banking(args: dict[str, Any] | str, **given: Any) -> ToolTask:
    """The task of a call that changes nothing, and is another one, that does, with an amount."""
    attempts = {"name_repair_attempts": 0, "call_repair_attempts": 0}
    bank = VisibleTools((LOOK, PAY), settings=settings(tools=attempts | given).tools)
    return resolve_call(a_raw_call("look", args), "m1", bank)


def test_a_repaired_call_is_canonical_too() -> None:
    """TL-19: what came to light by the repair is promoted, and asked about, as what it is."""
    wrapped = {"arguments": {"account": "a", "amount": "3"}}

    task = banking(wrapped, policy={"pay": "confirm"})

    assert (task.name, task.args) == ("pay", {"account": "a", "amount": 3})
    assert (task.status, task.repaired_by) == ("awaiting", "rules")
    assert banking(wrapped, policy={"pay": "deny"}).status == "failed"
    assert called("shout", "{'text': 'x'}").rungs == ("single quotes",)
    assert (task.id, task.message_id, task.requested_name) == ("c1", "m1", "look")


def test_a_call_that_was_cut_off_is_not_closed_into_one_with_an_effect() -> None:
    """TL-10: a text with more wrong is closed for a tool that changes nothing, not for another."""
    task = banking("{'amount': 3, 'account': 'a'")

    assert (task.status, task.problem) == ("failed", "cut_off")
    assert banking('{"amount": 3, "account": "a"}').name == "pay"


def test_a_schema_that_can_not_be_read_is_no_obstacle() -> None:
    """TL-12: other servers' patterns, for one, are JavaScript's; the tool itself will say."""
    for schema in (
        {"pattern": "\\p{L}+"},
        {"type": "text"},
        {"minLength": "one"},
        {"type": 3},
        {"$ref": "#/nowhere"},
        {"$ref": "#/properties/text"},
    ):
        odd = Tool("odd", "", {"type": "object", "properties": {"text": schema}}, unused)
        made, mended = a_raw_call("odd", X), a_raw_call("odd", '{"text": "x",}')

        assert resolve_call(made, "m1", VisibleTools((odd,))).status == "ready"
        assert resolve_call(mended, "m1", VisibleTools((odd,))).reason
