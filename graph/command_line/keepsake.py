"""What a thread keeps of the command that started it, so that another process can go on with it.

It lies in the metadata of the thread's checkpoints, in clear: a model's name and a folder, never a
key. The settings are read again from that folder, and the environment is each process's own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from daruma.graph.models.by_role import AUXILIARY, Models
from daruma.graph.models.names import follow_aliases
from daruma.state.settings import Settings
from daruma.state.settings.errors import SettingsError

_MODEL, _FOLDER, _RULES = "daruma_model", "daruma_folder", "daruma_rules"
_SCRIPTED = "scripted:"


@dataclass(frozen=True)
class Keepsake:
    """The model's name, and the folder whose ``daruma.yaml`` holds the thread's settings.

    ``rules`` is the digest of that file as the task began, empty where that is not known.
    """

    model: str | None
    folder: str
    rules: str = ""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Keepsake":
        """Read it back; a thread that Python code started is taken up in the current folder."""
        model, folder = metadata.get(_MODEL), metadata.get(_FOLDER)
        rules = str(metadata.get(_RULES) or "")
        return cls(str(model) if model else None, str(folder or Path.cwd()), rules)

    @classmethod
    def beginning(cls, folder: Path | None) -> "Keepsake":
        """Return that of a new task, under the settings that are there now."""
        kept = cls(None, str(folder))
        return replace(kept, rules=kept.rules_now())

    def rules_now(self) -> str:
        """Return the digest of the settings' file as it is."""
        try:
            return hashlib.sha256(self._file.read_bytes()).hexdigest()
        except OSError:
            return "none"

    def refuse_own_rules(self, workspace: str | None) -> None:
        """Refuse settings that changed in the workspace, where the task itself may write them.

        Raises :class:`~daruma.state.settings.errors.SettingsError`.
        """
        if self.writable_in(workspace) and self.rules and self.rules != self.rules_now():
            raise SettingsError(
                "daruma.yaml in the workspace is not what this task began with: put it back, "
                "its changes count from the next task on"
            )

    def writable_in(self, workspace: str | None) -> bool:
        """Whether a task in a workspace could write the settings' file."""
        if workspace is None:
            return False
        return self._file.resolve().is_relative_to(Path(workspace).resolve())

    @property
    def _file(self) -> Path:
        return Path(self.folder) / "daruma.yaml"

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what is kept, for a run's config."""
        return {_MODEL: self.model or "", _FOLDER: self.folder, _RULES: self.rules}

    def settings(self) -> Settings:
        """Read the settings. Raises :class:`~daruma.state.settings.errors.SettingsError`."""
        return Settings.load(str(self._file))


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
