"""Every setting and its default, and what is in force of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from daruma.state.settings._sections import (
    LLM,
    Budgets,
    Evolution,
    FallbackChain,
    Filled,
    HookCommand,
    HookPoint,
    Memory,
    Notify,
    ProjectInstructions,
    PromptPiece,
    Section,
    Skills,
    Team,
)
from daruma.state.settings._sources import (
    NAME,
    SETTINGS_FILE,
    SettingsError,
    SettingsKey,
    explain,
    merge_settings,
    sources,
)
from daruma.state.settings._tools import Tools
from daruma.state.settings._trust import refuse_untrusted
from daruma.state.verification import Rubric

# --- All settings: the graph's context schema.

PRESETS: Final[dict[str, dict[tuple[str, str], int]]] = {
    "work": {},
    "frugal": {
        ("budgets", "think"): 7,
        ("budgets", "verify"): 2,
        ("budgets", "reflect"): 1,
        ("budgets", "max_steps"): 10,
        ("budgets", "look"): 3,
        ("budgets", "replan"): 0,
        ("verification", "max_reinjections"): 0,
    },
}
"""What each value of ``budgets.preset`` makes the default, where it is not the key's own (BU-01).

``frugal`` has the numbers of the design documents.
"""


class VerificationSettings(Section):
    """How the work is checked before it is called done."""

    enabled: bool | Literal["auto"] = Field(
        default="auto",
        description="auto: in plan_exec and team_collab, and in react when the task changed its "
        "workspace. direct_chat never verifies.",
    )
    commands: tuple[Filled, ...] = Field(
        default=(), description="Run in addition to what is recognised."
    )
    rubric: Rubric = Field(
        default=(),
        description="Criteria that a judge holds the work against, where no command can tell.",
    )
    max_reinjections: int = Field(
        default=1, ge=0, description="Red results that go back before any is reflected on."
    )
    timeout: float = Field(default=300.0, gt=0, description="Seconds for one command.")


class RollbackSettings(Section):
    """How validation and rollback commands of a phase run."""

    default_timeout: float = Field(
        default=30.0, gt=0, allow_inf_nan=False, description="Seconds for one command."
    )
    snapshots: bool = Field(
        default=True, description="Keep the workspace as it was before each phase and command."
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Lines as in .gitignore: what snapshots leave alone in addition."
    )
    keep_days: float = Field(default=30.0, gt=0, description="Days that snapshots are kept.")


class SpecReview(Section):
    """The human gate on the plan."""

    enabled: bool = Field(default=True, description="Ask a person before a plan is carried out.")
    timeout: float = Field(
        default=1800.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds until an unanswered plan is parked.",
    )


class Sandbox(Section):
    """How commands are confined."""

    require: Literal["namespace", "landlock", "none"] | None = Field(
        default=None,
        description="At least this level; null: the best that is proved. None proved is an error. "
        "none: no confinement, and every command asks a person.",
    )
    network: bool = Field(default=False, description="Whether commands may use the network.")
    memory_mb: int = Field(default=4096, ge=64, description="Memory of a command, all processes.")
    processes: int = Field(default=256, ge=8, description="Processes of a command at once.")


class Settings(Section):
    """All settings. Raises :class:`SettingsError`, naming the nearest key, for an unknown one."""

    mode: Literal["direct_chat", "react", "plan_exec", "team_collab"] = Field(
        default="react", description="Mode of a task whose request names none."
    )
    llm: LLM = LLM()
    fallback_chain: FallbackChain = FallbackChain()
    budgets: Budgets = Budgets()
    verification: VerificationSettings = VerificationSettings()
    rollback: RollbackSettings = RollbackSettings()
    spec_review: SpecReview = SpecReview()
    team: Team = Team()
    tools: Tools = Tools()
    memory: Memory = Memory()
    skills: Skills = Skills()
    instructions: ProjectInstructions = ProjectInstructions()
    prompts: dict[str, PromptPiece] = Field(
        default={}, description="Named pieces that are added to the prompts, each at its place."
    )
    sandbox: Sandbox = Sandbox()
    notify: Notify = Notify()
    hooks: dict[HookPoint, tuple[HookCommand, ...]] = Field(
        default={}, description="Programs that are asked at points of a run, by the point."
    )
    evolution: Evolution = Evolution()

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, value: Any, build: Any) -> Self:
        try:
            built: Self = build(value)
        except ValidationError as error:
            raise SettingsError(explain(error, cls, value)) from None
        return built._with_preset()._reachable()

    def _with_preset(self) -> Self:
        """Take what nobody has set from the preset; it still counts as not set."""
        for (section, name), value in PRESETS[self.budgets.preset].items():
            given = getattr(self, section)
            if name not in given.model_fields_set:
                self.__dict__[section] = given = given.model_copy()  # defaults are shared
                given.__dict__[name] = value
        return self

    def _reachable(self) -> Self:
        """Refuse quotas of which one can not be reached before another ends the work (BU-01)."""
        verify, reflect = self.budgets.verify, self.budgets.reflect
        again = self.verification.max_reinjections
        if self.verification.enabled is not False and verify < 1 + again + reflect:
            raise SettingsError(
                f"setting 'budgets.verify': {verify} verifications are less than 1 + "
                f"verification.max_reinjections ({again}) + budgets.reflect ({reflect}): raise it "
                f"to {1 + again + reflect}, lower those, or set verification.enabled to false"
            )
        return self

    def with_a_person(self) -> Self:
        """Return the settings of a face with a person at it, who is asked unless told otherwise."""
        chain = self.fallback_chain
        if chain.recovery.ask is not None:
            return self
        recovery = chain.recovery.model_copy(update={"ask": True})
        chain = chain.model_copy(update={"recovery": recovery})
        return self.model_copy(update={"fallback_chain": chain})

    @classmethod
    def load(cls, path: str = "daruma.yaml") -> Self:
        """Read ``daruma.yaml`` in the current folder, if there is one, then ``DARUMA_*`` variables.

        A variable names a key by its path, ``DARUMA_LLM__MODEL``, and wins over the file.
        Raises :class:`SettingsError` for a file or a value that can not be used, and
        :class:`~daruma.state.settings.UntrustedSettings` for a file that weakens what holds
        without it, runs programs, chooses models or opens folders, while nobody has agreed to that
        (SE-02).
        """
        file, environment = sources(cls, path)
        settings = cls.model_validate(merge_settings(file.values, environment))
        refuse_untrusted(settings, file, environment)
        return settings


# --- What is in force here, and where each value comes from.


@dataclass(frozen=True)
class InForce:
    """A key's value as JSON, and its source: default, budgets.preset, daruma.yaml, a variable."""

    key: SettingsKey
    value: str
    source: str


def values_in_force(keys: Iterable[SettingsKey], path: str = SETTINGS_FILE) -> list[InForce]:
    """Return what holds for keys in the current folder; of those under a name, nothing.

    Raises :class:`~daruma.state.settings.SettingsError` for what can not be used.
    """
    settings: Any = Settings.load(path)
    file, environment = sources(Settings, path)
    found = []
    for key in keys:
        parts = key.path.split(".")
        if NAME not in parts:
            value = json.dumps(_dumped(reduce(getattr, parts, settings)), ensure_ascii=False)
            source = _source(key, file.values, environment, settings.budgets.preset)
            found.append(InForce(key, value, source))
    return found


def _source(
    key: SettingsKey, file: Mapping[str, Any], environment: Mapping[str, Any], preset: str
) -> str:
    if _holds(environment, key.path):
        return key.variable
    if _holds(file, key.path):
        return SETTINGS_FILE
    return "budgets.preset" if tuple(key.path.split(".")) in PRESETS[preset] else "default"


def _holds(values: Any, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _dumped(each) for name, each in value.items()}
    return [_dumped(each) for each in value] if isinstance(value, tuple) else value


# --- The settings as a JSON Schema for editors, which is generated.

SCHEMA: Final = "settings.schema.json"
ID: Final = "urn:daruma-agent:settings:1"


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``daruma.yaml``."""
    plain = Settings.model_json_schema()
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID}
    return top | plain | {"title": "daruma.yaml"}
