"""Live things that belong to one run: they hang on its config, and end with it."""

from typing import ClassVar, Self

from langchain_core.runnables import RunnableConfig


class OfARun:
    """What one run has of a kind. LangGraph neither stores nor shows keys of this form."""

    _key: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._key = f"__pregel_daruma_{cls.__name__}"

    @classmethod
    def found_in(cls, config: RunnableConfig) -> Self | None:
        """Return that of the run which a node is called in; None outside of any."""
        found = config.get("configurable", {}).get(cls._key)
        return found if isinstance(found, cls) else None

    def noted(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run that this is to be of."""
        given = config or RunnableConfig()
        configurable = given.get("configurable", {}) | {self._key: self}
        return RunnableConfig(**{**given, "configurable": configurable})
