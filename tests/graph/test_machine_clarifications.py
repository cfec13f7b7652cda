"""Whole runs that ask the user for what a call lacks, and go on with what they say."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import (
    RecordingModel,
    Run,
    against,
    call,
    calls,
    illegal,
    phases,
    say,
    shout,
    unclosed,
)

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import open_postgres
from daruma.state.conversation import MOST_ASKED, RESUME, Continuity

SETTINGS: dict[str, Any] = {"toolsets": ["assistant"], "time_zone": "Etc/GMT-1"}
MILK = call("create_reminder", title="Milk")
BREAD = call("create_reminder", title="Bread")
WHEN = "When should I remind you?"


class Thread(Run):
    """A thread whose model may call the assistant's tools."""

    def __init__(self, *main: Any, store: Any = None, saver: Any = None, **given: Any) -> None:
        self.store = store or InMemoryStore()
        sections = {"tools": SETTINGS | given.pop("tools", {}), **given.pop("settings", {})}
        model = RecordingModel(script={"main": [*main], **given})
        graph = build_graph(
            model, (), settings(**sections), checkpointer=saver or memory(), store=self.store
        )
        super().__init__([], graph=graph)
        self.model = model

    @property
    def kept(self) -> list[dict[str, Any]]:
        """What the assistant has kept, in the order of their titles."""
        found = self.store.search(("daruma", "assistant"), limit=100)
        return sorted((each.value["fields"] for each in found), key=str)


def test_a_missing_field_ends_the_turn_with_a_question() -> None:
    """CO-01: nothing was done, so it is parked and not completed; every call has its result."""
    run = Thread(calls(MILK)).ask("Remind me of the milk")

    asked = run.result.clarification
    assert (run.result.status, run.result.output) == ("parked", WHEN)
    assert asked is not None
    assert asked.partial_args == {"title": "Milk"}
    assert (asked.target_action, asked.missing_fields) == ("create_reminder", ("reminder_date",))
    assert (asked.owning_agent, asked.owning_sub_commander) == ("main", "")
    assert run.result.to_dict()["clarification"] == asked.to_dict()
    assert run.nodes == ["intake", "main", "main", "finish"]
    assert illegal(run.messages) == []
    assert run.kept == []


def test_the_answer_completes_the_call() -> None:
    """CO-02: with canonical arguments, though the model gives only what it was told."""
    run = Thread(calls(MILK), calls(call("create_reminder", when="tomorrow at 9")), say("Set."))
    run.ask("Remind me of the milk").ask("tomorrow at nine")

    (kept,) = run.kept
    assert (run.result.status, run.result.output) == ("completed", "Set.")
    assert kept["title"] == "Milk"
    assert kept["reminder_date"].endswith("T09:00+01:00")
    assert run.state.continuity == Continuity()
    assert run.state.clarification is not None
    assert run.state.clarification.status == "completed"
    assert run.result.clarification is None
    assert run.state.task is not None
    assert run.state.task.goal == "Remind me of the milk"
    assert unclosed(run.events) == []


@pytest.mark.parametrize("planned", [False, True])
def test_a_model_that_forgets_everything_is_helped(planned: bool) -> None:
    """The message is plainly the missing field: the call needs no argument at all.

    In a plan, too: nobody is asked for it again.
    """
    empty = {"name": "create_reminder", "args": {}}
    review = {"spec_review": {"enabled": False}}
    run = Thread(calls(MILK), calls(empty), say(), plan=[phases({"id": "a"})], settings=review)

    if planned:
        run.ask("@plan remind me of the milk").reply({"answer": "2031-05-05"})
    else:
        run.ask().ask("2031-05-05")

    assert run.result.status == "completed"
    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]


def test_the_model_is_told_what_was_asked_once() -> None:
    """The note stands behind the user's words, and is gone once the call was made."""
    run = Thread(calls(MILK), calls(call("create_reminder", when="2031-05-05")), say())
    run.ask().ask("on 5 May 2031")

    _, resumed, after = run.model.requests
    note = resumed[-1].text
    assert isinstance(resumed[-2], HumanMessage)
    assert resumed[-2].text == "on 5 May 2031"
    assert WHEN in note
    assert "'title': 'Milk', 'reminder_date': '2031-05-05'" in note
    assert not any("was asked:" in m.text for m in after if isinstance(m, HumanMessage))


@pytest.mark.parametrize(
    ("message", "mode"),
    [
        ("What is the capital of Peru?", None),
        ("never mind", None),
        ("@chat hello", None),
        ("vergiss es", None),
        ("@plan remind me tomorrow", None),
        ("tomorrow", "direct_chat"),
    ],
)
def test_another_request_is_handled_as_new(message: str, mode: str | None) -> None:
    """CO-02: the clarification is stale, and the model hears nothing of it.

    A plan goes on with no question; the mode that an application asks for is part of what it asks.
    """
    off, plan = {"spec_review": {"enabled": False}}, [phases({"id": "a"})]
    run = Thread(calls(MILK), say("Lima."), plan=plan, settings=off).ask()
    run.ask(message, **({"mode": mode} if mode else {}))

    assert run.result.status == "completed"
    assert "Lima." in run.result.output
    assert run.state.continuity == Continuity(status="stale")
    assert run.state.clarification is not None
    assert run.state.clarification.status == "stale"
    assert "was asked: " not in run.model.requests[-1][-1].text
    assert run.happened("clarification_resolved")[0]["how"] == "stale"
    assert unclosed(run.events) == []


def test_a_call_that_had_to_be_repaired_goes_on_too() -> None:
    """TL-09: its arguments are checked as any others, once the model has mended them."""
    broken = {"name": "create_reminder", "args": {"moment": "2031-05-05"}, "id": "c9"}
    mended = {"tool_call_id": "c9", "arguments": {"reminder_date": "2031-05-05"}}
    repairs = {"json": {"repairs": [mended]}}
    run = Thread(calls(MILK), calls(broken), say(), repair=[repairs]).ask().ask("2031-05-05")

    assert "repair" in run.nodes
    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"json": {"answers": True}}, "completed"),
        ({"json": {"answers": False}}, "stale"),
        (say("perhaps"), "stale"),
        (say(""), "stale"),
        ({"raise": "the provider is down"}, "stale"),
        ({"json": {"answers": "true"}}, "stale"),
    ],
)
def test_a_message_in_doubt_is_shown_to_the_auxiliary_model(said: Any, status: str) -> None:
    """Only a clear yes goes on; what it cost is on record."""
    goes_on = [calls(call("create_reminder", date="2031-05-05"))] if status == "completed" else []
    run = Thread(
        calls(MILK),
        *goes_on,
        say(),
        intake=[said] * 9,
        settings={"llm": {"requests": {"wait_seconds": 0}}},
    )
    run.ask().ask("on the day of my birthday party, the big one")

    asked = run.state.clarification
    assert asked is not None
    assert asked.status == status
    assert run.result.budgets["intake"] == 1


def test_mixed_messages_go_on_and_the_model_sees_all_of_it() -> None:
    """Two wishes in one: both calls are made."""
    run = Thread(
        calls(MILK),
        calls(call("create_reminder", date="2031-05-05"), call("create_todo", title="Book")),
        say(),
    )
    run.ask().ask("2031-05-05, and also note that I should book a table")

    assert {kept["title"] for kept in run.kept} == {"Milk", "Book"}
    assert run.result.status == "completed"


def test_another_call_of_the_same_tool_is_left_alone() -> None:
    """What it gives wins, and it is given only what it can not do without."""
    first = call("create_reminder", title="Milk", notes="two bottles")
    other = call("create_reminder", title="Bread", date="2031-05-05")
    run = Thread(calls(first), calls(other), say("Bread is noted."))
    run.ask().ask("tomorrow")

    assert run.kept == [{"title": "Bread", "reminder_date": "2031-05-05"}]


def test_two_calls_are_asked_for_in_one_question() -> None:
    """None is lost: each gets its own title, in their order."""
    one, two = (call("create_reminder", date=f"2031-05-0{n}") for n in (5, 6))
    run = Thread(calls(MILK, BREAD), calls(one, two), say()).ask()
    asked = run.result.output

    run.ask("on 5 May 2031, the bread a day later")

    assert asked == f"Milk: {WHEN}\nBread: {WHEN}"
    assert run.kept == [
        {"title": "Bread", "reminder_date": "2031-05-06"},
        {"title": "Milk", "reminder_date": "2031-05-05"},
    ]


def test_the_one_of_two_that_is_not_gone_on_with_stays_open() -> None:
    """The model asks on in its own words; the next answer is for that one."""
    run = Thread(
        calls(MILK, BREAD),
        calls(call("create_reminder", title="Milk", date="2031-05-05")),
        say("And the bread?"),
        calls(call("create_reminder", date="2031-05-06")),
        say(),
    )
    run.ask().ask("2031-05-05 for the milk")
    left = run.result.clarification
    run.ask("2031-05-06")

    assert left is not None
    assert (left.partial_args, left.question) == ({"title": "Bread"}, "And the bread?")
    assert [each["title"] for each in run.kept] == ["Bread", "Milk"]
    assert run.result.status == "completed"
    assert unclosed(run.events) == []


def test_what_is_still_in_doubt_is_asked_for_again() -> None:
    """With what was said; and the third time is the last: then the task has failed."""
    vague = calls(call("create_reminder", when="tomorrow morning"))
    run = Thread(calls(MILK), *[vague] * MOST_ASKED).ask()
    for _ in range(MOST_ASKED - 1):
        run.ask("tomorrow morning")
        assert run.result.output == f"{WHEN} ('tomorrow morning' leaves it open.)"
        assert run.result.status == "parked"
    run.ask("tomorrow morning")

    assert run.result.status == "failed"
    assert "asked 3 times for reminder_date, and it is still missing" in run.result.output
    assert run.kept == []
    assert unclosed(run.events) == []


def test_a_model_that_only_talks_has_done_nothing() -> None:
    """Its words are the answer, and the question stays open; not for ever."""
    run = Thread(calls(MILK), *[say("Noted!")] * MOST_ASKED).ask()
    statuses = [run.ask("tomorrow").result.status for _ in range(MOST_ASKED)]

    assert statuses == ["parked", "parked", "failed"]
    assert run.kept == []


def test_an_empty_answer_leaves_the_question_open() -> None:
    """It is refused as any empty message is; the next one is the answer."""
    run = Thread(calls(MILK), calls(call("create_reminder", date="2031-05-05")), say())
    run.ask().ask("  ")
    refused = run.result.status
    run.ask("2031-05-05")

    assert refused == "failed"
    assert run.result.status == "completed"
    assert unclosed(run.events) == []


def test_an_empty_message_does_not_begin_a_task_that_failed_anew() -> None:
    """Also where the question was answered, and the turn then failed: it is refused as any."""
    down = {"raise": "the provider is down"}
    run = Thread(
        calls(MILK),
        *[down] * 9,
        settings={"llm": {"requests": {"wait_seconds": 0}}},
    )
    run.ask().ask("2031-05-05")
    before = len(run.model.requests)

    run.ask("  ")

    assert run.result.status == "failed"
    assert "the message is empty" in run.result.output
    assert len(run.model.requests) == before


def test_a_question_that_a_plan_left_behind_is_not_taken_up() -> None:
    """The model had the answer and made no call: the next message is a request of its own."""
    off = {"verification": {"enabled": False}, "spec_review": {"enabled": False}}
    run = Thread(calls(MILK), say("Noted."), say("Lima."), plan=[phases({"id": "a"})], settings=off)
    run.ask("Remind me", mode="plan_exec").reply({"answer": "Hm."})

    run.ask("What is the capital of Peru?", mode="direct_chat")

    assert run.state.task is not None
    assert run.state.task.goal == "What is the capital of Peru?"
    assert run.state.task.mode == "direct_chat"
    assert "was asked: " not in run.model.requests[-1][-1].text
    assert run.state.clarification is not None
    assert run.state.clarification.status == "stale"
    assert unclosed(run.events) == []


@pytest.mark.parametrize("message", ["tomorrow " * 5000, "\U0001f37c\u202e\0\u200b", "明天" * 200])
def test_any_answer_is_borne(message: str) -> None:
    """Huge, or of odd characters: the auxiliary model is asked, shown its beginning."""
    run = Thread(calls(MILK), say("Hm."), intake=[{"json": {"answers": False}}]).ask().ask(message)

    assert run.result.status == "completed"
    assert all(len(m.text) < 3000 for m in run.model.requests[1])


def test_the_other_calls_of_an_answer_run_as_ever() -> None:
    """An approval is asked for first, then the user; each call has its one result."""
    run = Thread(calls(MILK, call("create_todo", title="Book")), tools={"policy": CONFIRM}).ask()
    waiting = run.question.value["type"]
    run.approve()

    results = [m.text for m in run.messages if isinstance(m, ToolMessage)]
    assert waiting == "approval_request"
    assert run.result.status == "parked"
    assert run.kept == [{"title": "Book"}]
    assert results[-1] == f"Not run: the user was asked: {WHEN}"
    assert illegal(run.messages) == []


CONFIRM = {"create_todo": "confirm"}


def test_what_is_denied_by_policy_is_not_asked_for() -> None:
    """TL-12: the policy goes first."""
    run = Thread(calls(MILK), say("No."), tools={"policy": {"create_reminder": "deny"}}).ask()

    assert (run.result.status, run.result.output) == ("completed", "No.")


def test_an_approval_comes_once_nothing_is_missing() -> None:
    """And shows the canonical arguments."""
    run = Thread(
        calls(MILK),
        calls(call("create_reminder", when="2031-05-05")),
        say(),
        tools={"policy": {"create_reminder": "confirm"}},
    )
    run.ask().ask("2031-05-05")
    shown = run.question.value["approvals"][0]["args"]
    run.approve()

    assert shown == {"title": "Milk", "reminder_date": "2031-05-05"}
    assert run.kept == [shown]


def test_what_was_tried_and_failed_is_not_asked_for_again() -> None:
    """The call was made: what came of it is the model's to tell."""
    run = Thread(
        calls(call("create_schedule_task", notes="cold")),
        calls(call("create_schedule_task", title="Milk")),
        say("It could not be kept."),
    )
    run.ask().ask("Milk")

    assert run.kept == []
    assert run.result.status == "completed"
    assert run.state.continuity == Continuity(status="stale")


@pytest.mark.parametrize("mode", ["plan_exec", "team_collab"])
def test_in_a_plan_the_question_is_an_interrupt(mode: str) -> None:
    """There no turn can end: the answer goes to the model, whose next call goes on."""
    expert = {"expert": "developer"} if mode == "team_collab" else {}
    main = [calls(MILK), calls(call("create_reminder", date="2031-05-05")), say()]
    off = {"verification": {"enabled": False}, "spec_review": {"enabled": False}}
    run = Thread(*main, **{"main@a": main}, plan=[phases({"id": "a", **expert})], settings=off).ask(
        mode=mode
    )
    question = run.question.value
    run.reply({"answer": "on 5 May 2031"})

    assert (question["type"], question["question"]) == ("question", WHEN)
    assert run.result.status == "completed"
    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]


def test_in_a_plan_too_the_third_time_is_the_last() -> None:
    """Then the phase has failed; a model that makes no other calls is found to loop by then."""
    off = {"verification": {"enabled": False}, "spec_review": {"enabled": False}}
    again = [calls(call("create_reminder", title="Milk", notes=str(n))) for n in range(4)]
    run = Thread(*again, plan=[phases({"id": "a"})], recovery=[against("give-up")], settings=off)
    run.ask(mode="plan_exec")
    for _ in range(MOST_ASKED):
        run.reply({"answer": "Hm."})

    assert run.result.status == "failed"
    assert "the user was asked" in run.result.output
    assert len(run.happened("clarification_request")) == MOST_ASKED
    assert unclosed(run.events) == []


@pytest.mark.parametrize("workspace", [True, False])
def test_a_workspace_makes_no_difference(tmp_path: Any, workspace: bool) -> None:
    """Verification is skipped for a turn that only asks."""
    place = {"workspace": str(tmp_path)} if workspace else {}
    run = Thread(
        calls(MILK),
        calls(call("create_reminder", date="2031-05-05")),
        say(),
        settings={"verification": {"enabled": True}},
    )
    run.ask("Remind me", **place)
    asked = [*run.nodes]
    run.ask("2031-05-05")

    assert "verify" not in asked
    assert "verify" in run.nodes
    assert run.result.status == "completed"


def test_a_thread_that_is_forked_goes_by_its_own_history() -> None:
    """Before the answer the question is open again, and may be answered otherwise."""
    run = Thread(calls(MILK), calls({"name": "create_reminder", "args": {}}), say())
    parked = run.ask().snapshot.config
    run.ask("2031-05-05")
    run.config = parked
    run.ask("2032-06-06")

    assert [each["reminder_date"] for each in run.kept] == ["2031-05-05", "2032-06-06"]


@pytest.mark.parametrize(
    "snapshot",
    [
        {
            "active_sub_flow": "create_reminder",
            "awaiting_user_input": "true",
            "collected_args": {"title": "Milk"},
            "missing": ["reminder_date"],
            "theme": "dark",
        },
        {"pendingAction": {"tool": "create_reminder", "slots": {"title": "Milk"}}, "theme": "dark"},
    ],
)
def test_an_old_snapshot_is_gone_on_with(snapshot: dict[str, Any]) -> None:
    """CO-03: only the canonical form is written, and what is unknown is kept."""
    run = Thread(calls(call("create_reminder", date="2031-05-05")), say(), intake=[YES] * 2)
    run.ask("on 2031-05-05", continuity=snapshot)

    written = repr([*run.graph.get_state_history(run.config)])
    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]
    assert run.state.clarification is not None
    assert run.state.clarification.extra == {"theme": "dark"}
    assert not any(old in written for old in ("active_sub_flow", "pendingAction", "slots"))
    assert unclosed(run.events) == []


YES = {"json": {"answers": True}}


def test_a_threads_own_question_goes_before_a_snapshot() -> None:
    """What an application kept is older."""
    run = Thread(calls(MILK), calls(call("create_reminder", date="2031-05-05")), say()).ask()
    run.ask("2031-05-05", continuity={"pending_action": "create_goal"})

    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]


@pytest.mark.parametrize("before", [["2031-05-05"], ["What is the capital of Peru?"]])
def test_a_snapshot_is_read_where_a_threads_own_question_is_past(before: list[str]) -> None:
    """Answered or stale, it stands in nobody's way."""
    goes_on = [calls(call("create_reminder", date="2031-05-05"))] if "2031" in before[0] else []
    goal = calls(call("create_goal", date="2031-06-06"))
    run = Thread(calls(MILK), *goes_on, say(), goal, say()).ask().ask(before[0])
    kept = {"pending_action": "create_goal", "slots": {"title": "Run"}, "missing": ["goal_date"]}
    run.ask("2031-06-06", continuity=kept)

    assert {"title": "Run", "goal_date": "2031-06-06"} in run.kept


def test_what_a_snapshot_held_beside_is_kept_while_questions_come_and_go() -> None:
    """CO-03: unknown fields are not lost with the first question of the thread's own."""
    call_made = calls(call("create_reminder", date="2031-05-05"))
    run = Thread(say(), calls(MILK), call_made, say()).ask("Hello", continuity={"theme": "dark"})
    extras = [run.ask(text).state.continuity for text in ("Remind me of milk", "2031-05-05")]

    assert [each.extra for each in extras if isinstance(each, Continuity)] == [
        {"theme": "dark"}
    ] * 2


def test_a_raw_snapshot_in_an_old_checkpoint_is_read() -> None:
    """CO-03: on the next message it is in the form of today."""
    run = Thread(say(), calls(call("create_reminder", date="2031-05-05")), say()).ask()
    old = {"pending_action": "create_reminder", "slots": {"title": "Milk"}, "missing": ["date"]}
    run.graph.update_state(run.config, {"continuity": old}, as_node="finish")
    run.ask("2031-05-05")

    assert run.kept == [{"title": "Milk", "reminder_date": "2031-05-05"}]
    assert isinstance(run.state.continuity, Continuity)


async def invoked(graph: Any, text: str, config: RunnableConfig) -> Any:
    return graph.invoke({"messages": [("user", text)]}, config)["result"]


async def streamed(graph: Any, text: str, config: RunnableConfig) -> Any:
    given = {"messages": [("user", text)]}
    return [part async for part in graph.astream(given, config, stream_mode="values")][-1]["result"]


@pytest.mark.long
@pytest.mark.parametrize("way", [invoked, streamed])
async def test_each_turn_may_have_a_process_of_its_own(
    way: Callable[..., Any], postgres_url: str
) -> None:
    """MO-09 and DU-02: nothing but Postgres is there between the turns."""
    store, config = InMemoryStore(), RunnableConfig(configurable={"thread_id": "t"})
    script = [calls(MILK), calls(call("create_reminder", when="2031-05-05")), say("Set.")]
    results = []
    for text in ("Remind me", "on 2031-05-05"):
        with open_postgres(postgres_url) as postgres:
            graph = build_graph(
                RecordingModel(script={"main": script, "intake": [YES]}),
                settings=settings(tools=SETTINGS),
                persistence=postgres,
                store=store,
            )
            results.append(await way(graph, text, config))
            state = graph.get_state(config).values if way is invoked else {}

    assert [each.status for each in results] == ["parked", "completed"]
    assert [e.value["fields"] for e in store.search(("daruma", "assistant"))] == [
        {"title": "Milk", "reminder_date": "2031-05-05"}
    ]
    assert way is streamed or state["continuity"].mode != RESUME


# --- What a tool-loop step costs: as many supersteps as in the plainest agent.

LOOPS = 5
SCRIPT = [*(calls("shout", call(text=f"hello {n}")) for n in range(LOOPS)), say()]


def plain_agent() -> Any:
    """Model, tools, model: nothing else."""
    model = ScriptedChatModel(script={"main": SCRIPT})

    def ask(state: MessagesState) -> dict[str, list[AnyMessage]]:
        number = sum(message.type == "ai" for message in state["messages"])
        metadata = {"daruma_role": "main", "daruma_call": number}
        return {"messages": [model.invoke(state["messages"], {"metadata": metadata})]}

    def run(state: MessagesState) -> dict[str, list[AnyMessage]]:
        asked: Any = state["messages"][-1]
        return {
            "messages": [
                ToolMessage(shout(**call["args"]), tool_call_id=call["id"])
                for call in asked.tool_calls
            ]
        }

    def after(state: MessagesState) -> str:
        asked: Any = state["messages"][-1]
        return "run" if asked.tool_calls else END

    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", ask).add_node("run", run).add_edge(START, "ask").add_edge("run", "ask")
    return graph.add_conditional_edges("ask", after, ["run", END]).compile()


def supersteps(graph: Any, given: Any, config: Any) -> int:
    parts = list(graph.stream(given, config, stream_mode="debug"))
    return len({part["step"] for part in parts if part["type"] == "task"})


def test_a_tool_loop_step_costs_no_more_supersteps_than_a_plain_agents() -> None:
    """With nothing to repair and nobody to ask: two for each step of the loop."""
    given = {"messages": [("user", "Do it")]}
    run = Run({"main": SCRIPT}, tools=[shout])
    plain = supersteps(plain_agent(), given, {})

    ours = supersteps(run.graph, given, run.config)

    around = len({"intake", "finish"})
    assert plain == 2 * LOOPS + 1
    assert ours - around == plain
    assert run.result.status == "completed"
