"""Values as YAML that a person can edit: nothing changes on the way there and back."""

import math
import re
from typing import Any, Final

import yaml

from daruma.graph.command_line._editing import AnswerRefused
from daruma.state.text import is_hidden, spelled

_KEPT: Final = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
_WIDTH: Final = 100


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # a value said twice is written twice
        return True


class _Loader(yaml.SafeLoader):
    """Reads what JSON knows: a date, or ``no``, is the text that it looks like."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(map(_hides, text)) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Loader.yaml_implicit_resolvers = {
    first: [each for each in known if each[0] not in _KEPT]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_KEPT[1], re.compile("^(?:true|false)$"), list("tf"))


def to_yaml(value: object) -> str:
    """Return a JSON-able value as YAML; what hides in its texts is spelled."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "".join(spelled(char) if _hides(char) else char for char in text)


def _hides(char: str) -> bool:
    return char != "\n" and is_hidden(char)


def from_yaml(text: str) -> dict[str, Any]:
    """Return the object that is written there, in YAML or JSON. Raises :class:`AnswerRefused`."""
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506  # made of the safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AnswerRefused(f"this is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not _is_json(found):
        raise AnswerRefused("this is not an object with names and values, as JSON has them")
    return found


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_json(each) for each in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)
