"""A model's answer: how many calls are kept, the audit of changes, answers that can not be used."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import a_call

from daruma.state.failure import UNUSABLE
from daruma.state.steps import ArgumentRepair, LeftOut, NameChange, RepairRound
from daruma.tools.calls import audit_changes, changes_of, limit_calls, unusable_answer

# --- Of too many calls in one answer the first ones run, and the rest is on record.


def native(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {"n": n}, "id": f"c{n}"} for n, name in enumerate(names)]
    return AIMessage("", id="m", tool_calls=calls)


def test_only_the_first_calls_are_kept() -> None:
    """TL-16: in order, in the history too; the rest is on record."""
    message, left_out = limit_calls(native(*"abcde"), 3)

    assert [call["name"] for call in message.tool_calls] == ["a", "b", "c"]
    assert left_out is not None
    assert (left_out.total, left_out.executed, left_out.omitted, left_out.limit) == (5, 3, 2, 3)
    assert left_out.names == ("d", "e")


@pytest.mark.parametrize("limit", [None, 5, 6])
def test_within_the_limit_nothing_is_left_out(limit: int | None) -> None:
    """TL-16: null is no limit."""
    assert limit_calls(native(*"abcde"), limit) == (native(*"abcde"), None)


def test_the_sample_of_omitted_names_is_bounded() -> None:
    """TL-16: ten names, each at most 200 bytes, never half a character."""
    _, left_out = limit_calls(native(*(["a"] + ["ü" * 150] * 30)), 1)

    assert left_out is not None
    assert len(left_out.names) == 10
    assert left_out.names[0] == "ü" * 100


def test_blocks_of_omitted_calls_leave_the_content_too() -> None:
    """TL-16: some providers repeat their calls there, and would be sent an unanswered one."""
    content: list[Any] = [{"type": "tool_use", "id": f"c{n}"} for n in range(2)]
    message = native("a", "b").model_copy(
        update={"content": [{"type": "text", "text": "x"}, *content]}
    )

    kept, _ = limit_calls(message, 1)

    assert kept.content == [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c0"}]


def test_what_the_provider_sent_of_omitted_calls_leaves_too() -> None:
    """TL-16: LangChain keeps it beside the calls; what else it keeps there stays."""
    sent = {"tool_calls": [{"id": "c0"}, {"id": "c1"}], "refusal": None}
    message = native("a", "b").model_copy(update={"additional_kwargs": sent})

    kept, _ = limit_calls(message, 1)

    assert kept.additional_kwargs == {"refusal": None}


# --- What was changed between a model's words and what runs is on record, and nothing else.


def test_an_answer_that_runs_as_it_was_said_has_nothing_to_tell() -> None:
    """TL-11: its audit is empty."""
    assert audit_changes("m1", [a_call("c1")]).empty


def test_of_such_an_answer_no_audit_is_made() -> None:
    """Of any other it is the audit."""
    mended = a_call("c1", rungs=("trailing comma",))
    left_out = LeftOut(total=3, executed=1, omitted=2, limit=1, names=("shout",))

    assert changes_of("m1", [a_call("c1")]) is None
    assert changes_of("m1", [mended]) == audit_changes("m1", [mended])
    assert changes_of("m1", [], left_out=left_out) == audit_changes("m1", [], left_out=left_out)


def test_a_name_that_was_found_otherwise_is_told() -> None:
    """TL-04: with the way in which it was found."""
    call = a_call("c1", requested_name="Shout", name_resolution="normalized")

    assert audit_changes("m1", [call]).names == (
        NameChange(tool_call_id="c1", requested_name="Shout", name="shout", how="normalized"),
    )


def test_a_call_that_was_passed_on_is_told() -> None:
    """TL-19: the name itself was right, the tool declared another one."""
    call = a_call("c1", requested_name="whisper", rungs=("whisper with loud is shout",))

    audit = audit_changes("m1", [call])

    assert [name.how for name in audit.names] == ["promoted"]
    assert audit.arguments == (
        ArgumentRepair(tool_call_id="c1", name="shout", repaired_by="rules", rungs=call.rungs),
    )


def test_the_names_of_an_answer_are_bounded() -> None:
    """TL-04: twenty, and a word if there were more."""
    calls = [a_call(f"c{n}", requested_name="Shout") for n in range(21)]

    all_of_them, more = audit_changes("m1", calls[:20]), audit_changes("m1", calls)

    assert (len(all_of_them.names), all_of_them.names_cut) == (20, False)
    assert (len(more.names), more.names_cut) == (20, True)


def test_what_was_left_out_and_what_was_asked_stand_beside_it() -> None:
    """TL-16 and TL-08: also where no call was changed."""
    left_out = LeftOut(total=3, executed=2, omitted=1, limit=2, names=("shout",))
    asked = RepairRound(kind="names", attempt=1, candidates=("c1",), repaired=(), failed=("c1",))

    audit = audit_changes("m1", [], left_out=left_out, asked=asked)

    assert (audit.message_id, audit.left_out, audit.round) == ("m1", left_out, asked)
    assert not audit.empty


# --- An answer that is no end of the work has a name.


def answer(text: str = "", reason: str = "stop", refusal: str | None = None) -> AIMessage:
    more = {"refusal": refusal} if refusal else {}
    return AIMessage(text, additional_kwargs=more, response_metadata={"finish_reason": reason})


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (answer("", refusal="I can not help with that."), "refusal"),
        (answer("So far", "length"), "answer_cut_off"),
        (answer("", "length"), "answer_cut_off"),
        (answer("So far", "content_filter"), "answer_cut_off"),
        (answer(""), "empty_answer"),
        (answer(" \n\u200b"), "empty_answer"),
    ],
)
def test_it_is_named(message: AIMessage, name: str) -> None:
    """Blank answers, refusals and cut-offs are failures, not ends."""
    found = unusable_answer(message, "main")

    assert found is not None
    assert (found.code, found.node, found.original_error) == ("llm_failure", "main", name)
    assert name in UNUSABLE


def test_an_answer_is_an_answer() -> None:
    """Also a short one."""
    assert unusable_answer(answer("No."), "main") is None
