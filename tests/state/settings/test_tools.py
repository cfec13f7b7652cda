"""The policy's keys: what can be read, and what is a setting's error."""

import pytest
from tests.parts import settings

from daruma.state.settings.errors import SettingsError
from daruma.state.settings.tools import PolicyKey, policy_key

READ = {
    "shout": PolicyKey("shout"),
    "mcp__*": PolicyKey("mcp__*"),
    "run_command(git push *)": PolicyKey("run_command", words=("git", "push"), open_end=True),
    "run_command(git 'a b')": PolicyKey("run_command", words=("git", "a b")),
    "run_command(*)": PolicyKey("run_command", words=(), open_end=True),
    "run_command(make A=1)": PolicyKey("run_command", words=("make", "A=1")),
    "run_command(cwd=sub)": PolicyKey("run_command", globs=(("cwd", "sub"),)),
    "pay(amount=1*, to=a b)": PolicyKey("pay", globs=(("amount", "1*"), ("to", "a b"))),
    "f(path={a,b}/**)": PolicyKey("f", globs=(("path", "{a,b}/**"),)),
}


@pytest.mark.parametrize("text", READ)
def test_a_key_is_read(text: str) -> None:
    """A name, the beginning of a command, or patterns of arguments."""
    assert policy_key(text) == READ[text]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "a key is NAME"),
        ("a b", "a key is NAME"),
        ("pay(", "a key is NAME"),
        ("pay(a=1)x", "a key is NAME"),
        ("pay(amount)", "not argument=pattern, and only run_command takes"),
        ("pay(a=)", "not argument=pattern"),
        ("run_command()", "no command is named"),
        ("run_command(A=1 make)", "no command is named"),
        ("run_command(path=x)", "no command is named"),
        ("run_command(git 'x)", "the command can not be read: no closing quotation"),
    ],
)
def test_a_key_that_can_not_be_read_is_named(key: str, said: str) -> None:
    """One line, before anything runs: a rule that silently never holds would be worse."""
    with pytest.raises(SettingsError) as refused:
        settings(tools={"policy": {key: "deny"}})

    assert str(refused.value).startswith(f"setting {'tools.policy.' + key!r}: {said}")
    assert "\n" not in str(refused.value)
