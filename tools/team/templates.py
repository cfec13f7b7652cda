"""The teams there are: those that come with Daruma, and files of one's own."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from daruma.state.settings_errors import SettingsError
from daruma.state.settings_team import Team
from daruma.state.settings_tools import Tools
from daruma.tools.profiles import check_named
from daruma.tools.team.template import Template
from daruma.tools.team.template_file import TemplateRefused, read_template

BUILT_IN: Final = Path(__file__).with_name("templates")


class Templates(Mapping[str, Template]):
    """Templates by name. A file is read when its template is asked for, and not before.

    Folders are looked through in their order, the built-in ones last. Raises
    :class:`TemplateRefused` for one whose file can not be used, ``KeyError`` for one that is none.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._files: dict[str, Path] = {}
        for folder in folders:
            for file in sorted(folder.glob("*.yaml")):
                self._files.setdefault(file.stem, file)

    def file_of(self, name: str) -> Path:
        """Return the file of a template."""
        return self._files[name]

    def __getitem__(self, name: str) -> Template:
        return read_template(self._files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)


def templates(team: Team) -> Templates:
    """Return the templates that there are; a folder that is not there holds none."""
    return Templates((*map(Path, team.folders), BUILT_IN))


def template_named(name: str | None, team: Team, tools: Tools | None = None) -> Template:
    """Return a template; None stands for that of the settings.

    Raises :class:`TemplateRefused` if it is not there, if its file can not be used, or if an expert
    has a profile that ``tools`` do not have.
    """
    name, known = name or team.template, templates(team)
    if name not in known:
        raise TemplateRefused(f"there is no team template {name!r}{_instead(name, [*known])}")
    template = known[name]
    if tools is not None:
        _check_profiles(template, known.file_of(name), tools)
    return template


def _instead(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} There are: {', '.join(known)}"


def _check_profiles(template: Template, file: Path, tools: Tools) -> None:
    for number, expert in enumerate(template.experts):
        try:
            check_named(expert.profile, tools)
        except SettingsError as error:
            key = f"experts.{number}.profile"
            raise TemplateRefused(f"{file}: key {key!r}: {error}") from None
