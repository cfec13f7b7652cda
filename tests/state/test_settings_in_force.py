"""What is in force, and where it comes from."""

from pathlib import Path

import pytest

from daruma.state.settings.errors import SettingsError
from daruma.state.settings.reference import in_force, keys


def test_the_source_of_each_value_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default, file, environment: the later ones win."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {think: 4, verify: 5}\ntools: {policy: {run_command: allow}}\n")
    monkeypatch.setenv("DARUMA_BUDGETS__VERIFY", "6")

    told = {each.key.path: (each.value, each.source) for each in in_force(keys(), str(file))}

    assert told["budgets.think"] == ("4", "daruma.yaml")
    assert told["budgets.verify"] == ("6", "DARUMA_BUDGETS__VERIFY")
    assert told["budgets.reflect"] == ("2", "default")
    assert told["verification.max_reinjections"] == ("1", "default")
    assert told["tools.policy"] == ('{"run_command": "allow"}', "daruma.yaml")


def test_what_a_preset_sets_is_told(tmp_path: Path) -> None:
    """BU-01."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {preset: frugal, think: 4}\n")

    told = {each.key.path: (each.value, each.source) for each in in_force(keys(), str(file))}

    assert told["budgets.think"] == ("4", "daruma.yaml")
    assert told["budgets.verify"] == ("2", "budgets.preset")
    assert told["verification.max_reinjections"] == ("0", "budgets.preset")


def test_settings_that_can_not_be_used_are_refused(tmp_path: Path) -> None:
    """One clear line, as anywhere."""
    file = tmp_path / "daruma.yaml"
    file.write_text("budgets: {thnk: 4}\n")

    with pytest.raises(SettingsError, match=r"did you mean 'think'"):
        in_force(keys(), str(file))
