"""Only a task of a team has one."""

import pytest
from tests.parts import a_task, settings

from daruma.state.mode import MODES
from daruma.tools.team.templates import TemplateRefused, team_of


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


async def test_a_template_that_is_gone_is_refused() -> None:
    """Its file may have been removed while the task waited."""
    with pytest.raises(TemplateRefused, match="no team template 'gone'"):
        await team_of(a_task("team_collab", template="gone"), settings())
