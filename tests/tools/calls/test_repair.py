"""The rules rung: what a call's arguments certainly meant, without asking anyone (TL-09, TL-10)."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.tools.repair.corpus.offered import never

from daruma.tools.calls import Tool
from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._repair import repair_args, repair_text
from daruma.tools.calls._tool import Effect

# --- The rules rung: what is repaired, by which rungs, and what is refused with which problem.

LIMIT = 300_000


def tool(properties: Mapping[str, Any], *required: str, effect: Effect = "none") -> Tool:
    """Return a tool with these properties and no others."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool("act", "", {**schema, "additionalProperties": False}, never, effect=effect)


ONE = tool({"a": {"type": "integer"}, "b": {"type": "string"}})


def test_each_rung_repairs_and_is_named() -> None:
    """TL-10: a certain reading is found, and the audit can say how."""
    args: Any
    rungs: Any
    for raw, args, rungs in [
        ('{"a": 1}', {"a": 1}, ()),
        ('```json\n{"a": 1}\n```', {"a": 1}, ("code fence",)),
        ("{'a': 1}", {"a": 1}, ("single quotes",)),
        ('{"b": None}', {}, ("python literals", "null left out")),
        ('{"a": 1, // one\n"b": "//"}', {"a": 1, "b": "//"}, ("comments",)),
        ('{"a": 1,}', {"a": 1}, ("trailing comma",)),
        ('{"b": "x\ty"}', {"b": "x\ty"}, ("raw newline in string",)),
        ('"{\\"a\\": 1}"', {"a": 1}, ("doubled encoding",)),
        ('not an object: "{}"', {}, ("doubled encoding",)),
        ("not an object: [{}]", {}, ("list around the object",)),
        ('{\\"b\\": \\"x\\"}', {"b": "x"}, ("doubled encoding",)),
        ('{"arguments": {"a": 1}}', {"a": 1}, ("wrapper",)),
        ('{"name": "Act", "input": "{\\"a\\": 1}"}', {"a": 1}, ("wrapper",)),
        ('{"A": 1}', {"a": 1}, ("key spelling",)),
        ('{"a": "1"}', {"a": 1}, ("number from text",)),
        ('{"a": 1.0}', {"a": 1}, ("whole number",)),
        ('{"a": 1}{"a": 1}', {"a": 1}, ("repeated object",)),
        ('{"a": 1}}', {"a": 1}, ("extra closing bracket",)),
        ('{"a": 1 "b": ""}', {"a": 1, "b": ""}, ("missing comma",)),
        ('{a: 1, b: "x"}', {"a": 1, "b": "x"}, ("unquoted keys",)),
        ('{"a": 1, "b": ""', {"a": 1, "b": ""}, ("missing closing brackets",)),
        ('{"b": "\\d"}', {"b": "\\d"}, ("lone backslashes",)),
        ('{"b": """x"""}', {"b": "x"}, ("triple quotes",)),
        ("{“a”: 1}", {"a": 1}, ("typographic quotes",)),
        ('Sure: {"a": 1} Done!', {"a": 1}, ("surrounding text",)),
        ('{"a": 1}<|im_end|>', {"a": 1}, ("end marks",)),
        (" ", {}, ("empty text",)),
        ("nothing", {}, ("empty text",)),
    ]:
        assert repair_text(raw, ONE, max_bytes=LIMIT) == Repaired(args, rungs)


def test_what_is_not_certain_is_refused() -> None:
    """Each refusal says of which kind it is: what was cut off is not to be asked about."""
    for raw, problem in [
        ("", "invalid_args"),
        ("{}", "invalid_args"),
        ('{"a": 1}{"a": 2}', "invalid_json"),
        ('{"a": 1, "a": 2}', "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        ('{"a": 1, "c": 2}', "invalid_args"),
        ('{"a": 1e999}', "invalid_json"),
        ('{"a": ' + "9" * 5_000 + "}", "invalid_json"),
        ('{"a": 1} but "b": 2', "invalid_json"),
        ('b: {"a": 1}', "invalid_json"),
        ("```json\n", "cut_off"),
        ('{"a": 1', "cut_off"),
        ('{"a": 1,', "cut_off"),
        ('{"a": 1, "b": "x', "cut_off"),
        ('{"a": 1, "b": nul', "cut_off"),
        ('{"b": "x"', "cut_off"),
        ('"{\\"a\\": 1', "cut_off"),
        ('{"b": "say "hi"}', "invalid_json"),
        ('{"b": """"Doc."""" , "a": 1}', "invalid_json"),
        ('{"b": """}{"b": """}', "invalid_json"),
        ('{\\"b\\": \\"x\\\\ny\\"}', "invalid_json"),
        ("""{"b": 'x", "c": "y', "a": 1}""", "invalid_json"),
        ("""{'b": "', "a': "", "a": 1}""", "invalid_json"),
        ("[" * 65 + "]" * 65, "invalid_json"),
        ('{"b": "\ud800"}', "invalid_json"),
        ('{"b": "' + "x" * LIMIT + '"}', "too_large"),
    ]:
        given = tool(ONE.parameters["properties"], "a")

        found = repair_text(raw, given, max_bytes=LIMIT)

        assert isinstance(found, Refused)
        assert found.problem == problem


def test_only_brackets_may_lack_for_a_tool_that_changes_something() -> None:
    """TL-18: with all that the schema knows there, one reading is left, if no more is wrong."""
    effect: Any
    for effect in ["workspace", "external"]:
        whole = tool({"a": {"type": "string"}}, "a", effect=effect)
        more = tool({"a": {"type": "string"}, "b": {"type": "string"}}, "a", effect=effect)

        found = repair_text('{"a": "x"', whole, max_bytes=LIMIT)
        refused = [
            repair_text("{'a': 'x'", whole, max_bytes=LIMIT),
            repair_text('{"a": "x"', more, max_bytes=LIMIT),
        ]

        assert found == Repaired({"a": "x"}, ("missing closing brackets",))
        for each in refused:
            assert isinstance(each, Refused)
            assert each.problem == "cut_off"
            assert "was cut off: give the call again, with less in it" in each.reason


INNER = {"type": "object", "properties": {"c": {"type": "string"}}, "additionalProperties": False}


def test_a_bracket_that_may_lack_elsewhere_is_not_added() -> None:
    """What stands in an object within may belong to the one around it; a list may go on."""
    for raw, closed in [
        ('{"a": "x", "o": {"c": "y"}', True),
        ('{"a": "x", "o": {"c": "y"', True),
        ('{"o": {"c": "y"}', False),
        ('{"a": "x", "o": {"c": "y"}, "l": ["z"', False),
    ]:
        known = {"a": {"type": "string"}, "o": INNER} | ({"l": LIST} if '"l"' in raw else {})

        found = repair_text(raw, tool(known), max_bytes=LIMIT)

        assert isinstance(found, Repaired) is closed


INTEGER = {"type": "integer"}
LIST = {"type": "array", "items": {"type": "string"}}


def test_a_value_becomes_its_type_where_nothing_is_lost() -> None:
    """TL-10: and it stays as it is where the schema takes it as it is."""
    schema: Any
    given: Any
    wanted: Any
    for schema, given, wanted in [
        (INTEGER, "3", 3),
        (INTEGER, "3.0", 3),
        (INTEGER, 3.0, 3),
        (INTEGER, "12345678901234567890", 12345678901234567890),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "boolean"}, "true", True),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null", None),
        ({"anyOf": [INTEGER, {"type": "string"}]}, "3", "3"),
        ({"anyOf": [INTEGER, {"type": "string"}]}, 3.0, 3),
        ({"type": "string"}, "null", "null"),
        (LIST, "x", ["x"]),
        (LIST, '["x", "y"]', ["x", "y"]),
        ({"type": "array", "items": INTEGER}, "3", [3]),
        ({"type": "object"}, '{"x": [1]}', {"x": [1]}),
        ({"enum": ["low", "high"]}, "LOW", "low"),
        ({"$ref": "#/$defs/Whole"}, "3", 3),
    ]:
        act = tool({"k": schema})
        act = Tool("act", "", {**act.parameters, "$defs": {"Whole": INTEGER}}, never)

        found = repair_args({"k": given}, act)

        assert isinstance(found, Repaired)
        assert (found.args, type(found.args["k"])) == ({"k": wanted}, type(wanted))


def test_a_value_with_two_meanings_is_refused() -> None:
    """Zeros, separators and other types' words may mean something."""
    schema: Any
    given: Any
    for schema, given in [
        (INTEGER, "007"),
        (INTEGER, "1,000"),
        (INTEGER, "3.5"),
        (INTEGER, 2.0**60),
        (INTEGER, True),
        ({"type": "string"}, 3),
        ({"type": "boolean"}, 1),
        ({"type": "boolean"}, "yes"),
        (LIST, "x, y"),
        (LIST, "[x"),
        (LIST, None),
        ({**LIST, "minItems": 2}, "x"),
        ({"enum": ["a-b", "ab"]}, "AB"),
        ({"type": "object"}, "[1]"),
        ({"anyOf": [INTEGER, {"type": "boolean"}, {"type": "string", "pattern": "x"}]}, "3"),
        ({"anyOf": [{"type": "array", "items": INTEGER}, INTEGER]}, "3"),
    ]:
        found = repair_args({"k": given}, tool({"k": schema}, "k"))

        assert isinstance(found, Refused)
        assert found.problem == "invalid_args"


def test_a_key_is_renamed_only_without_a_rival() -> None:
    """TL-10: case and separators are spelling; anything else is another key, and never dropped."""
    args: Any
    wanted: Any
    for args, wanted in [
        ({"maxResults": 1}, {"max_results": 1}),
        ({"max-results": 1, "Path": "x"}, {"max_results": 1, "path": "x"}),
        ({"maxResults": 1, "MAX_RESULTS": 1}, None),
        ({"maxResults": 1, "max_results": 1}, None),
        ({"results": 1}, None),
        ({"path": "x", "why": "because"}, None),
    ]:
        found = repair_args(args, tool({"max_results": INTEGER, "path": {"type": "string"}}))

        assert (found.args if isinstance(found, Repaired) else None) == wanted


def open_to(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that allows keys beside those it names."""
    return {"type": "object", "properties": properties, "additionalProperties": True}


def test_a_mended_text_has_no_unknown_keys() -> None:
    """A key that nobody knows may be what is left of several; a sound text may have it.

    A value in parentheses is no list: in Python it takes a comma to be one.
    """
    either = {"anyOf": [{"required": ["a"]}, {"required": ["z"]}]}
    unsaid = Tool("act", "", {"type": "object", "properties": {"a": INTEGER}, **either}, never)
    act = Tool("act", "", open_to({"a": INTEGER}), never)
    listed = tool({"k": LIST})

    assert isinstance(repair_text("{'a': 1, 'z': 2}", unsaid, max_bytes=LIMIT), Refused)
    assert repair_text('{"a": 1, "z": 2}', act, max_bytes=LIMIT) == Repaired({"a": 1, "z": 2}, ())
    assert isinstance(repair_text('{"k": ("x")}', listed, max_bytes=LIMIT), Refused)
    assert repair_text('{"k": ("x",)}', listed, max_bytes=LIMIT) == Repaired(
        {"k": ["x"]}, ("trailing comma", "python literals")
    )


def test_what_stays_and_what_is_refused_of_readable_arguments() -> None:
    """Of two rivals where other keys are allowed the tool says which; ``input`` may be a name."""
    act = Tool("act", "", open_to({"max_results": INTEGER}), never)
    own = tool({"input": {"type": "object"}})
    broken = Tool("act", "", {"type": "object", "properties": {"a": {"$ref": "#/x"}}}, never)
    deep: dict[str, Any] = {}
    for _ in range(900):  # what was read elsewhere may be as deep as Python can stand
        deep = {"a": deep}

    for args, given_tool in (
        ({"maxResults": 1, "MAX_RESULTS": 2}, act),
        ({"input": {"a": 1}}, own),
    ):
        assert repair_args(args, given_tool) == Repaired(args, ())
    another = repair_args({"name": "other", "arguments": {"a": 1}}, ONE)
    assert isinstance(another, Refused)
    assert "other" in another.reason
    assert isinstance(repair_args(deep, tool({"a": {"type": "object"}})), Refused)
    assert isinstance(repair_args({"a": 1}, broken), Refused)


PIECES = ["[", "{", '"', "'", "\\", '{"a":', "{}", '{"a":1}', "/*", "//", "#", ",", "`", "“", "0"]
PIECES += ["a ", '"""', "[1,", "(", "<|a|>", '{"a":1 ', "\n", "\\u0000", '{"b":"x"', "\\d", "- "]


def test_a_large_and_hopeless_text_takes_no_time() -> None:
    """256 KB of anything is refused or read in a moment; ten times the usual is allowed for."""
    for piece in PIECES:
        text = piece * (262_144 // len(piece))
        started = time.process_time()

        for each in (text, '{"b": "' + text, '{"b": "' + text + '"}', '{"b": [' + text):
            repair_text(each, ONE, max_bytes=LIMIT)

        assert time.process_time() - started < 10


# --- Any call of any schema, its structure damaged at random: refused, or what was meant.

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


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damaged_structure_is_refused_or_mended_as_meant(data: st.DataObject) -> None:
    """TL-10: never anything else. What is JSON in spite of the damage says so with certainty."""
    schema, meant = data.draw(objects())
    effect: Effect = data.draw(st.sampled_from(EFFECTS))
    tool = Tool("act", "", schema, never, effect=effect)
    text = json.dumps(meant, ensure_ascii=data.draw(st.booleans()))
    text = data.draw(damages(text))
    assume(text.strip() and not _is_json(text))

    found = repair_text(text, tool, max_bytes=300_000)

    assert isinstance(found, Refused) or dumped(found.args) == dumped(meant), (text, found)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_what_fits_is_left_as_it_is(data: st.DataObject) -> None:
    """A call that needs no repair gets none, as text and as arguments."""
    schema, meant = data.draw(objects())
    tool = Tool("act", "", schema, never)

    found = repair_text(json.dumps(meant), tool, max_bytes=300_000)
    same = repair_args(meant, tool)

    assume(not {"arguments", "name"} & meant.keys())
    assert isinstance(found, Repaired)
    assert isinstance(same, Repaired)
    assert dumped(found.args) == dumped(same.args) == dumped(meant)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="{}[](),:\"'`\\ntrue1 -.#/*“”é\n", max_size=60))
def test_any_text_has_an_outcome(text: str) -> None:
    """Whatever a model writes, nothing is raised."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    found = repair_text(text, Tool("act", "", schema, never), max_bytes=300_000)

    assert isinstance(found, (Repaired, Refused))


def dumped(args: dict[str, Any]) -> str:
    """Return arguments as text, in which 1 and 1.0 are two."""
    return json.dumps(args, sort_keys=True)
