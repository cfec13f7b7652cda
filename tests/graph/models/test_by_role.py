"""Names become models, and one set of models serves any number of event loops."""

from pathlib import Path
from typing import Any

import openai
import pytest
from tests.openai_answers import Reply
from tests.openai_server import openai_server

from daruma.graph.models import Models, ModelUnavailable, resolve_model
from daruma.state.settings import Requests

LOCAL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No setting of the machine that runs the tests reaches them."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_scripted_name_is_a_script_file(tmp_path: Path) -> None:
    """FA-05: without a key and a network, through any number of aliases."""
    (tmp_path / "s.yaml").write_text("- say: hi\n")
    aliases = {"fast": "faster", "faster": f"scripted:{tmp_path}/s.yaml"}

    assert resolve_model("fast", aliases=aliases).invoke("hello").content == "hi"


@pytest.mark.parametrize(
    ("name", "aliases", "complaint"),
    [
        ("a", {"a": "a"}, "llm.model_aliases go in a circle: a -> a"),
        ("a", {"a": "b", "b": "c", "c": "b"}, "go in a circle: a -> b -> c -> b"),
        ("llama", {}, 'unknown model "llama": write PROVIDER:NAME, with one of anthropic, '),
        ("x:y", {"fast": "z"}, "llm.model_aliases: fast"),
        ("fst", {"fast": "z"}, "did you mean fast?; llm.model_aliases: fast"),
        ("a", {"a": "openai:"}, 'unknown model "openai:"'),
        ("scripted:absent.yaml", {}, "cannot read the script absent.yaml: No such file"),
        ("openai:m", {}, "OPENAI_API_KEY is not set"),
    ],
)
def test_a_name_without_a_model_is_one_clear_line(
    name: str, aliases: dict[str, str], complaint: str
) -> None:
    """What was wrong, and which names there are."""
    with pytest.raises(ModelUnavailable) as caught:
        resolve_model(name, aliases=aliases)

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}, "OPENAI_API_KEY is not set"),
        ({"OPENAI_BASE_URL": ""}, "OPENAI_API_KEY is not set"),
        ({"OPENAI_API_KEY": ""}, "OPENAI_API_KEY is not set"),
        ({"OPENAI_BASE_URL": "localhost:8000"}, "has to start with http:// or https://"),
        ({"OPENAI_API_KEY": "k", "OPENAI_PROXY": "http://p"}, "set HTTPS_PROXY in its place"),
    ],
)
def test_a_wrong_environment_is_one_clear_line(
    environment: pytest.MonkeyPatch, variables: dict[str, str], complaint: str
) -> None:
    """Found out before the first call, not from a 401 or a lost connection."""
    for name, value in variables.items():
        environment.setenv(name, value)

    with pytest.raises(ModelUnavailable, match=complaint):
        resolve_model("openai:m", aliases={})


@pytest.mark.parametrize(
    "variables",
    [
        {"OPENAI_API_KEY": "k"},
        {"OPENAI_BASE_URL": LOCAL},
        {"OPENAI_BASE_URL": LOCAL, "OPENAI_API_KEY": ""},
        {"OPENAI_BASE_URL": "https://notopenai.com/v1"},
    ],
)
def test_only_openai_itself_needs_a_key(
    environment: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """Local servers rarely have keys."""
    for name, value in variables.items():
        environment.setenv(name, value)

    assert Models(main="openai:m").get("main")


@pytest.mark.parametrize(
    ("requests", "silence", "chunks"),
    [(Requests(), 300, 60), (Requests(seconds=7, chunk_seconds=3), 7, 3)],
)
def test_the_client_is_as_patient_as_the_settings(
    environment: pytest.MonkeyPatch, requests: Requests, silence: float, chunks: float
) -> None:
    """Connecting 5 s; by default silence 300 s, silence within a stream 60 s."""
    environment.setenv("OPENAI_BASE_URL", LOCAL)

    model: Any = Models(main="openai:m", requests=requests).get("main")

    assert model.request_timeout == openai.Timeout(silence, connect=5)
    assert model.stream_chunk_timeout == chunks


async def test_a_stream_reports_its_usage(environment: pytest.MonkeyPatch) -> None:
    """MO-07: tokens are counted by role, streamed or not."""
    with openai_server([Reply("hi", usage=(7, 3))]) as server:
        environment.setenv("OPENAI_BASE_URL", server.url)
        chunks = [c async for c in resolve_model("openai:m", aliases={}).astream("hello")]

    counted = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in counted] == [(7, 3)]


def test_no_model_at_all_says_where_to_put_one() -> None:
    """All three places, in one line."""
    with pytest.raises(ModelUnavailable, match=r"model=.*daruma\.yaml.*DARUMA_LLM__MODEL"):
        Models(main=None).get("main")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arguments", ["{bad", "", "[1]", "null", '"x"', "3"])
async def test_arguments_that_are_no_object_cost_one_call_only(
    environment: pytest.MonkeyPatch, arguments: str
) -> None:
    """TL-12: the call can not be read; the answer and its other calls can."""
    good = {"name": "look", "arguments": '{"at": "it"}', "id": "good"}
    bad = {"name": "look", "arguments": arguments, "id": "bad"}
    with openai_server([Reply(calls=[good, bad])]) as server:
        environment.setenv("OPENAI_BASE_URL", server.url)
        answer = await resolve_model("openai:m", aliases={}).ainvoke("hello")

    assert [call["id"] for call in answer.tool_calls] == ["good"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["bad"]


def test_a_chain_names_each_model_once() -> None:
    """TL-17: what stands in for a model is another one, and none is made to be named."""
    aliases = {"big": "openai:m", "small": "openai:n"}
    models = Models("big", "small", aliases, ["openai:n", "openai:o", "big", "openai:o"])

    assert models.chain("main") == ("openai:m", "openai:n", "openai:o")
    assert models.chain("reflect") == models.chain("main")
    assert models.chain("auxiliary") == ("openai:n",)
    assert Models("big", "m", aliases | {"m": "big"}, ["openai:o"]).chain("auxiliary") == (
        "openai:m",
        "openai:o",
    )


def test_each_place_of_a_chain_has_its_model(tmp_path: Path) -> None:
    """A role's first model is its own, the others are the same for all."""
    for name in ("main", "aux", "spare"):
        (tmp_path / name).write_text(f"- say: {name}\n")
    main, aux, spare = (f"scripted:{tmp_path}/{name}" for name in ("main", "aux", "spare"))
    models = Models(main, aux, fallbacks=[spare])

    places = [models.get(*place) for place in (("main", 0), ("auxiliary", 0), ("main", 1))]

    assert [model.invoke("hi").text for model in places] == ["main", "aux", "spare"]
    assert models.chain("auxiliary") == (aux,)
