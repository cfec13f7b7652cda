"""Cards in a notebook: runs, results and plans."""

import subprocess
import sys
from typing import Any

from tests.parts import a_phase, a_plan, memory
from tests.scripted_runs import RecordingModel, say

from daruma.graph.build import build_graph
from daruma.graph.timeline.moments import Moment
from daruma.graph.timeline.page import SHOWN, plan_card, timeline_card
from daruma.graph.timeline.timeline import Timeline

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

    html = timeline_card(Timeline(thread="t", status="completed", moments=moments))

    assert "5 earlier moments are left out" in html
    assert ("n4." in html, "n5." in html) == (False, True)


def test_results_and_plans_are_cards_where_a_notebook_runs() -> None:
    """They know nothing of notebooks themselves: building a graph tells the notebook."""
    args = [sys.executable, "-c", SHOWN_IN_A_NOTEBOOK]
    shown = subprocess.run(args, check=True, capture_output=True, text=True).stdout

    assert plan_card(a_plan(a_phase("p1"))) in shown


def test_a_card_stands_as_it_is_in_a_notebook() -> None:
    """JupyterLab makes any dt a fifth as wide as what holds it: names would break by the letter."""
    rules = timeline_card(Timeline(thread="t", status="completed")).partition("</style>")[0]

    facts = ".daruma-run dl dt,.daruma-run dl dd{"
    assert "width:auto" in rules.partition(facts)[2].partition("}")[0]
