"""Whole runs over failing models, as those who watch, trace and read the result see them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphInterrupt
from tests.openai_answers import Reply
from tests.openai_server import Fault, OpenAIServer, openai_server
from tests.parts import at_once, memory, settings
from tests.scripted_runs import RecordingModel, say
from typing_extensions import override

from daruma.graph.asker import Asker
from daruma.graph.build import build_graph
from daruma.graph.models.by_role import Models
from daruma.graph.models.faults import ModelUnavailable
from daruma.state.events import Event
from daruma.state.settings import Settings

REQUEST: Any = {"messages": [("user", "Say hi")], "mode": "react"}
CONFIG: Any = {"configurable": {"thread_id": "t"}}
QUICK = {"wait_seconds": 0, "chunk_seconds": 0.3}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Model `m` breaks off in the midst of its answer, `n` answers."""
    with openai_server(
        lambda request: Fault(cut="later") if request["model"] == "m" else Reply("Hello there.")
    ) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def chain(**requests: Any) -> Settings:
    return settings(llm={"fallback_models": ["openai:n"], "requests": QUICK | requests})


def asked(server: OpenAIServer) -> str:
    return "".join(request["model"] for request in server.requests)


def test_the_result_tells_of_the_failover(server: OpenAIServer) -> None:
    """TL-17, MO-07: the audit holds requested, used, attempts; the usage has its role."""
    graph: Any = build_graph("openai:m", settings=chain(), checkpointer=memory())

    out = graph.invoke(REQUEST, CONFIG)

    result = out["result"].to_dict()
    (audit,) = result["audit"]
    assert out["messages"][-1].text == "Hello there."
    assert asked(server) == "mmmn"
    assert (audit["failover"]["requested"], audit["failover"]["used"]) == ("openai:m", "openai:n")
    assert len(audit["failover"]["attempts"]) == 3
    assert out["messages"][-1].response_metadata["failover"] == audit["failover"]
    assert list(result["usage"]) == ["fallback"]


@pytest.mark.usefixtures("server")
async def test_a_watcher_can_take_back_what_was_dropped() -> None:
    """What it saw of an attempt has the number that the event names, and an id of its own."""
    graph: Any = build_graph("openai:m", settings=chain(), checkpointer=memory())
    shown: dict[tuple[Any, ...], str] = {}
    ids: dict[str, int] = {}
    recorded: list[str] = []

    async for mode, part in graph.astream(REQUEST, CONFIG, stream_mode=["messages", "custom"]):
        if mode == "messages":
            chunk, told = part
            if "daruma_attempt" not in told:
                recorded.append(chunk.text)
                continue
            key = (told["daruma_role"], told["daruma_call"], told["daruma_attempt"])
            shown[key] = shown.get(key, "") + chunk.text
            ids[chunk.id] = told["daruma_attempt"]
        elif part["type"] == "model_attempt_failed":
            dropped = shown.pop((part["node"], part["call"], part["attempt"]))
            assert "Hello" not in dropped
            assert dropped

    assert shown == {("main", 0, 4): "Hello there."}
    assert recorded == ["Hello there."]
    assert set(ids.values()) == {1, 2, 3, 4}


async def test_keep_alive_comments_do_not_hold_off_the_end_of_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that says nothing is given up after `llm.requests.chunk_seconds`."""
    with openai_server([Fault(keep_alive=True), Reply("Done.")]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph: Any = build_graph("openai:m", settings=chain())
        parts = [part async for part in graph.astream(REQUEST, stream_mode=["messages", "custom"])]

    (failed,) = (
        part for mode, part in parts if mode == "custom" and part["type"] == "model_attempt_failed"
    )
    assert failed["error"].startswith("No streaming chunk received for 0.3s")
    assert asked(server) == "mm"


class Trace(BaseCallbackHandler):
    """What a tracer is told of each request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    @override
    def on_chat_model_start(self, *_: Any, metadata: Any = None, **__: Any) -> None:
        ours = {key: each for key, each in metadata.items() if key.startswith("daruma_")}
        self.requests.append(ours)


@pytest.mark.usefixtures("server")
def test_a_trace_names_model_and_attempt() -> None:
    """FA-07: for each request that was made."""
    trace = Trace()
    graph: Any = build_graph("openai:m", settings=chain(per_model=2))

    graph.invoke(REQUEST, {"callbacks": [trace]})

    asked = ["openai:m", "openai:m", "openai:n"]
    own = {"daruma_role": "main", "daruma_call": 0, "daruma_node": "main", "daruma_mode": "react"}
    assert all(own.items() <= each.items() for each in trace.requests)
    assert [each["daruma_model"] for each in trace.requests] == asked
    assert [each["daruma_attempt"] for each in trace.requests] == [1, 2, 3]
    roles = [each["daruma_model_role"] for each in trace.requests]
    assert roles == ["main", "main", "fallback"]
    last = trace.requests[-1]["daruma_failover"]
    assert (last["attempt"], last["from"], last["to"]) == (3, "openai:m", "openai:n")
    assert last["why"]
    assert "daruma_failover" not in trace.requests[0]


def test_a_script_stands_in_like_any_model(tmp_path: Path) -> None:
    """FA-05: its fault costs one request, as it would say the same again."""
    (tmp_path / "s.yaml").write_text("- say: From the script.\n")
    model = RecordingModel(script=[{"raise": "down"}])
    given = settings(llm={"fallback_models": [f"scripted:{tmp_path}/s.yaml"]})

    out = build_graph(model, settings=given).invoke(REQUEST)

    assert out["messages"][-1].text == "From the script."
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("llm", "complaint"),
    [
        (
            {"fallback_models": ["gpt-9"]},
            'llm.fallback_models: unknown model "gpt-9": write openai',
        ),
        (
            {"fallback_models": ["a"], "model_aliases": {"a": "b", "b": "a"}},
            "llm.fallback_models: llm.model_aliases go in a circle: a -> b -> a",
        ),
    ],
)
def test_a_fallback_that_means_nothing_is_said_when_the_graph_is_built(
    llm: dict[str, Any], complaint: str
) -> None:
    """In one line; not when the first model fails, at night."""
    with pytest.raises(ModelUnavailable) as raised:
        build_graph(RecordingModel(script=[say()]), settings=settings(llm=llm))

    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_no_fallback_is_made_before_it_is_needed() -> None:
    """A graph can be built without its key."""
    given = settings(llm={"fallback_models": ["openai:n"]})

    out = build_graph(RecordingModel(script=[say()]), settings=given).invoke(REQUEST)

    assert out["messages"][-1].text == "Done."


class Interrupting(RecordingModel):
    """A model that asks a person."""

    def answer(self, *_: Any, **__: Any) -> Any:
        raise self.script

    def model_post_init(self, context: Any, /) -> None:
        pass


@pytest.mark.parametrize("error", [GraphInterrupt(), KeyboardInterrupt()])
def test_what_is_no_failure_passes_through(error: BaseException) -> None:
    """EM-02: it is not counted, and no other model is asked."""
    spare = "scripted:/no/such"
    asker = Asker(Models(Interrupting(script=error), fallbacks=[spare]), sleep=at_once)
    events: list[Event] = []

    with pytest.raises(type(error)):
        asyncio.run(asker("main", [], call=0, emit=events.append))

    assert [event.type for event in events] == ["model_call_started", "model_call_completed"]
