"""What experience is searched by."""

from pathlib import Path

from daruma.tools.evolution.task_query import LONGEST, skills_about, task_query


def skill(folder: Path, name: str, about: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {about}\n---\nDo.\n")


def test_skills_that_the_goal_is_about_are_named(tmp_path: Path) -> None:
    """EV-05: by their name or what they say of themselves; others are not."""
    skill(tmp_path, "invoice-rounding", "How invoices are rounded")
    skill(tmp_path, "logo-drawing", "How the logo is drawn")

    assert skills_about("Fix the rounding of the invoices", [str(tmp_path)]) == (
        "invoice-rounding",
    )
    assert skills_about("Fix the rounding of the invoices", []) == ()


def test_the_query_is_the_goal_and_the_skills() -> None:
    """Bounded, as goals may hold whole logs."""
    assert task_query("Fix it", ("a", "b")) == "Fix it a b"
    assert task_query("x" * 10_000, ("a",)) == "x" * LONGEST + " a"
