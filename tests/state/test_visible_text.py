r"""What a person decides on hides nothing, and says where it tries to."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.text import LONGEST_LINE, MOST_BLANKS, revealed, revealed_line, warnings

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
    assert revealed(text) == REVEALED[text]


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
    assert read_back(revealed(text)) == text
    assert read_back(revealed_line(text)) == text


@given(NASTY)
def test_all_that_is_shown_can_be_seen(text: str) -> None:
    """Nothing is left that a terminal obeys or draws as nothing."""
    assert all(char.isprintable() or char in "\n\t" for char in revealed(text))
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

    assert bool(warnings(text)) is bool(mixed)


@given(NASTY)
def test_a_warning_is_one_visible_line(text: str) -> None:
    """What it quotes can not do what it warns of."""
    assert all(line.isprintable() for line in warnings(text))
