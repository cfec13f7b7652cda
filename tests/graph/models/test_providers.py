"""Models of any provider by name: what a name means, what it lacks, what its options become."""

import os
from typing import Any

import pytest
from langchain.chat_models import base
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.parts import settings

from daruma import Settings, build_graph
from daruma.graph.models import AUXILIARY, Models, ModelUnavailable, full_name, resolve_model
from daruma.graph.models._providers import PROVIDERS, infer_provider
from daruma.state.settings import LLM, ModelOptions, SettingsError

KEY = "a-key-of-a-newcomer"
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GOOGLE_API_KEY": "k"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No key and no address of the machine that runs the tests reaches them."""
    for name in os.environ:
        if "KEY" in name or name.endswith(("_URL", "_API_BASE", "_PROXY", "_TOKEN")):
            monkeypatch.delenv(name)
    return monkeypatch


def test_the_table_is_that_of_langchain() -> None:
    """FA-09: each provider with its class; `langsmith` alone is left out."""
    ours = {name: (each.module, each.name) for name, each in PROVIDERS.items()}
    theirs = {name: (module, kind) for name, (module, kind, _) in base._BUILTIN_PROVIDERS.items()}

    assert ours == {name: found for name, found in theirs.items() if name != "langsmith"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("gpt-5", "o1-mini", "o3", "o4-mini", "chatgpt-4o-latest", "text-davinci-3", "GPT-4"),
        *("claude-sonnet-4", "command-r", "accounts/fireworks/models/x", "gemini-2.5-pro"),
        *("amazon.nova", "anthropic.claude-3:0", "meta.llama", "mistral-large", "mixtral-8x7b"),
        *("deepseek-r1:8b", "grok-4", "sonar-pro", "solar-pro", "llama-3", "qwen3:8b", "x", ""),
        *("gpt-oss:20b", "my-gpt-4", "openai", "phi:latest"),
    ],
)
def test_a_provider_is_inferred_as_langchain_does(name: str) -> None:
    """FA-09: a name without a prefix."""
    assert infer_provider(name) == base._attempt_infer_model_provider(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("anthropic:claude-x", "anthropic:claude-x"),
        ("Google-GenAI:gemini-x", "google_genai:gemini-x"),
        ("fast", "anthropic:claude-x"),
        ("ollama:llama3:8b", "ollama:llama3:8b"),
        ("scripted:a:b.yaml", "scripted:a:b.yaml"),
        ("strange", "strange"),
    ],
)
def test_a_name_has_one_full_form(name: str, meant: str) -> None:
    """So that one model is one, in a chain, in prices and on record."""
    assert full_name(name, {"fast": "claude", "claude": "anthropic:claude-x"}) == meant


REFUSED: dict[str, tuple[str, ...]] = {
    "anthropic:claude-x": ("ANTHROPIC_API_KEY is not set", "base_url in llm.options"),
    "claude-x": ("ANTHROPIC_API_KEY is not set",),
    "google_genai:gemini-x": ("GOOGLE_API_KEY is not set",),
    "openai:gpt-x": ("OPENAI_API_KEY is not set", "OPENAI_BASE_URL"),
    "ollama:llama3": ("pip install langchain-ollama",),
    "bedrock:x": ("pip install langchain-aws",),
    "bedrock_mantle_openai:x": ("pip install 'langchain-aws[openai]'",),
    "azure_ai:x": ("pip install langchain-azure-ai",),
    "mistral-large": ("mistralai: its package is missing: pip install langchain-mistralai",),
    "antropic:claude-x": ('unknown model "antropic:claude-x"', "did you mean anthropic:claude-x?"),
    "google:gemini-x": ("did you mean google_genai:gemini-x?",),
    "openia:gpt-x": ("did you mean openai:gpt-x?",),
    "llama3": ("write PROVIDER:NAME, with one of ", "ollama", "scripted"),
    "anthropic:": ('unknown model "anthropic:"',),
    "anthropic:  ": ("unknown model",),
    "scripted:/no/such": ("cannot read the script /no/such",),
}


@pytest.mark.parametrize("role", ["main", "settings", "auxiliary", "fallback"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_can_not_be_made_is_refused_when_the_graph_is_built(
    name: str, role: str
) -> None:
    """FA-09: in one line, with the package, with that provider's key, or with the near name."""
    key = "llm.auxiliary_model" if role == "auxiliary" else "llm.fallback_models"
    llm = {
        "main": {},
        "settings": {"model": name},
        "auxiliary": {"auxiliary_model": name},
        "fallback": {"fallback_models": [name]},
    }[role]

    with pytest.raises(ModelUnavailable) as raised:
        build_graph(name if role == "main" else None, settings=settings(llm=llm))

    said = str(raised.value)
    assert all(part in said for part in REFUSED[name]), said
    assert "\n" not in said
    assert said.startswith(f"{key}: ") == (role in ("auxiliary", "fallback"))
    assert ("OPENAI" in said) == name.startswith("openai:"), "the variable of that provider"


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ("OPENAI_KEY", "openai:x"),
        ("OPEN_AI_API_KEY", "openai:x"),
        ("OPENAI_APIKEY", "openai:x"),
        ("ANTHROPIC_KEY", "anthropic:x"),
        ("ANTHROPIC_API_KEYS", "anthropic:x"),
        ("GEMINI_KEY", "google_genai:x"),
    ],
)
def test_a_variable_of_a_wrong_name_is_named(
    wrong: str, name: str, environment: pytest.MonkeyPatch
) -> None:
    """Its value is not shown."""
    environment.setenv(wrong, "the-secret")

    with pytest.raises(ModelUnavailable, match=f"is not set \\({wrong} is: was it meant") as raised:
        build_graph(name, settings=Settings())

    assert "the-secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["openai:x", "anthropic:x"])
@pytest.mark.parametrize("key", ["sk-very-secret\n", "sk-very secret", "sk-véry-secret", "\tsk"])
def test_a_key_that_no_request_could_hold_is_refused(
    name: str, key: str, environment: pytest.MonkeyPatch
) -> None:
    """A client would say so in its own way, and quote it."""
    variable = f"{name.partition(':')[0].upper()}_API_KEY"
    environment.setenv(variable, key)

    with pytest.raises(ModelUnavailable, match=f"{variable} holds a blank") as raised:
        build_graph(name, settings=Settings())

    assert "sk" not in str(raised.value)


def test_another_provider_s_key_is_no_misspelling(environment: pytest.MonkeyPatch) -> None:
    """It is set for another model."""
    environment.setenv("XAI_API_KEY", "k")

    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY is not set: "):
        build_graph("openai:x", settings=Settings())


OPTIONS = {
    "temperature": 0.5,
    "effort": "low",
    "max_tokens": 99,
    "base_url": "http://127.0.0.1:9/v1",
    "extra": {"top_p": 0.25},
}


@pytest.mark.parametrize(
    ("name", "kind", "limit"),
    [
        ("openai:x", "ChatOpenAI", "max_tokens"),
        ("anthropic:x", "ChatAnthropic", "max_tokens"),
        ("google_genai:x", "ChatGoogleGenerativeAI", "max_output_tokens"),
    ],
)
def test_options_reach_the_class_by_its_own_names(
    name: str, kind: str, limit: str, environment: pytest.MonkeyPatch
) -> None:
    """FA-09: in all of them the same words; an address of one's own needs no key."""
    if name.startswith("google"):  # its client insists
        environment.setenv("GOOGLE_API_KEY", "k")
    made: Any = resolve_model(name, aliases={}, options=ModelOptions.model_validate(OPTIONS))

    theirs = [each for each in type(made).mro() if each.__module__.startswith("langchain_")]
    assert theirs[0].__name__ == kind
    found = ("temperature", "reasoning_effort", limit, "top_p")
    assert [getattr(made, field) for field in found] == [0.5, "low", 99, 0.25]
    base_url = getattr(made, "base_url", None) or getattr(made, "openai_api_base", None)
    assert (base_url or made.anthropic_api_url) == "http://127.0.0.1:9/v1"
    assert made.max_retries == (1 if name.startswith("google") else 0)


def test_each_role_has_options_of_its_own(environment: pytest.MonkeyPatch) -> None:
    """Side tasks that the main model does are over its own, an auxiliary model's are its alone."""
    environment.setenv("OPENAI_API_KEY", "k")
    options = {
        "main": {"temperature": 1.0, "max_tokens": 7},
        "auxiliary": {"temperature": 0.0},
        "fallback": {"temperature": 0.5},
    }

    def seen(**llm: Any) -> list[Any]:
        given = LLM.model_validate({"options": options, "fallback_models": ["openai:f"], **llm})
        models = Models.of(given, "openai:m")
        made: Any = [models.get("main"), models.get(AUXILIARY), models.get("main", 1)]
        return [(each.model_name, each.temperature, each.max_tokens) for each in made]

    assert seen() == [("m", 1.0, 7), ("m", 0.0, 7), ("f", 0.5, None)]
    assert seen(auxiliary_model="openai:a")[1] == ("a", 0.0, None)
    assert seen(options={"main": {"max_tokens": 7}})[1] == ("m", None, 7)


def test_options_come_from_variables_too(environment: pytest.MonkeyPatch) -> None:
    """As every setting."""
    environment.setenv("DARUMA_LLM__OPTIONS__MAIN__TEMPERATURE", "0.2")
    environment.setenv("DARUMA_LLM__OPTIONS__MAIN__BASE_URL", "http://localhost:1/v1")
    environment.setenv("DARUMA_LLM__OPTIONS__FALLBACK__EXTRA", '{"top_p": 0.1}')

    given = Settings.load("absent.yaml").llm.options

    assert given.main == ModelOptions(temperature=0.2, base_url="http://localhost:1/v1")
    assert given.fallback.extra == {"top_p": 0.1}


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("openai:x", {"extra": {"topp": 1}}, "ChatOpenAI takes no topp; did you mean top_p?"),
        ("anthropic:x", {"extra": {"seed": 1}}, "ChatAnthropic takes no seed"),
        ("anthropic:x", {"effort": "minimal"}, "anthropic:x can not be made: "),
        ("google_genai:x", {"temperature": 9}, "google_genai:x can not be made: "),
    ],
)
def test_an_option_that_a_class_does_not_take_is_one_line(
    name: str, options: Any, complaint: str, environment: pytest.MonkeyPatch
) -> None:
    """When the model is made, which is before anything is asked."""
    for key, value in KEYS.items():
        environment.setenv(key, value)

    with pytest.raises(ModelUnavailable) as raised:
        resolve_model(name, aliases={}, options=ModelOptions.model_validate(options))

    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"base_url": "localhost:1234"}, "has to start with http:// or https://"),
        ({"base_url": "http://[::1/v1"}, "llm.options.main.base_url.*IPv6"),
        ({"base_url": "http://localhost:PORT/v1"}, "llm.options.main.base_url.*'PORT'"),
        ({"extra": {"openai_api_key": KEY}}, "keys are read from their environment variables"),
        ({"temprature": 1}, "did you mean 'temperature'"),
        ({"max_tokens": 0}, "llm.options.main.max_tokens"),
    ],
)
def test_an_option_that_is_none_is_said_by_the_settings(options: Any, complaint: str) -> None:
    """In one line with its key; what may be a secret is not quoted (SE-08)."""
    with pytest.raises(SettingsError, match=complaint) as raised:
        settings(llm={"options": {"main": options}})

    assert KEY not in str(raised.value)


# --- A model of another provider stands in, in the midst of a task.

QUOTA = Fault(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
CREDIT = Fault(400, {"type": "error", "error": {"message": "Your credit balance is too low"}})
BUSY = Fault(529, {"type": "error", "error": {"type": "overloaded_error"}})


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("main", "fallback", "fault", "during", "asked"),
    [
        ("openai:gpt-a", "anthropic:claude-b", QUOTA, range(1, 9), "oaaa"),
        ("anthropic:claude-b", "openai:gpt-a", CREDIT, range(1, 9), "aooo"),
        ("openai:gpt-a", "anthropic:claude-b", QUOTA, range(3, 9), "oooa"),
        ("anthropic:claude-b", "openai:gpt-a", BUSY, range(2, 5), "aaaaoa"),
    ],
)
def test_a_model_of_another_provider_goes_on_with_the_calls(
    environment: pytest.MonkeyPatch,
    main: str,
    fallback: str,
    fault: Fault,
    during: range,
    asked: str,
) -> None:
    """FA-09, RE-01: what one has called, and what came of it, is told in the other's own form."""
    for name, key in KEYS.items():
        environment.setenv(name, key)
    order: list[str] = []

    def reply(request: dict[str, Any]) -> Answer:
        order.append("o" if request["model"] == "gpt-a" else "a")
        if len(order) in during and order[-1] == asked[0]:
            return fault
        done = sum(message["role"] == "tool" for message in request["messages"])
        return Reply("Done.") if done == 2 else Reply("", [{"name": "look", "arguments": "{}"}])

    def look() -> str:
        """Look."""
        return "seen"

    with openai_server(reply) as server:
        url = {"openai": server.url, "anthropic": server.url.removesuffix("/v1")}
        options = {
            role: {"base_url": url[name.partition(":")[0]]}
            for role, name in (("main", main), ("fallback", fallback))
        }
        given = settings(llm={"fallback_models": [fallback], "options": options})
        out = build_graph(main, [look], given).invoke(
            {"messages": [("user", "Look twice")], "mode": "react"}
        )

    assert (out["result"].status, out["result"].output) == ("completed", "Done.")
    assert "".join(order) == asked
