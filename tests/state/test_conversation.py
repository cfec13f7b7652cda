"""Kept between tasks: questions, continuity, and their older forms (CO-01 to CO-03)."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.conversation import (
    RESUME,
    Clarification,
    Continuity,
    continuity_of,
    each_of,
    join_clarifications,
    reduce_continuity,
    to_snapshot,
    with_status,
)

# --- A clarification, and those that were asked with it.

FIRST = Clarification(call_id="a", target_action="pay", missing_fields=("sum",))
SECOND = replace(FIRST, call_id="b")


def test_several_are_one_and_come_apart_again() -> None:
    """None is lost."""
    both = join_clarifications((FIRST, SECOND))

    assert each_of(both) == (FIRST, SECOND)
    assert join_clarifications(()) is None
    assert each_of(None) == ()


def test_all_of_them_have_one_status() -> None:
    """They were asked in one question."""
    both = with_status(replace(FIRST, also=(SECOND,)), "stale", asked=2)

    assert [each.status for each in each_of(both)] == ["stale", "stale"]
    assert both.asked == 2


def test_it_is_json_with_the_names_of_co_01() -> None:
    """What there is not is left out."""
    plain = replace(FIRST, also=(SECOND,), extra={"a": 1}).to_dict()

    assert set(FIRST.to_dict()) == {
        "owning_agent",
        "owning_sub_commander",
        "target_action",
        "question",
        "partial_args",
        "missing_fields",
        "status",
    }
    assert plain["also"] == [SECOND.to_dict()]
    assert plain["extra"] == {"a": 1}


# --- What is handed over does not take the place of what a thread has of its own.

OPEN = Continuity(mode=RESUME)
STALE = Continuity(status="stale")
GIVEN = {"pending_action": "pay"}


@pytest.mark.parametrize(
    ("known", "write", "kept"),
    [
        (None, GIVEN, GIVEN),
        (STALE, GIVEN, GIVEN),
        (Continuity(), GIVEN, GIVEN),
        (OPEN, GIVEN, OPEN),
        ({"action": "old"}, GIVEN, {"action": "old"}),
        (OPEN, STALE, STALE),
        (GIVEN, STALE, STALE),
        (OPEN, None, None),
    ],
)
def test_a_threads_own_continuity_is_kept(known: Any, write: Any, kept: Any) -> None:
    """CO-02: what is open on it, also where an old checkpoint holds it raw; nodes write all."""
    assert reduce_continuity(known, write) == kept


# --- CO-03: what applications kept in older forms becomes the form of today, and nothing is lost.

ASKED = Clarification(
    target_action="create_reminder",
    question="When?",
    partial_args={"title": "Milk"},
    missing_fields=("reminder_date",),
)
OLD: list[dict[str, Any]] = [
    {
        "active_sub_flow": "create_reminder",
        "awaiting_user_input": True,
        "pending_question": "When?",
        "collected_args": {"title": "Milk"},
        "missing": ["reminder_date"],
    },
    {
        "activeSubFlow": {"name": "create_reminder", "slots": {"title": "Milk"}},
        "awaitingUserInput": "true",
        "pendingQuestion": {"text": "When?", "field": "reminder_date"},
        "schemaVersion": 1,
    },
    {
        "continuity": {"pending-action": {"tool": "create_reminder", "args": {"title": "Milk"}}},
        "question": "When?",
        "missing_slots": "reminder_date",
        "status": "awaiting",
    },
    {
        "status": "fresh",
        "mode": RESUME,
        "clarification": {
            "target_action": "create_reminder",
            "question": "When?",
            "partial_args": {"title": "Milk"},
            "missing_fields": ["reminder_date"],
            "status": "open",
        },
    },
]


@pytest.mark.parametrize("snapshot", OLD)
def test_every_older_form_is_the_same_clarification(snapshot: dict[str, Any]) -> None:
    """Flat or in groups, in any spelling, with truths as texts."""
    continuity, clarification, aside = continuity_of(snapshot)

    assert (continuity, clarification) == (Continuity(mode=RESUME), ASKED)
    assert aside == {}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"awaiting_user_input": "false"}, "stale"),
        ({"awaiting_user_input": 0}, "stale"),
        ({"status": "stale"}, "stale"),
        ({"status": "completed"}, "completed"),
        ({}, "open"),
    ],
)
def test_what_waits_for_nobody_is_stale(more: dict[str, Any], status: str) -> None:
    """Only an open one is gone on with."""
    continuity, clarification, _ = continuity_of({"pending_action": "pay"} | more)

    assert clarification is not None
    assert clarification.status == status
    assert (continuity.mode == RESUME) is (status == "open")


def test_what_is_not_known_is_kept_aside() -> None:
    """By its path, as it was; what can not be what its key says, too."""
    found = continuity_of(
        {
            "pending_action": {"name": "pay", "retries": 2},
            "awaiting_user_input": "perhaps",
            "schema_version": 7,
            "theme": {"colour": "dark"},
        }
    )

    assert found.clarification is not None
    assert found.clarification.extra == found.kept_aside
    assert found.kept_aside == {
        "pending_action.retries": 2,
        "awaiting_user_input": "perhaps",
        "schema_version": 7,
        "theme": {"colour": "dark"},
    }


def test_without_an_action_all_is_kept_aside() -> None:
    """Nobody knows what it was about."""
    continuity, clarification, aside = continuity_of({"question": "When?", "status": "open"})

    assert clarification is None
    assert aside == continuity.extra == {"question": "When?", "status": "open"}


def test_what_can_not_be_stored_becomes_text() -> None:
    """Of a NUL, half a character, a number of many digits, any object."""
    found = continuity_of({"a": "\0\ud800", "b": 2**70, "c": float("nan"), "d": object, "e": {1}})

    json.dumps(found.kept_aside, allow_nan=False).encode()
    assert found.kept_aside["e"] == [1]
    assert "object" in found.kept_aside["d"]


def test_what_holds_itself_has_an_end() -> None:
    """Also where it does so many times, which would be more than any memory holds."""
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"state": deep}
    within: dict[str, Any] = {"active_sub_flow": "pay"}
    within |= {"state": within, "also": [within, within], "deep": deep}

    clarification, aside = continuity_of(within)[1:]

    assert clarification is not None
    assert clarification.target_action == "pay"
    assert len(json.dumps(aside)) < 10_000_000


KEYS = st.sampled_from(
    [
        "active_sub_flow",
        "awaitingUserInput",
        "pending_action",
        "pending-question",
        "collected_args",
        "slots",
        "missing",
        "missingFields",
        "status",
        "mode",
        "schema_version",
        "extra",
        "also",
        "asked",
        "clarification",
        "continuity",
        "question",
        "target_action",
        "targetAction",
        "name",
        "text",
        "field",
        "owning_agent",
        "task_id",
        "call_id",
        "goal",
        "a.b",
        "a",
        "b",
        "+",
    ]
) | st.text(max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["true", "False", "open", "stale", "fresh", "pay", RESUME, "1"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
SNAPSHOTS = st.dictionaries(KEYS, VALUES, max_size=6)


@given(SNAPSHOTS)
def test_what_is_canonical_stays_as_it_is(snapshot: dict[str, Any]) -> None:
    """Any old form in, canonical out, which can be stored; and that is read back as the same."""
    found = continuity_of(snapshot)
    written = to_snapshot(found)

    assert continuity_of(written) == found
    assert json.loads(json.dumps(written, allow_nan=False)) == written


@given(SNAPSHOTS, st.text("xyz", min_size=4, max_size=9), st.integers() | st.text(max_size=9))
def test_what_is_unknown_is_never_lost(snapshot: dict[str, Any], key: str, value: object) -> None:
    """Beside anything else."""
    found = continuity_of({**snapshot, key: value})
    alone = continuity_of({key: value})

    assert [each for name, each in found.kept_aside.items() if name.rstrip("+") == key] == [
        *alone.kept_aside.values()
    ]
