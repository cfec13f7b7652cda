"""Text from outside, made safe, short and comparable: for people, prompts and records."""

import hashlib
import json
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from math import isfinite
from typing import Any, Final, TypeVar

# --- Which characters hide: drawn as nothing, as something else, or obeyed by a terminal.

BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that are drawn as nothing."""

_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_ORDINARY = (
    "(?<=[\u0590-\u1dff\u2600-\u27bf\u2c00-\ufdff\ufe0f\U00010000-\U0001ffff])[\u200c\u200d](?=[^\0-\u20ff]|\\w)"
    "|(?<=[\\d#*©®‼⁉\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]|(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef]"
    "|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
)
"""What joins letters of many scripts, and what emoji and flags are made of."""


def spell_character(char: str) -> str:
    """Return a character as ``\\x1b``, ``\\u202e`` or ``\\U000e0041``."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_hidden(char: str) -> bool:
    """Whether a character is not drawn; spaces, line feeds and tabs are no secret."""
    if char.isascii():
        return not char.isprintable() and char not in "\n\t"
    odd = not char.isprintable() and unicodedata.category(char) != "Zs"
    return odd or char in _BLANK_LETTERS or bool(_SELECTORS.match(char))


def is_control(char: str) -> bool:
    """Whether a character is a control character, or half of one (a lone surrogate)."""
    return unicodedata.category(char) in {"Cc", "Cs"}


@cache
def _ordinary() -> re.Pattern[str]:
    """Compiled when it is first needed, as it takes a while."""
    return re.compile(_ORDINARY)


def hiding_places(text: str) -> list[tuple[int, str]]:
    """Return position and character of all that hides, but for what ordinary text needs."""
    ordinary = {at for found in _ordinary().finditer(text) for at in range(*found.span())}
    return [
        (at, char)
        for at, char in enumerate(text)
        if is_hidden(char) and at not in ordinary and text[at : at + 2] != "\r\n"
    ]


# --- Words that mix scripts, so that a letter is taken for another one.

_LOOK_LATIN_LETTERS = (
    "АВЕЅІЈКМНОРСТУХҮԌԚԜаеорсухіјѕһԁԛԝӏү"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχϲϳ"  # Greek
    "ՏՍսօհո"  # Armenian
)
_LOOK_LATIN = frozenset(_LOOK_LATIN_LETTERS)
"""Letters that most typefaces draw like a Latin one (from the confusables of Unicode TS 39)."""

_WORD = re.compile(r"[^\W\d_][^\W_]*")
_DISGUISED = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u2044\u2215\u29f8\u2150-\u215f]+"
    rf"|(?<![^\W_])[{_LOOK_LATIN_LETTERS}]{{2,}}(?![^\W_])"
)
"""Fullwidth and styled letters, fractions, and words of nothing but letters that look Latin."""


def look_alikes(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield position, letter and word of letters in a Latin word that are not Latin but look so.

    A word wholly in another script is nobody's disguise, unless all its letters look Latin and
    nothing else in the text is of any other script; the same holds for wide and styled letters.
    """
    disguised = [*_DISGUISED.finditer(text)]
    if disguised and not any(map(_is_of_another_script, text)):
        yield from ((found.start(), found[0][0], found[0]) for found in disguised)
    for found in _WORD.finditer(text):
        word = found[0]
        if word.isascii() or not _LOOK_LATIN & set(word):
            continue
        if any(_is_latin(letter) for letter in word):
            for at, letter in enumerate(word):
                if letter in _LOOK_LATIN:
                    yield found.start() + at, letter, word


def _is_of_another_script(char: str) -> bool:
    if char.isascii() or not char.isalpha() or char in _LOOK_LATIN or _DISGUISED.match(char):
        return False
    return not _is_latin(char)


def _is_latin(letter: str) -> bool:
    return letter.isalpha() and unicodedata.name(letter, "").startswith("LATIN ")


# --- Text made visible for a person who decides: what hides in it is spelled, and warned of.

T = TypeVar("T")

LONGEST_LINE: Final = 500
"""Characters; a terminal of 100 columns shows that on five rows."""

MOST_BLANKS: Final = 40
"""Blank characters in a row, half a terminal's width; deep indentation has fewer."""

MOST_BLANK_LINES: Final = 10

_BEFORE_SPELLING = re.compile(r"(?<!\\)\\++(?=x[0-9a-f]{2}|u[0-9a-f]{4}|\0)", re.IGNORECASE)
"""Backslashes before what is spelled, or reads so. Eight digits begin with four."""


def reveal_invisible(text: str) -> str:
    """Return text with all that is invisible or odd spelled; line feeds and tabs stay.

    Two texts never look the same: where backslashes stand before such a spelling, or before text
    that reads like one, they are doubled. All other backslashes stay as they are.
    """
    return _revealed(text, kept="\n\t")


def revealed_line(text: str) -> str:
    """Return text as :func:`revealed` does, on one line: line feeds and tabs are spelled too."""
    return _revealed(text, kept="")


def warnings(text: str) -> tuple[str, ...]:
    """Return one line for each way in which a text may show something else than it is.

    Characters are counted from 1. Ordinary text in any language has none.
    """
    odd = hiding_places(text)
    kinds = {
        "control characters": [one for one in odd if is_control(one[1])],
        "characters that turn the direction of writing": [one for one in odd if one[1] in BIDI],
        "invisible or unassigned characters": [
            one for one in odd if not is_control(one[1]) and one[1] not in BIDI
        ],
    }
    found = [f"{kind}: {_listed(ones, _placed)}" for kind, ones in kinds.items() if ones]
    alike = list(look_alikes(text))
    found += [f"letters that look like others: {_listed(alike, _named)}"] if alike else []
    return (*found, *_stretched(text))


def _revealed(text: str, *, kept: str) -> str:
    # Of all spaces only the plain one is drawn as itself.
    drawn = {c for c in {*text} if c in kept or (c.isprintable() and not is_hidden(c))}
    spelt = "".join(char if char in drawn else f"\0{char}" for char in text)
    doubled = _BEFORE_SPELLING.sub(r"\g<0>\g<0>", spelt)
    return re.sub("\0(.)", lambda found: spell_character(found[1]), doubled, flags=re.DOTALL)


def _placed(one: tuple[int, str]) -> str:
    return f"{spell_character(one[1])} at {one[0] + 1}"


def _named(one: tuple[int, str, str]) -> str:
    at, letter, word = one
    return f"{letter} ({unicodedata.name(letter)}) at {at + 1} in '{revealed_line(word[:40])}'"


def _listed(ones: Sequence[T], told: Callable[[T], str], most: int = 3) -> str:
    rest = f" and {len(ones) - most} more" if len(ones) > most else ""
    return ", ".join(map(told, ones[:most])) + rest


def _stretched(text: str) -> Iterator[str]:
    body = text.rstrip()
    gaps = [(found.start(), found[0]) for found in re.finditer(r"\s+", body)]
    for at, gap in gaps:
        if len(blanks := gap.rpartition("\n")[2]) >= MOST_BLANKS:
            yield f"a run of {len(blanks)} blanks before character {at + len(gap) + 1}"
            break
    for at, gap in gaps:
        if gap.count("\n") > MOST_BLANK_LINES:
            yield f"{gap.count(chr(10)) - 1} blank lines before character {at + len(gap) + 1}"
            break
    longest = max(map(len, text.split("\n")))
    if longest > LONGEST_LINE:
        yield f"a line of {longest} characters"


# --- Text from outside on one line: what experience keeps of it, and tells of it again.

LONGEST: Final = 300
"""Characters of such a line: a sentence or two."""

_READ: Final = 20
"""Times that length are looked at: of more, whitespace for the most part, the rest is not read."""
_JOINER: Final = "\N{ZERO WIDTH JOINER}"
"""It holds emoji together, and is the one unprintable character that stays."""


def printable_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line of printable characters, cut to ``longest``.

    Whatever a terminal or a reader could take for more than a character, control characters and
    those that turn the direction of writing too, is as good as a space.

    >>> printable_line("a\\n\\tb \\x1b[2J")
    'a b [2J'
    """
    read = text[: longest * _READ]
    kept = "".join(c if c.isprintable() or c == _JOINER else " " for c in read)
    line = " ".join(kept.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


# --- Ids of threads: any text that a database keeps as it is, and a person can read.

LONGEST_ID: Final = 500
"""Characters; beyond some 2,700 bytes no index of Postgres takes it."""


def unkept_id(given: object) -> str | None:
    """Say in one line why a thread's id can not be kept as it is; None if it can."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return f"a thread needs an id: {given!r} is none"
    if isinstance(given, bool | Collection) and not isinstance(given, str):
        return f"a thread's id is a text, not {type(given).__name__}"
    id_ = str(given)
    if len(id_) > LONGEST_ID:
        return f"the thread id {id_[:40]!r}... has {len(id_)} characters: take {LONGEST_ID} at most"
    if not id_.isprintable() and any(is_control(char) for char in id_):
        return f"the thread id {id_[:100]!r} can not be stored: take letters and digits"
    return None


# --- Commands that are printed to be pasted: what is pasted means what was printed.


def pasted(text: str) -> str:
    """Return a text as one word of a shell; what hides, and more than one space, is spelled."""
    odd = {char for char in text if is_hidden(char) or not char.isprintable()}
    odd |= {" "} if "  " in text else set()
    if not odd:
        return shlex.quote(text)
    octal = {c: "".join(f"\\{b:03o}" for b in c.encode(errors="replace")) for c in {*odd, *"\\'!"}}
    return f"$'{''.join(octal.get(char, char) for char in text)}'"


def on_thread(command: str, thread: str, options: str = "") -> str:
    """Return a command about a thread; a name that begins with a dash is no option (FA-04)."""
    name = pasted(thread)
    words = (options, "--", name) if thread.startswith("-") else (name, options)
    return " ".join(filter(None, ("daruma", command, *words)))


# --- YAML of a folder: a file that somebody else wrote, read within a bound.

MOST_BRACKETS: Final = 1_000
MOST_MERGES: Final = 16


class NotYaml(ValueError):
    """Raised for a text that is no YAML, or too deep to be read; says why in one line."""


def read_yaml(text: str) -> Any:
    """Return what a text of YAML holds.

    A merge of merges doubles with each line, and each bracket looks through all before (SE-07):
    both are counted first. Raises :class:`NotYaml`.
    """
    import yaml  # only where there is one to read

    if sum(map(text.count, "[{")) > MOST_BRACKETS or text.count("<<") > MOST_MERGES:
        raise NotYaml("it is too deep: plain keys and values will do")
    try:
        return yaml.load(text, _loader())  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(_said_of(error)) from None


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader; it takes the last of two keys silently, and this one neither."""
    from yaml import SafeLoader
    from yaml.constructor import ConstructorError

    class Loader(SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            seen = set[Any]()
            for key, _ in node.value if isinstance(node.value, list) else ():
                if key.value == "<<" or not isinstance(key.value, str):
                    continue
                if key.value in seen:
                    said = f"the key {key.value!r} is there twice"
                    raise ConstructorError(None, None, said, key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader


def _said_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    if getattr(error, "problem", "") and "'\\t'" in str(error):
        return f"{where}a tab; indent with spaces"
    said = getattr(error, "problem", None) or str(error)
    return where + " ".join(str(said).replace(' in "<unicode string>"', "").split())


# --- Short digests, for comparing what is too long to keep.

LENGTH = 16
"""Hexadecimal digits of a digest: 64 bits, so that no two things of one thread share one."""

_written = json.JSONEncoder(sort_keys=True, default=repr).encode


def digest(value: object) -> str:
    """Return the digest of a JSON-able value; the order of a mapping's keys does not count."""
    return hashlib.sha256(_written(value).encode()).hexdigest()[:LENGTH]


# --- Arguments that are as good as the same: other case, other white space, other punctuation.

_AROUND = r"[\s.,;:!?\"'`…“”‘’/]"
_BEFORE = re.compile(rf"^{_AROUND}+(?!\d)")
_AFTER = re.compile(rf"(?<!{_AROUND}){_AROUND}+$")
_BETWEEN_WORDS = re.compile(r"(?<![,;:!?])[,;:!?]++(?=\s)")


def fold_spellings(value: Any) -> Any:
    """Return a JSON-able value in the form that its near-identical spellings share.

    What may carry meaning stays: numbers, signs within and between words (paths, commands and code
    are made of them), single characters, and texts of several lines, the content of something.
    """
    if isinstance(value, dict):
        return {key: fold_spellings(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [fold_spellings(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    if len(text) < 2 or "\n" in text.strip():
        return text
    bare = _AFTER.sub("", _BEFORE.sub("", text.casefold()))
    return " ".join(_BETWEEN_WORDS.sub("", bare).split()) or text


# --- The line that stands for what a long result leaves out, and says where to read it.

REFERENCE: Final = "daruma_output"
"""The key among a message's ``additional_kwargs`` that holds the id of the whole text."""

READER: Final = "read_output"
"""The name of the tool that reads it."""

_ID: Final = re.compile(rf"(?<=; {READER} shows them: id )[0-9a-f]{{16}}(?= ?\])")


def left_out(count: int, id_: str) -> str:
    """Say how many characters are left out, and how to read them."""
    return f"[{count} characters left out; {READER} shows them: id {id_}]"


def without_reference(text: str) -> str:
    """Return a result without the id of its whole text, which noise alone makes another one."""
    return _ID.sub("", text) if READER in text else text


# --- What differs between two runs of the same thing and says nothing: durations, addresses, times.

_ETA = r"(?<!eta \d)(?<!eta: \d)(?<!remaining: \d)"
_STILL = r"(?!\s*(?:left|remaining|to go))"
_UNIT = r"(?:ns|[µu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"

# Both begin with the digit itself, and look back from there: a search then goes from digit to
# digit, which is ten times as quick as asking at each place of a long output what stands before it.
_MOMENT_ALONE = (
    r"\d(?<!\w\d)(?:\d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{_ETA}\d:\d\d:\d\d(?:[.,]\d+)?\b{_STILL})"
)
_DURATION_ALONE = (
    rf"\d(?<![\w.]\d)(?=\d*(?:[.,]\d+)?\s?[nuµmsh]){_ETA}"
    r"\d*(?:\s?h(?:ours?)?\s?(?:\d+\s?m(?:in)?\s?)?\d+|\s?m(?:in)?\s?\d+)?(?:[.,]\d+)?"
    rf"\s?{_UNIT}{_STILL}"
)
_MOMENTS = (
    re.compile(_MOMENT_ALONE, re.IGNORECASE),
    re.compile(
        rf"{_MOMENT_ALONE}|(?<=timestamp)\W{{1,4}}1\d{{9,12}}(?:\.\d+)?",
        re.IGNORECASE,
    ),
)
_DURATIONS = (
    re.compile(_DURATION_ALONE, re.IGNORECASE),
    re.compile(
        rf"{_DURATION_ALONE}|(?<=elapsed|latency|runtime)\W{{1,4}}\d+(?:\.\d+)?\b"
        r"|(?<=duration)(?:_m?s)?\W{1,4}\d+(?:\.\d+)?\b",
        re.IGNORECASE,
    ),
)
"""Without and with those that a word names."""

_OF_ASCII = tuple(
    re.compile(alone.replace(r"\d", "[0-9]", 1), re.IGNORECASE)
    for alone in (_MOMENT_ALONE, _DURATION_ALONE)
)
"""The first of each, for texts that have no other digits: these are looked for twice as quickly."""

_OF_A_CLOCK = re.compile(r":\d")
"""What each of them holds that no word names: to look for this first takes a tenth of the time."""

_NAMING: Final = ("timestamp", "elapsed", "latency", "runtime", "duration")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}", re.IGNORECASE)
_PROCESS = re.compile(r"\b(p?pid)\b\W{0,3}\d+", re.IGNORECASE)
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_IDENTIFIER = re.compile(r"\b[0-9a-f][0-9a-f-]{7,}\b", re.IGNORECASE)


def without_noise(text: str) -> str:
    """Return a text without durations, points in time, memory addresses and ids of processes.

    The time that something still needs is no noise: a wait that gets shorter is going on. What is
    noise by a word is only looked for in a text that holds the word: outputs can be long.
    """
    lower = text.casefold()
    if not text.isascii():  # a word is found in all spellings that are one without case
        lower = lower.replace("i\u0307", "i").replace("ı", "i")
    named = any(map(lower.__contains__, _NAMING))
    moments, durations = _MOMENTS[named], _DURATIONS[named]
    if text.isascii() and not named:
        moments, durations = _OF_ASCII
    if named or _OF_A_CLOCK.search(text):
        text = moments.sub("<time>", text)
    text = durations.sub("<duration>", text)
    if "0x" in lower:
        text = _ADDRESS.sub("<address>", text)
    if "pid" in lower:
        text = _PROCESS.sub(r"\1 <number>", text)
    return _TEMPORARY.sub("<temporary>", text) if "tmp" in text else text


def without_numbers(text: str) -> str:
    """Return an error's text without what is new each time it comes: numbers and identifiers."""
    return " ".join(re.sub(r"\d+", "#", without_ids(text)).split())


_NAMED = re.compile(
    r"(?<!\w)'[^'\n]{1,300}'(?!\w)|\"[^\"\n]{1,300}\"|`[^`\n]{1,300}`|“[^”\n]{1,300}”"
    r"|(?<![\w.~@+-])[\w.~@+-]*+[/\\][\w.~@+/\\-]*|(?<![\w-])[\w-]++(?:\.[\w-]++)++|\w+"
)
"""What may be a name in an error: what is quoted, a path, dotted words, a word.

Each is looked for where it can begin, and never given up in part: that takes linear time (SE-07).
"""
_NAME: Final = "<name>"
_NAMES = re.compile(rf"{_NAME}(?:\W*{_NAME})+")


def without_names(text: str, words: Collection[str] = ()) -> str:
    """Return an error's text without what it is about, so that its kind is left (RE-01a).

    That are numbers, what is quoted, paths, and ``words``, in any case: those that were asked for.

    >>> without_names("cat: notes: No such file", {"cat", "notes"})
    '<name>: No such file'
    """
    asked = {word.casefold() for word in words}

    def named(found: re.Match[str]) -> str:
        said = found[0]
        a_class = "/" not in said and said.endswith(("Error", "Exception", "Warning"))
        kept = said.isalnum() or a_class
        return said if kept and said.casefold() not in asked else _NAME

    return _NAMES.sub(_NAME, without_numbers(_NAMED.sub(named, text)))


def without_ids(text: str) -> str:
    """Return a text without noise and without identifiers, such as hashes; other numbers stay."""
    # A look ahead for the digit would take quadratic time: seconds for one result.
    bare = without_noise(text)
    return _IDENTIFIER.sub(lambda found: "#" if re.search(r"\d", found[0]) else found[0], bare)


# --- What can be stored just as it is: in a checkpoint, in a database.

DEEPEST: Final = 100
"""Levels of lists and objects in each other: what stores them goes to some hundred."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The whole numbers that msgpack knows."""


def unstorable_part(value: Any, depth: int = 0) -> str | None:
    """Say what about a JSON value can not be stored unchanged; None if nothing."""
    if depth > DEEPEST:
        return f"it is nested more than {DEEPEST} levels deep"
    if isinstance(value, str):
        return None if _is_unicode(value) else "it holds half a character (a lone surrogate)"
    if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        return "it holds a whole number of more than 64 bits"
    if isinstance(value, float) and not isfinite(value):
        return "it holds a number that JSON does not have (NaN or Infinity)"
    if isinstance(value, dict):
        return _first((*value, *value.values()), depth)
    return _first(value, depth) if isinstance(value, list | tuple) else None


def _first(values: Any, depth: int) -> str | None:
    for value in values:
        if said := unstorable_part(value, depth + 1):
            return said
    return None


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def storable_text(text: str) -> str:
    """Return text without NUL and lone surrogates, which no database takes."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode("utf-8")


def is_blank(text: str) -> bool:
    """Whether a text shows nothing; letters that are unknown here (newer, private) may show."""
    hidden = (each for each in text if not each.isspace())
    return all(is_hidden(each) and unicodedata.category(each) not in "CnCoCs" for each in hidden)


def counted(number: float, what: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number} {what}" + ("" if number == 1 else "s")
