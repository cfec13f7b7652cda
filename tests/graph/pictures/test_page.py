"""The page of a run: it obeys nothing that it shows, and is bounded."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from daruma.graph.timeline.moments import KINDS, Moment
from daruma.graph.timeline.page import MOST_TEXT, lanes_of, page_of
from daruma.graph.timeline.timeline import Timeline

EVIL = "</script></style></title><img src=x onerror=alert(1)>\"' &amp; \u202etxt.exe \x1b[2J \0"
EMPTY = Timeline(thread="t", status="unfinished")


class Elements(HTMLParser):
    """Keeps the elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def a_moment(kind: str = "tool", **changes: object) -> Moment:
    return replace(Moment(kind="tool", title="t", at=1e9), kind=kind, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["title", "detail", "output", "note", "diff", "model"])
def test_hostile_text_is_shown_and_not_obeyed(field: str) -> None:
    """Markup is text; what turns the direction of writing, or a terminal, is spelled."""
    page = Elements(page_of(replace(EMPTY, moments=(a_moment(**{field: EVIL}),))))

    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(1)>" in page.text
    assert "\\u202etxt.exe" in page.text
    assert not {"\u202e", "\x1b", "\0"} & {*page.text}


@pytest.mark.parametrize("field", ["thread", "goal", "status", "mode", "workspace"])
def test_the_head_is_no_different(field: str) -> None:
    """A goal or a thread's name is as hostile as an output."""
    page = Elements(page_of(replace(EMPTY, **{field: EVIL})))  # type: ignore[arg-type]

    assert page.tags.count("script") == 1
    assert "img" not in page.tags


def test_a_policy_forbids_everything_from_elsewhere() -> None:
    """Only the page's own script and styles run: by their digests."""
    page = Elements(page_of(EMPTY))

    (policy,) = [text for name, text in page.attributes if text and "default-src" in text]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not [name for name, _ in page.attributes if name in ("src", "href", "style")]


def test_keys_are_masked() -> None:
    """As in all else that is told."""
    key = "sk-" + "a1b2c3d4" * 4

    page = page_of(replace(EMPTY, moments=(a_moment(output=f"key {key}"),)))

    assert key not in page
    assert "key [key]" in page


def test_long_outputs_are_cut_and_say_where_they_go_on() -> None:
    """A line of a megabyte too."""
    page = page_of(replace(EMPTY, moments=(a_moment(output="x" * 1_000_000),)))

    assert len(page) < 100_000
    assert (
        "996,000 more characters; the whole is in graph.timeline(config).moments[0].output" in page
    )


def test_the_size_of_a_page_is_bounded() -> None:
    """However much there is in a thousand steps."""
    moments = tuple(a_moment(output="x" * 30_000, detail="y" * 30_000) for _ in range(1000))

    assert len(page_of(replace(EMPTY, moments=moments))) < MOST_TEXT + 1_000_000


def test_other_scripts_stay_as_they_are() -> None:
    """Chinese, Arabic, and emoji that are joined."""
    text = "漢字 مرحبا 👩‍💻"

    assert text in page_of(replace(EMPTY, moments=(a_moment(output=text),)))


def test_an_empty_run_has_a_page() -> None:
    """It says that nothing has happened."""
    assert "Nothing has happened yet." in page_of(EMPTY)


def test_an_open_question_says_how_to_answer() -> None:
    """On the command line, and in Python."""
    asked = {"id": "abc", "value": {"type": "question", "question": "Which?", "options": ["a b"]}}

    text = Elements(page_of(replace(EMPTY, thread="my t", questions=(asked,)))).text

    assert "Which?" in text
    assert "daruma answer 'my t' --text" in text
    assert "Command(resume={'abc': ...})" in text


def test_every_kind_can_be_hidden() -> None:
    """Each has its button and its rule."""
    page = page_of(replace(EMPTY, moments=tuple(map(a_moment, KINDS))))

    for kind in KINDS:
        assert f'data-kind="{kind}"' in page
        assert f"#timeline.no-{kind} .k-{kind}" in page


def test_a_diff_is_coloured_by_lines() -> None:
    """The signs stay: nothing rests on colour alone."""
    page = page_of(replace(EMPTY, moments=(a_moment(diff="@@ -1 +1 @@\n-a\n+<b>"),)))

    assert '<span class="minus">-a</span>' in page
    assert '<span class="plus">+&lt;b&gt;</span>' in page


def test_phases_side_by_side_have_a_section_each() -> None:
    """What is no phase's begins a new one after them."""
    places = ["", "a", "b", "a", "", "b"]
    moments = tuple(a_moment(task="t/1", phase=phase) for phase in places)

    lanes = lanes_of(replace(EMPTY, moments=moments))

    assert [[number for number, _ in lane.moments] for lane in lanes] == [[0], [1, 3], [2, 5], [4]]
