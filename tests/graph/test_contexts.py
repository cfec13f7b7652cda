"""A node's context: the graph's own live things, under the settings of the run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command
from tests.parts import a_registry, memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.models import ModelUnavailable, check_models
from daruma.graph.scope import Contexts, RunScope, UndeclaredEvent
from daruma.state.events import Reflected
from daruma.state.settings import Settings
from daruma.tools.calls import ToolNameConflictError
from daruma.tools.context import Context
from daruma.tools.team import TemplateRefused

CHAT: dict[str, Any] = {"messages": "hi", "mode": "direct_chat"}


async def context_for(contexts: Contexts, given: Settings | None, **configurable: Any) -> Context:
    """The context that a node would get."""
    seen: list[Context] = []

    async def node(_: Any, context: Context) -> Any:
        seen.append(context)

    runtime: Any = Runtime(context=given) if given else Runtime()
    await contexts.bound(node)({}, runtime, {"configurable": configurable})
    return seen[0]


def contexts(own: Settings | None = None) -> Contexts:
    return Contexts(RecordingModel(script=[]), a_registry([shout]), own or Settings())


async def test_a_run_has_its_own_settings_or_the_graphs() -> None:
    """What Studio's form says counts; without a context LangGraph hands out None, silently.

    Live things are not part of the settings; without a thread the run is local.
    """
    own, other = settings(mode="plan_exec"), settings(mode="team_collab")

    plain = await context_for(contexts(own), None)
    named = await context_for(contexts(own), other, thread_id="t7")

    assert (plain.settings, plain.thread_id) == (own, "local")
    assert (named.settings, named.thread_id) == (other, "t7")
    assert named.tools.named("shout") is not None


async def test_what_was_looked_at_ends_with_its_run() -> None:
    """VE-09: the nodes of one run know of it, and no other run does."""
    graphs, run, another = contexts(), *({**RunScope().attach({})["configurable"]} for _ in "ab")

    (first, second, other) = [await context_for(graphs, None, **c) for c in (run, run, another)]

    assert first.looked_at is second.looked_at
    assert first.looked_at is not other.looked_at


def test_settings_have_to_fit_the_tools() -> None:
    """TL-05 and TL-06."""
    wrong = settings(tools={"name_aliases": {"shout": "whisper"}})

    with pytest.raises(ToolNameConflictError, match="'shout' for 'whisper'"):
        contexts(wrong)


async def test_settings_of_a_run_that_do_not_fit_leave_the_thread_as_it_was() -> None:
    """A slip in them must neither end a task nor use up the answer to its question."""
    asking = settings(tools={"policy": {"shout": "confirm"}})
    run = Run([calls(call(id_="c1")), say()], settings=asking, tools=[shout]).ask()
    approval = run.question.value["approvals"][0]
    denial = {key: approval[key] for key in ("approval_id", "digest")} | {"decision": "deny"}
    reply: Any = Command(resume={run.question.id: {"decisions": [denial]}})
    wrong = settings(tools={"name_aliases": {"shout": "whisper"}})
    before = run.snapshot

    for given in (wrong, wrong.model_dump()):
        with pytest.raises(ToolNameConflictError, match="'shout' for 'whisper'"):
            run.send(reply, context=given)
        with pytest.raises(ToolNameConflictError):
            await run.graph.ainvoke(reply, run.config, context=given)

    assert run.snapshot == before
    assert run.send(reply).result.status == "completed"


def test_a_run_may_name_another_model(tmp_path: Path) -> None:
    """A model that was passed in does not get lost with a setting that names none."""
    (tmp_path / "other.yaml").write_text("main: [{say: From another model.}]")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"budgets": {"think": 3}}, "Done."),
        ({"llm": {"context_window_tokens": 4000}}, "Done."),
        ({"llm": {"model": f"scripted:{tmp_path}/other.yaml"}}, "From another model."),
    ]
    for sections, said in cases:
        run = Run([say()]).send(CHAT, context=settings(**sections))

        assert (run.result.status, run.result.output) == ("completed", said)


def test_without_a_model_the_task_says_what_to_set() -> None:
    """Neither a bug nor a traceback: the user has to configure one."""
    run = Run([], graph=build_graph(settings=settings(), checkpointer=memory())).send(CHAT)

    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "llm_failure"
    assert "set llm.model" in run.result.output


def test_events_go_to_the_custom_stream() -> None:
    """As dictionaries, so that the dev server can send them."""
    run = Run([calls("shout"), say()], tools=[shout]).ask()

    assert run.happened("tool_started") == [
        {
            "type": "tool_started",
            "call_id": "call_main_0_0",
            "tool": "shout",
            "summary": "hello",
        }
    ]


@dataclass(frozen=True, kw_only=True)
class Stray:
    """An event that nobody declared."""

    type: ClassVar[str] = "stray"


@dataclass(frozen=True, kw_only=True)
class Twin:
    """Another class under a declared name."""

    type: ClassVar[str] = "reflected"


def test_declared_events_are_sent_to_whoever_reads_them() -> None:
    """FA-06: an undeclared one is an error at once; most runs are not watched."""
    sent: list[Any] = []
    for event in (Stray(), Twin()):
        with pytest.raises(UndeclaredEvent, match="is not declared"):
            RunScope().emitter(Runtime())(event)  # type: ignore[arg-type]  # that is what is tried
    RunScope().emitter(Runtime(stream_writer=sent.append))(Reflected(text="Oh."))
    RunScope(streams_events=False).emitter(Runtime(stream_writer=sent.append))(Reflected(text="!"))

    assert sent == [{"type": "reflected", "text": "Oh."}]


@pytest.mark.parametrize(
    ("options", "read"),
    [({}, False), ({"stream_mode": "custom"}, True), ({"stream_mode": ["values", "custom"]}, True)],
)
async def test_whether_anybody_reads_is_what_was_asked_for(options: Any, read: bool) -> None:
    """Whoever streams events asks for them, however the run is called."""
    scopes: list[RunScope] = []

    def look(text: str, config: RunnableConfig) -> str:
        """Look at the scope."""
        scopes.append(RunScope.of(config))
        return text

    graph: Any = build_graph(RecordingModel(script=[calls("look"), say()]), [look], settings())
    async for _ in graph.astream({"messages": "hi", "mode": "react"}, **options):
        pass

    assert [each.streams_events for each in scopes] == [read]


# --- A team that settings ask for is looked at before anything is run.


def text(model: str) -> str:
    return f"experts: [{{name: a, about: b, model: {model!r}}}]"


@pytest.mark.parametrize("model", ["openai:x", "scripted:file.yaml", "fast"])
def test_experts_models_that_mean_something_are_accepted(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for llm.model: a name or an alias."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(text(model))
    (tmp_path / "file.yaml").write_text("[]")
    team = {"template": "web", "folders": [str(tmp_path)]}

    check_models(settings(team=team, llm={"model_aliases": {"fast": "openai:y"}}), None)


def test_an_experts_model_that_means_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the graph is built, with the team and the expert."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "web.yaml").write_text(text("gpt"))
    given = settings(team={"template": "web", "folders": [str(tmp_path)]})

    with pytest.raises(ModelUnavailable, match="'web', model of expert 'a': unknown model \"gpt\""):
        build_graph("openai:x", settings=given)


@pytest.mark.parametrize("sections", [{"team": {"template": "wbe"}}, {"mode": "team_collab"}])
def test_a_team_that_is_asked_for_has_to_be_there(
    sections: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MO-06: by its name, or by the mode."""
    (tmp_path / "coding.yaml").write_text("broken: [")
    team = {"folders": [str(tmp_path)]} if "mode" in sections else {}
    monkeypatch.chdir(tmp_path)

    with pytest.raises(TemplateRefused):
        check_models(settings(**{"team": team, **sections}), None)


def test_settings_that_ask_for_no_team_are_not_looked_at(tmp_path: Path) -> None:
    """A file that nobody asks for is no hindrance."""
    (tmp_path / "web.yaml").write_text("broken: [")

    check_models(settings(), None)
    check_models(settings(team={"folders": [str(tmp_path)]}), None)
