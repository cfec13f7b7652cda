"""Providers of chat models, as LangChain's ``init_chat_model`` knows them (FA-09).

A table of our own: that function is in a package of its own, which nothing else here needs, and it
knows neither the variable of a provider's key nor what is installed before it is called. A test
holds the table against LangChain's.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr, ValidationError

from daruma.graph.models._faults import ModelUnavailable
from daruma.state.settings import ModelOptions, Requests
from daruma.state.text import printable_line
from daruma.tools.text import without_keys


@dataclass(frozen=True)
class Provider:
    """Where its class of chat models is, and the variables of which one has to hold its key.

    None of them has to where there are other ways to be let in, or no keys at all.
    """

    module: str
    name: str
    keys: tuple[str, ...] = ()
    extra: str = ""

    @property
    def root(self) -> str:
        """The package to import."""
        return self.module.partition(".")[0]

    @property
    def package(self) -> str:
        """The package to install."""
        return self.root.replace("_", "-") + (f"[{self.extra}]" if self.extra else "")


_TABLE: Final = """
openai                    langchain_openai ChatOpenAI OPENAI_API_KEY
anthropic                 langchain_anthropic ChatAnthropic ANTHROPIC_API_KEY
google_genai              langchain_google_genai ChatGoogleGenerativeAI \
    GOOGLE_API_KEY GEMINI_API_KEY GOOGLE_GENAI_USE_VERTEXAI
ollama                    langchain_ollama ChatOllama
anthropic_bedrock         langchain_aws[anthropic] ChatAnthropicBedrock
azure_ai                  langchain_azure_ai.chat_models AzureAIOpenAIApiChatModel
azure_openai              langchain_openai AzureChatOpenAI \
    AZURE_OPENAI_API_KEY OPENAI_API_KEY AZURE_OPENAI_AD_TOKEN
baseten                   langchain_baseten ChatBaseten BASETEN_API_KEY
bedrock                   langchain_aws ChatBedrock
bedrock_converse          langchain_aws ChatBedrockConverse
bedrock_mantle_anthropic  langchain_aws[anthropic] ChatAnthropicMantle
bedrock_mantle_openai     langchain_aws[openai] ChatOpenAIMantle
cohere                    langchain_cohere ChatCohere COHERE_API_KEY CO_API_KEY
deepseek                  langchain_deepseek ChatDeepSeek DEEPSEEK_API_KEY
fireworks                 langchain_fireworks ChatFireworks FIREWORKS_API_KEY
google_anthropic_vertex   langchain_google_vertexai.model_garden ChatAnthropicVertex
google_vertexai           langchain_google_vertexai ChatVertexAI
groq                      langchain_groq ChatGroq GROQ_API_KEY
huggingface               langchain_huggingface ChatHuggingFace
ibm                       langchain_ibm ChatWatsonx
litellm                   langchain_litellm ChatLiteLLM
meta                      langchain_meta ChatMetaModel
mistralai                 langchain_mistralai ChatMistralAI MISTRAL_API_KEY
nvidia                    langchain_nvidia_ai_endpoints ChatNVIDIA NVIDIA_API_KEY
openrouter                langchain_openrouter ChatOpenRouter OPENROUTER_API_KEY
perplexity                langchain_perplexity ChatPerplexity PPLX_API_KEY PERPLEXITY_API_KEY
together                  langchain_together ChatTogether TOGETHER_API_KEY
upstage                   langchain_upstage ChatUpstage UPSTAGE_API_KEY
xai                       langchain_xai ChatXAI XAI_API_KEY
"""
"""Name, module with the extra of its package, class, and the variables that may hold its key."""


def _read(line: str) -> tuple[str, Provider]:
    name, module, kind, *keys = line.split()
    module, _, extra = module.partition("[")
    return name, Provider(module, kind, tuple(keys), extra.rstrip("]"))


PROVIDERS: Final[Mapping[str, Provider]] = dict(map(_read, _TABLE.strip().splitlines()))

_BEGINNINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("gpt-", "o1", "o3", "chatgpt", "text-davinci"),
    "anthropic": ("claude",),
    "cohere": ("command",),
    "fireworks": ("accounts/fireworks",),
    "google_vertexai": ("gemini",),
    "bedrock": ("amazon.", "anthropic.", "meta."),
    "mistralai": ("mistral", "mixtral"),
    "deepseek": ("deepseek",),
    "xai": ("grok",),
    "perplexity": ("sonar",),
    "upstage": ("solar",),
}
"""How the names of a provider's models begin, where none stands before them."""


def infer_provider(name: str) -> str | None:
    """Return the provider whose models have such names, as LangChain infers it; None if none."""
    lower = name.lower()
    found = (each for each, begins in _BEGINNINGS.items() if lower.startswith(begins))
    return next(found, None)


# --- Whether a model could be made, without making it: that imports its package, for seconds.

_OTHER_KEYS: Final = ("LANGSMITH_GATEWAY",)
"""Variables by which any provider is asked through somebody else."""


def check_installed(provider: str) -> None:
    """Raise `ModelUnavailable`, which says what to install, where a provider's package is not."""
    package = PROVIDERS[provider].package
    if find_spec(PROVIDERS[provider].root) is None:
        quoted = f"'{package}'" if "[" in package else package
        raise ModelUnavailable(f"{provider}: its package is missing: pip install {quoted}")


def check_key(provider: str, base_url: str | None) -> None:
    """Raise `ModelUnavailable` for a key that is not set; another address may do without one."""
    keys = PROVIDERS[provider].keys
    for name in keys:
        if not re.fullmatch(r"[!-~]*", os.environ.get(name, "")):  # no header could hold it
            raise ModelUnavailable(f"{name} holds a blank or a line break: set the key alone")
    if not keys or base_url or any(os.environ.get(each) for each in (*keys, *_OTHER_KEYS)):
        return
    where = (
        "point OPENAI_BASE_URL at a server without keys"
        if provider == "openai"
        else "set base_url in llm.options to a server without keys"
    )
    raise ModelUnavailable(f"{keys[0]} is not set{misspelt_variable(*keys)}: set it, or {where}")


def openai_url(options: ModelOptions) -> str | None:
    """Return the address that is asked in OpenAI's protocol; None for OpenAI's own."""
    set_to = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    return options.base_url or set_to or None


def openai_key(base_url: str | None) -> SecretStr:
    """Return the key for an address, a placeholder for one without keys.

    Raises `ModelUnavailable` for a key that is missing, and what can not be an address.
    """
    if base_url is not None and urlsplit(base_url).scheme not in {"http", "https"}:
        raise ModelUnavailable("OPENAI_BASE_URL has to start with http:// or https://")
    if os.environ.get("OPENAI_PROXY"):
        raise ModelUnavailable("OPENAI_PROXY is not supported: set HTTPS_PROXY in its place")
    own = base_url is None or f".{urlsplit(base_url).hostname}".endswith(".openai.com")
    check_key("openai", None if own else base_url)
    key = os.environ.get("OPENAI_API_KEY")
    return SecretStr(key or "no-key-needed")


def misspelt_variable(*variables: str) -> str:
    """Name the variable that is set and was probably meant for one of these; empty if none is."""
    known = {key for each in PROVIDERS.values() for key in each.keys}
    near = [name for name, value in os.environ.items() if value and name not in known]
    close = [each for name in variables for each in get_close_matches(name, near, n=1, cutoff=0.8)]
    return f" ({close[0]} is: was it meant?)" if close else ""


def key_variables(model: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the variables that may hold the key of a model, and those of them that are set."""
    provider = PROVIDERS.get(model.partition(":")[0])
    keys = provider.keys if provider else ()
    return keys, tuple(each for each in keys if os.environ.get(each))


def key_hint(model: str) -> str:
    """Return what to do about a model's key that is refused; empty where that is not known."""
    keys, found = key_variables(model)
    return f"; check {found[0]}" if found else f"; set {keys[0]}" if keys else ""


# --- Making a model of any provider from its name and its options.

_TAKEN: Final = (
    ("temperature", ("temperature",)),
    ("effort", ("reasoning_effort", "effort")),
    ("max_tokens", ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")),
    ("base_url", ("base_url", "endpoint_url", "endpoint")),
)
"""What each option is called by the classes of LangChain's packages."""
_ONE_REQUEST: Final[Mapping[str, int]] = {"google_genai": 1, "google_vertexai": 1}
"""Where `max_retries` counts the first request too."""


def make_model(
    provider: str, name: str, requests: Requests, options: ModelOptions
) -> BaseChatModel:
    """Return a model without retries of its own, as far as its class knows that word.

    Raises `ModelUnavailable` for what is missing, and for whatever its class does not take.
    """
    check_installed(provider)
    check_key(provider, options.base_url)
    where = PROVIDERS[provider]
    try:
        kind = getattr(import_module(where.module), where.name)
        known = names_of_fields(kind)
        given = {
            "model" if "model" in known else "model_id": name,
            "timeout": int(requests.seconds) if requests.seconds > 1 else requests.seconds,
            "max_retries": _ONE_REQUEST.get(provider, 0),
            "stream_usage": True,
        }
        given = {key: value for key, value in given.items() if key in known or key == "model_id"}
        made: BaseChatModel = getattr(kind, "from_model_id", kind)(
            **given | arguments_of(kind, options)
        )
    except ModelUnavailable:
        raise
    except Exception as error:  # whatever its class makes of what it was given
        raise ModelUnavailable(f"{provider}:{name} can not be made: {_line_of(error)}") from error
    return made


def arguments_of(kind: type[BaseChatModel], options: ModelOptions) -> dict[str, Any]:
    """Return options by the names that a class of models has for them.

    Raises `ModelUnavailable` for one that it does not have, with the nearest that it has.
    """
    known, found = names_of_fields(kind), dict[str, Any]()
    for option, names in _TAKEN:
        if (value := getattr(options, option)) is not None:
            taken = next((each for each in names if each in known), None)
            if taken is None:
                raise ModelUnavailable(f"llm.options: {kind.__name__} takes no {option}")
            found[taken] = value
    for extra in options.extra:
        if extra not in known:
            close = get_close_matches(extra, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ModelUnavailable(f"llm.options: {kind.__name__} takes no {extra}{hint}")
    return found | options.extra


def names_of_fields(kind: type[BaseChatModel]) -> set[str]:
    """Return all names by which a class of models takes arguments."""
    fields = kind.model_fields.items()
    return {name for name, _ in fields} | {each.alias for _, each in fields if each.alias}


def _line_of(error: Exception) -> str:
    said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return printable_line(without_keys(said), 300) or type(error).__name__
