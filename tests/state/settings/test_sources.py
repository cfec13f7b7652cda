"""Settings come from a file in the current folder, and from the environment above it."""

import os
from pathlib import Path

import pytest

from daruma.state.settings import Settings, SettingsError, propose_trust


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no variables of ours."""
    for name in [name for name in os.environ if name.startswith("DARUMA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_environment_goes_over_the_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key by key: what only the file says stays."""
    (here / "daruma.yaml").write_text("llm: {model: from-file, auxiliary_model: small}\n")
    propose_trust(Settings).agree()
    monkeypatch.setenv("DARUMA_LLM__MODEL", "from-environment")
    monkeypatch.setenv("DARUMA_BUDGETS__THINK", "3")

    loaded = Settings.load()

    assert loaded.llm.model == "from-environment"
    assert loaded.llm.auxiliary_model == "small"
    assert loaded.budgets.think == 3


def test_lists_and_sections_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pydantic's settings have it."""
    monkeypatch.setenv("DARUMA_LLM__FALLBACK_MODELS", '["a", "b"]')
    monkeypatch.setenv("DARUMA_SPEC_REVIEW", '{"enabled": false}')

    loaded = Settings.load()

    assert loaded.llm.fallback_models == ("a", "b")
    assert loaded.spec_review.enabled is False


def test_variables_that_are_no_settings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where data and database lie is read elsewhere."""
    monkeypatch.setenv("DARUMA_POSTGRES_URL", "postgresql://x")
    monkeypatch.setenv("DARUMA_DATA_DIR", "/x")

    assert Settings.load() == Settings()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DARUMA_LM__MODEL", "x", "unknown environment variable DARUMA_LM__MODEL; did you mean"),
        ("DARUMA_LLM__MODLE", "x", "unknown setting 'llm.modle'; did you mean 'model'?"),
        ("DARUMA_BUDGETS__THINK", "many", "setting 'budgets.think': Input should be a valid"),
        ("DARUMA_LLM", "gpt", "DARUMA_LLM"),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """One line of ours with the nearest known key, whatever is wrong with it."""
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingsError) as refused:
        Settings.load()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "daruma.yaml has to hold keys and values, not list"),
        ("a: [\n", "daruma.yaml can not be read: line "),
        ("llm: {options: {plan: {}}}\n", "'llm.options.plan'; known here: main, auxiliary, f"),
        ("bugets: {}\n", "unknown setting 'bugets'; did you mean 'budgets'?"),
        ("1: x\n", "setting '1'"),
        ("llm:\n", "setting 'llm'"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused(here: Path, text: str, said: str) -> None:
    """One line that names the file or the key."""
    (here / "daruma.yaml").write_text(text)

    with pytest.raises(SettingsError) as refused:
        Settings.load()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
