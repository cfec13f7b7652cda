"""Reading a team template from its file; what is wrong with one is said in a line."""

import stat
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from daruma.state.errors import DarumaError
from daruma.tools.team.template import Expert, Template

LARGEST: Final = 256 * 1024
"""Bytes; a template of some experts and their prompts has a few thousand."""


class TemplateRefused(DarumaError):
    """Raised for a team template that is not there, or whose file can not be used; says why."""


def read_template(file: Path) -> Template:
    """Read a template, which has the name of its file.

    Raises :class:`TemplateRefused`, naming the file and the first key that is wrong.
    """
    import yaml  # only where there is one to read

    try:
        content = yaml.safe_load(_text(file))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise TemplateRefused(f"{file} can not be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise TemplateRefused(f"{file} has to hold keys and values: about, experts")
    if "name" in content:
        raise TemplateRefused(f"{file}: key 'name': leave it out, the file's name is the team's")
    try:
        return Template.model_validate({"name": file.stem, **content})
    except ValidationError as error:
        raise TemplateRefused(f"{file}: {_explained(error.errors(include_url=False))}") from None


def _text(file: Path) -> str:
    """Return what a file holds. Raises OSError, TemplateRefused, and UnicodeDecodeError."""
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise TemplateRefused(f"{file} can not be read: it is no plain file")
    if status.st_size > LARGEST:
        raise TemplateRefused(f"{file} can not be read: it is larger than {LARGEST} bytes")
    return file.read_text(encoding="utf-8")


def _explained(problems: Sequence[ErrorDetails]) -> str:
    unknown = [each for each in problems if each["type"] == "extra_forbidden"]
    first = (unknown or problems)[0]
    key = ".".join(map(str, first["loc"])) or "experts"
    if unknown:
        return f"unknown key {key!r}{_nearest(first['loc'])}"
    if first["type"] == "missing":
        return f"key {key!r} is missing"
    return f"key {key!r}: {first['msg'].removeprefix('Value error, ')}"


def _nearest(path: tuple[int | str, ...]) -> str:
    fields = {*(Expert if len(path) > 1 else Template).model_fields}
    known = sorted(fields - {"name"} if len(path) == 1 else fields)
    close = get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(known)}"
