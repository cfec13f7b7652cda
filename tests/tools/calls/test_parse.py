"""The tool calls of a model's answer, in whichever way it made them. Pure."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.notations import tasks_of
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.state.serializer import StrictSerializer
from daruma.tools.calls import (
    SENT_CALLS_KEY,
    calls_of,
    limit_calls,
    unstorable_part,
    with_own_ids,
    with_text_calls,
)
from daruma.tools.calls._answer_text import written_calls
from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._parse import DEEPEST, as_sent
from daruma.tools.calls.repair._by_rules import repaired_text

# --- What a checkpoint can not keep unchanged is told before it is tried.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_is_storable_comes_back_as_it_was(value: Any) -> None:
    """Through the serializer that is in use."""
    serializer = StrictSerializer(())

    if unstorable_part(value) is None:
        assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": 2**64}, "64 bits"),
        ([[-(2**63) - 1]], "64 bits"),
        ({"a\ud800": 1}, "half a character"),
        ({"a": ["\udfff"]}, "half a character"),
    ],
)
def test_what_is_not_is_named(value: Any, said: str) -> None:
    """One line for the model."""
    assert said in (unstorable_part(value) or "")


def test_the_limits_themselves_are_storable() -> None:
    """And NUL, which is trouble only for text of its own."""
    assert unstorable_part([2**64 - 1, -(2**63), "a\0b", True, 1.5]) is None


def test_deep_values_are_refused_and_not_fallen_over() -> None:
    """A model can write a thousand brackets."""
    value: Any = 1
    for _ in range(DEEPEST * 20):
        value = [value]

    assert "levels deep" in (unstorable_part(value) or "")


# --- What was sent counts, not what was made of it on the way.

GUESSED = {"type": "tool_call", "name": "pay", "args": {"to": "An"}, "id": "c1"}


def answer(*texts: str) -> AIMessage:
    """An answer that was read as one call, and holds what was sent."""
    sent = [{"id": f"c{n}", "name": "pay", "args": text} for n, text in enumerate(texts, 1)]
    kept = {SENT_CALLS_KEY: sent, "refusal": None}
    return AIMessage("", tool_calls=[GUESSED], additional_kwargs=kept)


def test_a_call_that_was_cut_off_is_not_read() -> None:
    """Its text is kept, for whoever can tell what was meant."""
    message = as_sent(answer('{"to": "An'))

    assert message.tool_calls == []
    assert message.invalid_tool_calls[0]["args"] == '{"to": "An'
    assert message.additional_kwargs == {"refusal": None}


@pytest.mark.parametrize("text", ["", "{}"])
def test_calls_beside_it_are_as_they_were(text: str) -> None:
    """No text at all stands for no arguments."""
    message = as_sent(answer('{"to": "Ann"}', "[1", text))

    assert [(call["id"], call["args"]) for call in message.tool_calls] == [
        ("c1", {"to": "Ann"}),
        ("c3", {}),
    ]
    assert [call["id"] for call in message.invalid_tool_calls] == ["c2"]


@pytest.mark.parametrize("text", ["null", "[]", '"{}"', "{" * 100_000, '{"a": ' * 5_000])
def test_what_is_no_object_is_not_read(text: str) -> None:
    """JSON of another kind, and what no reader takes."""
    assert as_sent(answer(text)).tool_calls == []


def test_an_answer_that_holds_nothing_of_it_is_as_it_was() -> None:
    """Of other providers, and not streamed."""
    message = AIMessage("", tool_calls=[GUESSED])

    assert as_sent(message) is message


# --- Calls that a model writes into its text are calls; what it writes about them is not.

VISIBLE = frozenset(TOOLS)
CALL = '{"name": "search", "arguments": {"pattern": "a"}}'
TAGGED = f"<tool_call>\n{CALL}\n</tool_call>"
NESTED = {
    "type": "function",
    "id": "1",
    "function": {"name": "search", "arguments": '{"pattern": "a"}'},
}


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  {CALL}\n",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"[{CALL}]",
        f'{{"tool_calls": [{CALL}]}}',
        json.dumps(NESTED),
        json.dumps({"tool_calls": [NESTED]}),
        '{"tool": "search", "args": {"pattern": "a"}}',
        '{"tool_name": "search", "parameters": {"pattern": "a"}, "id": "1"}',
        '{"type": "function", "function": "search", "tool_input": {"pattern": "a"}}',
        '{"name": "search", "input": "{\\"pattern\\": \\"a\\"}"}',
        TAGGED,
        f"I will look.\n\n{TAGGED}",
        f"<tool_call>{CALL}",
        f"{TAGGED}\nThat should do.",
        f"I will look.\n```tool_call\n{CALL}\n```\nThat should do.",
        f"I will look.\n\n```json\n{CALL}\n```",
    ],
)
def test_a_written_call_is_a_call(text: str) -> None:
    """TL-18: bare, fenced, in a list, in tags, in every common spelling."""
    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args) == ("search", {"pattern": "a"})


@pytest.mark.parametrize(
    "text",
    [
        f"[{CALL}, {CALL}]",
        f"{CALL}\n{CALL}",
        f"{TAGGED}\n{TAGGED}",
        f"<tool_call>\n{CALL}\n{CALL}\n</tool_call>",
        f"```tool_call\n{CALL}\n```\n```tool_call\n{CALL}\n```",
    ],
)
def test_several_calls_keep_their_order(text: str) -> None:
    """TL-18: as many as were written."""
    assert [call.name for call in written_calls(text, VISIBLE)] == ["search", "search"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "{}",
        "[]",
        "[1, 2]",
        '{"name": "Bob", "age": 3}',
        '{"name": "Bob", "input": "hello there"}',
        '{"name": "Bob Smith", "parameters": {}}',
        '{"name": "search"}',
        f"{CALL} is how it is called.",
        f"Call it so: {CALL}",
        f"For example:\n```json\n{CALL}\n```",
        f"```json\n{CALL}\n```\nwould look for a.",
        f"First:\n```json\n{CALL}\n```\nthen:\n```json\n{CALL}\n```",
        f"Like this.\n```json\n{CALL.replace('search', 'serch')}\n```",
        f"```xml\n<a>\n{TAGGED}\n</a>\n```\nThat is the form.",
        "Wrap it in <tool_call> and </tool_call>.",
        "```python\nprint({'name': 'x', 'arguments': {}})\n```",
        "def f():\n    return {'name': 'search', 'arguments': {}}",
    ],
)
def test_an_answer_is_no_call(text: str) -> None:
    """An explanation that shows a call, and data that looks like one, are not executed."""
    assert written_calls(text, VISIBLE) == ()


def test_an_unknown_name_is_a_call_all_the_same() -> None:
    """Else the run would end with it as its answer."""
    (call,) = written_calls('{"name": "serch", "arguments": {}}', VISIBLE)

    assert call.name == "serch"


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("{'name': 'search', 'arguments': {'pattern': 'a'}}", "{'pattern': 'a'}"),
        ('{"name": "search", "arguments": {"pattern": "a",}}', '{"pattern": "a",}'),
        (
            '```json\n{"name": "search", "arguments": {"pattern": "say "a""}}\n```',
            '{"pattern": "say "a""}',
        ),
        (
            '<tool_call>\n{"name": "search", "arguments": {"pattern": a}}\n</tool_call>',
            '{"pattern": a}',
        ),
        ('{"name": "search", "arguments": "{pattern: 1"}', "{pattern: 1"),
    ],
)
def test_broken_arguments_are_handed_on_as_they_are(text: str, raw: str) -> None:
    """TL-18: the call is unmistakable, its arguments are for the repair rungs."""
    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args, call.raw) == ("search", None, raw)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<tool_call>\nlook for a\n</tool_call>", ""),
        ("<tool_call>\nsearch for a\n</tool_call>", "search"),
        ('{"name": "search", "arguments": {}, "why": "to see"}', "search"),
        (f"[{CALL}, 1]", "search"),
        (f'{CALL}\n{{"a": 1}}', "search"),
        (f"{CALL}\n\nI wait for its lines.", "search"),
        (f"```\n{TAGGED}\n```", "search"),
        (f"I changed a.py.\n\n```json\n{CALL}\n```", "search"),
        (f"[{CALL}", "search"),
        (f"[{CALL}, {CALL}", "search"),
        ('[{"name": "search", "arguments": {"pattern": "a', "search"),
        ('{"name": "sea', "search"),
        ('{"na', ""),
        ("[TOOL_CALLS]search[ARGS]", "search"),
        ('search(pattern="a"', "search"),
        ('```python\nx = search(pattern=y + "a")\n```', "search"),
        ('[search(pattern="a")', "search"),
        ('<invoke name="search"><parameter name="pattern">a</parameter>', "search"),
        ('{"name": "search", "arguments": {"pattern": "a", "id": "b"}', "search"),
    ],
)
def test_what_is_in_doubt_is_a_broken_call(text: str, name: str) -> None:
    """TL-18: never an answer, never run and never mended; its model is told to give it again."""
    task, *more = tasks_of(text)

    assert not more or len(more) == text.count(CALL) - 1
    assert (task.status, task.problem) == ("failed", "invalid_json")
    assert name in ("", task.requested_name) or text == '{"name": "sea'
    assert "again" in task.reason


def test_tags_inside_of_a_payload_are_part_of_it() -> None:
    """A file that shows calls is written, and the calls in it are not run."""
    args = {"command": "create", "path": "a.md", "file_text": f"Calls:\n{TAGGED}\n"}
    text = json.dumps({"name": "str_replace_editor", "arguments": args}).replace("\\n", "\n")

    found = written_calls(f"<tool_call>\n{text}\n</tool_call>", VISIBLE)

    assert [call.name for call in found] == ["str_replace_editor"]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("I will look.", True),
        ("I don't know the file yet. Let me search for it:", True),
        ("Now I'm calling search", True),
        ("接下来我来搜索。", True),
        ("Do not run this:", False),
        ("I won't do it. Let me show what I won't do:", False),
        ("Done. The file config.json contains:", False),
        ("The log of the last run shows:", False),
        ("I found this in notes.md:", False),
        ("I ran this earlier:", False),
        ("Here is the answer:", False),
        ("我不会执行:", False),
    ],
)
def test_words_before_a_fence_have_to_announce_the_call(words: str, made: bool) -> None:
    """What a model quotes from a file, or refuses to do, is its answer; it did not call that."""
    assert bool(written_calls(f"{words}\n\n```json\n{CALL}\n```", ["search"])) is made


@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "Now.\n<tool_call>{}</tool_call>"])
def test_every_call_arrives_whole(form: str, name: str, args: dict[str, Any]) -> None:
    """TL-18: what was meant is what is called, whatever is in it."""
    text = form.replace("{}", json.dumps({"name": name, "arguments": args}, ensure_ascii=False))

    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args) == (name, args)


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_call_in_python_s_spelling_is_mended(name: str, args: dict[str, Any]) -> None:
    """Written as a Python dict, it goes through the rules rung and comes out as meant."""
    (call,) = written_calls(repr({"name": name, "arguments": args}), VISIBLE)

    found = repaired_text(call.raw, TOOLS[name], max_bytes=100_000)

    assert isinstance(found, Refused) or (isinstance(found, Repaired) and found.args == args)


@given(text=st.text(alphabet='{}[]":,`<>/\n toolcaljsnmergu_', max_size=100))
def test_any_text_is_read(text: str) -> None:
    """Nothing is raised."""
    assert isinstance(written_calls(text, VISIBLE), tuple)


@pytest.mark.parametrize(
    "piece",
    [CALL, TAGGED + "\n", "\n<tool_call>{", "\n```tool_call\n", "{", "```\n", '"', "[{", " "],
)
def test_a_long_text_takes_no_time(piece: str) -> None:
    """256 KB of anything is read in a moment."""
    text = piece * (262_144 // len(piece))
    started = time.process_time()

    for each in (text, f"x{text}", f'{{"name": "a", "arguments": {text}'):
        written_calls(each, VISIBLE)

    assert time.process_time() - started < 6


# --- A model's calls, in whichever way it made them, under ids of their own and within the limit.

WRITTEN = '{"name": "shout", "arguments": {"text": "hi"}}'


def native(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {"n": n}, "id": f"c{n}"} for n, name in enumerate(names)]
    return AIMessage("", id="m", tool_calls=calls)


def of_ids(*ids: str | None, broken: str | None = None) -> AIMessage:
    calls: list[Any] = [{"name": "shout", "args": {}, "id": id_} for id_ in ids]
    invalid = [{"name": "shout", "args": "{", "id": broken, "error": None}] if broken else []
    return AIMessage("", id="m", tool_calls=calls, invalid_tool_calls=invalid)


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"[{WRITTEN}]",
        f"<tool_call>\n{WRITTEN}\n</tool_call>",
    ],
)
def test_a_call_written_as_text_is_a_call(text: str) -> None:
    """TL-18: what a model wrote ends as the same call; its words stay in the history."""
    message = with_own_ids(with_text_calls(AIMessage(text), ["shout"]), "m")

    (call,) = calls_of(message)
    assert (call.name, call.args) == ("shout", {"text": "hi"})
    assert message.text == text


def test_an_answer_stays_an_answer() -> None:
    """TL-18: also one that is JSON, and any where no tools were offered."""
    for text, visible in (("Done.", ["shout"]), ('{"sum": 3}', ["shout"]), (WRITTEN, [])):
        assert calls_of(with_text_calls(AIMessage(text), visible)) == ()


def test_a_native_call_is_not_read_twice() -> None:
    """TL-18: text beside a native call is text."""
    message = native("shout").model_copy(update={"content": WRITTEN})

    assert len(calls_of(with_text_calls(message, ["shout"]))) == 1


def test_calls_keep_the_order_of_the_model() -> None:
    """TL-16: LangChain keeps readable and unreadable ones apart; the first N are the first N."""
    functions = [("a", "{}"), ("b", "{oops"), ("a", '{"n": 1}'), ("b", "{no")]
    sent = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(functions)
    ]
    message = AIMessage(
        "",
        additional_kwargs={"tool_calls": sent},
        tool_calls=[
            {"name": "a", "args": {}, "id": "c0"},
            {"name": "a", "args": {"n": 1}, "id": "c2"},
        ],
        invalid_tool_calls=[
            {"name": "b", "args": "{oops", "id": "c1", "error": None},
            {"name": "b", "args": "{no", "id": "c3", "error": None},
        ],
    )

    assert [call.id for call in calls_of(message)] == ["c0", "c1", "c2", "c3"]
    assert [call.id for call in calls_of(limit_calls(message, 2)[0])] == ["c0", "c1"]


IDS = st.lists(
    st.sampled_from([None, "", "a", "call_0", "call_1", "call_2", "call_3"]), min_size=1, max_size=5
)


@given(IDS)
def test_every_call_has_an_id_of_its_own(ids: list[str | None]) -> None:
    """Servers leave ids out and repeat them: two calls must not share a result."""
    answer = with_own_ids(of_ids(*ids), "m1")

    own = [call["id"] for call in answer.tool_calls]
    assert all(own)
    assert len(set(own)) == len(own)


@pytest.mark.parametrize("odd", ["*", "--yes", "a b", "a\nb", "é", "-", "a@b", "a" * 201])
def test_an_id_that_can_not_be_pasted_is_not_kept(odd: str) -> None:
    """A person names calls by their ids on the command line, where ``*`` and ``--yes`` say more."""
    answer = with_own_ids(of_ids(odd, "fc_1|call-2.a:b/c=", broken=f"{odd}*"), "m1")

    assert [call["id"] for call in answer.tool_calls] == ["call_0", "fc_1|call-2.a:b/c="]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["call_1"]


def test_a_good_id_is_kept() -> None:
    """What the provider wrote is what it gets back; the message gets an id of ours."""
    answer = with_own_ids(of_ids("x", "y", broken="b"), "t/1:answer:0")

    assert [call["id"] for call in answer.tool_calls] == ["x", "y"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["b"]
    assert answer.id == "t/1:answer:0"


@pytest.mark.parametrize("value", [2**70, "\ud800"])
def test_a_call_that_can_not_be_stored_is_kept_as_text(value: Any) -> None:
    """TL-03: no checkpoint takes it as it is, and it has to be answered all the same."""
    bad = {"name": "shout", "args": {"text": value}, "id": "bad"}
    good = {"name": "shout", "args": {"text": "x"}, "id": "good"}

    answer = with_own_ids(AIMessage("", tool_calls=[bad, good]), "m1")

    assert [call["id"] for call in answer.tool_calls] == ["good"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["bad"]
    assert '"text": ' in str(answer.invalid_tool_calls[0]["args"])


def test_the_given_message_is_not_changed() -> None:
    """Messages may be shared, with a cache for one."""
    given_message = of_ids(None)
    with_own_ids(given_message, "other")

    assert given_message.id == "m"
    assert given_message.tool_calls[0]["id"] is None
