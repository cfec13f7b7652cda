"""The page of a run: it obeys nothing that it shows, and is bounded."""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.parts import a_phase, a_plan, memory
from tests.scripted_runs import RecordingModel, say
from tests.state.test_interrupts import PLAN, RECOVERY_INBOX, approvals

from daruma.graph.build import build_graph
from daruma.graph.timeline import Moment, Timeline
from daruma.graph.timeline._moments import KINDS
from daruma.graph.timeline._timeline import MOST_TEXT, SHOWN, lanes_of, render_card, render_page

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
    page = Elements(render_page(replace(EMPTY, moments=(a_moment(**{field: EVIL}),))))

    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(1)>" in page.text
    assert "\\u202etxt.exe" in page.text
    assert not {"\u202e", "\x1b", "\0"} & {*page.text}


@pytest.mark.parametrize("field", ["thread", "goal", "status", "mode", "workspace"])
def test_the_head_is_no_different(field: str) -> None:
    """A goal or a thread's name is as hostile as an output."""
    page = Elements(render_page(replace(EMPTY, **{field: EVIL})))  # type: ignore[arg-type]

    assert page.tags.count("script") == 1
    assert "img" not in page.tags


def test_a_policy_forbids_everything_from_elsewhere() -> None:
    """Only the page's own script and styles run: by their digests."""
    page = Elements(render_page(EMPTY))

    (policy,) = [text for name, text in page.attributes if text and "default-src" in text]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not [name for name, _ in page.attributes if name in ("src", "href", "style")]


KEY = "sk-" + "a1b2c3d4" * 4
PAGES: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "nothing": ({}, ("Nothing has happened yet.",), "<dt>cost"),
    "a key": ({"moments": [a_moment(output=f"key {KEY}")]}, ("key [key]",), KEY),
    "other scripts": ({"goal": "漢字 مرحبا 👩‍💻"}, ("漢字 مرحبا 👩‍💻",), "\\u"),
    "a diff": (
        {"moments": [a_moment(diff="@@ -1 +1 @@\n-a\n+<b>")]},
        ('<span class="minus">-a</span>', '<span class="plus">+&lt;b&gt;</span>'),
        "<b>",
    ),
    "a line of a megabyte": (
        {"moments": [a_moment(output="x" * 1_000_000)]},
        ("996,000 more characters; the whole is in graph.timeline(config).moments[0].output",),
        "x" * 5000,
    ),
    "what it took": (
        {"started_at": 100.0, "updated_at": 225.0, "tokens": 1234},
        ("<dt>took</dt><dd>2 min 5 s</dd>", "<dt>tokens</dt><dd>1,234</dd>"),
        "<dt>cost",
    ),
    "its price": ({"usd": 0.5}, ("<dt>cost</dt><dd>$0.5000</dd>",), "<dt>budget"),
    "its budget": (
        {"spent": {"think": (1, 7), "usd": (0.12345, 2.0)}},
        ("<dt>budget</dt><dd>think 1 of 7, usd 0.1235 of 2.0</dd>",),
        "<dt>cost",
    ),
    "completed": ({"status": "completed"}, ('class="badge good">completed<',), "badge bad"),
    "held": ({"status": "held"}, ('class="badge wait">held<',), "badge good"),
    "failed": ({"status": "failed"}, ('class="badge bad">failed<',), "badge good"),
}


@pytest.mark.parametrize("what", PAGES)
def test_a_page_says_what_there_is_and_no_more(what: str) -> None:
    """Signs stay beside colours, words beside marks; money only where a price is known."""
    changes, told, untold = PAGES[what]
    if "moments" in changes:
        changes = {**changes, "moments": tuple(changes["moments"])}

    page = render_page(replace(EMPTY, **changes))

    assert [each for each in told if each not in page] == []
    assert untold not in page


@pytest.mark.long
def test_the_size_of_a_page_is_bounded() -> None:
    """However much there is in a thousand steps."""
    moments = tuple(a_moment(output="x" * 30_000, detail="y" * 30_000) for _ in range(1000))

    assert len(render_page(replace(EMPTY, moments=moments))) < MOST_TEXT + 1_000_000


def test_every_kind_can_be_hidden() -> None:
    """Each has its button and its rule."""
    page = render_page(replace(EMPTY, moments=tuple(map(a_moment, KINDS))))

    for kind in KINDS:
        assert f'data-kind="{kind}"' in page
        assert f"#timeline.no-{kind} .k-{kind}" in page


def test_phases_side_by_side_have_a_section_each() -> None:
    """What is no phase's begins a new one after them."""
    places = ["", "a", "b", "a", "", "b"]
    moments = tuple(a_moment(task="t/1", phase=phase) for phase in places)

    lanes = lanes_of(replace(EMPTY, moments=moments))

    assert [[number for number, _ in lane.moments] for lane in lanes] == [[0], [1, 3], [2, 5], [4]]


# --- The head of a page: facts, and what is asked.


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            PLAN,
            ("Is this plan right?", "1. Look", "--confirm"),
        ),
        (
            approvals(shown="rm x", reason="by rule"),
            ("May this run?", "rm x\n  by rule", "--approve"),
        ),
        (
            RECOVERY_INBOX,
            ("May this be done", "it broke", "--approve"),
        ),
        (
            {"type": "question", "question": "Which?", "context": "Of two", "options": ["a"]},
            ("Which?", "Of two\n- a", "--text"),
        ),
        ({"type": "approval_request", "id": 7}, ("{'type': 'approval_request', 'id': 7}",)),
        ({"type": "question", "question": "Which?", "options": 3}, ("Which?", "--text")),
    ],
)
def test_each_question_says_what_it_is_about(value: dict[str, Any], told: tuple[str, ...]) -> None:
    """And with which option it is answered."""
    page = render_page(replace(EMPTY, questions=({"id": "abc", "value": value},)))
    html = Elements(page).text

    assert [each for each in told if each not in html] == []


# --- Cards in a notebook: runs, results and plans.

SHOWN_IN_A_NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
from daruma import build_graph, ScriptedChatModel
from tests.parts import a_plan, a_phase
build_graph(ScriptedChatModel(script={}))
print(shell.display_formatter.format(a_plan(a_phase("p1")))[0]["text/html"])
"""


def test_a_run_is_a_card_without_script() -> None:
    """Its style reaches nothing but the card."""
    graph: Any = build_graph(RecordingModel(script={"main": [say("One.")]}), checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "Say <one>")]}, config)

    html = graph.timeline(config)._repr_html_()

    assert "Say &lt;one&gt;" in html
    assert "<script" not in html
    rules = html.partition("<style>")[2].partition("</style>")[0].replace("@media", "\n@media")
    outside = [
        line
        for line in rules.splitlines()
        if line and not line.startswith((".daruma", "body.daruma", "@media", "#timeline"))
    ]
    assert outside == []


def test_a_long_run_shows_its_end() -> None:
    """A notebook of a thousand rows is of no use; the page has them all."""
    moments = tuple(Moment(kind="note", title=f"n{number}.") for number in range(SHOWN + 5))

    html = render_card(Timeline(thread="t", status="completed", moments=moments))

    assert "5 earlier moments are left out" in html
    assert ("n4." in html, "n5." in html) == (False, True)


@pytest.mark.long
def test_results_and_plans_are_cards_where_a_notebook_runs() -> None:
    """They know nothing of notebooks themselves: building a graph tells the notebook."""
    args = [sys.executable, "-c", SHOWN_IN_A_NOTEBOOK]
    shown = subprocess.run(args, check=True, capture_output=True, text=True).stdout

    assert render_card(a_plan(a_phase("p1"))) in shown


def test_a_card_stands_as_it_is_in_a_notebook() -> None:
    """JupyterLab makes any dt a fifth as wide as what holds it: names would break by the letter."""
    rules = render_card(Timeline(thread="t", status="completed")).partition("</style>")[0]

    facts = ".daruma-run dl dt,.daruma-run dl dd{"
    assert "width:auto" in rules.partition(facts)[2].partition("}")[0]
