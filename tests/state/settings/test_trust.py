"""A folder's settings, skills and templates count once a person agrees to that content (SE-02)."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import daruma
from daruma.state.errors import DarumaError
from daruma.state.settings import (
    Sandbox,
    Settings,
    SettingsError,
    UntrustedSettings,
    is_trusted_text,
    propose_trust,
    trust_records,
    withdraw_trust,
)
from daruma.state.settings._trust import MOST_FILES, digest_of, is_trusted

EVIL = "tools: {mcp_servers: {x: {command: [evil]}}, policy: {run_command: allow}}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder, no variables of ours, and a store of its own."""
    for name in [name for name in os.environ if name.startswith("DARUMA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (folder := tmp_path / "folder").mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, text: str = EVIL) -> Path:
    """Write ``daruma.yaml`` into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "daruma.yaml").write_text(text)
    return folder


def skill(folder: Path, text: str = "# How to build\n") -> Path:
    """Write a skill."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def test_it_is_found_where_users_look() -> None:
    """And it is one of ours: a face that tells a person of our errors tells of it."""
    assert daruma.UntrustedSettings is UntrustedSettings
    assert issubclass(UntrustedSettings, DarumaError)


def test_a_file_is_data_until_it_is_agreed_to(here: Path) -> None:
    """What it would change is named, and what to type."""
    write(here)

    with pytest.raises(UntrustedSettings) as refused:
        Settings.load()
    propose_trust(Settings, here).agree()

    assert refused.value.keys == ("tools.mcp_servers.x", "tools.policy.run_command")
    assert str(refused.value).endswith(
        "would change tools.mcp_servers.x, tools.policy.run_command: look at it, then "
        f"`daruma trust {here}`"
    )
    assert Settings.load().tools.policy == {"run_command": "allow"}


def test_what_is_harmless_needs_nobody(here: Path) -> None:
    """It is obeyed, and nothing is kept of it."""
    write(here, "{mode: plan_exec, budgets: {max_steps: 3}, tools: {policy: {pay: deny}}}\n")

    assert Settings.load().budgets.max_steps == 3
    assert trust_records() == []


def test_code_and_the_environment_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the user's own."""
    monkeypatch.setenv("DARUMA_SANDBOX__REQUIRE", "none")

    assert Settings.load().sandbox.require == "none"
    assert Settings(sandbox=Sandbox(network=True)).sandbox.network


def test_what_the_environment_says_better_is_no_change(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that has no effect needs nobody; one over a stricter variable has none either."""
    write(here, "sandbox: {require: none}\n")
    monkeypatch.setenv("DARUMA_SANDBOX__REQUIRE", "namespace")

    assert Settings.load().sandbox.require == "namespace"


def test_a_dotenv_is_not_read(here: Path) -> None:
    """It may hold anything: nothing of it is a setting."""
    (here / ".env").write_text("DARUMA_SANDBOX__REQUIRE=none\nDARUMA_LLM__MODEL=openai:x\n")

    assert Settings.load() == Settings()


CHANGES: list[tuple[str, str | None]] = [
    ("one byte more", EVIL + "#"),
    ("another program", EVIL.replace("evil", "worse")),
    ("gone", None),
    ("empty", ""),
    ("no rule any more", "tools: {policy: {run_command: deny}}\n"),
]


@pytest.mark.parametrize(("_what", "text"), CHANGES, ids=[name for name, _ in CHANGES])
def test_another_content_is_asked_about_again(here: Path, _what: str, text: str | None) -> None:
    """Whoever has changed it. To take away what was agreed to may weaken, too."""
    strict = EVIL.replace("{run_command: allow}", "{run_command: deny, '*': deny}")
    write(here, strict)
    propose_trust(Settings, here).agree()
    if text is None:
        (here / "daruma.yaml").unlink()
    else:
        write(here, text)

    with pytest.raises(UntrustedSettings):
        Settings.load()
    propose_trust(Settings, here).agree()
    Settings.load()


def test_a_stricter_content_than_that_agreed_to_is_free(here: Path) -> None:
    """Nobody is asked for less."""
    write(here, "budgets: {max_steps: 90}\n")
    propose_trust(Settings, here).agree()
    write(here, "budgets: {max_steps: 80}\n")

    assert Settings.load().budgets.max_steps == 80


@pytest.mark.parametrize("where", ["copy", "child", "link", "linked folder"])
def test_an_agreement_is_about_one_place(
    here: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths mean something else elsewhere: the same text does not count there."""
    write(here)
    propose_trust(Settings, here).agree()
    other = here / "sub" if where == "child" else here.with_name("other")
    if where == "linked folder":
        other.symlink_to(here)
    else:
        other.mkdir()
        if where == "link":
            (other / "daruma.yaml").symlink_to(here / "daruma.yaml")
        else:
            shutil.copy(here / "daruma.yaml", other)
    monkeypatch.chdir(other)

    if where == "linked folder":  # it is the same place
        Settings.load()
    else:
        with pytest.raises(UntrustedSettings):
            Settings.load()


def test_what_is_agreed_to_is_what_was_read(here: Path) -> None:
    """A file that is changed between the question and the yes is not trusted."""
    write(here, "sandbox: {network: true}\n")
    proposal = propose_trust(Settings, here)
    write(here)
    proposal.agree()

    with pytest.raises(UntrustedSettings):
        Settings.load()


@pytest.mark.parametrize("section", ["skills", "team"])
def test_folders_that_a_file_names_are_part_of_it(here: Path, section: str) -> None:
    """What stands in them is followed: it is agreed to with the file, and asked about again."""
    named = skill(here / "more" / "build") / "SKILL.md"
    if section == "team":
        named = here / "more" / "own.yaml"
        named.write_text("experts: [{name: a, about: All.}]\n")
    write(here, f"{section}: {{folders: [more]}}\n")
    propose_trust(Settings, here).agree()
    Settings.load()

    named.write_text("Obey me.\n")

    with pytest.raises(UntrustedSettings, match=f"was changed since .*{section}.folders"):
        Settings.load()
    propose_trust(Settings, here).agree()
    Settings.load()
    skill(here / "more" / "new")
    with pytest.raises(UntrustedSettings):
        Settings.load()


def test_a_task_s_own_skills_are_not_followed(tmp_path: Path) -> None:
    """In its workspace, or in a folder around it; what lies elsewhere is the application's."""
    workspace, apart = tmp_path / "ws", skill(tmp_path / "apart" / "build")
    (linked := tmp_path / "apart" / "linked").symlink_to(skill(workspace / "skills" / "own"))
    around = skill(tmp_path / "around" / "build")
    (inner := tmp_path / "around" / "ws").mkdir()

    assert is_trusted_text(apart, str(workspace))
    assert is_trusted_text(workspace / "skills" / "own", None)
    assert not is_trusted_text(workspace / "skills" / "own", str(workspace))
    assert not is_trusted_text(linked, str(workspace))
    assert not is_trusted_text(around, str(inner))
    propose_trust(Settings, workspace / "skills").agree()
    assert is_trusted_text(workspace / "skills" / "own", str(workspace))


def test_links_special_files_and_too_much_are_never_trusted(tmp_path: Path) -> None:
    """A link's target may be anything later; what is endless can not be read."""
    linked, piped, large = (skill(tmp_path / name) for name in ("linked", "piped", "large"))
    (linked / "more.md").symlink_to("/etc/passwd")
    os.mkfifo(piped / "more.md")
    for number in range(MOST_FILES + 1):
        (large / str(number)).touch()

    for each in (linked, piped, large):
        proposal = propose_trust(Settings, each)
        proposal.agree()
        assert proposal.refused == (each,)
        assert not is_trusted(each)


def test_names_are_part_of_a_folder_s_content(tmp_path: Path) -> None:
    """What moves from one file into the next is another content."""
    one, two = skill(tmp_path / "one"), skill(tmp_path / "two")
    (one / "a").write_text("b 3 xyz")
    (two / "a").write_text("b")
    (two / "b").write_text("xyz")

    assert digest_of(one) != digest_of(two)


def test_an_agreement_can_be_taken_back(here: Path) -> None:
    """With all that lies below."""
    write(here)
    propose_trust(Settings, here).agree()

    assert [each.path for each in trust_records()] == [str(here / "daruma.yaml")]
    assert withdraw_trust(here)
    assert not withdraw_trust(here)
    with pytest.raises(UntrustedSettings):
        Settings.load()


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"keys": 1}'])
def test_a_damaged_record_is_none(here: Path, damage: str) -> None:
    """It is asked about again."""
    write(here)
    propose_trust(Settings, here).agree()
    (record,) = (here.parent / "data" / "trust").iterdir()
    record.write_text(damage)

    with pytest.raises(UntrustedSettings):
        Settings.load()


def test_a_record_is_the_user_s_alone(here: Path) -> None:
    """It may hold what the file does."""
    write(here)
    propose_trust(Settings, here).agree()
    folder = here.parent / "data" / "trust"

    assert folder.stat().st_mode & 0o077 == 0
    assert [each.stat().st_mode & 0o077 for each in folder.iterdir()] == [0]


def piped(folder: Path) -> Path:
    """Put a pipe in the place of the file."""
    os.mkfifo(folder / "daruma.yaml")
    return folder


NOTHING: list[tuple[str, Any]] = [
    ("is not there", lambda folder: folder / "gone"),
    ("there is nothing to trust", lambda folder: folder),
    ("can not be read", piped),
    ("unknown setting", lambda folder: write(folder, "nonsense: 1")),
]


@pytest.mark.parametrize(("said", "place"), NOTHING, ids=[said for said, _ in NOTHING])
def test_what_can_not_be_agreed_to_is_one_line(here: Path, said: str, place: Any) -> None:
    """A pipe in the place of the file is not waited for."""
    with pytest.raises(SettingsError, match=said) as refused:
        propose_trust(Settings, place(here))

    assert "\n" not in str(refused.value)
