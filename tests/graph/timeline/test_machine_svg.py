"""The machine as a picture: whole, legible, lit where it was walked."""

import runpy
import xml.etree.ElementTree as ET  # of a text that was made here
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parts import memory
from tests.scripted_runs import RecordingModel, say

from daruma.graph.build import build_graph
from daruma.graph.machine import TABLE
from daruma.graph.timeline import Picture

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def drawn() -> SimpleNamespace:
    """What ``docs/draw_machine.py`` knows of the picture."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "draw_machine.py")))


def test_what_ships_is_what_is_drawn(drawn: SimpleNamespace) -> None:
    """``python docs/draw_machine.py`` draws a machine anew that has changed."""
    assert drawn.machine_svg() == Picture().svg


def test_every_node_and_edge_of_the_table_is_drawn(drawn: SimpleNamespace) -> None:
    """``--choose`` finds routes for those that are new."""
    assert {*TABLE} <= {*drawn.BOXES}
    assert {curve.edge for curve in drawn.drawing().curves} == {*drawn.edges()}


def test_labels_overlap_neither_each_other_nor_a_node(drawn: SimpleNamespace) -> None:
    """Every outcome can be read, with room for a count, and none leaves the picture."""
    nodes = [box for name, box in drawn.BOXES.items() if name != drawn.EITHER]
    labels = [*drawn.drawing().labels.values()]

    assert not [(a, b) for a, b in combinations([*nodes, *labels], 2) if a.meets(b)]
    assert all(box.x - box.width / 2 > 0 and box.x + box.width / 2 < drawn.WIDTH for box in labels)
    assert all(0 < box.y < drawn.HEIGHT for box in labels)


def test_no_edge_runs_through_a_node_that_it_does_not_join(drawn: SimpleNamespace) -> None:
    """Nobody takes one for another's."""
    through = [
        (curve.edge.source, curve.edge.target, name)
        for curve in drawn.drawing().curves
        for name, box in drawn.BOXES.items()
        if name not in {*curve.edge.sources, curve.edge.source, curve.edge.target, drawn.EITHER}
        if any(box.holds(x, y) for x, y in curve.samples[1:-1])
    ]

    assert through == []


def test_it_is_sound_xml_that_names_no_host() -> None:
    """It can be kept as a file, and asks nothing of the network."""
    svg = Picture({"main": 2}, {("main", "tool"): 2}).svg

    assert ET.fromstring(svg).tag == f"{SVG}svg"  # noqa: S314
    assert svg.count("http") == 1  # the name of SVG itself


def test_what_was_walked_is_lit() -> None:
    """With how often; what was not walked fades."""
    graph: Any = build_graph(RecordingModel(script={"main": [say("One.")]}), checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "Say one")]}, config)

    picture = graph.picture(config)

    assert picture.nodes == {"intake": 1, "main": 1, "finish": 1}
    assert picture.edges["main", "finish"] == 1
    root = ET.fromstring(picture.svg)  # noqa: S314
    names = {
        text.text
        for group in root.iter(f"{SVG}g")
        if "lit" in group.get("class", "").split()
        for text in group.iter(f"{SVG}text")
        if text.get("class") == "name"
    }
    assert names == {"start", "intake", "main", "finish", "end"}


def test_a_notebook_shows_the_graph_as_this_picture() -> None:
    """LangGraph's own display would send it to mermaid.ink."""
    graph = build_graph(RecordingModel(script={}))

    shown = graph._repr_mimebundle_()

    assert shown["text/html"] == Picture().svg
    assert {*shown} == {"text/html", "text/plain"}


# --- The picture as a file, and as text where there is no other way to show it.


def test_a_picture_is_kept_as_a_file(tmp_path: Path) -> None:
    """The file is what a notebook shows."""
    picture = Picture({"main": 1}, {("intake", "main"): 1})

    file = picture.save(tmp_path / "a.svg")

    assert file.read_text(encoding="utf-8") == picture.svg
    assert ">×1</text>" in picture.svg


def test_as_text_it_tells_the_walk() -> None:
    """Or what it is of, where nothing was walked."""
    assert str(Picture({}, {("intake", "main"): 2})) == "intake -> main: 2"
    assert str(Picture()) == "the machine of Daruma"
