"""What a thread keeps of the command that started it, so that another process can go on with it.

It lies in the metadata of the thread's checkpoints, in clear: a model's name and a folder, never a
key. The settings are read again from that folder, and the environment is each process's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daruma.graph.models.by_role import AUXILIARY, Models, follow_aliases
from daruma.state.settings import Settings

_MODEL, _FOLDER = "daruma_model", "daruma_folder"
_SCRIPTED = "scripted:"


@dataclass(frozen=True)
class Keepsake:
    """The model's name, and the folder whose ``daruma.yaml`` holds the thread's settings."""

    model: str | None
    folder: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Keepsake":
        """Read it back; a thread that Python code started is taken up in the current folder."""
        model, folder = metadata.get(_MODEL), metadata.get(_FOLDER)
        return cls(str(model) if model else None, str(folder or Path.cwd()))

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what is kept, for a run's config."""
        return {_MODEL: self.model or "", _FOLDER: self.folder}

    def settings(self) -> Settings:
        """Read the settings. Raises :class:`~daruma.state.settings_errors.SettingsError`."""
        return Settings.load(str(Path(self.folder) / "daruma.yaml"))


def usable_model(name: str | None, settings: Settings) -> str:
    """Return the model's full name, fit for another process; it and its helper can be made.

    Raises :class:`~daruma.graph.models.errors.ModelUnavailable` before anything runs.
    """
    llm = settings.llm
    models = Models(name or llm.model, llm.auxiliary_model, llm.model_aliases)
    models.get("main")
    models.get(AUXILIARY)
    full = follow_aliases(models.name("main"), llm.model_aliases)
    if full.startswith(_SCRIPTED):
        return _SCRIPTED + str(Path(full.removeprefix(_SCRIPTED)).absolute())
    return full
