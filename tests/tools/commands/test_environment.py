"""Commands get what they need to work, and none of our secrets."""

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.tools.commands.command import ALLOWED, FIXED, command_environment

HERE = Path("/opt/daruma/bin")
NOWHERE = Path("/nowhere")


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*sorted(ALLOWED), "PATH", "LC_ALL"]) | st.text(), st.text())
)
def test_only_allowed_variables_pass(base: dict[str, str]) -> None:
    """Whatever the environment holds, only names on the list come through (SA-01)."""
    names = command_environment(base, NOWHERE, HERE).keys() - FIXED.keys() - {"PATH"}

    assert all(name in ALLOWED or name.startswith("LC_") for name in names)


def test_secrets_stay_behind() -> None:
    """Keys, tokens, proxies with passwords and our own settings are not passed on."""
    names = (
        "OPENAI_API_KEY ANTHROPIC_API_KEY AWS_SECRET_ACCESS_KEY GITHUB_TOKEN DARUMA_POSTGRES_URL "
        "OPENAI_BASE_URL PGPASSWORD HTTPS_PROXY SSH_AUTH_SOCK PYTHONPATH PYTHONSTARTUP LD_PRELOAD "
        "BASH_ENV ENV GIT_ASKPASS LCX"
    )
    secrets = dict.fromkeys(names.split(), "s3cret")

    env = command_environment({**secrets, "HOME": "/home/me", "LC_ALL": "C"}, NOWHERE, HERE)
    assert "s3cret" not in " ".join(env.values())
    assert (env["HOME"], env["LC_ALL"]) == ("/home/me", "C")


def test_stale_bytecode_can_not_hide_a_fix() -> None:
    """Python writes no bytecode, does not buffer, and colours are off, whatever was set before."""
    env = command_environment({"PYTHONDONTWRITEBYTECODE": ""}, NOWHERE, HERE)

    assert {name: env[name] for name in FIXED} == FIXED
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"


def test_programs_are_found_nearest_first(tmp_path: Path) -> None:
    """The workspace's environment, the active one, Daruma's own, then the rest."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    base = {"PATH": "/usr/bin:/bin:/usr/bin", "VIRTUAL_ENV": "/active"}
    env = command_environment(base, tmp_path, HERE)

    own = tmp_path / "venv"
    assert env["PATH"] == f"{own}/bin:/active/bin:{HERE}:/usr/bin:/bin"
    assert env["VIRTUAL_ENV"] == str(own)


def test_dot_venv_comes_before_venv(tmp_path: Path) -> None:
    """With both there, `.venv` is taken."""
    for name in ("venv", ".venv"):
        (tmp_path / name / "bin").mkdir(parents=True)

    env = command_environment({}, tmp_path, HERE)
    assert env["PATH"].startswith(str(tmp_path / ".venv" / "bin"))


def test_relative_places_are_dropped() -> None:
    """An empty or relative entry of PATH would run programs that lie in the workspace."""
    env = command_environment({"PATH": os.pathsep.join(["", ".", "bin", "/bin"])}, NOWHERE, HERE)

    assert env["PATH"] == f"{HERE}:/bin"
