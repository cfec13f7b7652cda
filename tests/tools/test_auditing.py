"""What was changed between a model's words and what runs is on record, and nothing else."""

from tests.parts import a_call

from daruma.state.steps import ArgumentRepair, LeftOut, NameChange, RepairRound
from daruma.tools.calls.answers import audit_of, changes_of


def test_an_answer_that_runs_as_it_was_said_has_nothing_to_tell() -> None:
    """TL-11: its audit is empty."""
    assert audit_of("m1", [a_call("c1")]).empty


def test_of_such_an_answer_no_audit_is_made() -> None:
    """Of any other it is the audit."""
    mended = a_call("c1", rungs=("trailing comma",))
    left_out = LeftOut(total=3, executed=1, omitted=2, limit=1, names=("shout",))

    assert changes_of("m1", [a_call("c1")]) is None
    assert changes_of("m1", [mended]) == audit_of("m1", [mended])
    assert changes_of("m1", [], left_out=left_out) == audit_of("m1", [], left_out=left_out)


def test_a_name_that_was_found_otherwise_is_told() -> None:
    """TL-04: with the way in which it was found."""
    call = a_call("c1", requested_name="Shout", name_resolution="normalized")

    assert audit_of("m1", [call]).names == (
        NameChange(tool_call_id="c1", requested_name="Shout", name="shout", how="normalized"),
    )


def test_a_call_that_was_passed_on_is_told() -> None:
    """TL-19: the name itself was right, the tool declared another one."""
    call = a_call("c1", requested_name="whisper", rungs=("whisper with loud is shout",))

    audit = audit_of("m1", [call])

    assert [name.how for name in audit.names] == ["promoted"]
    assert audit.arguments == (
        ArgumentRepair(tool_call_id="c1", name="shout", repaired_by="rules", rungs=call.rungs),
    )


def test_the_names_of_an_answer_are_bounded() -> None:
    """TL-04: twenty, and a word if there were more."""
    calls = [a_call(f"c{n}", requested_name="Shout") for n in range(21)]

    all_of_them, more = audit_of("m1", calls[:20]), audit_of("m1", calls)

    assert (len(all_of_them.names), all_of_them.names_cut) == (20, False)
    assert (len(more.names), more.names_cut) == (20, True)


def test_what_was_left_out_and_what_was_asked_stand_beside_it() -> None:
    """TL-16 and TL-08: also where no call was changed."""
    left_out = LeftOut(total=3, executed=2, omitted=1, limit=2, names=("shout",))
    asked = RepairRound(kind="names", attempt=1, candidates=("c1",), repaired=(), failed=("c1",))

    audit = audit_of("m1", [], left_out=left_out, asked=asked)

    assert (audit.message_id, audit.left_out, audit.round) == ("m1", left_out, asked)
    assert not audit.empty
