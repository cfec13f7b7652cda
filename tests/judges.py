"""Judges that go wrong in stated ways, on forty texts with planted faults."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.spec.face import Run, say

FILE: Final = Path(__file__).with_name("judged_texts.yaml")


@dataclass(frozen=True)
class Judged:
    """A text, and of each criterion whether it is met and the sentence that shows it."""

    task: str
    rubric: tuple[str, ...]
    sentences: tuple[str, ...]
    met: tuple[bool, ...]

    @property
    def faulty(self) -> bool:
        return not all(self.met)

    def verdicts(self) -> list[dict[str, Any]]:
        """What a judge says who makes no mistake."""
        return [
            {"criterion": n, "why": "as quoted", "evidence": sentence, "met": met}
            for n, (sentence, met) in enumerate(zip(self.sentences, self.met, strict=True), 1)
        ]


def forty() -> Iterator[Judged]:
    """Each text without a fault, and with each of its faults."""
    for each in yaml.safe_load(FILE.read_text()):
        rubric, good, bad = zip(*each["parts"], strict=True)
        for fault in range(-1, len(rubric)):
            sentences = tuple(bad[n] if n == fault else good[n] for n in range(len(rubric)))
            met = tuple(n != fault for n in range(len(rubric)))
            yield Judged(each["task"], rubric, sentences, met)


Verdicts = list[dict[str, Any]]


def said(verdicts: Verdicts) -> str:
    return json.dumps({"verdicts": verdicts})


def praising(verdicts: Verdicts, quote: Callable[[dict[str, Any]], str]) -> str:
    """All is met, with such evidence."""
    return said([each | {"met": True, "evidence": quote(each)} for each in verdicts])


ERRORS: Final[Mapping[str, Callable[[Judged], str]]] = {
    "none": lambda text: said(text.verdicts()),
    "fenced": lambda text: f"```json\n{said(text.verdicts())}\n```",
    "invents a quote": lambda text: praising(
        text.verdicts(), lambda _: "This is done very well here."
    ),
    "quotes nothing": lambda text: praising(text.verdicts(), lambda _: ""),
    "quotes a word": lambda text: praising(text.verdicts(), lambda v: v["evidence"].split()[0]),
    "quotes the rubric": lambda text: praising(
        text.verdicts(), lambda v: text.rubric[v["criterion"] - 1]
    ),
    "praises itself": lambda text: praising(
        text.verdicts(), lambda _: "I have judged this with great care."
    ),
    "leaves one out": lambda text: said([v for v in text.verdicts() if v["met"]][:-1]),
    "says one twice": lambda text: said([*text.verdicts(), text.verdicts()[0]]),
    "rambles": lambda _: "What a fine text! All criteria are met, so it is passed.",
    "rambles around it": lambda text: (
        f"Well:\n{praising(text.verdicts(), lambda v: v['evidence'])}"
    ),
    "is cut off": lambda text: praising(text.verdicts(), lambda v: v["evidence"])[:-9],
    "says two things": lambda text: (
        said(text.verdicts()) + praising(text.verdicts(), lambda v: v["evidence"])
    ),
    "says a key twice": lambda text: (
        said(text.verdicts())[:-1] + ', "verdicts": ' + json.dumps(text.verdicts()) + "}"
    ),
    "says yes in words": lambda text: said([v | {"met": "yes"} for v in text.verdicts()]),
    "says nothing": lambda _: "",
}
"""What the judge says of a text, by its error."""

HARMLESS: Final = frozenset({"none", "fenced"})
NO_VERDICT: Final = (
    *("leaves one out", "says one twice", "rambles", "rambles around it", "is cut off"),
    *("says two things", "says a key twice", "says yes in words", "says nothing"),
)
"""Errors after which the judge is asked once more."""


def judged(text: Judged, errors: Sequence[str], *turns: Mapping[str, Any]) -> Run:
    """Run the task whose work is the text, with a judge that makes these errors one by one."""
    script = {
        "main": [say(" ".join(text.sentences))],
        "judge": [*(say(ERRORS[error](text)) for error in errors), *turns],
    }
    run = Run(
        script,
        verification={"max_reinjections": 0},
        budgets={"reflect": 0},
        fallback_chain={"recovery": {"enabled": False}},
    )
    return run.ask(text.task, rubric=[*text.rubric])
