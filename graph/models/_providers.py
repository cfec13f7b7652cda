"""Providers of chat models, as LangChain's ``init_chat_model`` knows them (FA-09), and what the
names of their models stand for: makers, prices, tokenizers.

The table of providers is our own: that function is in a package of its own, which nothing else here
needs, and it knows neither the variable of a provider's key nor what is installed before it is
called. A test holds the table against LangChain's.
"""

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr, ValidationError

from daruma.graph.models._faults import ModelUnavailable
from daruma.graph.models._scripted import AnsweringModel, ScriptedChatModel
from daruma.state.settings import (
    LLM,
    ModelOptions,
    ModelPrice,
    Requests,
    Settings,
    SettingsError,
    Team,
)
from daruma.state.text import printable_line
from daruma.state.usage import Usage
from daruma.tools.model_requests import ESTIMATE, Tokens
from daruma.tools.team import template_named
from daruma.tools.text import without_keys
from daruma.tools.threads import to_thread

# --- The providers: their packages, the variables of their keys, how the names of their models
# begin.


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


# --- What the names of models stand for; nothing is made of them here.

SCRIPTED: Final = "scripted"
"""Stands before the path of a script's file."""


def meant_by(name: str, aliases: Mapping[str, str]) -> str:
    """What a name stands for, as `PREFIX:REST`; `ModelUnavailable` if that is nothing we know."""
    spec = full_name(name, aliases)
    prefix, _, rest = spec.partition(":")
    if prefix not in {*PROVIDERS, SCRIPTED} or not rest.strip():
        raise ModelUnavailable(_unknown(spec, aliases))
    return spec


def full_name(name: str, aliases: Mapping[str, str]) -> str:
    """The name at the end of aliases, with its provider where that can be told (FA-09).

    Raises `ModelUnavailable` for aliases that go in a circle.
    """
    spec = follow_aliases(name, aliases)
    prefix, colon, rest = spec.partition(":")
    if colon and prefix in {*PROVIDERS, SCRIPTED}:
        return spec
    if colon and (spelt := prefix.strip().replace("-", "_").lower()) in PROVIDERS:
        return f"{spelt}:{rest}"
    provider = infer_provider(spec)
    return f"{provider}:{spec}" if provider else spec


def follow_aliases(name: str, aliases: Mapping[str, str]) -> str:
    """The name at the end of a chain of aliases; `ModelUnavailable` when the chain is a circle."""
    chain = [name]
    while chain[-1] in aliases:
        chain.append(aliases[chain[-1]])
        if chain[-1] in chain[:-1]:
            raise ModelUnavailable(f"llm.model_aliases go in a circle: {' -> '.join(chain)}")
    return chain[-1]


def check_model(model: object) -> None:
    """Raise `ModelUnavailable` for what is neither a chat model nor a name, but wraps one."""
    if not isinstance(model, BaseChatModel | str | None):
        raise ModelUnavailable(
            f"model has to be a chat model or a name, not {type(model).__name__}: retries and"
            " fallbacks belong into llm.requests and llm.fallback_models, options into the model"
        )


def check_name(
    name: object, aliases: Mapping[str, str], options: ModelOptions, where: str = ""
) -> None:
    """Raise `ModelUnavailable`, one line that begins with where, for a name that is of no use.

    Nothing is made: a name that means nothing, a script that can not be read, a package that is
    missing and a key that is not set are found out. What is no name is none of this.
    """
    if not isinstance(name, str):
        return
    try:
        provider, _, rest = meant_by(name, aliases).partition(":")
        if provider == SCRIPTED:
            ScriptedChatModel.from_file(rest)
        elif provider == "openai":
            openai_key(openai_url(options))
        else:
            check_installed(provider)
            check_key(provider, options.base_url)
    except ModelUnavailable as error:
        raise type(error)(f"{where}{error}") from error


def _unknown(spec: str, aliases: Mapping[str, str]) -> str:
    prefix, colon, rest = spec.partition(":")
    known = sorted({*PROVIDERS, SCRIPTED})
    provider = get_close_matches(prefix.lower(), known, n=1) if colon and rest.strip() else []
    if alias := get_close_matches(spec, aliases, n=1):
        hint = f"did you mean {alias[0]}?"
    elif provider:
        hint = f"did you mean {provider[0]}:{rest}?"
    else:
        hint = f"write PROVIDER:NAME, with one of {', '.join(known)}"
    also = f"; llm.model_aliases: {', '.join(aliases)}" if aliases else ""
    return f'unknown model "{spec}": {hint}{also}'


# --- What a model call costs: by the settings' own prices, else by genai-prices' lists, offline.

_MILLION = 1_000_000


def configured_price(name: str, llm: LLM) -> ModelPrice | None:
    """Return what ``llm.prices`` says of a model: by its name, with or without prefix, or alias."""
    if not llm.prices:
        return None
    prices = {_bare(key, llm.model_aliases): price for key, price in llm.prices.items()}
    return prices.get(_bare(name, llm.model_aliases))


def usd_of(usage: Usage, model: object, llm: LLM) -> float | None:
    """Return what a call cost in US dollars, None where nobody knows the model's price.

    ``model`` is the chat model that answered. One of a script costs nothing. At an address whose
    provider is unknown a familiar name says nothing.
    """
    if price := configured_price(usage.model, llm):
        cached_price = price.input if price.cached_input is None else price.cached_input
        cached = min(usage.cached_tokens, usage.input_tokens)
        spent = (usage.input_tokens - cached) * price.input + cached * cached_price
        return (spent + usage.output_tokens * price.output) / _MILLION
    if isinstance(model, AnsweringModel):
        return 0.0
    return listed_price(model_name(model), model_address(model), usage)


def model_name(model: object) -> str:
    """Return the name by which a provider knows a chat model; empty where it has none."""
    named = getattr(model, "model_name", None) or getattr(model, "model", None)
    return named if isinstance(named, str) else ""


def model_address(model: object) -> str | None:
    """Return the base URL that a chat model of OpenAI's protocol asks; None for other ones."""
    client = getattr(model, "root_async_client", None)
    found = getattr(client, "base_url", None)
    return str(found) if found else None


def listed_price(name: str, address: str | None, usage: Usage) -> float | None:
    """Return what the shipped lists say of a call; no network is used, ever."""
    if not name:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(calc_price(counted, name, provider_api_url=address).total_price)
    except (LookupError, ValueError):  # no such model or provider, or counts that do not add up
        return None


def look_up(model: object) -> None:
    """Load the lists, which takes a second, so that no answer waits for it; a script needs none."""
    if not isinstance(model, AnsweringModel):
        is_known_model(model_name(model), model_address(model))


@cache
def is_known_model(name: str, address: str | None) -> bool:
    """Whether the shipped lists know a model."""
    asked = Usage(role="main", model=name, input_tokens=1, output_tokens=1)
    return listed_price(name, address, asked) is not None


def _bare(name: str, aliases: Mapping[str, str]) -> str:
    try:
        return full_name(name, aliases).removeprefix("openai:")
    except ModelUnavailable:
        return name


# --- Whether the models that settings name could be made, and what they cost be counted.

_OPENAI: Final = "https://api.openai.com/v1"


def check_models(settings: Settings, main: BaseChatModel | str | None) -> None:
    """Look at all models that a run under these settings may ask (FA-09); nothing is made.

    A team that a message names, ``@team:NAME``, is looked at when that message comes. Raises
    ``ModelUnavailable`` for a name that is of no use,
    :class:`~daruma.tools.team.TemplateRefused`, and for money that nobody could count
    :class:`~daruma.state.settings.SettingsError`, naming a model without a price.
    """
    llm, budgets = settings.llm, settings.budgets
    counted = budgets.usd is not None or budgets.per_phase.usd is not None
    for where, model, options in _models(settings, main):
        check_name(model, llm.model_aliases, options, f"{where}: " if where else "")
        name = _unpriced(model, llm, options) if counted else None
        if name is not None:
            raise SettingsError(
                f"budgets.usd: nobody knows the price of {name!r} ({where or 'the main model'}): "
                f'set llm.prices, e.g. {{"{name}": {{"input": 1.0, "output": 4.0}}}} in US dollars '
                "per million tokens"
            )


def _models(
    settings: Settings, main: BaseChatModel | str | None
) -> Iterator[tuple[str, BaseChatModel | str, ModelOptions]]:
    llm, options = settings.llm, settings.llm.options
    named: list[tuple[str, BaseChatModel | str | None, ModelOptions]] = [
        ("", main, options.main),
        ("llm.auxiliary_model", llm.auxiliary_model, options.auxiliary),
        ("llm.judge_model", llm.judge_model, options.judge),
        *(("llm.fallback_models", name, options.fallback) for name in llm.fallback_models),
    ]
    yield from ((where, model, given) for where, model, given in named if model is not None)
    if settings.mode == "team_collab" or settings.team != Team():
        template = template_named(None, settings.team, settings.tools)
        for each in template.experts:
            if each.model is not None:
                where = f"team template {template.name!r}, model of expert {each.name!r}"
                yield where, each.model, ModelOptions()


def _unpriced(model: BaseChatModel | str, llm: LLM, options: ModelOptions) -> str | None:
    """Return the name to give a price to, None where there is one."""
    if isinstance(model, str):
        spec = full_name(model, llm.model_aliases)
        prefix, _, rest = spec.partition(":")
        address = (openai_url(options) or _OPENAI) if prefix == "openai" else options.base_url
        known = prefix == SCRIPTED or configured_price(spec, llm) or is_known_model(rest, address)
        return None if known else rest or spec
    shown = model_name(model) or type(model).__name__
    if isinstance(model, AnsweringModel) or configured_price(shown, llm):
        return None
    return None if is_known_model(model_name(model), model_address(model)) else shown


# --- The tokenizers of OpenAI's models, from a package that holds their tables: nothing is fetched.
#
# With the extra ``tokens`` requests are counted by the tokenizer of the main model; without it, and
# for models whose tokenizer is not known, by an estimate. (`tiktoken`, which LangChain brings,
# would fetch its tables from the network.)

ENCODINGS: Final = {
    "o200k_base": ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "o1", "o3", "o4"),
    "cl100k_base": ("gpt-4", "gpt-3.5", "gpt-35"),
}
"""By the beginnings of models' names, the longest first; as in tiktoken's own table."""

_AT_ONCE: Final = 100_000
"""Characters that are counted in one piece: the package refuses texts of 200,000 tokens."""


async def tokens_of(model: str) -> Tokens:
    """Return what counts for a model; made in a thread, as it takes a second the first time."""
    encoding = encoding_of(model)
    if encoding is None:
        return ESTIMATE
    return await to_thread(tokenizer, encoding)


def encoding_of(model: str) -> str | None:
    """Return the name of a model's tokenizer, None for one that is not known."""
    prefix, _, rest = model.rpartition(":")
    name = rest.rpartition("/")[2].lower() if prefix in ("", "openai") else ""
    known = [(begins, each) for each, names in ENCODINGS.items() for begins in names]
    fitting = [
        pair for pair in known if name == pair[0] or name.startswith((f"{pair[0]}-", f"{pair[0]}."))
    ]
    return max(fitting, key=lambda pair: len(pair[0]))[1] if fitting else None


@lru_cache
def tokenizer(encoding: str) -> Tokens:
    """Return what counts by a tokenizer; the estimate where the package is not installed."""
    try:
        with warnings.catch_warnings():  # it reads its tables in a way that is deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            from bpe_openai import get_encoding  # type: ignore[import-untyped]  # it has none

            encode = get_encoding(encoding).encode_ordinary
    except (ImportError, OSError):
        return ESTIMATE

    def count(text: str) -> int:
        pieces = (text[at : at + _AT_ONCE] for at in range(0, len(text), _AT_ONCE))
        return sum(len(encode(piece)) for piece in pieces)

    return Tokens(count, exact=True)
