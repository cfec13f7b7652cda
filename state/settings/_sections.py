"""The sections of the settings, but for tools: each with its defaults."""

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from daruma.state.failure import Code

# --- What all sections of the settings have in common.


class Section(BaseModel):
    """A frozen group of settings in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def _check_filled(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank: leave it out, or say what it should be")
    return text


Filled = Annotated[str, AfterValidator(_check_filled)]
"""One of a list that names what is run, asked or read: a blank one is a mistake."""


# --- The settings of budgets: steps, tokens, money and time.


class Spendable(Section):
    """What may be spent beside steps; null: no limit."""

    tokens: int | None = Field(
        default=None, ge=1, description="Tokens of all model calls, input and output."
    )
    usd: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="US dollars for all model calls, by llm.prices or the known price lists.",
    )
    seconds: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds at work: not those it waits for people or lies killed.",
    )


class Budgets(Spendable):
    """How much a task may spend: steps per phase, steps per turn, tokens, money, time."""

    preset: Literal["work", "frugal"] = Field(
        default="work",
        description="Defaults of the steps: work is 50, 4, 2 and max_steps 50; frugal is 7, 2, 1 "
        "and 10, with look 3, replan 0 and verification.max_reinjections 0.",
    )
    think: int = Field(default=50, ge=1, description="Model calls of a phase, in modes that plan.")
    verify: int = Field(
        default=4,
        ge=0,
        description="Verifications of a phase: at least 1 + verification.max_reinjections + "
        "budgets.reflect.",
    )
    reflect: int = Field(default=2, ge=0, description="Reflections of a phase on red checks.")
    max_steps: int = Field(default=50, ge=1, description="Model calls of a task in react mode.")
    max_steps_per_turn: int | None = Field(
        default=None, ge=1, description="Model calls of any task."
    )
    look: int = Field(
        default=8, ge=0, description="Times that the planner may look around before it plans."
    )
    replan: int = Field(
        default=1, ge=0, description="Times that what is left of a task's plan is planned anew."
    )
    per_phase: Spendable = Field(
        default=Spendable(), description="Tokens, money and time of each phase."
    )
    when_spent: Literal["ask", "stop"] = Field(
        default="ask",
        description="What becomes of a task whose tokens, money or time are spent: ask pauses it.",
    )


# --- The settings of what is learned from ended tasks.


class Evolution(Section):
    """What is learned from ended tasks, and whether it is fed back."""

    enabled: bool = Field(
        default=True, description="Learn from ended tasks, where there is a store."
    )
    observe_only: bool = Field(
        default=True, description="Put on record what was learned, and do not feed it back."
    )
    success_sample_rate: float = Field(
        default=0.1, ge=0, le=1, description="Part of the successes that is looked at."
    )
    min_confidence: float = Field(
        default=0.5, ge=0, le=1, description="A pitfall that is less sure is marked, not used."
    )
    min_similarity: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="Where pitfalls are found by meaning: the cosine that a goal has to reach. "
        "It depends on the embedding model.",
    )
    min_examples: int = Field(
        default=3, ge=1, description="Tasks that have to speak for a change of a prompt."
    )
    max_concurrent: int = Field(
        default=2, ge=1, description="Tasks learned from at once; twice as many may wait."
    )
    auxiliary: bool = Field(
        default=False, description="Have the auxiliary model word what was learned; it costs."
    )
    namespace: str | None = Field(
        default=None,
        min_length=1,
        description="Whose experience: null is the workspace's, any text a project's.",
    )
    shared: bool = Field(
        default=False,
        description="Show pitfalls to workspaces that share theirs, and be shown those.",
    )
    keep_days: int = Field(default=180, ge=1, description="Days that experience is kept for.")


# --- The settings of what comes after a failure: recovery, then emergency.


class Recovery(Section):
    """What is tried after a failure."""

    enabled: bool = Field(default=True, description="Try to overcome failures.")
    max_retries: int = Field(
        default=1, ge=0, description="Recoveries for one and the same failure."
    )
    observe_only: bool = Field(
        default=False, description="Do nothing; a failure goes on to emergency."
    )
    execute_above: float = Field(
        default=0.8, ge=0, le=1, description="Confidence to act without asking."
    )
    ask_above: float = Field(default=0.5, ge=0, le=1, description="Confidence to ask for approval.")
    wait_seconds: float = Field(
        default=2.0, ge=0, description="Wait before what failed is tried again; doubled each time."
    )
    ask: bool | None = Field(
        default=None,
        description="Ask a person when steps run out or checks stay red; null: on a terminal and "
        "in Studio.",
    )


class EmergencyRule(Section):
    """What is told of failures of one code in place of what Daruma would tell; null: as it is."""

    retryable: bool | None = Field(default=None, description="Whether trying again may help.")
    suggestions: tuple[str, ...] | None = Field(
        default=None, description="What a person can do about it."
    )


class Emergency(Section):
    """How a failure that was not overcome is told."""

    enabled: bool = Field(
        default=True, description="Tell a failure as a structured error; else it is raised."
    )
    language: Literal["en", "zh"] = Field(default="en", description="Language of what is told.")
    rules: dict[Code, EmergencyRule] = Field(
        default={}, description="By error code: what is told in place of the built-in advice."
    )


class FallbackChain(Section):
    """The tiers behind a failure: recovery, then emergency."""

    enabled: bool = Field(default=True, description="Have these tiers at all; else failures raise.")
    recovery: Recovery = Recovery()
    emergency: Emergency = Emergency()

    @property
    def has_emergency(self) -> bool:
        """Whether a failure is told as a structured error, rather than raised."""
        return self.enabled and self.emergency.enabled


# --- The settings of models: which are asked, how often and how long.


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


_SECRET: Final = re.compile(r"(?i)(api_?key|api_?token|secret|password|access_key|session_token)")


class ModelOptions(Section):
    """How a model that is named is made; null leaves it to its provider."""

    temperature: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="How freely it answers; 0 is least."
    )
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        default=None, description="How much it reasons; not every model knows all of them."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Most tokens of an answer.")
    base_url: str | None = Field(
        default=None, description="Address that is asked, e.g. http://localhost:8000/v1."
    )
    extra: dict[str, Any] = Field(
        default={}, description="Other arguments of its LangChain class; keys stay in variables."
    )

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not re.match(r"https?://[^/\s]+", url):
            raise ValueError("has to start with http:// or https://")
        _ = urlsplit(url or "").port  # raises for a bracket or a port that is none
        return url

    @field_validator("extra")
    @classmethod
    def _is_no_secret(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if secret := next((name for name in extra if _SECRET.search(name)), None):
            raise ValueError(f"{secret}: keys are read from their environment variables")
        return extra


class RoleOptions(Section):
    """Options of the models by role."""

    main: ModelOptions = Field(default=ModelOptions(), description="Of the main model.")
    auxiliary: ModelOptions = Field(
        default=ModelOptions(),
        description="Of side tasks: over those of main, where the main model does them.",
    )
    fallback: ModelOptions = Field(default=ModelOptions(), description="Of llm.fallback_models.")
    judge: ModelOptions = Field(
        default=ModelOptions(), description="Of the judge: over those of main, where that judges."
    )


class LLM(Section):
    """Which models are asked."""

    model: str | None = Field(
        default=None,
        description="Main model, e.g. openai:NAME, anthropic:NAME, ollama:NAME or scripted:FILE.",
    )
    auxiliary_model: str | None = Field(default=None, description="Cheaper model for side tasks.")
    judge_model: str | None = Field(
        default=None, description="Judges work by a rubric; null: the main model."
    )
    fallback_models: tuple[Filled, ...] = Field(
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
    options: RoleOptions = RoleOptions()
    requests: Requests = Requests()
    context_window_tokens: int | None = Field(
        default=None,
        ge=1000,
        description="Most tokens of a request; the answer needs room beside them.",
    )


# --- The settings of what is known beside the conversation: memory, skills, pieces of prompts.


class Memory(Section):
    """What is remembered from one task to the next, in the graph's store."""

    enabled: bool = Field(
        default=True, description="Remember, and recall when a task begins, where there is a store."
    )
    search_limit: int = Field(
        default=5, ge=0, description="Memories that are recalled, and found by one search."
    )
    namespace: str | None = Field(
        default=None,
        min_length=1,
        description="Whose memories: null is the workspace's, any text a user's or a project's.",
    )


class Skills(Section):
    """Folders with a ``SKILL.md``: what the model can read up when a task asks for it."""

    folders: tuple[Filled, ...] = Field(
        default=(), description="Folders that hold skills, each a folder with a SKILL.md."
    )


class ProjectInstructions(Section):
    """What a workspace's repository says to whoever works in it: shown as its words."""

    files: tuple[Filled, ...] = Field(
        default=("AGENTS.md", "CLAUDE.md"),
        description="Read in the workspace and the folders above, up to its repository's root; "
        "none switches it off.",
    )
    max_chars: int = Field(
        default=16_000, ge=0, description="Characters that are shown of all of them."
    )


class PromptPiece(Section):
    """A named piece of the prompt, and where it stands.

    ``system`` is the end of the system prompt, ``task`` stands before the request, ``plan`` at the
    end of the planner's prompt. With a ``role`` only that expert of a team is told.
    """

    text: str = Field(min_length=1, description="What is added, word for word.")
    place: Literal["system", "task", "plan"] = Field(
        default="system", description="Which prompt it stands in, and where."
    )
    role: str | None = Field(
        default=None, description="The expert of a team who alone is told; null: everybody."
    )


# --- The settings of teams: where templates are found, and how many members work at a time.


class Team(Section):
    """Who carries out the phases of a ``team_collab`` task."""

    template: str = Field(
        default="coding", description="Template of a task whose message names none."
    )
    folders: tuple[Filled, ...] = Field(
        default=(),
        description="Folders with templates of one's own, NAME.yaml; they go before built-in ones.",
    )
    max_parallel: int = Field(default=4, ge=1, description="Members that work at the same time.")
    delegate: bool = Field(
        default=False,
        description="Offer the tool `delegate`, which has helpers carry out parts of the work.",
    )


# --- Telling somebody that a thread begins to wait.


class Notify(Section):
    """Whom to tell when a thread begins to wait for a person."""

    webhook: str | None = Field(
        default=None,
        description="URL that gets a JSON object for each question: https, or http to localhost.",
    )
    command: tuple[Filled, ...] = Field(
        default=(), description="Program and arguments, run with that object on standard input."
    )
    timeout: float = Field(
        default=5.0, gt=0, le=10, description="Seconds for one try; there are two at most."
    )

    @field_validator("webhook")
    @classmethod
    def _is_safe(cls, url: str | None) -> str | None:
        try:
            parts = urlsplit(url or "https://none")
            usable = (parts.hostname or "").encode("idna"), parts.port
        except ValueError:
            usable = None
        if usable is None or not re.fullmatch("[!-~]*", url or ""):
            raise ValueError("is no URL: only ASCII, and what is special as %20")
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if not parts.hostname or (
            parts.scheme != "https" and not (parts.scheme == "http" and local)
        ):
            raise ValueError("has to begin with https://, or http://localhost")
        if "@" in parts.netloc:
            raise ValueError("holds a password: a webhook has its secret in its path")
        return url


# --- Programs that see what a run does, and may say no.


HookPoint = Literal[
    "before_model",
    "after_model",
    "before_call",
    "after_call",
    "before_verification",
    "after_verification",
    "on_end",
]


class HookCommand(Section):
    """A program that is asked: JSON on its standard input, an answer as JSON or exit code 2."""

    run: tuple[Filled, ...] = Field(
        min_length=1, description="Program and arguments; files by their whole paths."
    )
    match: str = Field(default="*", description="Pattern of the names of tools, for calls.")
    timeout: float = Field(default=30.0, gt=0, le=600, description="Seconds.")
    on_error: Literal["deny", "go_on"] | None = Field(
        default=None,
        description="What it means if the program fails; null: before_call denies, others go on.",
    )
