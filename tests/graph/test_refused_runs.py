"""Whole runs over a provider that said no: nobody asks it again, and one line says why."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.parts import memory, settings

from daruma.graph.build import build_graph
from daruma.state.result import TaskResult

MODES = ["direct_chat", "react", "plan_exec"]


def said(message: str, **more: Any) -> Mapping[str, Any]:
    return {"error": {"message": message} | more}


def run(
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    mode: str = "react",
    *,
    streamed: bool = False,
    **given: Any,
) -> TaskResult:
    """One task over the real client, as it is by default but for waits of our own."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    llm = {"requests": {"wait_seconds": 0}} | given.pop("llm", {})
    chain = {"recovery": {"wait_seconds": 0}}
    chosen = settings(llm=llm, fallback_chain=chain, **given)
    graph: Any = build_graph("openai:m", settings=chosen, checkpointer=memory())
    config = {"configurable": {"thread_id": "t"}}
    asked = {"messages": [("user", "Say hi")], "mode": mode}
    for _ in graph.stream(asked, config, stream_mode="messages" if streamed else "values"):
        pass
    result = graph.get_state(config).values["result"]
    assert isinstance(result, TaskResult)
    return result


SAID_NO: list[tuple[Fault, str, bool]] = [
    (
        Fault(429, said("slow down"), {"Retry-After": "3600"}),
        "too many requests, asks for a wait of 3600 s: slow down",
        True,
    ),
    (Fault(503, said("away"), {"Retry-After": "3600"}), "asks for a wait of 3600 s: away", True),
    (Fault(429, said("Please try again in 1h10m.")), "asks for a wait of 4200 s: Please", True),
    (
        Fault(429, said("You exceeded your current quota", code="insufficient_quota")),
        "the quota or the credit is used up: You exceeded your current quota",
        False,
    ),
    (Fault(400, said("Your credit balance is too low")), "the credit is used up: Your", False),
    (Fault(402, {"error": "Insufficient Balance"}), "used up: Insufficient Balance", False),
    (Fault(401, said("wrong key sk-this-is-secret")), "the key is refused: wrong key [key]", False),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "line", "retryable"), SAID_NO, ids=lambda part: repr(part)[:60])
def test_whoever_said_no_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, line: str, retryable: bool, mode: str
) -> None:
    """TL-17a: neither the call nor recovery asks again; the failure is one line, with an advice."""
    with openai_server(lambda _: fault) as server:
        result = run(monkeypatch, server.url, mode)

        address = server.url.removeprefix("http://").removesuffix("/v1")
    error = result.error_struct
    assert error is not None
    assert (len(server.requests), result.status) == (1, "failed")
    assert error.message.startswith(f"openai:m: {address} HTTP {fault.status}: ")
    assert line in error.message
    assert "\n" not in error.message
    assert (error.retryable, bool(error.suggestions)) == (retryable, True)


@pytest.mark.parametrize(
    ("fault", "line", "advice"),
    [
        (Fault(404, {"error": "model m not found"}), "no such model or address: model m", "name"),
        (
            Fault(400, {"error": "m does not support tools"}),
            "the model takes no tools: m does not support tools",
            "llm.fallback_models",
        ),
    ],
)
def test_what_the_body_says_is_told(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, line: str, advice: str
) -> None:
    """TL-17: another model is asked; where there is none, the failure has the body's own words."""
    with openai_server(lambda _: fault) as server:
        error = run(monkeypatch, server.url).error_struct

    assert error is not None
    assert f"HTTP {fault.status}: {line}" in error.message
    assert advice in error.suggestions[0]
    with openai_server(lambda asked: fault if asked["model"] == "m" else Reply("Hi.")) as server:
        assert run(monkeypatch, server.url, llm={"fallback_models": ["openai:n"]}).output == "Hi."
        assert len(server.requests) == 2


def test_a_wait_that_is_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17: a server that names a moment is asked again after it."""
    answers: list[Answer] = [Fault(429, said("no"), {"Retry-After": "0"}), Reply("Hello.")]
    with openai_server(answers) as server:
        assert run(monkeypatch, server.url).output == "Hello."


def test_a_wait_beyond_what_is_left_ends_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17a: by `llm.requests.total_seconds`."""
    limits = {"requests": {"total_seconds": 20, "wait_seconds": 0}}
    with openai_server(lambda _: Fault(429, said("no"), {"Retry-After": "25"})) as server:
        result = run(monkeypatch, server.url, llm=limits)

    assert (len(server.requests), result.status) == (1, "failed")


def test_others_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17a: whoever said no is passed over, by later calls of the run too."""
    no = Fault(429, said("no", code="insufficient_quota"))
    call = Reply("", calls=[{"name": "nothing_of_the_kind", "arguments": {}}])
    answers: Iterator[Answer] = iter([call, Fault(500), Fault(500), Fault(500)])

    def reply(request: dict[str, Any]) -> Answer:
        return no if request["model"] == "m" else next(answers, Reply("Done."))

    with openai_server(reply) as server:
        result = run(monkeypatch, server.url, llm={"fallback_models": ["openai:n"]})

    assert result.status == "completed"
    assert [request["model"] for request in server.requests].count("m") == 1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/v1", "no connection to 127.0.0.1:9: connection refused"),
        ("http://nowhere.invalid/v1", "no connection to nowhere.invalid: the name is not resolved"),
    ],
)
def test_an_address_that_is_dead_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    """TL-17a: with the reason, in one line; recovery does not ask there either."""
    result = run(monkeypatch, url)

    error = result.error_struct
    assert error is not None
    assert error.message == f"openai:m: {why}"
    assert "OPENAI_BASE_URL" in error.suggestions[0]
    assert error.retryable
    assert result.budgets["recover"] == 0


@pytest.mark.parametrize("streamed", [False, True])
def test_a_budget_of_tokens_holds_where_no_usage_is_told(
    monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    """BU-05: what a provider does not tell is estimated, and marked."""
    words = Reply("word " * 200, calls=[{"name": "no_such_tool", "arguments": {}}], usage="untold")
    with openai_server(lambda _: words) as server:
        result = run(monkeypatch, server.url, streamed=streamed, budgets={"tokens": 3000})

    rows = result.usage.values()
    assert result.status != "completed"
    assert 3000 <= sum(row["input_tokens"] + row["output_tokens"] for row in rows) < 6000
    assert sum(row["estimated"] for row in rows) == len(server.requests)
    assert any(request["stream"] for request in server.requests) is streamed
    assert any("estimated" in note for note in result.notes)
