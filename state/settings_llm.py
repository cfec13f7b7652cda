"""The settings of models: which are asked, how often and how long."""

from pydantic import Field

from daruma.state.settings_section import Section


class Requests(Section):
    """How often and how long a model is asked for one answer, before the call has failed."""

    per_model: int = Field(default=3, ge=1, le=3, description="Requests to one model.")
    per_call: int = Field(default=6, ge=1, le=6, description="Requests for one answer, all models.")
    wait_seconds: float = Field(
        default=0.5, ge=0, description="First wait before another request; doubled each time."
    )
    seconds: float = Field(default=300.0, gt=0, description="Seconds for one request.")
    chunk_seconds: float = Field(
        default=60.0, gt=0, description="Seconds between two chunks of a streamed answer."
    )
    total_seconds: float = Field(
        default=600.0, gt=0, description="Seconds for one answer, with all requests and waits."
    )


class ModelPrice(Section):
    """What a model costs, in US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, description="Of what is sent.")
    cached_input: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Of what the provider had kept; null: as input.",
    )
    output: float = Field(ge=0, allow_inf_nan=False, description="Of what is answered.")


class LLM(Section):
    """Which models are asked."""

    model: str | None = Field(
        default=None, description="Main model, e.g. openai:NAME or scripted:FILE."
    )
    auxiliary_model: str | None = Field(default=None, description="Cheaper model for side tasks.")
    fallback_models: tuple[str, ...] = Field(
        default=(), description="Tried when the main model fails."
    )
    embedding_model: str | None = Field(
        default=None, description="Finds by meaning in memory and knowledge, e.g. openai:NAME."
    )
    model_aliases: dict[str, str] = Field(default={}, description="Short names for models.")
    prices: dict[str, ModelPrice] = Field(
        default={},
        description="Prices of models by name, in place of those in the known price lists.",
    )
    requests: Requests = Requests()
    context_window_tokens: int | None = Field(
        default=None,
        ge=1000,
        description="Most tokens of a request; the answer needs room beside them.",
    )
