"""No key is told, wherever it came from."""

import html
import json
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from langchain_core.messages import AIMessage

from daruma.tools.text import mask_error, mask_keys, note_env_file, without_keys

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


A1 = "a1B2" * 12

WELL_KNOWN = [
    *(f"{kind}_live_{A1}" for kind in ("sk", "rk", "pk")),
    *(f"{begins}{A1}" for begins in ("sk-ant-api03-", "sk-proj-", "hf_", "npm_", "pypi-", "EAAC")),
    *(f"{begins}{A1}" for begins in ("ya29.", "GOCSPX-", "dop_v1_", "shpat_", "gsk_", "sq0atp-")),
    *(f"{begins}{A1}" for begins in ("xapp-1-", "whsec_", "lsv2_pt_", "xai-", "r8_", "sk_test_")),
    *(f"SG.{A1}.{A1}", "SK" + "0a" * 16, f"hooks.slack.com/services/T0/B0/{A1}"),
]


@pytest.mark.parametrize("key", WELL_KNOWN)
def test_tokens_in_well_known_shapes_are_masked(key: str) -> None:
    """SE-08: the list is kept as data."""
    assert without_keys(f"it is {key!r}, says the server") == "it is '[key]', says the server"
    for before in ("我的密钥是", "\\n", "\\t", "\\u662f", "\\xe9"):
        assert without_keys(f"{before}{key}") == f"{before}[key]"


NAMED_BY_PLACE = [
    (f"Authorization: Bearer {A1}", "Authorization: Bearer [key]"),
    ("{'authorization': 'token s3cret'}", "{'authorization': 'token [key]'}"),
    (f"curl -H 'X: Bearer {A1}'", "curl -H 'X: Bearer [key]'"),
    ("Basic YW5uOmh1bnRlcjI=", "Basic [key]"),
    ("Basic concepts of this code", "Basic concepts of this code"),
    ("the Bearer authentication of HTTP", "the Bearer authentication of HTTP"),
    (f"aws_secret_access_key = {A1}", "aws_secret_access_key = [key]"),
    (f'"SecretAccessKey": "{A1}"', '"SecretAccessKey": "[key]"'),
    (f"AccountName=a;AccountKey={A1}==;Next=b", "AccountName=a;AccountKey=[key];Next=b"),
    (f"https://a.net/b?sv=1&sig={A1}", "https://a.net/b?sv=1&sig=[key]"),
    (f"AC{'0a' * 16}:{'1b' * 16}", f"AC{'0a' * 16}:[key]"),
    ("postgres://ann:hunter2@host/db", "postgres://[key]@host/db"),
    ("redis://:p@ss@host:1", "redis://[key]@host:1"),
    (f"https://{A1}@sentry.io/1", "https://[key]@sentry.io/1"),
    ("git clone ssh://git@github.com/a/b", "git clone ssh://git@github.com/a/b"),
    ("f'postgres://{user}:{password}@{host}'", "f'postgres://{user}:{password}@{host}'"),
    (f"标头Bearer {A1}", "标头Bearer [key]"),
    ("my_sk-learning-rate, task-oriented-work", "my_sk-learning-rate, task-oriented-work"),
]


@pytest.mark.parametrize(("text", "told"), NAMED_BY_PLACE)
def test_keys_that_their_surroundings_tell_are_masked(text: str, told: str) -> None:
    """The key alone: who reads it still knows what it was for (SE-08)."""
    assert without_keys(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "123e4567-e89b-12d3-a456-426614174000",
        b64encode(bytes(range(256)) * 4).decode(),
        "task-12 TASK_1 ACCOUNT SKIP password = get_password(token) # see http://a.b/c:d@e",
        "import secrets; key = d[key]; token: str = tokens[0]",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    ],
)
def test_ordinary_code_and_data_stay(text: str) -> None:
    """Hashes, ids, encoded data and names of secrets are none."""
    assert without_keys(text) == text


@pytest.mark.parametrize(
    ("name", "value", "hides"),
    [
        ("STRIPE_SECRET", "canary one", True),
        ("PGPASSWORD", "hunter2", True),
        ("DB_PASS", 'with "quotes"', True),
        ("githubToken", "canary-two", True),
        ("DATABASE_URL", "postgres://ann:p4ssw0rd@host/db", True),
        ("POSTGRES_PASSWORD", "postgres", False),
        ("TOKENIZERS_PARALLELISM", "false-false", False),
        ("SSH_AUTH_SOCK", "/usr/bin", False),
        ("HOTKEYS", "control-c", False),
    ],
)
def test_values_of_the_environments_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, *, hides: bool
) -> None:
    """Told by the variable's name; ordinary words and paths are none, wherever they stand."""
    monkeypatch.setenv(name, value)
    secret = "p4ssw0rd" if "://" in value else value

    assert (without_keys(f"it is {secret}!") == "it is [key]!") is hides
    assert ("[key]" in without_keys(json.dumps({"a": secret}))) is hides


def test_secrets_are_masked_in_the_forms_that_programs_write_them_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SE-08: quoted by Python, JSON (also twice), HTML, and addresses."""
    value = "p\u00e4'ss\"w\\\u00f6rd &<9X7q"
    monkeypatch.setenv("DB_PASSWORD", value)
    once = json.dumps({"a": value})

    for written in (
        *(value, repr(value), repr([value, "b"]), repr(once)),
        *(once, json.dumps(once), json.dumps(value, ensure_ascii=False), json.dumps(repr(value))),
        *(html.escape(value), quote(value, safe=""), quote_plus(value)),
    ):
        assert "9X7q" not in without_keys(f"it is {written}!"), written
        assert "9X7q" not in str(mask_keys({"said": f"it is {written}!"})), written


def test_the_secrets_of_an_env_file_are_masked(tmp_path: Path) -> None:
    """What else it says is no secret."""
    (tmp_path / ".env").write_text(
        "export API_TOKEN='env-file-canary'\nMODEL=gpt-4o-mini\nBLOB=aB3dEfGh1jKlMn0pQrStUv\n"
    )
    note_env_file(tmp_path)

    said = without_keys("env-file-canary gpt-4o-mini aB3dEfGh1jKlMn0pQrStUv")

    assert said == "[key] gpt-4o-mini [key]"


@dataclass(frozen=True)
class _Pair:
    text: str
    number: int = 0


def test_values_are_masked_at_any_depth() -> None:
    """Messages, records, tuples and names in dicts; what holds no key is the very same."""
    key = f"hf_{A1}"
    call = {"name": "a", "args": {key: [key]}, "id": "1"}
    value: dict[str, Any] = {"m": AIMessage(key, tool_calls=[call]), "t": (_Pair(key, 1), {key})}

    found = mask_keys(value)

    assert key not in repr(found)
    assert (found["m"].text, found["t"]) == ("[key]", (_Pair("[key]", 1), {"[key]"}))
    assert found["m"].tool_calls[0]["args"] == {"[key]": ["[key]"]}
    assert mask_keys(found) is found


def test_what_a_message_holds_beside_its_fields_is_masked() -> None:
    """LangChain's take any: it is stored with them. The one that was given stays as it is."""
    key = f"hf_{A1}"
    given = AIMessage("Done.", note={"by": [key]})

    found = mask_keys(given)

    assert found.model_dump()["note"] == {"by": ["[key]"]}
    assert given.model_dump()["note"] == {"by": [key]}
    assert mask_keys(found) is found


def test_an_error_with_a_value_that_holds_itself_is_told_by_its_words() -> None:
    """It is what went wrong, and not that it was too deep to look into."""
    held: list[Any] = [f"hf_{A1}"]
    held.append(held)

    said = repr(mask_error(ValueError("no such card", held)))

    assert "no such card" in said
    assert A1 not in said


EVIL = ["eyJ-", "-sk", "://a:", "://", "-----BEGIN PRIVATE KEY-----", "Bearer a", "SG.a-", "Basic ",
        "aws_secret_key=", "authorization: ", "AC0", "&sig=", "xox", "EAAC", "SK0"]  # fmt: skip


@pytest.mark.parametrize("unit", EVIL)
def test_masking_takes_linear_time(unit: str) -> None:
    """SE-07: whatever a tool prints; quadratic time would be minutes."""
    without_keys((unit * 1_000_000)[:1_000_000])


def test_a_key_is_known_from_when_the_environment_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And until it does not."""
    before = without_keys("late-secret")
    monkeypatch.setenv("late_api_key", "late-secret")
    meanwhile = without_keys("late-secret")
    monkeypatch.delenv("late_api_key")

    assert (before, meanwhile, without_keys("late-secret")) == ("late-secret", "[key]", before)
