"""A plan is read out of what a model wrote, however it is wrapped."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.plan import NoPlan, Plan, PlanRefused, plan_from, plan_in

BARE = '{"phases": [{"id": "a", "title": "A", "instructions": "do"}]}'


def read(text: str) -> Plan:
    return plan_in(text, plan_id="t/1/plan-1", goal="Do it")


def build(content: dict[str, Any]) -> Plan:
    return plan_from(content, plan_id="t/1/plan-1", goal="Do it")


@pytest.mark.parametrize(
    "text",
    [
        BARE,
        f"```json\n{BARE}\n```",
        f"Here it is:\n{BARE}\nTell me what you think.",
        BARE.replace("]}", "],}"),
        BARE.replace('"do"', '"do",'),
    ],
    ids=["bare", "fenced", "between words", "trailing comma", "comma in a phase"],
)
def test_a_plan_is_found_in_an_answer(text: str) -> None:
    """Models wrap and bend their JSON; the plan is the same."""
    (phase,) = read(text).phases

    assert (phase.id, phase.title, phase.instructions) == ("a", "A", "do")


QUOTED = '{"phases": [{"id": "p1", "title": "...", "instructions": "...", "depends_on": []}]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the answer was empty"),
        (" \n", "the answer was empty"),
        ("Sorry, I can not make a plan for that.", "no JSON object of the form"),
        ("First I look (see [1]), then I fix {it}.", "no JSON object of the form"),
        ("1. Look\n2. Fix", "no JSON object of the form"),
        ('{"error": "not allowed"}', "no JSON object of the form"),
        ('{"steps": [{"title": "Look"}, {"title": "Fix"}]}', "no JSON object of the form"),
        ('["look", "fix"]', "no JSON object of the form"),
        ("null", "no JSON object of the form"),
        ('{"phases": [{"title": "Back up"}, {"title": "Delete the o', "no JSON object of the form"),
        ('{"phases": "look, then fix"}', "a plan has the form"),
        ('{"phases": {"p1": {"title": "Look"}}}', "a plan has the form"),
        ('{"phases": []}', "no phases"),
        ('{"phases": [7]}', "phase 1 is not an object"),
        ('{"phases": [{"title": "A"}, {"id": "b", "name": "B"}]}', "phase 2 does not say what"),
        (f"I can not fill in the form {QUOTED} for that.", "phase 1 does not say what to do"),
        ('{"phases": [""]}', "phase 1 does not say what to do"),
        ('{"phases": [{"title": "A", "depends_on": [], "rollback": 7}]}', "wrong value for"),
    ],
)
def test_what_has_another_shape_is_no_plan(text: str, said: str) -> None:
    """MO-11: a refusal, prose, JSON of another shape, what breaks off; with what was wrong."""
    with pytest.raises(NoPlan, match=said):
        read(text)


@pytest.mark.parametrize(
    "phases",
    [
        [{"id": "a"}, {"id": "a"}],
        [{"id": "a", "depends_on": ["b"]}],
        [{"id": "a", "depends_on": ["a"]}],
        [{"title": "x"}] * 51,
    ],
)
def test_a_plan_that_can_not_be_carried_out_is_one_nevertheless(phases: list[Any]) -> None:
    """PL-01: it is corrected, as one that was made."""
    with pytest.raises(PlanRefused) as refused:
        build({"phases": phases})

    assert not isinstance(refused.value, NoPlan)


def test_a_title_is_one_short_line() -> None:
    """At most 120 characters; the instructions keep all."""
    (phase,) = build({"phases": [{"instructions": "x" * 200}]}).phases

    assert phase.title == "x" * 120
    assert phase.instructions == "x" * 200


def test_ids_and_dependencies_may_be_numbers() -> None:
    """Models count; a lone dependency is a list of one."""
    plan = build(
        {"phases": [{"id": 1, "title": "A"}, {"id": 2, "title": "B", "depends_on": [1]}]}
        | {"goal": " "}
    )
    lone = build({"phases": [{"id": "a", "title": "A"}, {"title": "B", "depends_on": "a"}]})

    assert plan.phases[1].depends_on == ("1",)
    assert lone.phases[1].depends_on == ("a",)
    assert plan.goal == "Do it"


def test_a_plan_can_not_claim_what_only_a_run_can_say() -> None:
    """A status or an outcome in the given plan is not taken over."""
    (phase,) = build(
        {"phases": [{"title": "A", "status": "completed", "outcome": "failed"}]}
    ).phases

    assert (phase.status, phase.outcome) == ("pending", None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "a plan has the form"),
        ({"phases": "all"}, "a plan has the form"),
        ({"phases": []}, "no phases"),
        ({"phases": [7]}, "phase 1 is not an object"),
        ({"phases": [{"title": "A", "rollback_command": 7}]}, "wrong value for: rollback_command"),
        ({"phases": [{"title": "A", "depends_on": ["b"]}]}, "unknown phases: b"),
        ({"phases": [{"id": "a", "depends_on": ["a"]}]}, "depend on each other: a -> a"),
    ],
)
def test_what_is_no_plan_is_refused_with_why(content: dict[str, Any], said: str) -> None:
    """PL-01: the reason is one line that a model or a person can act on."""
    with pytest.raises(PlanRefused, match=said) as refused:
        build(content)

    assert "\n" not in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "title", "instructions", "depends_on", "phases"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.long
@given(st.dictionaries(st.sampled_from(["phases", "goal"]), JSON))
def test_anything_at_all_is_a_plan_or_refused(content: dict[str, Any]) -> None:
    """No shape of JSON makes the reading fail in another way."""
    try:
        plan = build(content)
    except PlanRefused:
        return

    assert all(phase.title for phase in plan.phases)


@given(st.text(max_size=40) | st.text(alphabet='{}[]",:phases "', max_size=40))
def test_any_text_is_a_plan_or_refused(text: str) -> None:
    """Nor does any answer."""
    with suppress(PlanRefused):
        assert read(f'{text}"phases"{text}').phases


@pytest.mark.parametrize(
    "text",
    [
        'Use {x}, then ```json\n{"phases": [{"title": "A"}, {"title": "B"}]}\n``` and {y}.',
        '[{"title": "A"}, {"title": "B"}]',
        'Sure: {"goal": "g", "phases": [{"title": "A"}, {"title": "B"}]}',
        "{'phases': [{'title': 'A'}, {'title': 'B'},]} \"phases\"",
    ],
)
def test_a_plan_is_found_wherever_it_stands(text: str) -> None:
    """Fenced, between words with braces, as a bare list, or a little broken."""
    plan = plan_in(text, plan_id="p", goal="g")

    assert [phase.title for phase in plan.phases] == ["A", "B"]


def test_a_plan_has_a_bound() -> None:
    """Each phase has a budget of its own."""
    with pytest.raises(PlanRefused, match="51 phases; 50 is the most"):
        plan_from({"phases": [{"title": "x"}] * 51}, plan_id="p", goal="g")


def test_a_person_s_unknown_key_is_refused() -> None:
    """A typo in a rollback must not be lost."""
    edited = {"phases": [{"title": "x", "rollback_comand": "undo"}]}

    with pytest.raises(PlanRefused, match="did you mean 'rollback_command'"):
        plan_from(edited, plan_id="p", goal="g", strict=True)


@pytest.mark.parametrize("strict", [True, False])
def test_phases_of_a_team_name_its_experts(strict: bool) -> None:
    """PL-06: one that does not is refused with the names there are."""
    phases = [{"id": "a", "expert": "writer"}, {"id": "b", "expert": "cook"}]
    given = {"phases": phases}

    with pytest.raises(PlanRefused, match="'b' has an unknown expert 'cook'; there are: writer, t"):
        plan_from(given, plan_id="p", goal="g", experts=("writer", "t"), strict=strict)
    plan = plan_from(given, plan_id="p", goal="g", experts=("writer", "cook"), strict=strict)
    assert plan_from(given, plan_id="p", goal="g", strict=strict) == plan
