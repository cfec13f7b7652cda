"""The drawn machine is the machine: every edge that can be taken is drawn, and no other."""

import re

import pytest
from langgraph.graph import END

from daruma.graph.command_line.app import main
from daruma.graph.machine import ENTRY, ON_BUG, TABLE, Each, mermaid, node_of

EDGE = re.compile(r"^    (\w+) (-->|==>)\|(.+)\| (\w+)", re.MULTILINE)
BUG = re.compile(r"^    (\w+) -\.->\|bug\| (\w+)$", re.MULTILINE)
SHARED_BUG = re.compile(r'^    bug_\w+{{"a bug in (.+)"}} -\.-> (\w+)$', re.MULTILINE)


def drawn(name: str) -> str:
    return "__end__" if name == END else name


def test_every_edge_of_the_table_is_drawn_with_its_outcome() -> None:
    """Outcomes that lead to the same node share an edge; fan-out is drawn thick."""
    edges = {
        (source, outcome, target, arrow == "==>")
        for source, arrow, outcomes, target in EDGE.findall(mermaid())
        for outcome in outcomes.split(", ")
    }

    assert edges == {
        (name, outcome, drawn(node_of(target)), isinstance(target, Each))
        for name, (_, outcomes) in TABLE.items()
        for outcome, target in outcomes.items()
    }


def test_every_edge_of_the_error_handlers_is_drawn_dotted() -> None:
    """Those that several nodes share once, the others each."""
    bugs = dict(BUG.findall(mermaid()))
    for names, target in SHARED_BUG.findall(mermaid()):
        bugs |= dict.fromkeys(names.split(", "), target)
    others = bugs.pop("any other node")

    assert {name: bugs.get(name, others) for name in ON_BUG} == {
        name: drawn(target) for name, target in ON_BUG.items()
    }


def test_the_picture_begins_where_the_machine_does() -> None:
    """Start and end are drawn, and it is the same picture every time."""
    assert f'__start__(["start"]) --> {ENTRY}\n' in mermaid()
    assert '__end__(["end"])' in mermaid()
    assert mermaid() == mermaid()


def test_the_command_prints_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """``daruma graph`` prints exactly this, ready to be pasted."""
    with pytest.raises(SystemExit):
        main(["graph"])

    assert capsys.readouterr().out == mermaid()
