"""The settings of what is learned from ended tasks."""

from pydantic import Field

from daruma.state.settings_section import Section


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
