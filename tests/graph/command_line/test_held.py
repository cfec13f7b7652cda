"""A thread whose rollback failed stops, says so, and goes on as a person decides (RO-03)."""

import pytest
from tests.daruma_command import DONE, Daruma

SETTINGS = """
budgets: {verify: 2, reflect: 0}
verification: {commands: ["test -e green"]}
"""
PHASES = [
    {"id": "p1", "title": "Do it", "rollback_command": "test -e mended"},
    {"id": "p2", "title": "Do more"},
]


@pytest.fixture
def held(daruma: Daruma) -> Daruma:
    """The command, with thread ``t`` that failed in its first phase, and then to roll it back."""
    (daruma.folder / "daruma.yaml").write_text(SETTINGS)
    daruma.script(plan=[{"json": {"phases": PHASES}}], main=[DONE] * 3)
    return daruma


def run(held: Daruma) -> list[str]:
    """The result, and what a person can say to it."""
    model = ("--model", "scripted:script.json", "--mode", "plan_exec")
    said = held("run", "Do it", *model, "--workspace", "ws", "--thread", "t", "--yes", "--json")
    assert said.code == 1, said.err
    assert said.json["status"] == "failed"
    assert said.json["error_struct"]["error_code"] == "rollback_failed"
    return [line.strip() for line in said.err.splitlines()]


def standing(daruma: Daruma) -> str:
    (row,) = daruma("threads").out.splitlines()
    return row.split("\t")[1]


def test_a_held_thread_has_its_result_and_says_how_to_answer(held: Daruma) -> None:
    """Exit code 1 and the result for programs; the question, and each answer, for people."""
    told = run(held)

    shown = held("show", "t")
    assert [line for line in told if "daruma answer" in line] == [
        "daruma answer t --text retry",
        "daruma answer t --text restore",
        "daruma answer t --text keep",
    ]
    assert standing(held) == "held"
    assert "thread t  held" in shown.out
    assert "daruma answer t --text retry\n" in shown.out
    assert held("show", "t", "--json").json["status"] == "held"


def test_what_is_no_answer_leaves_it_held(held: Daruma) -> None:
    """One line that names what can be said."""
    run(held)

    said = held("answer", "t", "--text", "whatever")

    assert "one of: retry, restore, keep" in said.complaint
    assert standing(held) == "held"


def test_a_rollback_is_tried_again_once_that_can_help(held: Daruma) -> None:
    """What stood in its way was mended by hand; the other phase is done after it."""
    run(held)
    (held.folder / "ws" / "mended").touch()
    (held.folder / "ws" / "green").touch()

    said = held("answer", "t", "--text", "retry", "--json")

    assert "retry: the rollback is tried again" in said.err
    assert [each["status"] for each in said.json["phases"]] == ["failed", "completed"]
    assert said.code == 1
    assert "interrupts" not in said.json
    assert standing(held) == said.json["status"]


def test_files_are_kept_as_they_are_if_a_person_says_so(held: Daruma) -> None:
    """Nothing is rolled back, and the thread is free again."""
    run(held)
    (held.folder / "ws" / "green").touch()

    said = held("answer", "t", "--text", "keep", "--json")

    assert "keep: the files stay as they are" in said.err
    assert standing(held) == said.json["status"] != "held"
    assert any("a person kept the files" in note for note in said.json["notes"])
