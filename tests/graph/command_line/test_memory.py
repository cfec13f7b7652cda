"""``daruma memory`` shows what is remembered, and lets a person put it right."""

from collections.abc import Sequence
from io import StringIO

import pytest
from rich.console import Console
from tests.daruma_command import DONE, Daruma

from daruma.graph.command_line._memory import memory_table
from daruma.graph.command_line._output import Paper
from daruma.state.lessons import Remembered

FACT = "The billing tests need DB_URL."


def texts(daruma: Daruma, *args: str) -> list[str]:
    return [each["text"] for each in daruma("memory", *args, "--json").json]


@pytest.mark.long
def test_what_a_task_stored_is_listed_searched_and_forgotten(daruma: Daruma) -> None:
    """CX-05: of its workspace, from whatever folder; what a person adds, a task recalls."""
    call = {"name": "memory_store", "args": {"text": FACT, "section": "tests"}}
    model = daruma.script(main=[{"calls": [call]}, DONE])
    daruma("run", "Look around", "--workspace", "ws", "--model", model)

    (found,) = daruma("memory", "list", "--workspace", "ws", "--json").json

    assert (found["text"], found["section"], found["role"]) == (FACT, "tests", "")
    assert texts(daruma, "search", "billing", "--workspace", "ws") == [FACT]
    assert texts(daruma, "search", "logo", "--workspace", "ws") == []
    assert texts(daruma, "list") == []
    row = daruma("memory", "list", "--workspace", "ws").out.rstrip("\n").split("\t")
    assert row == [found["id"], "common", "tests", row[3], FACT]
    daruma("memory", "forget", found["id"], "--workspace", "ws")
    assert daruma("memory", "list", "--workspace", "ws").out.strip() == "· nothing is remembered"


@pytest.mark.long
def test_where_there_is_nothing_it_is_said_who_has_memories(daruma: Daruma) -> None:
    """A task without a workspace remembers as `default`, and not for the current folder."""
    daruma("memory", "add", FACT, "--namespace", "default")
    daruma("memory", "add", FACT, "--namespace", "team 5%.x")

    told, empty = daruma("memory", "list").out.strip(), daruma("memory", "list", "--json")
    none = daruma("memory", "list", "--namespace", "")

    assert told == (
        "· nothing is remembered here; there are memories of default, 'team 5%.x': see --namespace"
    )
    assert (empty.json, none.code) == ([], 0)


def test_what_a_person_adds_is_recalled_by_the_next_task(daruma: Daruma) -> None:
    """And the run says so."""
    daruma("memory", "add", FACT, "--workspace", "ws")
    model = daruma.script(main=[{**DONE, "expect": ["<relevant_context>", FACT]}])

    said = daruma("run", "Fix the billing tests", "--workspace", "ws", "--model", model)

    assert said.code == 0
    assert "recalled 1 memory" in said.out + said.err


def test_the_current_folder_or_the_setting_says_whose(daruma: Daruma) -> None:
    """Where neither option is given."""
    daruma("memory", "add", "of the folder")
    daruma.configure("memory: {namespace: team.x}\n")
    daruma("memory", "add", "of the team", "--role", "tester")

    assert (
        texts(daruma, "list") == texts(daruma, "list", "--namespace", "team.x") == ["of the team"]
    )
    assert texts(daruma, "list", "--workspace", ".") == ["of the folder"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["forget", "abc"], "there is no memory 'abc': see `daruma memory list`"),
        (["add", " "], "the text is empty"),
        (["add", "x" * 2001], "a memory at most 2000"),
        (
            ["list", "--workspace", ".", "--namespace", "a"],
            "give one of --workspace and --namespace",
        ),
        (["search", "a", "--limit", "0"], "limit"),
    ],
)
def test_mistakes_are_told_in_a_line(daruma: Daruma, args: Sequence[str], why: str) -> None:
    """With what to do about it."""
    assert why in daruma("memory", *args).complaint


def test_on_a_terminal_a_memory_can_not_act() -> None:
    """What a model stored is drawn, not obeyed; each column has a head."""
    out = StringIO()
    paper = Paper(Console(file=out, force_terminal=True, width=80, color_system=None))
    hostile = Remembered(id="a1", text="red \x1b[2J lamp", section="s", role="tester", at=0.0)

    memory_table([hostile]).show(paper)

    assert "\x1b[2J" not in out.getvalue()
    head, row, *_ = out.getvalue().splitlines()
    assert head.split()[:3] == ["id", "role", "section"]
    assert row.split()[:4] == ["a1", "tester", "s", "1970-01-01"]


def test_elsewhere_a_memory_is_one_line() -> None:
    """Whatever stands in it: scripts cut at tabs."""
    out = StringIO()
    hostile = Remembered(id="a1", text="red\n\tlamp", section="a\tb", at=0.0)

    memory_table([hostile]).show(Paper(Console(file=out)))

    assert out.getvalue() == "a1\tcommon\ta b\t1970-01-01\tred lamp\n"
