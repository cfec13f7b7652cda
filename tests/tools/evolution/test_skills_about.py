"""Which skills a task is about, before it has loaded any."""

from pathlib import Path

from daruma.tools.evolution.text import skills_about


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
