"""The model rung: what is asked in one batch, what of the answer counts, and what it may mend."""

import json
import time
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.state.calls import ToolTask
from daruma.state.settings import Tools
from daruma.tools.calls import BrokenCalls, VisibleTools, repair_round, resolve_calls
from daruma.tools.calls._resolve import LONG, MOST_RAW_BYTES, keeps_payload
from daruma.tools.model_requests import ESTIMATE


def a_round(*calls: tuple[str, str], window: int | None = None, **given: Any) -> BrokenCalls:
    """Return the round of an answer that made these calls, as names and raw arguments."""
    given = {"name_repair_attempts": 1, "call_repair_attempts": 1} | given
    offer = VisibleTools(tuple(TOOLS.values()), settings=Tools(**given))
    sent: list[Any] = [
        {"name": name, "args": raw, "id": str(n), "error": None}
        for n, (name, raw) in enumerate(calls, 1)
    ]
    message = AIMessage("", id="m", invalid_tool_calls=sent)
    return repair_round(resolve_calls(message, offer), [message], offer, lambda _: 0, window=window)


def mended(this: BrokenCalls, *repairs: Any) -> dict[str, ToolTask]:
    return this.mend(json.dumps({"repairs": repairs}))


# --- What a model answers to a request for repair is taken only as far as it fits.


def test_a_name_must_be_a_visible_tool_s() -> None:
    """TL-08: exactly equal, for a call that was asked about, and said only once."""
    this = a_round(("serch", '{"pattern": "a"}'), ("ls", '{"pattern": "b"}'))

    def named(call_id: str, name: Any) -> dict[str, Any]:
        return {"tool_call_id": call_id, "name": name}

    one, other = named("1", "search"), named("1", "run_command")
    for repairs, wanted in (
        ([one], {"1"}),
        ([one, named("2", "nope")], {"1"}),
        ([named("1", "Search")], set()),
        ([named("3", "search")], set()),
        ([one, other], set()),
        ([one, one], {"1"}),
        ([one, named("1", "nope"), named("2", "search")], {"2"}),
        ([named("1", None), "1", 1, None, {"name": "search"}], set()),
    ):
        found = mended(this, *repairs)

        assert found.keys() == wanted, repairs
        assert {task.name for task in found.values()} <= {"search"}
    text = json.dumps({"repairs": [one]})
    for said, wanted in (
        (f"```json\n{text}\n```", {"1"}),
        (f"Here you are:\n{text}", {"1"}),
        ('{"repairs": {"tool_call_id": "1", "name": "search"}}', set()),
        ('{"repairs": [{"tool_call_id": "1", "name": "search"}', set()),
        ("[]", set()),
        ("", set()),
    ):
        assert this.mend(said).keys() == wanted, said


def test_arguments_must_be_an_object() -> None:
    """TL-09: anything else is as if it had not been said; partial success is success."""
    this = a_round(("search", '{"pattern": "a" "b"}'), ("search", '{"pattern": "c" "d"}'))
    bad = {"tool_call_id": "2"}
    arguments: Any
    for arguments in ("{}", [], None, {"pattern": 1}):
        assert mended(this, {"tool_call_id": "1", "arguments": arguments}, bad) == {}

    found = mended(this, {"tool_call_id": "1", "arguments": {"pattern": "a"}}, bad)

    assert [task.args for task in found.values()] == [{"pattern": "a"}]
    assert this.record(found).failed == ("2",)


@given(text=st.text(alphabet="{}[]\",:repairs'`1\\\n ", max_size=80))
def test_any_text_is_an_answer(text: str) -> None:
    """Nothing is raised, and nothing comes of what is no JSON."""
    assert a_round(("search", "{oops}")).mend(text) == {}


# --- What is asked of a model that repairs: little, bounded, and as data.


def test_names_are_asked_for_in_one_batch() -> None:
    """TL-08: calls, what is visible, and the form of the answer; cut lists are marked."""
    this = a_round(("serch", '{"pattern": "x"}'), ("ls", "{}"))
    asked = json.loads(this.request.user)

    assert asked == {
        "calls": [
            {"tool_call_id": "1", "name": "serch", "arguments_excerpt": '{"pattern": "x"}'},
            {"tool_call_id": "2", "name": "ls", "arguments_excerpt": "{}"},
        ],
        "tools": [*TOOLS],
    }
    assert '{"repairs":[{"tool_call_id":"...","name":"..."}]}' in this.request.system
    assert (this.request.asked_ids, this.request.cut) == (("1", "2"), False)

    limits = {"name_repair_max_candidates": 2, "name_repair_max_visible_names": 1}
    request = a_round(*[("x" * 5_000, "é" * 5_000)] * 5, **limits).request
    asked = json.loads(request.user)

    assert (request.asked_ids, request.cut, asked["cut"]) == (("1", "2"), True, True)
    assert asked["tools"] == [*TOOLS][:1]
    assert len(request.user.encode()) < 2_000


BROKEN = ("str_replace_editor", '{"command" \n "view"')


def test_arguments_are_asked_for_with_problem_and_schema() -> None:
    """TL-09: what was written stands there whole, as a JSON string."""
    request = a_round(BROKEN, call_repair_max_schema_bytes=4096).request
    (call,) = json.loads(request.user)["calls"]

    assert call["arguments"] == BROKEN[1]
    assert call["problem"].startswith("invalid_json: ")
    assert json.loads(call["schema"])["required"] == ["command", "path"]
    assert '{"repairs":[{"tool_call_id":"...","arguments":{}}]}' in request.system
    assert not request.cut
    assert a_round((BROKEN[0], '{"a" "\ud800"}')).request.user.encode()


def test_a_batch_has_limits() -> None:
    """TL-09: of number and size; what can not be shown whole is not asked about.

    The first call is always asked about, whatever its size.
    """
    large = ("search", '{"text": "' + "some words " * 1400 + '" "x"}')
    for this, ids in (
        (a_round(*[BROKEN] * 5, call_repair_max_candidates=3), ("1", "2", "3")),
        (a_round(("search", '{"a" "' + "x" * MOST_RAW_BYTES + '"}'), BROKEN), ("2",)),
        (a_round(*[large] * 3), ("1",)),
        (a_round(*[large] * 3, window=100), ()),
    ):
        assert (this.request.asked_ids, this.request.cut) == (ids, True)
        assert ESTIMATE.of(this.request.system + this.request.user) < 8000


# --- A model may mend a call, not write one.

RUN, EDIT, SEARCH = TOOLS["run_command"], TOOLS["str_replace_editor"], TOOLS["search"]
KEPT: tuple[tuple[str, dict[str, Any]], ...] = (
    ('{"command": "echo "hi" there"}', {"command": 'echo "hi" there'}),
    ('{"command": "x = "[]""}', {"command": 'x = "[]"'}),
    ('{"cmd": "ls"}', {"command": "ls"}),
    (r'{"cmd": "grep \\d"}', {"command": r"grep \d"}),
    ('{"command": "ls", "timeout": "5"}', {"command": "ls", "timeout": 5}),
    ("{command: 'ls', cwd: None}", {"command": "ls"}),
    ('"{\\"command\\": \\"ls "-a" \\"}"', {"command": 'ls "-a" '}),
    ('```json\n{"name": "run_command", "arguments": {"command": "ls"}\n```', {"command": "ls"}),
)
MADE_UP: tuple[tuple[str, dict[str, Any]], ...] = (
    ('{"command": "echo "hi" there"}', {"command": "echo "}),
    ('{"command": "echo "hi" there"}', {"command": "echo 'hi' there"}),
    ('{"command": "x = "[]""}', {"command": "x = "}),
    ('{"command": "ls", "timeout": "5s"}', {"command": "ls"}),
    ('{"command": "ls", "timeout": "15"}', {"command": "ls", "timeout": 5}),
    ('{"command": "ls"}', {"command": "ls", "cwd": "src"}),
    ('{"command": "ls"}', {"command": "ls", "timeout": 3}),
    ('{"command": "ls", "cwd": "src"}', {"command": "ls"}),
    ('{"command": "ls -a"}', {"command": "ls"}),
    (r'{"cmd": "grep \\d"}', {"command": r"grep \\d"}),
    (r'{"command": "dir C:\\"', {"command": "dir C:"}),
    ('{"command": "foo: "bar""}', {"command": "bar"}),
    ('{"command": "a", "command": "b"}', {"command": "b"}),
    ('{"command": "a", "cwd": "b"}', {"command": "b", "cwd": "a"}),
)


def test_what_was_written_is_kept_and_nothing_else() -> None:
    """TL-09: structure, names and types may be mended.

    Nothing is added, shortened, swapped or left out for a tool that changes something.
    """
    assert [each for each in KEPT if not keeps_payload(*each, RUN)] == []
    assert [each for each in MADE_UP if keeps_payload(*each, RUN)] == []


def test_each_text_stays_under_its_key() -> None:
    """A swap of two texts would undo the edit that was meant.

    Proper JSON is held to its texts, but not to the case of what the schema fixes. A tool without
    effects is held to its long texts: a short pattern may be mended.
    """
    raw = '{"command": "Str_Replace" "path": "a", "old_str": "x", "new_str": "y"}'
    head = {"command": "str_replace", "path": "a"}
    fixed, long = '{"command": "Create", "path": "A"}', "x" * LONG

    for text, args, tool, kept in (
        (raw, head | {"old_str": "x", "new_str": "y"}, EDIT, True),
        (raw, head | {"old_str": "y", "new_str": "x"}, EDIT, False),
        (raw, head | {"new_str": "x", "old_str": "y"}, EDIT, False),
        (raw, head | {"old_str": "x", "new_str": ""}, EDIT, False),
        (fixed, {"command": "create", "path": "A"}, EDIT, True),
        (json.dumps(fixed), {"command": "create", "path": "A"}, EDIT, True),
        (fixed, {"command": "create", "path": "a"}, EDIT, False),
        (json.dumps(fixed), {"command": "create", "path": "a"}, EDIT, False),
        ('{"pattern": "a"', {"pattern": "b"}, SEARCH, True),
        (f"pattern={long}", {"pattern": long}, SEARCH, True),
        ('{"pattern": "a"', {"pattern": long}, SEARCH, False),
    ):
        assert keeps_payload(text, args, tool) is kept, (text, args)


def test_a_call_keeps_itself() -> None:
    """Every call of the corpus stands in its own text, however that is escaped."""
    for name, args in CALLS:
        plain, whole = json.dumps(args), json.dumps(args, ensure_ascii=False)
        for text in (plain, whole, json.dumps(plain)):
            assert keeps_payload(text, args, TOOLS[name])


ODD = st.text(alphabet="ab \"'\\{}[],:\n=", max_size=12)


@given(command=ODD, other=ODD)
@example(command="''", other="")
@example(command='""', other="")
@example(command='"', other='\\"')
@example(command="a\\", other="a")
def test_another_command_is_never_kept(command: str, other: str) -> None:
    """Proper JSON of one command holds no other one."""
    raw = json.dumps({"command": command})

    assert command == other or not keeps_payload(raw, {"command": other}, RUN)


def test_large_texts_take_no_time() -> None:
    """16 KB of quotes are nothing (SE-07), nor is what is nested without end."""
    started = time.process_time()

    keeps_payload('"' * 16_000, {"command": '"'}, RUN)
    keeps_payload("a" * 16_000, {"command": "a"}, RUN)
    keeps_payload('\\"=' * 5_000, {"command": "a"}, RUN)
    keeps_payload("[" * 100_000, {"command": "a"}, RUN)

    assert time.process_time() - started < 2
