"""The settings of budgets: steps, tokens, money and time."""

from typing import Literal

from pydantic import Field

from daruma.state.settings_section import Section


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

    think: int = Field(default=7, ge=1, description="Model calls of a phase, in modes that plan.")
    verify: int = Field(default=2, ge=0, description="Verifications of a phase.")
    reflect: int = Field(default=1, ge=0, description="Reflections of a phase.")
    max_steps: int = Field(default=10, ge=1, description="Model calls of a task in react mode.")
    max_steps_per_turn: int | None = Field(
        default=None, ge=1, description="Model calls of any task."
    )
    per_phase: Spendable = Field(
        default=Spendable(), description="Tokens, money and time of each phase."
    )
    when_spent: Literal["ask", "stop"] = Field(
        default="ask",
        description="What becomes of a task whose tokens, money or time are spent: ask pauses it.",
    )
