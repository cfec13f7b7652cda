"""No key is told, wherever it came from."""

import pytest
from hypothesis import given
from hypothesis.strategies import from_regex

from daruma.tools.text.secrets import _SHAPES, without_keys

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAA\n-----"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the key own-secret is wrong", "the key [key] is wrong"),
        ("the key env-secret is wrong", "the key [key] is wrong"),
        ("env-secret-and-more", "[key]-and-more"),
        ("longer env-secret-longer", "longer [key]"),
        ("provided: sk-proj-a1B2c3D4.", "provided: [key]"),
        ("provided: sk-ab***********wxyz", "provided: [key]"),
        ("for url http://ann:hunter2@host/v1", "for url http://[key]@host/v1"),
        ("for url http://host/v1?to=ann@host", "for url http://host/v1?to=ann@host"),
        (f"token ghp_{'a1' * 18}!", "token [key]!"),
        ("AKIAIOSFODNN7EXAMPLE.", "[key]."),
        (f"jwt eyJ{'a' * 20}.eyJ{'b' * 20}.c-d", "jwt [key]"),
        (f"{PEM}END RSA PRIVATE KEY----- b", "[key] b"),
        (f"a {PEM[:40]}", "a [key]"),
        ("a task-oriented risk-averse model", "a task-oriented risk-averse model"),
        ("a word that is the key of nothing", "a word that is the key of nothing"),
    ],
)
def test_keys_are_masked(monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    """Those of the model, of the environment, and what looks like one; no ordinary words."""
    monkeypatch.setenv("SOME_API_KEY", "env-secret")
    monkeypatch.setenv("OTHER_API_KEY", "env-secret-longer")
    monkeypatch.setenv("SHORT_API_KEY", "word")

    assert without_keys(text, ["own-secret"]) == told


@pytest.mark.parametrize(
    "key",
    [
        *(f"gh{kind}_{'a1' * 18}" for kind in "pousr"),
        *(f"xox{kind}-{'a1' * 6}" for kind in "abeoprs"),
        *(f"{kind}IOSFODNN7EXAMPLE" for kind in ("AKIA", "ASIA")),
        *(f"github_pat_{'a1' * 12}", f"glpat-{'a1' * 9}", f"AIza{'a1' * 16}"),
    ],
)
def test_keys_of_each_kind_are_masked(key: str) -> None:
    """Alone, too: each begins in its own way."""
    assert without_keys(f"It is {key}.") == "It is [key]."


@given(from_regex(_SHAPES))
def test_whatever_has_the_shape_of_a_key_is_masked(text: str) -> None:
    """What is looked for first is there in each of them."""
    assert "[key]" in without_keys(text)


def test_a_key_is_known_from_when_the_environment_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And until it does not."""
    before = without_keys("late-secret")
    monkeypatch.setenv("late_api_key", "late-secret")
    meanwhile = without_keys("late-secret")
    monkeypatch.delenv("late_api_key")

    assert (before, meanwhile, without_keys("late-secret")) == ("late-secret", "[key]", before)
