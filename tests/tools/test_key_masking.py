"""No key is told, wherever it came from."""

import pytest

from daruma.tools.key_masking import without_keys

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
