"""Settings have a default for everything, and errors that say which key and what to do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.parts import settings

from daruma.state.errors import DarumaError
from daruma.state.settings import Settings, SettingsError


def test_the_defaults_are_those_of_the_specification() -> None:
    """BU-01, MO-04, VE-04, RO-04, PL-03, RE-06, RE-07, TL-16."""
    defaults = Settings()

    budgets = defaults.budgets
    assert (budgets.think, budgets.verify, budgets.reflect, budgets.max_steps) == (50, 4, 2, 50)
    assert budgets.max_steps_per_turn is None
    assert (defaults.verification.max_reinjections, defaults.verification.timeout) == (1, 300)
    assert defaults.rollback.default_timeout == 30
    assert (defaults.spec_review.enabled, defaults.spec_review.timeout) == (True, 1800)
    recovery = defaults.fallback_chain.recovery
    assert (recovery.max_retries, recovery.execute_above, recovery.ask_above) == (1, 0.8, 0.5)
    assert defaults.tools.max_calls_per_turn == 20


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"bugets": {}}, "unknown setting 'bugets'; did you mean 'budgets'?"),
        ({"llm": {"modle": "x"}}, "unknown setting 'llm.modle'; did you mean 'model'?"),
        (
            {"fallback_chain": {"recovery": {"max_retrys": 2}}},
            "unknown setting 'fallback_chain.recovery.max_retrys'; did you mean 'max_retries'?",
        ),
        ({"rollback": {"zzz": 1}}, "unknown setting 'rollback.zzz'; known here: default_timeout"),
        (
            {"tools": {"policy": {"x": {"decision": "deny", "reasn": ""}}}},
            "unknown setting 'tools.policy.x.reasn'; did you mean 'reason'?",
        ),
        ({"budgets": {"think": 0}}, "setting 'budgets.think': Input should be greater than"),
        ({"budgets": {"think": "x"}}, "setting 'budgets.think': Input should be a valid integer"),
        (
            {"verification": {"max_reflections": 1}},
            "unknown setting 'verification.max_reflections'; the one limit on reflections is",
        ),
        (
            {"budgets": {"think": 40, "verify": 20, "reflect": 20}},
            "setting 'budgets.verify': 20 verifications are less than 1 + ",
        ),
        (
            {"verification": {"commands": ["pytest", ""]}},
            "setting 'verification.commands': is blank",
        ),
        ({"verification": {"commands": [" \t"]}}, "setting 'verification.commands': is blank"),
        ({"llm": {"fallback_models": [""]}}, "setting 'llm.fallback_models': is blank"),
        ({"skills": {"folders": [" "]}}, "setting 'skills.folders': is blank"),
        ({"team": {"folders": [""]}}, "setting 'team.folders': is blank"),
        ({"mode": "team"}, "setting 'mode': Input should be 'direct_chat'"),
        ({"verification": {"enabled": "maybe"}}, "setting 'verification.enabled': Input should"),
        ({"tools": {"policy": {"x": "perhaps"}}}, "setting 'tools.policy.x': Input should be 'all"),
    ],
)
def test_a_wrong_setting_is_named(sections: dict[str, Any], said: str) -> None:
    """One line with the key as the user writes it, why, and the nearest known key."""
    with pytest.raises(SettingsError) as refused:
        settings(**sections)

    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sections",
    [
        {"notify": {"webhook": "http://u:hunter2@127.0.0.1/x"}},
        {"notify": {"webhook": "hooks.example.org/hunter2"}},
        {"notify": "https://hooks.example.org/hunter2"},
        {"llm": {"options": {"main": {"base_url": "ftp://u:hunter2@localhost/v1"}}}},
        {"llm": {"options": {"main": {"extra": "hunter2"}}}},
    ],
)
def test_what_may_hold_a_key_is_not_quoted(sections: dict[str, Any]) -> None:
    """SE-08: an address with a password, or with its secret in its path."""
    with pytest.raises(SettingsError, match=r"^setting '") as refused:
        settings(**sections)

    assert "hunter2" not in str(refused.value)


def test_other_problems_are_counted() -> None:
    """The first is explained, the others are not forgotten."""
    with pytest.raises(SettingsError, match=r"and 2 more$"):
        settings(a=1, b=2, c=3)


def test_a_wrong_setting_is_an_error_for_people() -> None:
    """It is told as one line, without a traceback."""
    assert issubclass(SettingsError, DarumaError)


def test_settings_survive_json() -> None:
    """They are the graph's context schema: Studio shows and sends them as JSON."""
    before = settings(tools={"policy": {"run_command": {"decision": "deny", "reason": "no"}}})

    assert Settings.model_validate_json(before.model_dump_json()) == before


def sections(model: type[BaseModel]) -> list[type[BaseModel]]:
    annotations = [field.annotation for field in model.model_fields.values()]
    inner = [a for a in annotations if isinstance(a, type) and issubclass(a, BaseModel)]
    return [model, *(section for each in inner for section in sections(each))]


@pytest.mark.parametrize("section", sections(Settings))
def test_every_section_is_closed_and_frozen(section: type[BaseModel]) -> None:
    """A typing error is never ignored, and a run can not change what another one sees."""
    assert section.model_config["extra"] == "forbid"
    assert section.model_config["frozen"]


@given(verify=st.integers(0, 9), again=st.integers(0, 4), reflect=st.integers(0, 4))
def test_quotas_that_can_not_be_reached_are_refused(verify: int, again: int, reflect: int) -> None:
    """BU-01: the last reflection is checked, too; where nothing is checked, nothing is refused."""
    budgets = {"verify": verify, "reflect": reflect}
    verification: dict[str, Any] = {"max_reinjections": again}

    if verify >= 1 + again + reflect:
        assert settings(budgets=budgets, verification=verification).budgets.verify == verify
    else:
        with pytest.raises(SettingsError, match=f"raise it to {1 + again + reflect}, "):
            settings(budgets=budgets, verification=verification)
    settings(budgets=budgets, verification=verification | {"enabled": False})


def test_a_preset_gives_defaults() -> None:
    """BU-01: what is set goes before it, and other settings keep their own defaults."""
    frugal = settings(budgets={"preset": "frugal", "max_steps": 3})

    budgets = frugal.budgets
    assert (budgets.think, budgets.verify, budgets.reflect, budgets.max_steps) == (7, 2, 1, 3)
    assert frugal.verification.max_reinjections == 0
    assert Settings().verification.max_reinjections == 1
    back = Settings.model_validate(frugal.model_dump(exclude_unset=True) | {"budgets": {}})
    assert back == Settings()
