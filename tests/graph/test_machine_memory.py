"""What earlier tasks stored is recalled by later ones, in whole runs of the machine."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, PutOp, Result
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import (
    RecordingModel,
    Run,
    call,
    calls,
    fall,
    illegal,
    phases,
    say,
    shout,
)
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.storage.postgres import open_postgres
from daruma.tools.memory.memories import Memories, checked

FACT = "The billing tests need DB_URL."
STORE = calls(call("memory_store", text=FACT))
GOAL = "Fix the billing tests"


class Silent(InMemoryStore):
    """A store whose searches fail."""

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        raise ConnectionError("the store is away")


def machine(
    script: Any,
    store: BaseStore | None,
    *,
    saver: BaseCheckpointSaver[Any] | None = None,
    **sections: Any,
) -> Run:
    """A thread of a machine over a store."""
    model = RecordingModel(script=script)
    given = settings(spec_review={"enabled": False}, **sections)
    saver = saver or memory()
    run = Run({}, graph=build_graph(model, [shout, fall], given, checkpointer=saver, store=store))
    run.model = model
    return run


def holding(*texts: str, owner: str = "default", role: str = "") -> InMemoryStore:
    """A store that an earlier task has left."""
    store = InMemoryStore()
    for text in texts:
        kept = checked(text, role=role)
        namespace = ("daruma", "memory", owner, role or "common")
        store.put(namespace, kept.id, {"text": kept.text, "at": 0.0, "role": role})
    return store


def blocks(request: Sequence[BaseMessage]) -> list[str]:
    return [str(m.text) for m in request if str(m.text).startswith("<relevant_context>")]


@pytest.mark.parametrize("mode", ["direct_chat", "react", "plan_exec", "team_collab"])
def test_every_request_of_a_task_begins_with_what_was_recalled(mode: str) -> None:
    """CX-05: one block, the same each time, behind the prompt and before the conversation."""
    script = {
        "plan": [phases({"id": "a", "expert": "developer"})],
        "main": [say()] if mode == "direct_chat" else [calls("shout"), calls("shout"), say()],
    }
    run = machine(script, holding(FACT, "The logo is blue.")).ask(GOAL, mode=mode)

    assert run.result.status == "completed"
    heads = [request[1] for request in run.model.requests]
    assert len({str(head.text) for head in heads}) == 1
    assert FACT in str(heads[0].text)
    assert "logo" not in str(heads[0].text)
    assert all(len(blocks(request)) == 1 for request in run.model.requests)
    assert [illegal(request) for request in run.model.requests] == [[]] * len(heads)
    ids = [event["ids"] for event in run.happened("memory_recalled")]
    assert ids == [(checked(FACT).id,)] * (2 if mode == "team_collab" else 1)


def test_one_task_remembers_for_the_next_on_another_thread() -> None:
    """CX-05: and the block is gone again for a task that it does not fit."""
    store = InMemoryStore()
    first = machine({"main": [STORE, say()]}, store).ask("Look around")
    second = machine({"main": [say()]}, store).ask(GOAL)
    third = machine({"main": [say()]}, store).ask("Draw the logo")

    assert first.messages[2].text.startswith("Remembered for everybody as ")
    assert blocks(first.model.requests[-1]) == []
    assert FACT in blocks(second.model.requests[0])[0]
    assert blocks(third.model.requests[0]) == []


def test_a_later_task_of_the_thread_recalls_anew() -> None:
    """What fitted the task before is not left standing."""
    run = machine({"main": [say(), say()]}, holding(FACT)).ask(GOAL).ask("Draw the logo")

    assert [len(blocks(request)) for request in run.model.requests] == [1, 0]
    assert run.state.recalled is not None
    assert run.state.recalled.task_id == "t/2"


def test_an_expert_is_told_what_is_for_its_role() -> None:
    """CO-04: by its phase, from the memories of the task's workspace, not of its own worktree."""
    script = {
        "plan": [
            phases(
                {"id": "a", "expert": "developer", "title": "Draw the billing icon"},
                {"id": "b", "expert": "tester", "title": "Try the billing tests"},
            )
        ],
        "main@a": [say()],
        "main@b": [say()],
    }
    store = holding("billing tests run by hand only", role="tester")
    run = machine(script, store).ask("Mend it", mode="team_collab")

    told = {len(blocks(request)): request for request in run.model.requests[1:]}
    assert set(told) == {0, 1}
    assert "Try the billing tests" in str(told[1][-1].text)
    assert [event["member"] for event in run.happened("memory_recalled")] == ["b"]


def test_members_share_the_memories_of_the_tasks_workspace(tmp_path: Path) -> None:
    """Their worktrees are other folders, and nobody else would find what they store."""
    store = InMemoryStore()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a")
    script = {"plan": [phases({"id": "a", "expert": "developer"})], "main": [STORE, say()]}
    run = machine(script, store).ask("Mend", mode="team_collab", workspace=str(tmp_path / "ws"))

    assert run.result.status == "completed"
    (item,) = store.search(("daruma", "memory"))
    assert item.namespace == ("daruma", "memory", str(tmp_path / "ws"), "common")
    assert (item.value["expert"], item.value["task"]) == ("developer", "t/1")


def test_a_store_that_fails_leaves_a_note() -> None:
    """The task goes on without its memories."""
    run = machine({"main": [say()]}, Silent()).ask(GOAL)

    note = "no memories were recalled: the store is away"
    assert (run.result.status, run.result.notes) == ("completed", (note,))
    assert [event["note"] for event in run.happened("memory_recalled")] == [note]


def test_what_was_recalled_stays_over_a_stop() -> None:
    """DU-01: forgotten meanwhile, it still stands in the requests of the task, as it did before."""
    store, saver = holding(FACT), memory()
    script = {"main": [calls("shout"), say()]}
    stopped = machine(script, store, saver=saver)
    stopped.send({"messages": [HumanMessage(GOAL)]}, interrupt_before=["tool"])
    store.delete(("daruma", "memory", "default", "common"), checked(FACT).id)

    again = machine(script, store, saver=saver).send(None)

    assert again.result.status == "completed"
    before, after = (blocks(run.model.requests[-1]) for run in (stopped, again))
    assert before == after
    assert len(after) == 1


def test_storing_that_was_cut_short_is_made_again_and_stores_one() -> None:
    """DU-06: nobody is asked about it."""

    class Deadly(InMemoryStore):
        """A store that ends the run right after it has kept something, once."""

        died = False

        @override
        async def abatch(self, ops: Any) -> list[Result]:
            ops = list(ops)
            results = await super().abatch(ops)
            if isinstance(ops[0], PutOp) and not self.died:
                self.died = True
                raise asyncio.CancelledError
            return results

    store, saver, script = Deadly(), memory(), {"main": [STORE, say()]}
    killed = machine(script, store, saver=saver)
    with pytest.raises(asyncio.CancelledError):
        killed.ask("Look around")

    again = machine(script, store, saver=saver).send(None)

    assert again.result.status == "completed"
    assert [event["how"] for event in again.happened("call_settled")] == ["again"]
    assert [item.value["text"] for item in store.search(("daruma", "memory"))] == [FACT]


def test_it_is_kept_in_postgres(postgres_url: str) -> None:
    """CX-05: another process finds it by its words, with the store's own scores."""
    script = {"main": [STORE, calls(call("memory_store", text="The logo is blue.")), say()]}
    looking = {"messages": [HumanMessage("Look around")]}
    with open_postgres(postgres_url) as pg:
        first: Any = build_graph(RecordingModel(script=script), settings=settings(), persistence=pg)
        first.invoke(looking, {"configurable": {"thread_id": "a"}})
    model = RecordingModel(script={"main": [calls(call("memory_search", query="logo")), say()]})
    with open_postgres(postgres_url) as pg:
        second: Any = build_graph(model, settings=settings(), persistence=pg)
        out = second.invoke({"messages": [("user", GOAL)]}, {"configurable": {"thread_id": "b"}})

    assert [FACT in block and "logo" not in block for block in blocks(model.requests[0])] == [True]
    assert "The logo is blue." in out["messages"][2].text
    assert FACT not in out["messages"][2].text


async def test_it_works_by_astream_too() -> None:
    """The same requests, and the same end."""
    store = holding(FACT)
    model = RecordingModel(script={"main": [STORE, say()]})
    graph = build_graph(model, settings=settings(), checkpointer=memory(), store=store)
    request = {"messages": [("user", GOAL)]}

    parts = [p async for p in graph.astream(request, {"configurable": {"thread_id": "t"}})]

    assert "finish" in parts[-1]
    assert [len(blocks(each)) for each in model.requests] == [1, 1]
    assert len(await Memories(store, "default").all()) == 1


def test_without_a_store_nothing_is_different() -> None:
    """Nothing is recalled, and the tools are not there."""
    script = {"main": [calls(call("memory_store", text="a")), say()]}
    run = machine(script, None, tools={"name_repair_attempts": 0}).ask(GOAL)

    assert not any(blocks(request) for request in run.model.requests)
    assert run.state.recalled is None
    assert "there is no tool 'memory_store'" in run.messages[2].text


def test_the_old_spellings_are_the_same_tools() -> None:
    """TL-05: memory.store, as other agents call it."""
    run = machine({"main": [calls(call("memory.store", text=FACT)), say()]}, holding()).ask(GOAL)

    assert run.messages[2].text.startswith("Remembered")


def test_pieces_stand_at_their_places_in_every_request() -> None:
    """CX-05: system, task and plan, for all and for one role; the head never changes."""
    prompts = {
        "style": {"text": "Answer in British English."},
        "care": {"text": "Mind the clock.", "place": "task"},
        "small": {"text": "Two phases at most.", "place": "plan"},
        "dev": {"text": "You own src.", "role": "developer"},
    }
    script = {
        "plan": [phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})],
        "main": [calls("shout"), say()],
    }
    run = machine(script, holding(FACT), prompts=prompts).ask(GOAL, mode="team_collab")

    plan, *others = run.model.requests
    assert str(plan[0].text).endswith("\n\nTwo phases at most.")
    assert [str(message.text) for message in plan[1:2]] == ["Mind the clock."]
    assert len(blocks(plan)) == 1
    heads = [request[0] for request in others]
    assert all(isinstance(head, SystemMessage) for head in heads)
    endings = {str(head.text).partition("British English.")[2] for head in heads}
    assert endings == {"", "\n\nYou own src."}
    assert len({str(head.text) for head in heads}) == 2
    assert all(str(request[1].text) == "Mind the clock." for request in others)


def test_skills_are_told_of_only_where_there_are_any(tmp_path: Path) -> None:
    """CX-05: in one line, which stays the same when a skill is added meanwhile."""
    (tmp_path / "pdf").mkdir()
    script = {"main": [calls({"name": "skills.load", "args": {"name": "pdf"}}), say()]}
    skills = {"folders": [str(tmp_path)]}
    without = machine({"main": [say()]}, None, skills=skills).ask()
    (tmp_path / "pdf" / "SKILL.md").write_text("Use the form.")
    there = machine(script, None, skills=skills).ask()

    assert "skills" not in str(without.model.requests[0][0].text)
    heads = [str(request[0].text) for request in there.model.requests]
    assert heads[0] == heads[1]
    assert "see what skills_list shows" in heads[0]
    assert there.messages[2].text == "Use the form."


def test_the_tail_of_a_path_is_answered_with_the_whole_one(tmp_path: Path) -> None:
    """CX-06: the model goes on with what it was told."""
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "a.py").write_text("import a\n")

    def view(path: str) -> dict[str, Any]:
        return call("str_replace_editor", command="view", path=path)

    script = {
        "main": [
            calls(view("a.py"), call("search", pattern="import")),
            calls(view("pkg/a.py")),
            calls(view("src/pkg/a.py")),
            say(),
        ]
    }
    run = machine(script, None).ask("Look", workspace=str(tmp_path))

    said = [m.text for m in run.messages if m.type == "tool"]
    assert said[0].endswith("no such file or directory: list the directory to see what is there")
    assert said[2] == (
        "Error: pkg/a.py: no such file or directory; it was shown as src/pkg/a.py: use it whole"
    )
    assert "import a" in said[3]
