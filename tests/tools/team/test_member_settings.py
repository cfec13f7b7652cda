"""An expert works under the settings of its task, but for its model and its tools."""

import pytest
from tests.parts import settings

from daruma.tools.team.templates import Expert, settings_of

OWN = settings(llm={"model": "openai:main", "auxiliary_model": "openai:small"})


@pytest.mark.parametrize("expert", [None, Expert(name="e", about="all")])
def test_without_wishes_all_is_the_tasks_own(expert: Expert | None) -> None:
    """Nobody named one, or it has none."""
    assert settings_of(expert, OWN) == OWN


def test_it_has_a_model_and_a_profile_of_its_own() -> None:
    """PL-06; all else stays, and so do the task's settings."""
    expert = Expert(name="e", about="all", model="openai:other", profile="librarian_retrieval")

    changed = settings_of(expert, OWN)

    assert (changed.llm.model, changed.tools.profile) == ("openai:other", "librarian_retrieval")
    assert changed.llm.auxiliary_model == "openai:small"
    assert (OWN.llm.model, OWN.tools.profile) == ("openai:main", None)
