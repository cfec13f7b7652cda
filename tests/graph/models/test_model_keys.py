"""A chat model's own secrets are known, wherever it keeps them."""

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from daruma.graph.models.faults import keys_of


def test_a_models_own_secrets_are_found() -> None:
    """Also when no variable of the environment holds them."""
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"))

    assert (keys_of(model), keys_of(object())) == (["given-by-hand"], [])


def test_secrets_in_headers_are_found() -> None:
    """What a gateway takes in place of a key; other headers are ordinary words."""
    headers = {"X-Gateway-Token": "of-the-gateway", "Authorization": "Bearer of-me", "X-Team": "us"}
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"), default_headers=headers)

    assert keys_of(model) == ["given-by-hand", "of-the-gateway", "of-me"]
