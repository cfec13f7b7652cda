"""The whole corpus: every call, damaged in every way that changes it, and what was made by hand."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.damage import DAMAGE, dumped
from tests.tools.repair.corpus.misfits import MISFITS

HANDMADE = Path(__file__).with_name("handmade.jsonl")
STRUCTURAL = [
    "single quotes",
    "python literals",
    "comments",
    "trailing commas",
    "unquoted keys",
    "missing commas",
]
AROUND = ["code fences", "wrappers", "extra brackets", "prose", "duplicates"]


@dataclass(frozen=True)
class Case:
    """One broken call. ``meant`` is None where nobody can know: it must be refused.

    ``given`` is a text, or arguments that were read but do not fit.
    """

    kind: str
    tool: str
    meant: dict[str, Any] | None
    given: str | dict[str, Any]


def cases() -> list[Case]:
    """Return the corpus, the same every time."""
    return [*_damaged(), *_misfits(), *_mixed(), *_handmade()]


def _damaged() -> Iterator[Case]:
    for kind, damage in DAMAGE.items():
        random = Random(kind)  # noqa: S311  # it is to repeat itself
        for tool, args in CALLS:
            texts = dict.fromkeys(damage(tool, args, random))
            yield from (Case(kind, tool, args, t) for t in texts if not is_object(t))


def _misfits() -> Iterator[Case]:
    for kind, miss in MISFITS.items():
        for tool, args in CALLS:
            wrong = {dumped(each): each for each in miss(tool, args)}
            yield from (Case(kind, tool, args, w) for w in wrong.values() if w != args)


def _mixed() -> Iterator[Case]:
    """Yield calls broken twice: first the arguments or their marks, then what is around them."""
    random = Random("mixed")  # noqa: S311  # it is to repeat itself
    for tool, args in CALLS:
        for around in AROUND:
            inner = random.choice(STRUCTURAL)
            wrong = random.choice([*MISFITS.values()])(tool, args)
            for given in (args, *list(wrong)[:1]):
                text = random.choice(list(DAMAGE[inner](tool, given, random)))
                whole = random.choice(list(DAMAGE[around](tool, {"x": 1}, random)))
                hole = r"\{\s*" + re.escape('"x": 1') + r"\s*\}"
                mixed = text.join(re.split(hole, whole))
                if mixed != whole and not is_object(mixed):
                    yield Case("mixed", tool, args, mixed)


def _handmade() -> Iterator[Case]:
    for line in HANDMADE.read_text(encoding="utf-8").splitlines():
        yield Case(**json.loads(line))


def is_object(text: str) -> bool:
    """Whether a text can be read as it is: nothing is broken then."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
