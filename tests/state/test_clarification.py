"""A clarification, and those that were asked with it."""

from dataclasses import replace

from daruma.state.conversation import Clarification, each_of, joined, with_status

FIRST = Clarification(call_id="a", target_action="pay", missing_fields=("sum",))
SECOND = replace(FIRST, call_id="b")


def test_several_are_one_and_come_apart_again() -> None:
    """None is lost."""
    both = joined((FIRST, SECOND))

    assert each_of(both) == (FIRST, SECOND)
    assert joined(()) is None
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
