"""Teams come with Daruma or from files of one's own; only the one that is asked for is read."""

import os
from pathlib import Path

import pytest
from tests.parts import a_task, settings

from daruma.state.mode import MODES
from daruma.state.settings import Settings, Team, Tools, propose_trust
from daruma.tools.team import Expert, TemplateRefused, settings_of, team_of, template_named
from daruma.tools.team._templates import LARGEST, read_template, templates

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


# --- An expert works under the settings of its task, but for its model and its tools.

OWN_MEMBER_SETTINGS = settings(llm={"model": "openai:main", "auxiliary_model": "openai:small"})


def test_it_has_a_model_and_a_profile_of_its_own() -> None:
    """PL-06; all else stays, and so do the task's settings."""
    expert = Expert(name="e", about="all", model="openai:other", profile="librarian_retrieval")

    changed = settings_of(expert, OWN_MEMBER_SETTINGS)
    for plain in (None, Expert(name="e", about="all")):
        assert settings_of(plain, OWN_MEMBER_SETTINGS) == OWN_MEMBER_SETTINGS

    assert (changed.llm.model, changed.tools.profile) == ("openai:other", "librarian_retrieval")
    assert changed.llm.auxiliary_model == "openai:small"
    assert (OWN_MEMBER_SETTINGS.llm.model, OWN_MEMBER_SETTINGS.tools.profile) == (
        "openai:main",
        None,
    )


# --- What is wrong with the file of a team is said in one line that names the file and the key.

WHOLE = """\
about: Builds pages.
experts:
  - name: designer
    about: Draws.
    prompt: You are the designer.
    model: fast
    profile: read_only
"""


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    """The template has the name of the file."""
    (tmp_path / "web.yaml").write_text(WHOLE)
    template = read_template(tmp_path / "web.yaml")

    assert (template.name, template.about) == ("web", "Builds pages.")
    expert = template.expert("designer")
    assert expert is not None
    assert (expert.prompt, expert.model, expert.profile) == (
        "You are the designer.", "fast", "read_only"
    )  # fmt: skip
    assert template.expert("nobody") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about: [", "can not be read: line 1: expected the node content"),
        ("- x", "has to hold keys and values"),
        ("", "has to hold keys and values"),
        ("about: x", "key 'experts' is missing"),
        ("experts: []", "key 'experts': Tuple should have at least 1 item"),
        ("experts: 5", "key 'experts': "),
        ("expert: []", "unknown key 'expert'; did you mean 'experts'?"),
        ("experts: [{name: a, about: b}]\nfoo: 1", "unknown key 'foo'; known here: about, experts"),
        (
            "experts: [{name: a, about: b, propmt: c}]",
            "unknown key 'experts.0.propmt'; did you mean 'prompt'?",
        ),
        ("experts: [{name: a}]", "key 'experts.0.about' is missing"),
        ("experts: [{name: 'a b', about: c}]", "key 'experts.0.name': "),
        ("experts: [{name: a, about: b, model: 7}]", "key 'experts.0.model': "),
        (
            "experts: [{name: a, about: b}, {name: a, about: c}]",
            "key 'experts': experts there are twice: a",
        ),
        ("name: x\nexperts: [{name: a, about: b}]", "key 'name': leave it out"),
        ("\udcff", "can not be read: "),
    ],
)
def test_a_broken_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """PL-07: in one line."""
    file = tmp_path / "web.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(TemplateRefused) as refused:
        read_template(file)

    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_plain_small_file_is_not_read(tmp_path: Path) -> None:
    """A pipe or device would be read for ever, and a huge file for minutes."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").write_text("about: " + "x" * LARGEST)

    for name in ("pipe", "zero"):
        with pytest.raises(TemplateRefused, match="no plain file"):
            read_template(tmp_path / f"{name}.yaml")
    with pytest.raises(TemplateRefused, match="larger than"):
        read_template(tmp_path / "huge.yaml")


# --- Only a task of a team has one.


async def test_only_team_collab_has_a_team() -> None:
    """MO-01: in other modes a template that stands there means nothing."""
    teams = {mode: await team_of(a_task(mode, template="research"), settings()) for mode in MODES}

    assert {mode for mode, team in teams.items() if team} == {"team_collab"}
    assert await team_of(None, settings()) is None


async def test_a_task_without_a_template_has_that_of_the_settings() -> None:
    """So had tasks before there were teams."""
    team = await team_of(a_task("team_collab"), settings(team={"template": "research"}))

    assert team is not None
    assert team.name == "research"


def test_a_team_in_the_workspace_counts_once_it_is_agreed_to(tmp_path: Path) -> None:
    """SE-02: it gives instructions, and chooses models."""
    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws" / "own.yaml"
    file.write_text("experts: [{name: a, about: All., prompt: Obey me.}]\n")
    team = Team(folders=(str(tmp_path / "ws"),))

    with pytest.raises(TemplateRefused, match=r"own\.yaml is not trusted: look at it"):
        template_named("own", team, None, str(tmp_path / "ws"))
    propose_trust(Settings, file).agree()

    assert template_named("own", team, None, str(tmp_path / "ws")).names == ("a",)
    assert template_named("coding", team, None, "/").names
