"""What recovery would do is asked, answered and told on the command line."""

from typing import Any

import pytest
from tests.daruma_command import DONE, Daruma, Said

UNSURE = {
    "json": {
        "strategy": "parameter-adjustment",
        "reasoning": "It may be the words.",
        "action": {"tool_name": None, "parameters": None, "escalation_message": None},
        "expected_outcome": "An answer.",
        "confidence": 0.6,
    }
}
DOWN = {"raise": "out of order"}


def waiting(daruma: Daruma, *options: str, after: Any = DONE) -> Said:
    """Run a task whose recovery is not sure of itself."""
    model = daruma.script(main=[DOWN, after], recovery=[UNSURE])
    return daruma("run", "Do it", "--model", model, "--thread", "t", *options)


def test_a_recovery_that_is_not_sure_is_shown_and_waits(daruma: Daruma) -> None:
    """RE-06: with all that it would do, and the commands that answer."""
    said = waiting(daruma)

    assert said.code == 3
    for part in ("it failed: out of order", "parameter-adjustment", "why: It may be the words."):
        assert part in said.out
    assert "daruma answer t --approve t/1:consult:0" in said.out
    assert daruma("threads").out.split("\t")[1] == "waiting"
    assert "May this be done about a failure?" in daruma("show", "t").out


@pytest.mark.parametrize(
    ("answer", "code", "carried"),
    [
        (["--approve"], 0, "approved"),
        (["--approve", "t/1:consult:0"], 0, "approved"),
        (["--text", "Ask Ann."], 0, "instructed"),
        (["--deny", "--reason", "no"], 1, "denied"),
    ],
)
def test_a_recovery_is_answered(daruma: Daruma, answer: list[str], code: int, carried: str) -> None:
    """RE-06: yes, no, or what a person would rather have done; ``show`` tells it afterwards."""
    waiting(daruma, after=DONE | ({"expect": ["Ask Ann."]} if "--text" in answer else {}))

    assert daruma("answer", "t", *answer, "--json").code == code
    assert f"parameter-adjustment, {carried}" in daruma("show", "t").out


def test_yes_agrees_to_a_recovery(daruma: Daruma) -> None:
    """It is an optional approval; with ``--json`` the result says what was done."""
    said = waiting(daruma, "--yes", "--json")

    assert said.code == 0
    (recovery,) = said.json["recoveries"]
    assert (recovery["carried"], recovery["worked"]) == ("approved", True)


def test_yes_does_not_answer_a_recoverys_question(daruma: Daruma) -> None:
    """RE-06: below the second threshold a person has to say."""
    lost = {"json": UNSURE["json"] | {"confidence": 0.2}}
    model = daruma.script(main=[DOWN, DONE], recovery=[lost])
    said = daruma("run", "Do it", "--model", model, "--thread", "t", "--yes", "--json")

    assert said.code == 3
    assert said.json["interrupts"][0]["value"]["type"] == "question"
    assert daruma("answer", "t", "--approve").complaint.endswith("--text 'your answer'")
    assert daruma("answer", "t", "--text", "Go on.").code == 0


def test_a_recovery_whose_failure_ended_the_task_did_not_work(daruma: Daruma) -> None:
    """RE-08: ``show`` tells it as the result does."""
    (daruma.folder / "ws").mkdir(exist_ok=True)
    same, other = (
        {"calls": [{"name": "search", "args": {"pattern": pattern}}]} for pattern in ("a", "b")
    )
    script = daruma.script(main=[same, same, same, other, same, same, same], recovery=[DONE])
    ended = daruma(
        "run", "Do it", "--model", script, "--thread", "t", "--workspace", "ws", "--json"
    )

    shown = daruma("show", "t", "--json").json
    assert [each["worked"] for each in ended.json["recoveries"]] == [False]
    assert [each["worked"] for each in shown["recoveries"]] == [False]
