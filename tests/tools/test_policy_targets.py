"""A rule of the policy that can not be about any call is an error, not a silence."""

import pytest

from daruma.state.settings.errors import SettingsError
from daruma.state.settings.tools import Tools
from daruma.tools.calls.registry import Registry


def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("Pay", "there is no tool 'Pay'; did you mean 'pay'?"),
        ("runCommand", "did you mean 'run_command'?"),
        ("str_replace_edtor", "did you mean 'str_replace_editor'?"),
        ("str_replace_edtor(path=secrets/**)", "did you mean 'str_replace_editor'?"),
        ("str_replace_editor(file=secrets/**)", "'str_replace_editor' has no argument 'file'"),
        ("pay(amont=1*)", "'pay' has no argument 'amont'; it has: amount"),
    ],
)
def test_a_rule_about_nothing_is_refused(key: str, said: str) -> None:
    """A prohibition that is misspelt would hold for nothing, and nobody would know."""
    with pytest.raises(SettingsError) as error:
        Registry([pay]).check(Tools(policy={key: "deny"}))

    assert said in str(error.value)


@pytest.mark.parametrize(
    "key", ["pay", "pay(amount=1)", "pay_*", "Pay*", "refund", "mcp__notes__write"]
)
def test_a_rule_may_be_about_tools_that_are_not_there(key: str) -> None:
    """Settings are shared by graphs with other tools."""
    Registry([pay]).check(Tools(policy={key: "deny"}))
