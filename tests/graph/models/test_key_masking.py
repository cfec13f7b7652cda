"""No key is told, wherever it came from."""

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from daruma.graph.models.key_masking import keys_of, without_keys


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


def test_a_models_own_secrets_are_found() -> None:
    """Also when no variable of the environment holds them."""
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"))

    assert (keys_of(model), keys_of(object())) == (["given-by-hand"], [])


def test_secrets_in_headers_are_found() -> None:
    """What a gateway takes in place of a key; other headers are ordinary words."""
    headers = {"X-Gateway-Token": "of-the-gateway", "Authorization": "Bearer of-me", "X-Team": "us"}
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"), default_headers=headers)

    assert keys_of(model) == ["given-by-hand", "of-the-gateway", "of-me"]
