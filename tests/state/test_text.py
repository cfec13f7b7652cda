"""Text from outside, made safe, short and comparable: for people, prompts and records."""

import re
import shlex
import subprocess
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daruma.state.text import (
    LONGEST,
    LONGEST_LINE,
    MOST_BLANKS,
    digest,
    fold_spellings,
    on_thread,
    pasted,
    printable_line,
    reveal_invisible,
    revealed_line,
    unkept_id,
    warnings,
    without_noise,
    without_numbers,
)

# --- What a person decides on hides nothing, and says where it tries to.

REVEALED = {
    "ls -l 'a b'": "ls -l 'a b'",
    "\x1b[8mx\x07": r"\x1b[8mx\x07",
    "a\u202eb\u2066": r"a\u202eb\u2066",
    "\u200b\u200d\ufeff\u00ad": r"\u200b\u200d\ufeff\xad",
    "\U000e0041\ufe0f\U000e0100": r"\U000e0041\ufe0f\U000e0100",
    "\u2028\u2029\x85": r"\u2028\u2029\x85",
    "\u00a0\u3000\u2003": r"\xa0\u3000\u2003",
    "\u3164\u2800\u115f": r"\u3164\u2800\u115f",
    "\ud800\ue000": r"\ud800\ue000",
    "a\nb\tc": "a\nb\tc",
    "a\r\nb": "a\\x0d\nb",
    "grep '\\d+\\s' \\": "grep '\\d+\\s' \\",
    r"\u202e": r"\\u202e",
    r"\U000E0041 \xFF": r"\\U000E0041 \\xFF",
    "\\\u202e": r"\\\u202e",
    r"\\u202e": r"\\\\u202e",
    "Привет, 你好, Γειά, سلام, é, 🙂": "Привет, 你好, Γειά, سلام, é, 🙂",
}


@pytest.mark.parametrize("text", REVEALED)
def test_what_hides_is_spelled(text: str) -> None:
    """All else stays as it is, also backslashes that spell nothing."""
    assert reveal_invisible(text) == REVEALED[text]


NASTY = st.text(
    st.sampled_from("\\\\\\xuU0123aAfF\u202e\u200b\x1b\n\t\0\xa0\U000e0041\ud800")
    | st.characters(),
    max_size=20,
)


def read_back(text: str) -> str:
    """Return the text that was revealed: an odd number of backslashes before a spelling is ours."""

    def one(found: re.Match[str]) -> str:
        slashes, code = found[1], found[2]
        kept = "\\" * (len(slashes) // 2)
        return kept + (chr(int(code[1:], 16)) if len(slashes) % 2 else code)

    ours = "x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}"
    return re.sub(rf"(?<!\\)(\\+)({ours}|(?i:x[0-9a-f]{{2}}|u[0-9a-f]{{4}}))", one, text)


@given(NASTY)
def test_two_texts_never_look_the_same(text: str) -> None:
    """A text can be read back from what is shown of it, on one line or on several."""
    assert read_back(reveal_invisible(text)) == text
    assert read_back(revealed_line(text)) == text


@given(NASTY)
def test_all_that_is_shown_can_be_seen(text: str) -> None:
    """Nothing is left that a terminal obeys or draws as nothing."""
    assert all(char.isprintable() or char in "\n\t" for char in reveal_invisible(text))
    assert revealed_line(text).isprintable()


WARNED = {
    "rm \x1b[8m-rf": (r"control characters: \x1b at 4",),
    "a\rb": (r"control characters: \x0d at 2",),
    "a\u202eb": (r"characters that turn the direction of writing: \u202e at 2",),
    "\u200b" * 5: (
        r"invisible or unassigned characters: \u200b at 1, \u200b at 2, \u200b at 3 and 2 more",
    ),
    "a\u200db": (r"invisible or unassigned characters: \u200d at 2",),
    "a\ufe0f": (r"invisible or unassigned characters: \ufe0f at 2",),
    "x\U000e0041": (r"invisible or unassigned characters: \U000e0041 at 2",),
    "x\u3164": (r"invisible or unassigned characters: \u3164 at 2",),
    "git pu\u0455h": (
        "letters that look like others: ѕ (CYRILLIC SMALL LETTER DZE) at 7 in 'puѕh'",
    ),
    "x = \u0391dmin1": (
        "letters that look like others: Α (GREEK CAPITAL LETTER ALPHA) at 5 in 'Αdmin1'",
    ),
    "ls" + " " * MOST_BLANKS + "; rm": (f"a run of {MOST_BLANKS} blanks before character 43",),
    "\t" * MOST_BLANKS + "x": (f"a run of {MOST_BLANKS} blanks before character 41",),
    "ls" + "\n" * 12 + "rm": ("11 blank lines before character 15",),
    "x" * (LONGEST_LINE + 1): (f"a line of {LONGEST_LINE + 1} characters",),
}


@pytest.mark.parametrize("text", WARNED)
def test_what_deceives_is_warned_of(text: str) -> None:
    """One line each: what it is, and where."""
    assert warnings(text) == WARNED[text]


@pytest.mark.parametrize(
    "text",
    [
        "pytest -x -q\n\tindented\n\n",
        "a\r\nb\r\n",
        "Съешь ещё этих мягких французских булок, скопировано на сор",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, ΑΒΓ",
        "你好，世界　「漢字」 한국어 日本語",
        "صِف خَلقَ خَودِ، می‌خواهم",
        "नमस्ते क्‍ष",
        "👨‍👩‍👧 ❤️‍🔥 1️⃣ ☂️ 🏃🏽‍♂️ 🇩🇪 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "10\u00b5m, caf\u00e9, na\u00efve, Stra\u00dfe, cafe\u0301",
        "\u0394t, \u03bbx, \u03c3-algebra",
        "tab\tand space" + " " * (MOST_BLANKS - 1) + "x",
        "trailing" + " " * 100,
    ],
)
def test_ordinary_text_is_not_warned_of(text: str) -> None:
    """In any language, with emoji, and with the line ends of any system."""
    assert warnings(text) == ()


@given(st.text("abcéабвαβγ漢字عرب 0-_.\n", max_size=60))
def test_whole_words_of_any_script_are_fine(text: str) -> None:
    """Only a letter that looks Latin among Latin ones is suspicious."""
    words = re.findall(r"[^\W_]+", text)
    mixed = [word for word in words if set(word) & set("abcé") and set(word) & set("аα")]
    whole = [word for word in words if len(word) > 1 and set(word) <= set("аα")]
    told = mixed or (whole and not set(text) & set("бвβγ漢字عرب"))

    assert bool(warnings(text)) is bool(told)


@pytest.mark.parametrize("text", ["ѕсоре --all", "cat ｐasswd", "rm 𝗮", "echo 1⁄2", "cp ⅐ x"])
def test_words_that_are_wholly_disguised_are_warned_of(text: str) -> None:
    """RELIABILITY, row L: nothing in the text is of the script that they would be of."""
    assert any(each.startswith("letters that look like others") for each in warnings(text))


@pytest.mark.parametrize("text", ["２０２６年に始まる", "он и она", "και όχι", "ТОР и далее"])
def test_such_letters_among_others_of_their_script_are_ordinary(text: str) -> None:
    """Japanese has wide digits, and every script has short words that look Latin."""
    assert warnings(text) == ()


@given(NASTY)
def test_a_warning_is_one_visible_line(text: str) -> None:
    """What it quotes can not do what it warns of."""
    assert all(line.isprintable() for line in warnings(text))


# --- Whatever text comes from outside, one printable line of it is kept.


@given(st.text(max_size=1000))
def test_it_is_one_bounded_printable_line(text: str) -> None:
    """And stays as it is when it is made again."""
    line = printable_line(text)

    assert len(line) <= LONGEST
    assert all(each.isprintable() or each == "\u200d" for each in line)
    assert printable_line(line) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("assert 3 == 4", "assert 3 == 4"),
        ("a\r\n\tb\x00c\x1b[31m", "a b c [31m"),
        ("\u202edrow\u202c \ud800", "drow"),
        ("Grüße 👩\u200d🚒", "Grüße 👩\u200d🚒"),
        ("x" * 301, "x" * 299 + "…"),
        (" " * 100_000 + "x", ""),
    ],
)
def test_what_stays_of_a_text(text: str, line: str) -> None:
    """Letters of all scripts and emoji do; what steers a terminal or a reader does not."""
    assert printable_line(text) == line


# --- Digests are short, and equal for equal things only.


def test_the_order_of_keys_does_not_count() -> None:
    """Models write the arguments of a call in any order; that of a list is part of it."""
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


# --- Which arguments are as good as the same.

ALIKE = [
    ("Foo Bar", "foo  bar "),
    ("foo, bar.", "'foo bar'"),
    ("./src/", "src"),
    ({"q": ["Foo"]}, {"q": ["foo!"]}),
    ("page 3.", "page 3"),
    ("3, b", "3 b"),
]
DIFFERENT = [
    ("page 3", "page 4"),
    ("1.5", "15"),
    ("x = -1", "x = 1"),
    ("a < b", "a > b"),
    ("C#", "C++"),
    ("+", "-"),
    ("a", "A"),
    ("", "."),
    ("()", "[]"),
    ("if x:\n  y", "if x:\n    y"),
    ("Title\nbody", "title\nbody"),
    ("touch a_b", "touch a-b"),
    ("touch a.b", "touch a b"),
    ("src/a_b.py", "src/a/b.py"),
    ("x = foo(a)", "x = foo[a]"),
    ("rm -r a /b", "rm -r a/b"),
    (".5", "5"),
    (3, 3.5),
    (True, "true"),
    (["a", "b"], ["b", "a"]),
    ({"old": "x"}, {"new": "x"}),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_case_white_space_and_punctuation_do_not_count(one: Any, other: Any) -> None:
    """RE-02: a model that rewords nothing but these does the same again."""
    assert fold_spellings(one) == fold_spellings(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_may_carry_meaning_counts(one: Any, other: Any) -> None:
    """Numbers, operators, single characters, and the content of files."""
    assert fold_spellings(one) != fold_spellings(other)


# --- What two outputs of the same thing may differ in, and what they may not.

NOISE = [
    ("1 failed in 0.03s", "1 failed in 0.41s"),
    ("built in 1m 3s", "built in 58 s"),
    ("took 12 ms", "took 7 ms"),
    ('{"elapsed": 1.25}', '{"elapsed": 3.5}'),
    ('{"duration_ms": 12}', '{"duration_ms": 31}'),
    ("at 2026-11-21T23:45:17.250Z ok", "at 2026-11-22T00:01:02Z ok"),
    ("23:45:17 heartbeat", "23:46:02 heartbeat"),
    ('"timestamp": 1763768717', '"timestamp": 1763768999.5'),
    ("<Job at 0x7fce75bf4240>", "<Job at 0x7fce84448e50>"),
    ("worker pid=4121 ended", "worker pid=977 ended"),
    ("in /var/tmpab12cd34/x", "in /var/tmpzz12cd3_/x"),
]
MEANING = [
    ("37 %", "38 %"),
    ("rows: 120", "rows: 180"),
    ("exit code 1", "exit code 2"),
    ("12 s left", "7 s left"),
    ("ETA 12s", "ETA 7s"),
    ("a\nb", "a\nb\nc"),
    ("commit 9f3c21aa", "commit 77be01d3"),
    ("step 3 of 9", "step 4 of 9"),
    ("due 2026-11-21", "due 2026-11-22"),
    ("at 12:30", "at 13:30"),
    ("v1.2.3", "v1.2.4"),
]


@pytest.mark.parametrize(("one", "other"), NOISE)
def test_noise_is_left_out(one: str, other: str) -> None:
    """A test run that takes longer is the same test run."""
    assert without_noise(one) == without_noise(other)


@pytest.mark.parametrize(("one", "other"), MEANING)
def test_what_may_be_progress_stays(one: str, other: str) -> None:
    """A poll whose answer changes is no loop."""
    assert without_noise(one) != without_noise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("line 3: no such row 17", "line 9: no such row 18"),
        ("request 3f2a91bc77de failed", "request 11c0ab0044fa failed"),
        ("job 550e8400-e29b-41d4-a716-446655440000", "job 123e4567-e89b-12d3-a456-426614174000"),
        ("broken\n  pipe", "broken pipe"),
    ],
)
def test_an_error_is_the_same_without_its_numbers(one: str, other: str) -> None:
    """Ids and line numbers are new each time a thing goes wrong in the same way."""
    assert without_numbers(one) == without_numbers(other)


ETA = r"(?<!eta )(?<!eta: )(?<!remaining: )"
STILL = r"(?!\s*(?:left|remaining|to go))"
MOMENT = (
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{ETA}\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b{STILL}"
    r"|(?<=timestamp)\W{1,4}1\d{9,12}(?:\.\d+)?"
)
DURATION = (
    rf"{ETA}(?<![\w.])(?:\d+\s?h(?:ours?)?\s?)?(?:\d+\s?m(?:in)?\s?)?"
    r"\d+(?:[.,]\d+)?\s?(?:ns|[µu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"
    rf"{STILL}|(?<=elapsed|latency|runtime)\W{{1,4}}\d+(?:\.\d+)?\b"
    r"|(?<=duration)(?:_m?s)?\W{1,4}\d+(?:\.\d+)?\b"
)
PLAINLY = [
    (MOMENT, "<time>"),
    (DURATION, "<duration>"),
    (r"\b0x[0-9a-f]{4,}", "<address>"),
    (r"\b(p?pid)\b\W{0,3}\d+", r"\1 <number>"),
    (r"(?-i:\btmp[a-z0-9_]{8}\b)", "<temporary>"),
]
"""What noise is, in the plainest words."""

PIECES = st.sampled_from(
    [
        *("1", "12", "17", "2026-11-21", "T", " ", ":", "10:11:12", ":13", "1700000000", ".", ","),
        *("eta ", "ETA: ", "Remaining: ", " left", " to go", "h", "m", "s", "ms", "µs", "μS", "ns"),
        *(
            "hour",
            "sec",
            "seconds",
            "min",
            "minutes",
            "-",
            "+0100",
            "Z",
            "\n",
            "_",
            "_ms",
            "(",
            "=",
        ),
        *("timestamp", "tımestamp", "elapſed", "Elapsed", "latency", "RUNTİME", "duration"),
        *("0x", "0X", "deadbeef", "pid", "PİD", "ppıd", "tmp", "abcdefgh", "é", "٣", "<", "="),
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("took 1h 2m 3.5s, 12:13:14,5 left, at 2026-11-21 10:11:12.3+01:00")
@example("duration_ms: 12.5s elapsed = 1m 3 s, elapſed: 3")
@example("ppıd 12")
@example("PİD: 3, elapſed: 1, 0X12aB at 10:11:12 in tmpabcdefgh")
@example("1h2m3s 4m5 s 6 7ms 8.9ms .5s a1s 1,5s 1_s")
def test_noise_is_found_as_quickly_as_it_is_plainly(text: str) -> None:
    """What stands on record of an older run compares with what is made of the same text now."""
    plainly = text
    for pattern, mark in PLAINLY:
        plainly = re.sub(pattern, mark, plainly, flags=re.IGNORECASE)

    assert without_noise(text) == plainly


@pytest.mark.parametrize(
    "text",
    [
        "a-" * 15_000,
        "a-" * 15_000 + "g",
        "1 " * 15_000,
        "1," * 15_000,
        "1m" * 15_000,
        "1:" * 15_000,
    ],
)
def test_a_long_result_takes_no_time(text: str) -> None:
    """Quadratic work on the 30,000 characters of a tool's result would stop the whole process."""
    began = time.process_time()
    without_numbers(text)

    assert time.process_time() - began < 1


@pytest.mark.parametrize(("one", "other"), NOISE)
@given(text=st.text("0123456789:. -TZsmh\t\n\x1cETAleftgo%a", max_size=40))
def test_a_sign_outside_ascii_makes_nothing_noise(one: str, other: str, text: str) -> None:
    """Texts of ASCII are looked through in a quicker way, and for the same."""
    for each in (f"{text}\n{one}", f"{other}\n{text}", text):
        assert without_noise(f"{each}\nä") == f"{without_noise(each)}\nä"


# --- What is printed to be pasted.

NAMED = [
    "a",
    "a b",
    "a  b",
    " a ",
    "it's",
    "a\\nb",
    "!x",
    "$(id)",
    "é",
    "e\u0301",
    "😀",
    "-x",
    "--",
]
NAMED += [
    "a\u00a0b",
    "a\u200bb",
    "a\u202eb",
    "a\u2028b",
    "a\u3000b",
    "\u3164",
    "it's  \u00a0!\\",
    "❤\ufe0f",
]


@pytest.mark.parametrize("name", NAMED)
def test_a_command_that_is_pasted_means_what_was_printed(name: str) -> None:
    """FA-04: any name that a thread can have, also flattened to a line, and nothing in it hides."""
    command = " ".join(on_thread("answer", name, "--confirm").split())
    shell = ["bash", "-c", f"printf '%s\\0' {command}"]
    words = subprocess.run(shell, capture_output=True, check=True).stdout.decode().split("\0")

    assert unkept_id(name) is None
    after = ["--confirm", "--", name] if name.startswith("-") else [name, "--confirm"]
    assert words[:-1] == ["daruma", "answer", *after]
    assert revealed_line(command).replace("\\\\", "\\") == command


def test_an_ordinary_name_is_quoted_as_shells_do() -> None:
    """A text that can not be encoded has a spelling too."""
    assert pasted("it's") == shlex.quote("it's")
    assert pasted("\ud800") == "$'\\077'"
