"""Teams come with Daruma or from files of one's own; only the one that is asked for is read."""

from pathlib import Path

import pytest

from daruma.state.settings.sections import Team
from daruma.state.settings.tools import Tools
from daruma.tools.team.templates import TemplateRefused, template_named, templates

OWN = "experts: [{name: designer, about: Draws.}]"


def own(folder: Path, **files: str) -> Team:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return Team(folders=(str(folder),))


@pytest.mark.parametrize(
    ("name", "experts"),
    [
        ("coding", ("developer", "tester", "writer")),
        ("research", ("researcher", "analyst", "writer")),
    ],
)
def test_built_in_teams_can_be_used(name: str, experts: tuple[str, ...]) -> None:
    """PL-07: each expert says what it is for, and is told its part."""
    template = template_named(name, Team(), Tools())

    assert template.names == experts
    assert all(each.about and each.prompt for each in template.experts)


def test_none_stands_for_the_template_of_the_settings(tmp_path: Path) -> None:
    """MO-02: a message that names none gets that one."""
    team = own(tmp_path, web=OWN).model_copy(update={"template": "web"})

    assert template_named(None, team).name == "web"
    assert template_named(None, Team()).name == "coding"


def test_ones_own_templates_win(tmp_path: Path) -> None:
    """Over built-in ones, and over those of folders that are named later."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = own(tmp_path / "a", coding=OWN), own(tmp_path / "b", coding=OWN, x=OWN)
    team = Team(folders=(*first.folders, *second.folders, str(tmp_path / "not there")))
    (tmp_path / "b" / "coding.yaml").write_text("broken: [")

    assert template_named("coding", team).names == ("designer",)
    assert sorted(templates(team)) == ["coding", "research", "x"]
    assert len(templates(team)) == 3


def test_folders_are_relative_to_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `daruma.yaml` is."""
    (tmp_path / "teams").mkdir()
    own(tmp_path / "teams", web=OWN)
    monkeypatch.chdir(tmp_path)

    assert template_named("web", Team(folders=("teams",))).names == ("designer",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("codign", "'codign'; did you mean 'coding'? There are: coding, research, web"),
        ("zzz", "'zzz'. There are: coding, research, web"),
        ("../web", "There are: coding, research, web"),
    ],
)
def test_an_unknown_template_is_refused(name: str, said: str, tmp_path: Path) -> None:
    """MO-06: those that there are, are listed."""
    with pytest.raises(TemplateRefused) as refused:
        template_named(name, own(tmp_path, web=OWN))

    assert str(refused.value).startswith(f"there is no team template {name!r}")
    assert str(refused.value).endswith(said)


def test_a_broken_file_is_no_hindrance_to_others(tmp_path: Path) -> None:
    """It is read when its template is asked for."""
    team = own(tmp_path, web="broken: [")

    assert template_named("coding", team).name == "coding"
    with pytest.raises(TemplateRefused, match=r"web\.yaml"):
        template_named("web", team)


def test_a_profile_has_to_be_there(tmp_path: Path) -> None:
    """One's own or a built-in one; the error names the file and the key."""
    text = "experts: [{name: a, about: b, profile: read_onyl}, {name: c, about: d, profile: mine}]"
    team = own(tmp_path, web=text)

    with pytest.raises(TemplateRefused) as refused:
        template_named("web", team, Tools())
    (tmp_path / "web.yaml").write_text(text.replace("onyl", "only"))

    key = f"{tmp_path}/web.yaml: key 'experts.0.profile': there is no profile 'read_onyl'"
    assert str(refused.value).startswith(key)
    assert template_named("web", team, Tools(profiles={"mine": ("search_*",)})).name == "web"
    with pytest.raises(TemplateRefused, match=r"experts\.1\.profile"):
        template_named("web", team, Tools())
