"""``daruma pitfalls`` shows what was learned, and lets a person put it right."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.daruma_command import DONE, Daruma, Said
from tests.tools.evolution.ended_tasks import on_record

from daruma.graph.command_line._output import Paper
from daruma.graph.command_line._pitfalls import table_of
from daruma.graph.storage import aopen_postgres
from daruma.state.lessons import Experience, KnownPitfall, Lessons, Pitfall, Setback
from daruma.tools.evolution import Pitfalls, Variant, Variants
from daruma.tools.evolution._pitfalls import HALF_LIFE

GOAL = "Fix the rounding of the invoices"


def an_experience(task: str, owner: str, **changes: Any) -> Experience:
    given: dict[str, Any] = {"mode": "react", "status": "failed", "goal": GOAL, "at": time.time()}
    return Experience(task_id=task, owner=owner, **given | changes)


def keep(
    daruma: Daruma, text: str = "assert 3 == 4", *, owner: str = "", ended: bool = True,
    shared: bool = False, **changes: Any,
) -> str:  # fmt: skip
    """Keep a failed task in the command's database; return the id of its pitfall."""
    owner = owner or str(daruma.folder)
    setback = Setback(kind="check", actor="main", signature=text, text=text, ended=ended)
    ended_task = an_experience(f"{owner}/{text}", owner, **changes)

    async def put() -> Pitfall:
        async with aopen_postgres(daruma.url) as postgres:
            own = Pitfalls(postgres.store, owner, shared=shared)
            return await on_record(own, setback, ended_task, 0.5)

    return asyncio.run(put()).id


def texts(daruma: Daruma, *args: str) -> list[str]:
    return [each["text"] for each in daruma("pitfalls", "list", *args, "--json").json]


def test_they_are_listed_shown_and_forgotten(daruma: Daruma) -> None:
    """EV-04: each with its actor, its level and how sure it is by now."""
    id_ = keep(daruma)

    row = daruma("pitfalls", "list").out.rstrip("\n").split("\t")
    shown = daruma("pitfalls", "show", id_)
    whole = daruma("pitfalls", "show", id_, "--json").json
    gone = daruma("pitfalls", "forget", id_)

    assert row == [id_, "high", "main", "0.60", "1", row[5], "assert 3 == 4"]
    for said in ("assert 3 == 4", "confidence 0.60", GOAL, "met it", "seen in 1 task,"):
        assert said in shown.out
    assert [each["how"] for each in whole["evidence"]] == ["failed"]
    assert "forgotten: assert 3 == 4" in gone.out
    assert daruma("pitfalls", "list").out.strip() == "· there are no pitfalls"


def test_the_level_is_that_of_now(daruma: Daruma) -> None:
    """EV-03: one that was not seen for long is marked as not sure, and shown when asked for."""
    keep(daruma, "new")
    keep(daruma, "mended", ended=False)
    keep(daruma, "old", at=time.time() - HALF_LIFE)

    assert texts(daruma) == ["new", "mended"] or texts(daruma) == ["mended", "new"]
    assert texts(daruma, "--level", "high") == ["new"]
    assert texts(daruma, "--level", "medium") == ["mended"]
    assert texts(daruma, "--level", "low") == ["old"]
    assert set(texts(daruma, "--all")) == {"new", "mended", "old"}
    assert "1 more that are not sure enough: see --all" in daruma("pitfalls", "list").out


def test_where_none_are_of_a_level_it_is_not_said_that_there_are_none(daruma: Daruma) -> None:
    """Nor where none are sure; who lists those of a level is not told of others."""
    keep(daruma, "old", at=time.time() - HALF_LIFE)
    unsure = daruma("pitfalls", "list").out.strip()
    none_high = daruma("pitfalls", "list", "--level", "high").out.strip()

    assert unsure == "· there are 1, none of them sure enough: see --all"
    assert none_high == "· there are 1, none of them high: see --all"
    assert len(daruma("pitfalls", "list", "--level", "low").out.splitlines()) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("command", ["show", "forget"])
def test_what_another_workspace_has_is_answered_as_what_does_not_exist(
    daruma: Daruma, command: str, shared: bool
) -> None:
    """EV-04: letter for letter, and it stays where it is."""
    id_ = keep(daruma, owner="/elsewhere", shared=shared)

    said = daruma("pitfalls", command, id_).complaint
    unknown = daruma("pitfalls", command, "0" * 12 + "-" + "0" * 8).complaint

    assert said.replace(id_, "ID") == unknown.replace("0" * 12 + "-" + "0" * 8, "ID")
    assert "see `daruma pitfalls list --all`" in said
    assert texts(daruma, "--namespace", "/elsewhere") == ["assert 3 == 4"]


def test_where_there_is_nothing_it_is_said_who_has_some(daruma: Daruma) -> None:
    """A task without a workspace learns as `default`, and not for the current folder."""
    keep(daruma, owner="default")
    keep(daruma, owner="/elsewhere")

    told, empty = daruma("pitfalls", "list").out.strip(), daruma("pitfalls", "list", "--json")

    named = "some of /elsewhere, default: see --workspace and --namespace"
    assert told == f"· there are no pitfalls here; there are {named}"
    assert (empty.json, empty.code) == ([], 0)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (
            ["show", "abc"],
            "there is no pitfall 'abc' here: see `daruma pitfalls list --all`",
        ),
        (["list", "--level", "top"], "there is no level 'top': high, medium, low"),
        (
            ["list", "--workspace", ".", "--namespace", "a"],
            "give one of --workspace and --namespace",
        ),
        (["list", "--limit", "0"], "limit"),
    ],
)
def test_mistakes_are_told_in_a_line(daruma: Daruma, args: Sequence[str], why: str) -> None:
    """With what to do about it."""
    assert why in daruma("pitfalls", *args).complaint


@pytest.mark.long
def test_without_a_database_it_is_told_in_a_line(daruma: Daruma) -> None:
    """And nothing is shown."""
    daruma.setenv("DARUMA_POSTGRES_URL", "postgresql://127.0.0.1:1/none")

    said = daruma("pitfalls", "list")

    assert said.code != 0
    assert len(said.err.splitlines()) == 1


def test_on_a_terminal_a_pitfall_can_not_act() -> None:
    """What a tool said is drawn, not obeyed."""
    out = StringIO()
    paper = Paper(Console(file=out, force_terminal=True, width=80, color_system=None))
    hostile = Pitfall(
        id="a1", owner="o", actor="m\x1bain", kind="tool", signature="s", text="red \x1b[2J\n\tlamp"
    )

    table_of([hostile], everything=True).show(paper)

    assert "\x1b" not in out.getvalue()


def test_what_is_told_names_how_it_went(daruma: Daruma) -> None:
    """EV-04: a task that was told, and met it all the same."""
    id_ = keep(daruma)
    owner = str(daruma.folder)
    known = Lessons(task_id="t/2", pitfalls=(KnownPitfall(id=id_, text="assert 3 == 4"),))
    setback = Setback(
        kind="check", actor="main", signature="assert 3 == 4", text="assert 3 == 4", ended=True
    )

    async def again() -> None:
        async with aopen_postgres(daruma.url) as postgres:
            own = Pitfalls(postgres.store, owner)
            await on_record(own, setback, an_experience("t/2", owner, lessons=known), 0.5)

    asyncio.run(again())

    assert "t/2 was told of it, and met it again" in daruma("pitfalls", "show", id_).out


def test_who_forgets_a_pitfall_is_told_what_was_made_of_it(daruma: Daruma) -> None:
    """EV-03: an addition to a prompt outlives it; one that was withdrawn already needs no word."""
    id_ = keep(daruma)
    made = Variant(
        id="v1", owner=str(daruma.folder), actor="main", place="system", text="Round last.",
        advice="Round last.", status="testing", pitfalls=(id_,),
    )  # fmt: skip

    async def keep_both() -> None:
        async with aopen_postgres(daruma.url) as postgres:
            variants = Variants(postgres.store, made.owner)
            await variants.put(made)
            await variants.put(replace(made, id="v2", status="withdrawn"))

    asyncio.run(keep_both())
    gone = daruma("pitfalls", "forget", id_)

    assert "an addition to a prompt was made of it, and stays" in gone.out
    assert "withdraws v1" in " ".join(gone.out.split())
    assert "v2" not in gone.out


@pytest.mark.long
def test_the_doctor_says_whether_it_learns(daruma: Daruma) -> None:
    """In one line: observing is the default."""
    keep(daruma)

    def said() -> str:
        rows = daruma("doctor", "--json").json
        (text,) = [row["text"] for row in rows if row["name"] == "learning"]
        return str(text)

    observing = said()
    daruma.configure("evolution: {observe_only: false}\n")
    on = said()
    daruma.configure("evolution: {enabled: false}\n")

    count = "pitfalls of this folder: 1, of which high: 1"
    assert observing == f"observing, by evolution.observe_only; {count}"
    assert on == f"on; {count}"
    assert said() == "off, by evolution.enabled"


# --- What recovery would do is asked, answered and told on the command line.

UNSURE = {
    "json": {
        "strategy": "parameter-adjustment",
        "reasoning": "It may be the words.",
        "action": {"tool_name": None, "parameters": None, "escalation_message": None},
        "expected_outcome": "An answer.",
        "confidence": 0.6,
    }
}
DOWN = {"raise": "out of order"}


def waiting(daruma: Daruma, *options: str, after: Any = DONE) -> Said:
    """Run a task whose recovery is not sure of itself."""
    model = daruma.script(main=[DOWN, after], recovery=[UNSURE])
    return daruma("run", "Do it", "--model", model, "--thread", "t", *options)


def test_a_recovery_that_is_not_sure_is_shown_and_waits(daruma: Daruma) -> None:
    """RE-06: with all that it would do, and the commands that answer."""
    said = waiting(daruma)

    assert said.code == 3
    for part in ("it failed: out of order", "parameter-adjustment", "why: It may be the words."):
        assert part in said.out
    assert "daruma answer t --approve t/1:consult:0" in said.out
    assert daruma("threads").out.split("\t")[1] == "waiting"
    assert "May this be done about a failure?" in daruma("show", "t").out


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "code", "carried"),
    [
        (["--approve"], 0, "approved"),
        (["--approve", "t/1:consult:0"], 0, "approved"),
        (["--text", "Ask Ann."], 0, "instructed"),
        (["--deny", "--reason", "no"], 1, "denied"),
    ],
)
def test_a_recovery_is_answered(daruma: Daruma, answer: list[str], code: int, carried: str) -> None:
    """RE-06: yes, no, or what a person would rather have done; ``show`` tells it afterwards."""
    waiting(daruma, after=DONE | ({"expect": ["Ask Ann."]} if "--text" in answer else {}))

    assert daruma("answer", "t", *answer, "--json").code == code
    assert f"parameter-adjustment, {carried}" in daruma("show", "t").out


def test_yes_does_not_answer_a_recoverys_question(daruma: Daruma) -> None:
    """RE-06: below the second threshold a person has to say."""
    lost = {"json": UNSURE["json"] | {"confidence": 0.2}}
    model = daruma.script(main=[DOWN, DONE], recovery=[lost])
    said = daruma("run", "Do it", "--model", model, "--thread", "t", "--yes", "--json")

    assert said.code == 3
    assert said.json["interrupts"][0]["value"]["type"] == "question"
    assert daruma("answer", "t", "--approve").complaint.endswith("--text 'your answer'")
    assert daruma("answer", "t", "--text", "Go on.").code == 0


@pytest.mark.long
def test_a_recovery_whose_failure_ended_the_task_did_not_work(daruma: Daruma) -> None:
    """RE-08: ``show`` tells it as the result does."""
    (daruma.folder / "ws").mkdir(exist_ok=True)
    same, other = (
        {"calls": [{"name": "search", "args": {"pattern": pattern}}]} for pattern in ("a", "b")
    )
    script = daruma.script(main=[same, same, same, other, same, same, same], recovery=[DONE])
    ended = daruma(
        "run", "Do it", "--model", script, "--thread", "t", "--workspace", "ws", "--json"
    )

    shown = daruma("show", "t", "--json").json
    assert [each["worked"] for each in ended.json["recoveries"]] == [False]
    assert [each["worked"] for each in shown["recoveries"]] == [False]
