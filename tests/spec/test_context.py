"""Chapter 3: what a request holds, and how it is kept within its budget (CX)."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.store.memory import InMemoryStore
from tests.spec.face import Daruma, Request, Run, call, calls, plan, refused, say, view
from typing_extensions import override

ORDER = ["memory", "prune", "shrink", "summarise"]


def look(at: int) -> str:
    """Look at a place."""
    return f"NEEDLE-{at} " + f"Nothing else is at place {at}. " * 60


def talk(at: int) -> dict[str, Any]:
    """A turn that says much and looks once."""
    return calls(call("look", f"c{at}", at=at)) | {"say": f"I am at {at} now. " * 40}


SHORT: dict[str, Any] = {"llm": {"context_window_tokens": 1800}}
NO_TOOLS_BESIDES: dict[str, Any] = {
    "tools": {"profile": "own", "profiles": {"own": ["look"]}},
    "verification": {"enabled": False},
}


def long_run(steps: int, *, auxiliary: Any = None, tmp: Path, **more: Any) -> Run:
    """A task that outgrows its context; the summary is asked of ``auxiliary``, where there is one.

    ``more`` are other roles of the script.
    """
    llm = dict(SHORT["llm"])
    if auxiliary is not None:
        (tmp / "aux.json").write_text(json.dumps({"compress": auxiliary}))
        llm["auxiliary_model"] = f"scripted:{tmp / 'aux.json'}"
    script = {"main": [*map(talk, range(steps)), say("All is seen.")], **more}
    return Run(script, with_tools=[look], llm=llm, **NO_TOOLS_BESIDES)


def paired(request: Request) -> bool:
    """Whether each result stands behind the call that it answers, and no call is without one."""
    open_: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_:
                return False
            open_.remove(message.tool_call_id)
        elif open_:
            return False
        if isinstance(message, AIMessage):
            open_ = [str(each["id"]) for each in message.tool_calls]
    return not open_


def test_a_request_over_its_budget_is_brought_under_it_in_order(tmp_path: Path) -> None:
    """CX-01: on record with what it saved; pairs are never torn, and the history stays whole."""
    run = long_run(12, tmp=tmp_path, compress=[say("It looked at places, and saw needles.")] * 20)

    run.ask()

    costs = run.result.context_cost
    assert run.result.output == "All is seen."
    assert all(cost.before > cost.budget >= cost.after for cost in costs)
    for cost in costs:
        assert [*cost.saved] == [each for each in ORDER if each in cost.saved]
        assert sum(cost.saved.values()) > 0
    used = [each for cost in costs for each in cost.saved]
    assert used[0] == "prune"
    assert used.index("prune") < used.index("summarise")
    assert all(paired(each) for each in run.model.asked())
    assert {each["cost"]["before"] for each in run.happened("context_compacted")} == {
        cost.before for cost in costs
    }
    assert all("Nothing else" in text for text in run.outputs.values())


def test_injected_memory_goes_first() -> None:
    """CX-01: before any output of a tool is touched."""
    store = InMemoryStore()
    facts = [
        call("memory_store", text=f"Place {n}: {'a dull fact of it. ' * 30}") for n in range(5)
    ]
    budget: dict[str, Any] = {
        "llm": {"context_window_tokens": 4000},
        "verification": {"enabled": False},
    }
    Run([calls(*facts), say()], store=store, **budget).ask("Remember the place")
    script = [*(calls(call("look", f"c{n}", at=n)) for n in range(4)), say()]
    run = Run(script, store=store, with_tools=[look], **budget).ask("Look at the place")

    assert "<relevant_context>" in run.model.asked()[0].text
    assert next(iter(run.result.context_cost[0].saved)) == "memory"
    assert "<relevant_context>" not in run.model.asked()[-1].text


@pytest.mark.parametrize(
    ("auxiliary", "main", "by"),
    [
        ([say("AUX saw it.")] * 20, [say("MAIN saw it.")] * 20, "auxiliary"),
        ([say(" \n ")] * 20, [say("MAIN saw it.")] * 20, "main"),
        ([{"raise": "down"}] * 20, [say("MAIN saw it.")] * 20, "main"),
        ([say("")] * 20, [say("  ")] * 20, "rules"),
        ([{"raise": "down"}] * 20, [{"raise": "down"}] * 20, "rules"),
    ],
)
def test_a_summary_is_asked_of_the_auxiliary_model_first(
    auxiliary: Any, main: Any, by: str, tmp_path: Path
) -> None:
    """CX-02: what is blank has failed as much as what raises; the task goes on in any case."""
    run = long_run(12, tmp=tmp_path, auxiliary=auxiliary, compress=main).ask()

    assert {cost.by for cost in run.result.context_cost if cost.by} == {by}
    assert run.result.completed
    last = run.model.asked()[-1].text
    assert ("AUX saw it." in last) == (by == "auxiliary")
    assert ("MAIN saw it." in last) == (by == "main")


@pytest.mark.parametrize("named", [None, "it"])
def test_without_an_auxiliary_model_of_its_own_there_is_one_call(
    named: str | None, tmp_path: Path
) -> None:
    """CX-03: unset, or the main model by an alias: nobody is asked twice."""
    main = tmp_path / "main.json"
    script = {"main": [*map(talk, range(12)), say("All is seen.")], "compress": [say(" ")] * 20}
    main.write_text(json.dumps(script))
    llm = SHORT["llm"] | {"model_aliases": {"it": f"scripted:{main}"}}
    aliased = {"llm": llm | ({"auxiliary_model": named} if named else {})} | NO_TOOLS_BESIDES
    heard = Heard()
    run = Run([], graph=_named(f"scripted:{main}", aliased))
    run.config["callbacks"] = [heard]

    run.ask()

    summaries = [each for each in heard.calls if each.get("daruma_role") == "compress"]
    by_rules = [cost for cost in run.result.context_cost if cost.by == "rules"]
    assert by_rules
    assert len(summaries) == sum("summarise" in cost.saved for cost in run.result.context_cost)


def test_an_auxiliary_model_has_its_alias(tmp_path: Path) -> None:
    """CX-03: resolved as the main one's."""
    (tmp_path / "aux.json").write_text(json.dumps({"compress": [say("AUX saw it.")] * 20}))
    llm = SHORT["llm"] | {
        "auxiliary_model": "small",
        "model_aliases": {"small": f"scripted:{tmp_path / 'aux.json'}"},
    }
    script = [*map(talk, range(12)), say("All is seen.")]
    run = Run(script, with_tools=[look], **NO_TOOLS_BESIDES | {"llm": llm}).ask()

    assert {cost.by for cost in run.result.context_cost if cost.by} == {"auxiliary"}


def _named(model: str, settings: dict[str, Any]) -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    from daruma import build_graph

    return build_graph(model, [look], settings, checkpointer=InMemorySaver())


class Heard(BaseCallbackHandler):
    """Keeps the metadata of every model call."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    @override
    def on_chat_model_start(self, *_: Any, **about: Any) -> None:
        self.calls.append(about.get("metadata") or {})


def test_a_summarys_usage_is_the_compressors(tmp_path: Path) -> None:
    """CX-04: in the call's metadata, and counted under its own role."""
    run = long_run(12, tmp=tmp_path, auxiliary=[say("AUX saw it.")] * 20)
    heard = Heard()
    run.config["callbacks"] = [heard]

    run.ask()

    marked = [(each.get("daruma_agent"), each.get("daruma_task")) for each in heard.calls]
    assert marked.count(("compressor", "summarization")) == run.result.usage["auxiliary"]["calls"]
    assert {*marked} == {("compressor", "summarization"), (None, None)}
    assert run.result.usage["main"]["calls"] == 13


def test_memory_is_one_block_and_has_tools_of_its_own() -> None:
    """CX-05: what was stored is recalled by later tasks, so many at most, and can be forgotten."""
    store = InMemoryStore()
    limited: dict[str, Any] = {"memory": {"search_limit": 2}}
    facts = [call("memory_store", f"c{n}", text=f"The door {n} is green.") for n in range(4)]
    Run([calls(*facts), say()], store=store).ask("Remember the doors")
    search = [calls(call("memory_search", "s", query="green door")), say()]
    second = Run(search, store=store, **limited).ask("Which door is green?")

    text = second.model.asked()[0].text
    assert text.count("<relevant_context>") == 1
    assert text.count("is green.") == 2
    assert second.outputs["s"].count("is green.") == 2
    assert {"memory_search", "memory_store", "memory_forget"} <= second.model.asked()[
        0
    ].tools.keys()


def test_pieces_of_the_prompt_stand_at_their_places() -> None:
    """CX-05: for all, for one role, for the planner alone."""
    prompts = {
        "style": {"text": "Answer in British English."},
        "care": {"text": "Mind the clock.", "place": "task"},
        "small": {"text": "Two phases at most.", "place": "plan"},
        "dev": {"text": "You own src.", "role": "developer"},
    }
    phases = plan({"title": "a", "expert": "developer"}, {"title": "b", "expert": "tester"})
    script = {"plan": [phases], "main": [say()]}
    review: dict[str, Any] = {"spec_review": {"enabled": False}}
    run = Run(script, mode="team_collab", prompts=prompts, **review).ask()

    (planner,) = run.model.asked("plan")
    members = run.model.asked("main")
    assert str(planner.messages[0].content).endswith("Two phases at most.")
    assert all("Two phases" not in each.text for each in members)
    assert sorted("You own src." in each.text for each in members) == [False, True]
    for each in (planner, *members):
        assert str(each.messages[1].content) == "Mind the clock."
    assert all("British English." in str(each.messages[0].content) for each in members)


def test_skills_are_listed_loaded_and_read(workspace: Path, tmp_path: Path) -> None:
    """CX-05: folders with a `SKILL.md`; a file outside of them is none of theirs."""
    skill = tmp_path / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Fill forms.\n---\nUse the form.\n"
    )
    (skill / "form.txt").write_text("a form\n")
    (tmp_path / "key").write_text("a key\n")
    turn = calls(
        call("skills_list", "list"),
        call("skills_load", "load", name="pdf"),
        call("skills_read_file", "read", name="pdf", path="form.txt"),
        call("skills_read_file", "leave", name="pdf", path="../../key"),
    )
    folders = {"folders": [str(tmp_path / "skills")]}
    run = Run([turn, say()], workspace=workspace, skills=folders).ask()

    assert "Fill forms." in run.outputs["list"]
    assert "Use the form." in run.outputs["load"]
    assert "a form" in run.outputs["read"]
    assert "a key" not in run.outputs["leave"]


def test_a_tail_of_a_shown_path_is_answered_with_the_whole_one(workspace: Path) -> None:
    """CX-06: once it was shown; the system prompt says to use it whole."""
    (workspace / "src" / "pkg").mkdir(parents=True)
    (workspace / "src" / "pkg" / "a.py").write_text("import a\n")
    script = [
        calls(view("pkg/a.py", "early"), call("search", "found", pattern="import")),
        calls(view("pkg/a.py", "late"), view("kg/a.py", "no_tail")),
        say(),
    ]
    run = Run(script, workspace=workspace).ask()

    assert "whole" in str(run.model.asked()[0].messages[0].content)
    assert "src/pkg/a.py" not in run.outputs["early"]
    assert "src/pkg/a.py" in run.outputs["found"]
    assert "src/pkg/a.py" in run.outputs["late"]
    assert "src/pkg/a.py" not in run.outputs["no_tail"]


def test_a_prompt_is_marked_for_those_that_keep_it() -> None:
    """CX-07: nothing of it is ever in the state, nor sent to a model that knows no marks."""
    run = Run([calls(call("look", "c", at=1)), say()], with_tools=[look]).ask()

    sent = [each.model_dump() for asked in run.model.requests for each in asked.messages]
    kept = [each.model_dump() for each in run.messages]
    assert "cache_control" not in json.dumps([*sent, *kept], default=str)


def test_what_the_window_is_spent_on_is_told(workspace: Path) -> None:
    """CX-08: by part, at a task's end and at any time; of a thread without a task nothing."""
    (workspace / "AGENTS.md").write_text("Write short lines.\n")
    script = {
        "plan": [plan({"title": "Look"})],
        "main": [calls(call("look", "c", at=1)), say("Seen it all.")],
    }
    settings: dict[str, Any] = {"llm": {"context_window_tokens": 9000}}
    run = Run(script, with_tools=[look], mode="plan_exec", workspace=workspace, **settings)
    run.ask("Look well")
    waiting = run.graph.context_cost(run.config)
    run.reply({"decision": "confirm"})
    usage = run.result.context_usage

    assert usage is not None
    assert set(usage.parts) == {
        *("system prompt", "project instructions", "tools", "user", "plan", "model"),
        "results of look",
    }
    assert usage.parts["results of look"] > 300
    assert (
        usage.tokens == sum(usage.parts.values()) == run.result.to_dict()["context_usage"]["tokens"]
    )
    assert (usage.limit, usage.exact, usage.saved) == (9000, False, 0)
    assert usage.parts.items() >= waiting.parts.items() - {("plan", waiting.parts["plan"])}
    assert run.graph.context_cost(run.config) == usage
    nobody = {"configurable": {"thread_id": "nobody"}}
    assert "there is no thread" in refused(lambda: run.graph.context_cost(nobody))


def test_what_compaction_leaves_out_is_told_as_saved(tmp_path: Path) -> None:
    """CX-08: what is shown of the history and what is not come to the whole of it."""
    run = long_run(12, tmp=tmp_path, compress=[say("Places were looked at.")] * 9).ask()
    usage = run.result.context_usage

    assert usage is not None
    assert usage.tokens <= 1800 + 200
    assert usage.saved > 1000
    assert usage.parts["summary"] > 0


def test_the_command_line_shows_what_the_window_is_spent_on(daruma: Daruma) -> None:
    """CX-08, FA-04: as a table, and as JSON."""
    daruma("run", "Say it", "--model", daruma.script(main=[say()]), "--thread", "t", "--json")
    table, values = daruma("show", "t", "--context"), daruma("show", "t", "--context", "--json")

    assert "system prompt" in table.out
    assert "an estimate" in table.out
    assert values.json["tokens"] == sum(values.json["parts"].values())
