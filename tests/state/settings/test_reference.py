"""Every key of the settings: what it means, what is in force, and the page of it."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from daruma.state.settings import (
    Settings,
    SettingsError,
    SettingsKey,
    propose_trust,
    sections,
    settings_keys,
    values_in_force,
)
from daruma.state.settings._sources import NAME, sources

# --- What is in force, and where it comes from.


def test_the_source_of_each_value_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default, file, environment: the later ones win."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {think: 4, verify: 5}\ntools: {policy: {run_command: allow}}\n")
    propose_trust(Settings, file).agree()
    monkeypatch.setenv("DARUMA_BUDGETS__VERIFY", "6")

    told = {
        each.key.path: (each.value, each.source)
        for each in values_in_force(settings_keys(Settings), str(file))
    }

    assert told["budgets.think"] == ("4", "daruma.yaml")
    assert told["budgets.verify"] == ("6", "DARUMA_BUDGETS__VERIFY")
    assert told["budgets.reflect"] == ("2", "default")
    assert told["verification.max_reinjections"] == ("1", "default")
    assert told["tools.policy"] == ('{"run_command": "allow"}', "daruma.yaml")


def test_what_a_preset_sets_is_told(tmp_path: Path) -> None:
    """BU-01."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {preset: frugal, think: 4}\n")

    told = {
        each.key.path: (each.value, each.source)
        for each in values_in_force(settings_keys(Settings), str(file))
    }

    assert told["budgets.think"] == ("4", "daruma.yaml")
    assert told["budgets.verify"] == ("2", "budgets.preset")
    assert told["verification.max_reinjections"] == ("0", "budgets.preset")


def test_settings_that_can_not_be_used_are_refused(tmp_path: Path) -> None:
    """One clear line, as anywhere."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {thnk: 4}\n")

    with pytest.raises(SettingsError, match=r"did you mean 'think'"):
        values_in_force(settings_keys(Settings), str(file))


# --- The list of all settings is complete, and what it says of each is true.

LIVE = [key for key in settings_keys(Settings) if NAME not in key.path]


def value_of(path: str) -> Any:
    value: Any = Settings()
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("key", settings_keys(Settings), ids=lambda key: key.path)
def test_every_key_says_what_it_is(key: SettingsKey) -> None:
    """Type and description, on one line that ends as a sentence."""
    assert key.type
    assert key.description.endswith(".")
    assert "\n" not in key.description


def test_defaults_are_those_in_force() -> None:
    """As JSON, read back."""
    adapter = TypeAdapter(Any)

    for key in LIVE:
        shown = adapter.validate_json(key.default)
        assert shown == adapter.dump_python(value_of(key.path), mode="json"), key.path


def test_ranges_types_and_variables_are_told() -> None:
    """Some that are unlike."""
    known = {key.path: key for key in settings_keys(Settings)}

    assert known["llm.requests.per_model"].range == "≥ 1, ≤ 3"
    assert known["llm.fallback_models"].type == "list of text"
    assert known["llm.fallback_models"].is_json
    assert known["sandbox.require"].type == "namespace or landlock or none or null"
    assert known["budgets.think"].variable == "DARUMA_BUDGETS__THINK"
    assert known["prompts.NAME.text"].default == known["prompts.NAME.text"].variable == ""
    assert known["prompts.NAME.text"].range == "1 character at least"


def test_a_variable_sets_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable that is named is one that is read."""
    set_here = [key for key in LIVE if key.default != "null"]
    for key in set_here:
        monkeypatch.setenv(key.variable, key.default.strip('"'))

    _, environment = sources(Settings, "none.yaml")

    assert Settings.load("none.yaml") == Settings()
    for key in set_here:
        assert key.path.rpartition(".")[2] in at(environment, key.path.rpartition(".")[0]), key


def at(values: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        values = values[part]
    return values


def test_no_section_is_left_out() -> None:
    """Also those under a name of the user's."""
    paths = {section.path for section in sections(Settings)}

    assert {"", "llm", "llm.requests", "tools.policy.NAME", "fallback_chain.emergency"} <= paths
