"""A plan that nobody confirmed in time is parked, said to be, and taken up by a late answer."""

import pytest
from tests.daruma_command import DONE, OTHER_PLAN, PLAN, Daruma, Said


@pytest.fixture
def late(daruma: Daruma) -> Daruma:
    """The command, with a review on thread ``t`` whose deadline has passed."""
    (daruma.folder / "daruma.yaml").write_text("spec_review: {timeout: 0.001}\n")
    model = daruma.script(plan=[PLAN, OTHER_PLAN], main=[DONE])
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    return daruma


def standing(daruma: Daruma) -> str:
    (row,) = daruma("threads").out.splitlines()
    return row.split("\t")[1]


def test_resuming_parks_an_overdue_review_and_says_so(late: Daruma) -> None:
    """PL-03: exit code 3, the result, the question again, and how to answer it."""
    before, said, after = standing(late), late("resume", "t"), standing(late)

    assert (before, after) == ("waiting", "parked")
    assert said.code == 3
    assert "plan parked: nobody confirmed it in time" in said.out
    assert "─── ✗ parked ───" in said.out
    assert "Is this plan right?  parked: it waits, without a deadline" in said.out
    assert "daruma answer t --confirm\n" in said.out


def test_a_parked_plan_goes_on_once_it_is_confirmed(late: Daruma) -> None:
    """However late: by its own answer, or by agreeing to what waits."""
    late("resume", "t")

    said = late("answer", "t", "--confirm", "--json")

    assert (said.code, said.json["status"]) == (0, "completed")
    assert standing(late) == "completed, not checked"


def test_a_parked_plan_can_be_looked_at(late: Daruma) -> None:
    """``show`` and ``resume`` change nothing of it, and offer the same."""
    parked = late("resume", "t", "--json")

    shown, again = late("show", "t"), late("resume", "t", "--json")

    assert (parked.code, parked.json["status"]) == (3, "parked")
    assert parked.json["interrupts"][0]["value"]["parked"] is True
    assert again.json == parked.json
    assert "thread t  parked" in shown.out
    assert "daruma answer t --confirm\n" in shown.out
    assert late("show", "t", "--json").json["status"] == "parked"


def test_agreeing_beforehand_confirms_what_is_overdue(late: Daruma) -> None:
    """``--yes`` is an answer, and a late one counts."""
    said: Said = late("resume", "t", "--yes", "--json")

    assert (said.code, said.json["status"]) == (0, "completed")
