"""A team that settings ask for is looked at before anything is run."""

from pathlib import Path

import pytest
from tests.parts import settings

from daruma.graph.build import build_graph
from daruma.graph.contexts import check_team
from daruma.graph.models.faults import ModelUnavailable
from daruma.tools.team.templates import TemplateRefused


def text(model: str) -> str:
    return f"experts: [{{name: a, about: b, model: {model!r}}}]"


@pytest.mark.parametrize("model", ["openai:x", "scripted:file.yaml", "fast"])
def test_experts_models_that_mean_something_are_accepted(model: str, tmp_path: Path) -> None:
    """As for llm.model: a name or an alias; no key is asked for."""
    (tmp_path / "web.yaml").write_text(text(model))
    team = {"template": "web", "folders": [str(tmp_path)]}

    check_team(settings(team=team, llm={"model_aliases": {"fast": "openai:y"}}))


def test_an_experts_model_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """When the graph is built, with the team and the expert."""
    (tmp_path / "web.yaml").write_text(text("gpt"))
    given = settings(team={"template": "web", "folders": [str(tmp_path)]})

    with pytest.raises(ModelUnavailable, match="'web', model of expert 'a': unknown model \"gpt\""):
        build_graph("openai:x", settings=given)


@pytest.mark.parametrize("sections", [{"team": {"template": "wbe"}}, {"mode": "team_collab"}])
def test_a_team_that_is_asked_for_has_to_be_there(
    sections: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MO-06: by its name, or by the mode."""
    (tmp_path / "coding.yaml").write_text("broken: [")
    team = {"folders": [str(tmp_path)]} if "mode" in sections else {}
    monkeypatch.chdir(tmp_path)

    with pytest.raises(TemplateRefused):
        check_team(settings(**{"team": team, **sections}))


def test_settings_that_ask_for_no_team_are_not_looked_at(tmp_path: Path) -> None:
    """A file that nobody asks for is no hindrance."""
    (tmp_path / "web.yaml").write_text("broken: [")

    check_team(settings())
    check_team(settings(team={"folders": [str(tmp_path)]}))
