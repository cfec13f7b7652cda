"""Reading a ``SKILL.md``: front matter as the Agent Skills format has it, or none at all."""

import re
from dataclasses import dataclass
from typing import Final

from daruma.tools.errors import ToolError

LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
"""Characters, both by the format; a longer description is cut, a longer name refused."""

LONGEST_FRONT_MATTER: Final = 16_000
"""Characters; some lines are usual."""

_FENCE: Final = "---"


class SkillRefused(ToolError):
    """Raised for a skill that is not there, or whose ``SKILL.md`` can not be used; says why."""


@dataclass(frozen=True)
class Described:
    """What a skill is called, and what it is for, in one line each."""

    name: str
    description: str


def described(text: str, folder: str) -> Described:
    """Return what a ``SKILL.md`` says of itself.

    What it leaves out is the name of its folder, and the first paragraph of its text. Raises
    :class:`SkillRefused`.
    """
    front, body = _parted(text.replace("\r\n", "\n").replace("\r", "\n"))
    name = _line(front.get("name"), "name") or folder
    if len(name) > LONGEST_NAME:
        raise SkillRefused(f"its name has {len(name)} characters, at most {LONGEST_NAME} are usual")
    description = _line(front.get("description"), "description") or _first_paragraph(body)
    return Described(name, description[:LONGEST_DESCRIPTION])


def _parted(text: str) -> tuple[dict[str, object], str]:
    lines = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").split("\n")
    if lines[0].rstrip() != _FENCE:
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise SkillRefused("its front matter has no end: close it with a line ---")
    front = "\n".join(lines[1:end])
    if len(front) > LONGEST_FRONT_MATTER:
        raise SkillRefused(f"its front matter is longer than {LONGEST_FRONT_MATTER} characters")
    return _mapping(front), "\n".join(lines[end + 1 :])


def _mapping(front: str) -> dict[str, object]:
    import yaml  # only where there is one to read

    try:
        read = yaml.safe_load(front)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise SkillRefused(f"its front matter is no YAML: {why}") from None
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise SkillRefused("its front matter has to hold keys and values: name, description")
    return read


def _line(value: object, key: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise SkillRefused(f"key {key!r} of its front matter has to be a text")
    return _visible(str(value))


def _first_paragraph(body: str) -> str:
    """A heading alone says less than what stands below it."""
    parts = [part for part in re.split(r"\n\s*\n", body) if part.strip(" #\n")]
    plain = next((part for part in parts if not part.lstrip().startswith("#")), None)
    return _visible((plain or (parts[0] if parts else "")).strip(" #\n"))


def _visible(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
