"""Chapter 11: questions that end a turn, going on with them, and the assistant's tools."""

from typing import Any, Final

import pytest
from langgraph.store.memory import InMemoryStore
from tests.spec.face import Daruma, Run, call, calls, plan, say

from daruma import Settings, build_graph, open_postgres

ASSISTANT: Final[dict[str, Any]] = {"toolsets": ["assistant"], "time_zone": "Etc/GMT-1"}
MILK: Final = call("create_reminder", "r", title="Milk")
WHEN: Final = "When should I remind you?"


def web_search(query: str) -> str:
    """Search the web."""
    return query


class Conversation(Run):
    """A thread whose model has the assistant's tools; ``kept`` are the items that were made."""

    def __init__(self, script: Any, *own: Any, **more: Any) -> None:
        super().__init__(script)
        self.store = InMemoryStore()
        sections = {"tools": ASSISTANT} | more
        self.graph = build_graph(
            self.model,
            own,
            Settings(**sections),
            checkpointer=self.graph.checkpointer,
            store=self.store,
        )

    @property
    def kept(self) -> list[tuple[str, dict[str, Any]]]:
        found = self.store.search(("daruma", "assistant"), limit=100)
        return sorted((each.namespace[-1], each.value["fields"]) for each in found)

    @property
    def continuity(self) -> Any:
        return self.snapshot.values["continuity"]


def test_a_missing_field_ends_the_turn_with_a_question() -> None:
    """CO-01: nothing is done, and the thread keeps what was asked, by whom and what is known."""
    run = Conversation([calls(MILK)]).ask("Remind me of the milk")
    asked = run.result.to_dict()["clarification"]

    assert (run.result.status, run.result.output) == ("parked", WHEN)
    assert (asked["owning_agent"], asked["owning_sub_commander"]) == ("main", "")
    assert (asked["target_action"], asked["question"]) == ("create_reminder", WHEN)
    assert asked["partial_args"] == {"title": "Milk"}
    assert list(asked["missing_fields"]) == ["reminder_date"]
    assert asked["status"]
    assert run.snapshot.values["clarification"].question == WHEN
    assert run.kept == []


def test_the_question_outlives_the_process(postgres_url: str) -> None:
    """CO-01: the answer is taken by another one."""
    script = [calls(MILK), calls(call("create_reminder", when="2031-05-05")), say("Set.")]
    with open_postgres(postgres_url) as pg:
        Run(script, persistence=pg, tools=ASSISTANT).ask("Remind me of the milk")
    with open_postgres(postgres_url) as pg:
        run = Run(script, persistence=pg, tools=ASSISTANT).ask("on 5 May 2031")
        (item,) = pg.store.search(("daruma", "assistant"))
        assert run.result.status == "completed"

    assert item.value["fields"] == {"title": "Milk", "reminder_date": "2031-05-05"}


def test_an_answer_goes_on_with_what_was_known() -> None:
    """CO-02: the model gives only what is new; the thread is fresh after it."""
    script = [calls(MILK), calls(call("create_reminder", when="2031-05-05")), say("Set.")]
    run = Conversation(script).ask("Remind me of the milk")
    assert run.continuity.mode == "resume_after_clarification"
    run.ask("on 5 May 2031")

    assert run.kept == [("reminder", {"title": "Milk", "reminder_date": "2031-05-05"})]
    assert run.result.status == "completed"
    assert (run.continuity.status, run.result.clarification) == ("fresh", None)


@pytest.mark.parametrize("message", ["What is the capital of Peru?", "never mind"])
def test_a_new_request_makes_it_stale(message: str) -> None:
    """CO-02: it is handled as new, and the model hears nothing of the question."""
    run = Conversation([calls(MILK), say("Lima.")]).ask("Remind me of the milk").ask(message)

    assert (run.result.status, run.result.output) == ("completed", "Lima.")
    assert run.continuity.status == "stale"
    assert run.kept == []
    assert run.model.requests[-1].messages[-1].text == message


def test_an_old_snapshot_is_brought_to_the_canonical_form() -> None:
    """CO-03: only that is written; what is not understood is kept aside."""
    old = {
        "active_sub_flow": "create_reminder",
        "awaiting_user_input": "true",
        "collected_args": {"title": "Milk"},
        "missing": ["reminder_date"],
        "theme": "dark",
    }
    made = calls(call("create_reminder", when="2031-05-05"))
    in_doubt = [{"json": {"answers": True}}]
    run = Conversation({"main": [made, say("Set.")], "intake": in_doubt}).ask(
        "on 5 May 2031", continuity=old
    )
    written = repr([*run.graph.get_state_history(run.config)])

    assert run.kept == [("reminder", {"title": "Milk", "reminder_date": "2031-05-05"})]
    assert "active_sub_flow" not in written
    assert "awaiting_user_input" not in written
    assert run.snapshot.values["clarification"].extra == {"theme": "dark"}


def test_memory_can_be_a_roles_own(daruma: Daruma) -> None:
    """CO-04: an expert sees its own and the common; others see only the common."""
    goal = "Mend the parser of billing"
    assert daruma("memory", "add", f"{goal} with tabs", "--namespace", "n").code == 0
    own = ("memory", "add", f"{goal} by hand", "--role", "tester", "--namespace", "n")
    assert daruma(*own).code == 0
    phases = [{"id": each, "title": goal, "expert": each} for each in ("developer", "tester")]
    script = {
        "plan": [plan(*phases)],
        "main@developer": [say() | {"expect": ["with tabs"]}],
        "main@tester": [say() | {"expect": ["with tabs", "by hand"]}],
    }
    sections: dict[str, Any] = {"spec_review": {"enabled": False}, "memory": {"namespace": "n"}}
    with open_postgres(daruma.url) as pg:
        run = Run(script, mode="team_collab", persistence=pg, **sections).ask(goal)
        assert run.result.status == "completed"
    recalled = {each.get("member"): len(each["ids"]) for each in run.happened("memory_recalled")}

    assert (recalled["developer"], recalled["tester"]) == (1, 2)


@pytest.mark.parametrize(
    ("tool", "args", "kind", "fields"),
    [
        (
            "create_todo",
            {"title": "X", "date": "2031-05-05"},
            "todo",
            {"title": "X", "todo_date": "2031-05-05"},
        ),
        (
            "create_todo",
            {"title": "X", "due_time": "2031-05-05T09:00"},
            "schedule_task",
            {"title": "X", "due_time": "2031-05-05T09:00+01:00"},
        ),
        (
            "create_goal",
            {"title": "X", "deadline": "2031-05-05"},
            "goal",
            {"title": "X", "goal_date": "2031-05-05"},
        ),
        (
            "create_reminder",
            {"title": "X", "when": "5 May 2031"},
            "reminder",
            {"title": "X", "reminder_date": "2031-05-05"},
        ),
    ],
    ids=["todo", "promoted", "goal", "reminder"],
)
def test_the_assistants_arguments_are_canonical(
    tool: str, args: dict[str, Any], kind: str, fields: dict[str, Any]
) -> None:
    """AS-01: aliases, dates, and the one promotion: of a todo that has a time."""
    run = Conversation([calls(call(tool, "c", **args)), say()]).ask()

    assert run.kept == [(kind, fields)]


def test_a_reminder_is_canonical_before_it_is_asked_about() -> None:
    """AS-01: what the thread keeps of a call that lacks something is canonical already."""
    lacks = call("create_reminder", "c", when="5 May 2031")
    run = Conversation([calls(lacks)]).ask("Remind me on 5 May 2031")

    assert run.result.clarification is not None
    assert run.result.clarification.partial_args == {"reminder_date": "2031-05-05"}
    assert list(run.result.clarification.missing_fields) == ["title"]


def test_the_librarian_has_exactly_four_tools() -> None:
    """AS-02: whatever else there is, and nothing else can be called."""
    four = {"search_knowledge", "hybrid_search", "web_search", "get_knowledge_graph_context"}
    tools: dict[str, Any] = {
        "toolsets": ["assistant", "knowledge"],
        "profile": "librarian_retrieval",
    }
    forbidden = call("create_todo", "c", title="X", todo_date="2031-05-05")
    script = {"main": [calls(forbidden), say()], "repair": [say('{"repairs": []}')]}
    run = Conversation(script, web_search, tools=tools).ask()

    assert set(run.model.asked()[0].tools) == four
    assert run.kept == []
    assert "create_todo" in run.outputs["c"]
