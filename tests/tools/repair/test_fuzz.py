"""Any call of any schema, its structure damaged at random: refused, or what was meant."""

import json
import re
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.tools.repair.corpus.offered import never

from daruma.tools.calls.repair.by_rules import repaired_args, repaired_text
from daruma.tools.calls.repair.json_reader import Refused, Repaired
from daruma.tools.calls.tool import Effect, Tool

TEXT = st.text(alphabet="ab \"'\\{}[],:#/\n\t-1é", max_size=10)
KEYS = st.sampled_from(["path", "old_str", "newStr", "a", "b", "arguments", "name"])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "integer": st.integers(-(10**20), 10**20),
    "number": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "boolean": st.booleans(),
}
EFFECTS: list[Effect] = ["none", "workspace"]
STRINGS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
"""What is inside of a string is left alone: of a letter lost there nobody can know."""


@st.composite
def fields(draw: st.DrawFn, depth: int = 1) -> tuple[dict[str, Any], Any]:
    """Draw a schema and a value that fits it."""
    kind = draw(st.sampled_from([*SCALARS, "array", "object", "null"]))
    if kind == "object" and depth:
        return draw(objects(depth - 1))
    if kind == "array" and depth:
        schema, _ = draw(fields(0))
        name = schema["anyOf"][0]["type"] if "anyOf" in schema else schema["type"]
        values = draw(st.lists(SCALARS[name], max_size=3))
        return {"type": "array", "items": {"type": name}}, values
    name = draw(st.sampled_from(list(SCALARS)))
    if kind == "null":
        value = draw(st.none() | SCALARS[name])
        return {"anyOf": [{"type": name}, {"type": "null"}]}, value
    return {"type": name}, draw(SCALARS[name])


@st.composite
def objects(draw: st.DrawFn, depth: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw an object's schema and an object, some of whose optional keys are left out."""
    drawn = {key: draw(fields(depth)) for key in draw(st.sets(KEYS, min_size=1, max_size=4))}
    required = draw(st.sets(st.sampled_from(sorted(drawn))))
    given_keys = [key for key in drawn if key in required or draw(st.booleans())]
    schema = {
        "type": "object",
        "properties": {key: schema for key, (schema, _) in drawn.items()},
        "required": sorted(required),
        "additionalProperties": draw(st.sampled_from([False, False, None])),
    }
    if schema["additionalProperties"] is None:
        del schema["additionalProperties"]
    return schema, {key: drawn[key][1] for key in given_keys}


@st.composite
def damages(draw: st.DrawFn, text: str) -> str:
    """Draw a text with one to three marks, quotes or its end damaged; what it says stays whole.

    The places are those of the sound text: behind a lost quote everything looks like structure.
    """
    style = draw(st.sampled_from(["json", "json", "quotes", "breaks"]))
    if style == "quotes":
        text = STRINGS.sub(lambda m: "'" + m[0][1:-1].replace("'", "\\'") + "'", text)
    if style == "breaks":
        text = re.sub(r"\\.", lambda m: "\n" if m[0] == "\\n" else m[0], text)
    strings = [found.span() for found in STRINGS.finditer(text)]
    marks = [n for n, each in enumerate(text) if each in "{}[],:" and not _within(n, strings)]
    quotes = [place for start, end in strings for place in (start, end - 1)]
    # Of two lost quotes nobody can know: ["", ""] without them is [", "], which is as sound.
    places = draw(st.sets(st.sampled_from(marks), max_size=3)) if marks else set()
    places |= draw(st.sets(st.sampled_from(quotes), max_size=1)) if quotes else set()
    for place in sorted(places, reverse=True):
        text = text[:place] + draw(_instead(text[place])) + text[place + 1 :]
    end = draw(st.sampled_from(["whole", "whole", "cut", "twice", "fence"]))
    if end == "cut":
        return text[
            : draw(st.integers(min(1, len(text)), len(text)))
        ]  # no text at all means no arguments
    return {"twice": text + text, "fence": f"```json\n{text}\n```"}.get(end, text)


def _instead(mark: str) -> st.SearchStrategy[str]:
    """Draw what stands in a mark's place."""
    other = {"{": "[", "}": "]", "[": "{", "]": "}", ",": " ", ":": "=", '"': "'", "'": '"'}[mark]
    more = [] if mark in "\"'" else [f",{mark}", f"{mark} // {mark}\n"]  # a string stays whole
    return st.sampled_from(["", mark + mark, other, *more])


def _within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except ValueError:
        return False
    return True


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_damaged_structure_is_refused_or_mended_as_meant(data: st.DataObject) -> None:
    """TL-10: never anything else. What is JSON in spite of the damage says so with certainty."""
    schema, meant = data.draw(objects())
    effect: Effect = data.draw(st.sampled_from(EFFECTS))
    tool = Tool("act", "", schema, never, effect=effect)
    text = json.dumps(meant, ensure_ascii=data.draw(st.booleans()))
    text = data.draw(damages(text))
    assume(text.strip() and not _is_json(text))

    found = repaired_text(text, tool, max_bytes=300_000)

    assert isinstance(found, Refused) or dumped(found.args) == dumped(meant), (text, found)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_fits_is_left_as_it_is(data: st.DataObject) -> None:
    """A call that needs no repair gets none, as text and as arguments."""
    schema, meant = data.draw(objects())
    tool = Tool("act", "", schema, never)

    found = repaired_text(json.dumps(meant), tool, max_bytes=300_000)
    same = repaired_args(meant, tool)

    assume(not {"arguments", "name"} & meant.keys())
    assert isinstance(found, Repaired)
    assert isinstance(same, Repaired)
    assert dumped(found.args) == dumped(same.args) == dumped(meant)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="{}[](),:\"'`\\ntrue1 -.#/*“”é\n", max_size=60))
def test_any_text_has_an_outcome(text: str) -> None:
    """Whatever a model writes, nothing is raised."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    found = repaired_text(text, Tool("act", "", schema, never), max_bytes=300_000)

    assert isinstance(found, (Repaired, Refused))


def dumped(args: dict[str, Any]) -> str:
    """Return arguments as text, in which 1 and 1.0 are two."""
    return json.dumps(args, sort_keys=True)
