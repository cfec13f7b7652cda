"""A run's settings: what the client gave, over those of the folder that the server is in."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from daruma.state.settings import Settings


def settings_of(own: Settings, given: object) -> Settings:
    """Return the settings of a run. Raises :class:`~daruma.state.settings.errors.SettingsError`.

    The server gives a dictionary, with what a client or an assistant has set.
    """
    if isinstance(given, Settings) or not given:
        return given if isinstance(given, Settings) else own
    if not isinstance(given, Mapping):
        return Settings.model_validate(given)
    return Settings.model_validate(_over(own.model_dump(exclude_unset=True), given))


def _over(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(own)
    for key, value in given.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _over(below, value)
        else:
            merged[key] = value
    return merged


def without_settings(config: RunnableConfig | None) -> RunnableConfig | None:
    """Return a config without the copy of the settings that the server puts into it.

    What stands there is kept in clear with every checkpoint.
    """
    if not config:
        return config
    kept = {
        key: value
        for key, value in config.get("configurable", {}).items()
        if key not in Settings.model_fields and key != "__context_provided__"
    }
    return RunnableConfig(**{**config, "configurable": kept})
