"""Settings of a run on the server."""

import re
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from daruma.graph.studio.entry import settings_of, without_settings
from daruma.state.settings import Settings, SettingsError


def test_what_a_run_does_not_give_is_the_folders() -> None:
    """A form with one field filled in does not put the others back to their defaults."""
    own = Settings.model_validate(
        {"llm": {"model": "openai:a"}, "budgets": {"think": 3, "verify": 4}}
    )

    settings = settings_of(own, {"budgets": {"think": 2}})

    assert (settings.llm.model, settings.budgets.think, settings.budgets.verify) == (
        *("openai:a", 2, 4),
    )
    assert settings_of(own, {}) is own


OWN = {
    "llm": {"model": "openai:a"},
    "tools": {"policy": {"pay": {"decision": "confirm", "required": True}, "run_command": "allow"}},
    "budgets": {"preset": "frugal"},
}
FROM_A_CLIENT: list[tuple[dict[str, Any], str]] = [
    ({"sandbox": {"require": "none"}}, "sandbox.require"),
    ({"llm": {"model": None}}, "llm.model"),
    ({"tools": {"policy": {"pay": {"required": False}}}}, "tools.policy.pay"),
    ({"tools": {"policy": {"pay": "confirm"}}}, "tools.policy.pay"),
    ({"tools": {"policy": {"pay": "deny"}}}, ""),
    ({"tools": {"policy": {"run_command": "confirm"}}}, ""),
    ({"budgets": {"preset": "work"}}, "budgets.think"),
    ({"budgets": {"max_steps": 3}, "mode": "plan_exec"}, ""),
    ({"verification": {"commands": ["true"]}, "prompts": {"x": {"text": "y"}}}, "prompts.x"),
]


@pytest.mark.parametrize(("given", "key"), FROM_A_CLIENT)
def test_a_client_can_tighten_and_never_weaken(given: dict[str, Any], key: str) -> None:
    """SE-03: against what the server has, not against the defaults; also as settings."""
    own = Settings.model_validate(OWN)
    if not key:
        settings_of(own, given)
        return

    with pytest.raises(SettingsError, match=re.escape(key)) as refused:
        settings_of(own, given)

    assert "\n" not in str(refused.value)
    with pytest.raises(SettingsError, match=r"build_graph has for settings, else daruma\.yaml"):
        settings_of(own, Settings.model_validate({"sandbox": {"require": "none"}}))


def test_a_wrong_one_is_one_line() -> None:
    """The run's error says which setting it is."""
    with pytest.raises(SettingsError, match=r"^setting 'budgets\.think'"):
        settings_of(Settings(), {"budgets": {"think": 0}})


def test_the_servers_copy_of_them_is_not_kept() -> None:
    """It would stand in clear in each checkpoint."""
    config = RunnableConfig(configurable={"mode": "react", "thread_id": "t", "llm": {}})

    assert without_settings(config) == {"configurable": {"thread_id": "t"}}
    assert without_settings(None) is None


def test_each_setting_says_what_it_is() -> None:
    """A form shows a field's description; of a section, that of its type."""
    schema = Settings.model_json_schema()
    defined = schema["$defs"]
    sections = {"Settings": schema, **defined}

    silent = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, field in section.get("properties", {}).items()
        if not field.get("description")
        and not defined.get(field.get("$ref", "").rpartition("/")[2], {}).get("description")
    ]

    assert silent == []
