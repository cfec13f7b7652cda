"""A model's answer: the calls that it makes, in whichever way, and what becomes of the rest."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.notations import OFFER, tasks_of
from tests.parts import a_call
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.state.failure import UNUSABLE
from daruma.state.serializer import StrictSerializer
from daruma.state.steps import ArgumentRepair, LeftOut, NameChange, RepairRound
from daruma.state.text import DEEPEST, unstorable_part
from daruma.tools.calls import (
    audit_answer,
    calls_of,
    keep_sent_calls,
    read_answer,
    unusable_answer,
)
from daruma.tools.calls._answer_text import read_written_calls
from daruma.tools.calls._answers import limit_calls, with_own_ids, with_text_calls
from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._repair import repair_text

VISIBLE = frozenset(TOOLS)
CALL = '{"name": "search", "arguments": {"pattern": "a"}}'
TAGGED = f"<tool_call>\n{CALL}\n</tool_call>"
MEANT = ("search", {"pattern": "a"})


def made(text: str) -> list[tuple[str, dict[str, Any] | None]]:
    return [(call.name, call.args) for call in read_written_calls(text, VISIBLE)]


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


def test_what_is_not_is_named() -> None:
    """One line for the model; a model can write a thousand brackets."""
    deep: Any = 1
    for _ in range(DEEPEST * 20):
        deep = [deep]

    for value, said in (
        ({"n": 2**64}, "64 bits"),
        ([[-(2**63) - 1]], "64 bits"),
        ({"a\ud800": 1}, "half a character"),
        ({"a": ["\udfff"]}, "half a character"),
        (deep, "levels deep"),
        ([2**64 - 1, -(2**63), "a\0b", True, 1.5], ""),
    ):
        assert said in (unstorable_part(value) or ""), said
    assert unstorable_part([2**64 - 1, -(2**63), "a\0b", True, 1.5]) is None


# --- What was sent counts, not what was made of it on the way.


def streamed(*texts: str) -> AIMessage:
    """Return what is read of an answer that LangChain took for one call, and that holds others."""
    guessed: Any = {"type": "tool_call", "name": "pay", "args": {"to": "An"}, "id": "c1"}
    sent = [{"id": f"c{n}", "name": "pay", "args": text} for n, text in enumerate(texts, 1)]
    kept = {**keep_sent_calls(sent), "refusal": None}
    return with_text_calls(AIMessage("", tool_calls=[guessed], additional_kwargs=kept), ["pay"])


def test_a_call_that_was_cut_off_is_not_read() -> None:
    """Its text is kept, for whoever can tell what was meant; no text stands for no arguments.

    Nothing is kept beside an answer of which all was read.
    """
    assert keep_sent_calls([{"id": "c1", "name": "pay", "args": '{"to": "Ann"}'}]) == {}
    assert streamed('{"to": "Ann"}').tool_calls[0]["args"] == {"to": "An"}
    for last in ("", "{}"):
        message = streamed('{"to": "Ann"}', '{"to": "An', last)
        read = [(call["id"], call["args"]) for call in message.tool_calls]

        assert read == [("c1", {"to": "Ann"}), ("c3", {})]
        assert [call["args"] for call in message.invalid_tool_calls] == ['{"to": "An']
        assert message.additional_kwargs == {"refusal": None}
    for text in ("null", "[]", '"{}"', "{" * 100_000, '{"a": ' * 5_000):
        assert streamed(text).tool_calls == [], text[:20]


# --- Calls that a model writes into its text are calls; what it writes about them is not (TL-18).

NESTED: Any = {
    "type": "function",
    "id": "1",
    "function": {"name": "search", "arguments": '{"pattern": "a"}'},
}
WRITTEN = (
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
)
TWO = (
    f"[{CALL}, {CALL}]",
    f"{CALL}\n{CALL}",
    f"{TAGGED}\n{TAGGED}",
    f"<tool_call>\n{CALL}\n{CALL}\n</tool_call>",
    f"```tool_call\n{CALL}\n```\n```tool_call\n{CALL}\n```",
)
ANSWERS = (
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
)


def test_a_written_call_is_a_call() -> None:
    """Bare, fenced, in a list, in tags, in every common spelling, as many as were written.

    One by an unknown name, too: else the run would end with it as its answer.
    """
    assert {text: made(text) for text in WRITTEN} == {text: [MEANT] for text in WRITTEN}
    assert {text: made(text) for text in TWO} == {text: [MEANT, MEANT] for text in TWO}
    assert made('{"name": "serch", "arguments": {}}') == [("serch", {})]


def test_an_answer_is_no_call() -> None:
    """An explanation that shows a call, and data that looks like one, are not executed."""
    assert {text: made(text) for text in ANSWERS} == {text: [] for text in ANSWERS}


def test_broken_arguments_are_handed_on_as_they_are() -> None:
    """The call is unmistakable, its arguments are for the repair rungs."""
    for text, raw in (
        ("{'name': 'search', 'arguments': {'pattern': 'a'}}", "{'pattern': 'a'}"),
        ('{"name": "search", "arguments": {"pattern": "a",}}', '{"pattern": "a",}'),
        (
            '```json\n{"name": "search", "arguments": {"pattern": "say "a""}}\n```',
            '{"pattern": "say "a""}',
        ),
        ('<tool_call>{"name": "search", "arguments": {"pattern": a}}', '{"pattern": a}'),
        ('{"name": "search", "arguments": "{pattern: 1"}', "{pattern: 1"),
    ):
        (call,) = read_written_calls(text, VISIBLE)

        assert (call.name, call.args, call.raw) == ("search", None, raw)


DOUBTFUL = (
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
    ('{"name": "sea', "sea"),
    ('{"na', ""),
    ("[TOOL_CALLS]search[ARGS]", "search"),
    ('search(pattern="a"', "search"),
    ('```python\nx = search(pattern=y + "a")\n```', "search"),
    ('[search(pattern="a")', "search"),
    ('<invoke name="search"><parameter name="pattern">a</parameter>', "search"),
    ('{"name": "search", "arguments": {"pattern": "a", "id": "b"}', "search"),
)


def test_what_is_in_doubt_is_a_broken_call() -> None:
    """Never an answer, never run and never mended; its model is told to give it again."""
    for text, name in DOUBTFUL:
        task, *more = tasks_of(text)

        assert not more or len(more) == text.count(CALL) - 1
        assert (task.status, task.problem) == ("failed", "invalid_json"), text
        assert name in ("", task.requested_name) or name == "sea"
        assert "again" in task.reason


def test_tags_inside_of_a_payload_are_part_of_it() -> None:
    """A file that shows calls is written, and the calls in it are not run."""
    args = {"command": "create", "path": "a.md", "file_text": f"Calls:\n{TAGGED}\n"}
    text = json.dumps({"name": "str_replace_editor", "arguments": args}).replace("\\n", "\n")

    found = read_written_calls(f"<tool_call>\n{text}\n</tool_call>", VISIBLE)

    assert [call.name for call in found] == ["str_replace_editor"]


ANNOUNCING = (
    "I will look.",
    "I don't know the file yet. Let me search for it:",
    "Now I'm calling search",
    "接下来我来搜索。",
)
TELLING = (
    "Do not run this:",
    "I won't do it. Let me show what I won't do:",
    "Done. The file config.json contains:",
    "The log of the last run shows:",
    "I found this in notes.md:",
    "I ran this earlier:",
    "Here is the answer:",
    "我不会执行:",
)


def test_words_before_a_fence_have_to_announce_the_call() -> None:
    """What a model quotes from a file, or refuses to do, is its answer; it did not call that."""
    for words in (*ANNOUNCING, *TELLING):
        found = read_written_calls(f"{words}\n\n```json\n{CALL}\n```", ["search"])

        assert bool(found) is (words in ANNOUNCING), words


def test_every_call_arrives_whole() -> None:
    """What was meant is what is called, whatever is in it; in Python's spelling it is mended."""
    for name, args in CALLS:
        text = json.dumps({"name": name, "arguments": args}, ensure_ascii=False)
        for form in ("{}", "```json\n{}\n```", "Now.\n<tool_call>{}</tool_call>"):
            assert made(form.replace("{}", text)) == [(name, args)]

        (call,) = read_written_calls(repr({"name": name, "arguments": args}), VISIBLE)
        found = repair_text(call.raw, TOOLS[name], max_bytes=100_000)
        assert isinstance(found, Refused) or (isinstance(found, Repaired) and found.args == args)


@given(text=st.text(alphabet='{}[]":,`<>/\n toolcaljsnmergu_', max_size=100))
def test_any_text_is_read(text: str) -> None:
    """Nothing is raised."""
    assert isinstance(read_written_calls(text, VISIBLE), tuple)


@pytest.mark.long
def test_a_text_is_read_in_linear_time() -> None:
    """Four times as much of anything takes some four times as long (SE-07)."""
    marks = (f"{TAGGED}\n", "\n<tool_call>{", "\n```tool_call\n", "```\n")
    for piece in (CALL, *marks, "{", '"', "[{"):
        short, long = (piece * (size // len(piece)) for size in (16_384, 65_536))

        assert _seconds(long) < 8 * _seconds(short) + 0.5, piece


def _seconds(text: str) -> float:
    started = time.thread_time()
    for each in (text, f"x{text}", f'{{"name": "a", "arguments": {text}'):
        read_written_calls(each, VISIBLE)
    return time.thread_time() - started


def test_the_words_of_an_answer_stay_in_the_history() -> None:
    """Text is read where no native call stands beside it, and where tools were offered."""
    for text in (CALL, f"```json\n{CALL}\n```", TAGGED):
        message, tasks, _ = read_answer(AIMessage(text), "m", OFFER)

        assert [(task.name, task.args) for task in tasks] == [MEANT]
        assert (message.id, message.text) == ("m", text)
    for text, visible in (("Done.", ["search"]), ('{"sum": 3}', ["search"]), (CALL, [])):
        assert calls_of(with_text_calls(AIMessage(text), visible)) == ()
    beside = native("search").model_copy(update={"content": CALL})
    assert len(calls_of(with_text_calls(beside, ["search"]))) == 1


# --- Calls keep their order and get ids of their own; of too many the first ones run (TL-16).


def native(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {"n": n}, "id": f"c{n}"} for n, name in enumerate(names)]
    return AIMessage("", id="m", tool_calls=calls)


def of_ids(*ids: str | None, broken: str | None = None) -> AIMessage:
    calls: list[Any] = [{"name": "shout", "args": {}, "id": id_} for id_ in ids]
    invalid = [{"name": "shout", "args": "{", "id": broken, "error": None}] if broken else []
    return AIMessage("", id="m", tool_calls=calls, invalid_tool_calls=invalid)


def ids_of(message: AIMessage) -> tuple[list[Any], list[Any]]:
    return [c["id"] for c in message.tool_calls], [c["id"] for c in message.invalid_tool_calls]


def test_calls_keep_the_order_of_the_model() -> None:
    """LangChain keeps readable and unreadable ones apart; the first N are the first N."""
    functions = [("a", "{}"), ("b", "{oops"), ("a", '{"n": 1}'), ("b", "{no")]
    sent = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(functions)
    ]
    read: list[Any] = [
        {"name": "a", "args": {}, "id": "c0"},
        {"name": "a", "args": {"n": 1}, "id": "c2"},
    ]
    unread: list[Any] = [
        {"name": "b", "args": "{oops", "id": "c1", "error": None},
        {"name": "b", "args": "{no", "id": "c3", "error": None},
    ]
    more = {"tool_calls": sent}
    message = AIMessage("", additional_kwargs=more, tool_calls=read, invalid_tool_calls=unread)

    assert [call.id for call in calls_of(message)] == ["c0", "c1", "c2", "c3"]
    assert [call.id for call in calls_of(limit_calls(message, 2)[0])] == ["c0", "c1"]


IDS = st.sampled_from([None, "", "a", "call_0", "call_1", "call_2", "call_3"])


@given(st.lists(IDS, min_size=1, max_size=5))
def test_every_call_has_an_id_of_its_own(ids: list[str | None]) -> None:
    """Servers leave ids out and repeat them: two calls must not share a result."""
    message = of_ids(*ids)
    own = ids_of(with_own_ids(message, "m1"))[0]

    assert all(own)
    assert len(set(own)) == len(own)
    assert ids_of(message)[0] == ids  # messages may be shared, with a cache for one


def test_an_id_that_can_not_be_pasted_is_not_kept() -> None:
    """A person names calls by their ids on the command line, where ``*`` and ``--yes`` say more."""
    for odd in ("*", "--yes", "a b", "a\nb", "é", "-", "a@b", "a" * 201):
        answer = with_own_ids(of_ids(odd, "fc_1|call-2.a:b/c=", broken=f"{odd}*"), "t/1:answer:0")

        assert ids_of(answer) == (["call_0", "fc_1|call-2.a:b/c="], ["call_1"])
        assert answer.id == "t/1:answer:0"
    assert ids_of(with_own_ids(of_ids("x", "y", broken="b"), "m")) == (["x", "y"], ["b"])


def test_a_call_that_can_not_be_stored_is_kept_as_text() -> None:
    """TL-03: no checkpoint takes it as it is, and it has to be answered all the same."""
    for value in (2**70, "\ud800"):
        bad: Any = {"name": "shout", "args": {"text": value}, "id": "bad"}
        good: Any = {"name": "shout", "args": {"text": "x"}, "id": "good"}

        answer = with_own_ids(AIMessage("", tool_calls=[bad, good]), "m1")

        assert ids_of(answer) == (["good"], ["bad"])
        assert '"text": ' in str(answer.invalid_tool_calls[0]["args"])


def test_only_the_first_calls_are_kept() -> None:
    """In the history too, with what providers repeat of them beside the calls and in the content.

    The rest is on record: ten names, each at most 200 bytes, never half a character.
    """
    text = {"type": "text", "text": "x"}
    content = [text, *({"type": "tool_use", "id": f"c{n}"} for n in range(5))]
    more = {"tool_calls": [{"id": "c0"}], "refusal": None}
    sent = native(*"abcde").model_copy(update={"content": content, "additional_kwargs": more})
    message, left_out = limit_calls(sent, 3)

    assert [call["name"] for call in message.tool_calls] == ["a", "b", "c"]
    assert message.content == content[:4]
    assert message.additional_kwargs == {"refusal": None}
    assert left_out == LeftOut(total=5, executed=3, omitted=2, limit=3, names=("d", "e"))
    for limit in (None, 5, 6):
        assert limit_calls(sent, limit) == (sent, None)
    _, left_out = limit_calls(native(*(["a"] + ["ü" * 150] * 30)), 1)
    assert left_out is not None
    assert left_out.names == ("ü" * 100,) * 10


# --- What was changed between a model's words and what runs is on record, and nothing else.


def test_what_was_changed_of_a_call_is_told() -> None:
    """TL-04 and TL-19: a name that was found otherwise; one that was right, and was passed on.

    TL-11: an answer that runs as it was said has nothing to tell.
    """
    spelt = a_call("c1", requested_name="Shout", name_resolution="normalized")
    passed = a_call("c2", requested_name="whisper", rungs=("whisper with loud is shout",))

    audit = audit_answer("m1", [spelt, passed])

    assert audit is not None
    assert audit.names[0] == NameChange(
        tool_call_id="c1", requested_name="Shout", name="shout", how="normalized"
    )
    assert audit.names[1].how == "promoted"
    assert audit.arguments == (
        ArgumentRepair(tool_call_id="c2", name="shout", repaired_by="rules", rungs=passed.rungs),
    )
    assert audit_answer("m1", [a_call("c1")]) is audit_answer() is None


def test_what_was_left_out_and_what_was_asked_stand_beside_it() -> None:
    """TL-16 and TL-08: also where no call was changed. TL-04: of names there are twenty at most."""
    left_out = LeftOut(total=3, executed=2, omitted=1, limit=2, names=("shout",))
    asked = RepairRound(kind="names", attempt=1, candidates=("c1",), repaired=(), failed=("c1",))
    calls = [a_call(f"c{n}", requested_name="Shout") for n in range(21)]
    audits = [audit_answer("m1", calls[:20]), audit_answer("m1", calls)]

    audit = audit_answer("m1", [], left_out=left_out, asked=asked)

    assert audit is not None
    assert (audit.message_id, audit.left_out, audit.round) == ("m1", left_out, asked)
    assert [(len(each.names), each.names_cut) for each in audits if each] == [
        (20, False),
        (20, True),
    ]


# --- An answer that is no end of the work has a name.


def answer(text: str = "", reason: str = "stop", refusal: str | None = None) -> AIMessage:
    more = {"refusal": refusal} if refusal else {}
    return AIMessage(text, additional_kwargs=more, response_metadata={"finish_reason": reason})


def test_blank_answers_refusals_and_cut_offs_are_no_ends() -> None:
    """Each is named; an answer is an answer, also a short one."""
    for message, name in (
        (answer("", refusal="I can not help with that."), "refusal"),
        (answer("So far", "length"), "answer_cut_off"),
        (answer("", "length"), "answer_cut_off"),
        (answer("So far", "content_filter"), "answer_cut_off"),
        (answer(""), "empty_answer"),
        (answer(" \n\u200b"), "empty_answer"),
        (answer("\u2800\u3164\ufe0f"), "empty_answer"),
        (answer("<|im_end|>\n</s>"), "empty_answer"),
        (answer("<｜end▁of▁sentence｜>"), "empty_answer"),
        (answer("<end_of_turn>"), "empty_answer"),
        (answer("```python\n\n```"), "empty_answer"),
        (answer("~~~\n~~~"), "empty_answer"),
    ):
        found = unusable_answer(message, "main")

        assert found is not None
        assert (found.code, found.node, found.original_error) == ("llm_failure", "main", name)
        assert name in UNUSABLE
    for text in ("No.", "\u2705\ufe0f", "It ends with <|im_end|>.", "<s>", "```\n0\n```", "```"):
        assert unusable_answer(answer(text), "main") is None
