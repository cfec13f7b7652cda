"""Whatever a model sends, every call has exactly one result and the next request is legal."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool
from pydantic import PrivateAttr
from tests.parts import memory
from tests.parts import settings as settings_of
from tests.scripted_runs import Run, illegal, unclosed
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import AnsweringModel

NAMES = st.sampled_from(
    [
        *("shout", "Shout", "functions.shout", "pay", "banned", "fall", "hidden", "nope", ""),
        *("öß\u202e", "a" * 100, "shout ", "run_command", "\ud800"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGS = (
    st.just({"text": "hi"})
    | st.fixed_dictionaries({"text": JSON})
    | st.dictionaries(st.text(max_size=8), JSON, max_size=3)
)
RAW = st.sampled_from(
    [
        '{"text": "hi"',
        "{'text': 'hi'}",
        '{"text": "hi",}',
        '"{\\"text\\": 1}"',
        "",
        "nonsense",
        "[]",
    ]
) | st.text(max_size=30)
IDS = st.sampled_from(["a", "b", "", None, "call_0", "x" * 80])
CALLS = st.tuples(NAMES, ARGS | RAW, IDS)
TEXTS = st.sampled_from(
    [
        "",
        "Done.",
        '{"name": "shout", "arguments": {"text": "hi"}}',
        '{"name": "nope", "arguments": {}}',
        "<tool_call>{oops</tool_call>",
        "  ",
    ]
)
ANSWERS = st.tuples(TEXTS, st.lists(CALLS, max_size=6), st.sampled_from(["stop", "stop", "length"]))
REPAIRS = st.sampled_from(
    [
        "",
        "no",
        '{"repairs": []}',
        '{"repairs": [{"tool_call_id": "a", "name": "shout"}]}',
        '{"repairs": [{"tool_call_id": "a", "name": "hidden"}]}',
        '{"repairs": [{"tool_call_id": "a", "arguments": {"text": "hi"}}]}',
    ]
)


class Babbler(AnsweringModel):
    """A model that says anything at all, and then that it is done."""

    answers: list[Any]
    repair: str
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @property
    @override
    def _llm_type(self) -> str:
        return "babbler"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._requests.append(list(messages))
        if metadata["daruma_role"] == "repair":
            return AIMessage(self.repair)
        number = metadata["daruma_call"]
        return spoken(*self.answers[number]) if number < len(self.answers) else AIMessage("Done.")


def spoken(text: str, calls: Sequence[Any], finish_reason: str) -> AIMessage:
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": id_}
            for name, args, id_ in calls
            if isinstance(args, dict)
        ],
        invalid_tool_calls=[
            {"name": name, "args": args, "id": id_, "error": None}
            for name, args, id_ in calls
            if isinstance(args, str)
        ],
        response_metadata={"finish_reason": finish_reason},
    )


class Tools:
    """Tools that count what really ran."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()

    def all(self) -> list[Any]:
        return [self.named(name) for name in ("shout", "pay", "banned", "hidden")] + [fall]

    def named(self, name: str) -> Any:
        def tool(text: str) -> str:
            self.ran[name] += 1
            return text.upper()

        return StructuredTool.from_function(tool, name=name, description=f"Do {name}.")


def fall(text: str) -> str:
    """Fall over."""
    raise ValueError(text)


SETTINGS = {
    "policy": {"pay": "confirm", "banned": "deny"},
    "profile": "some",
    "profiles": {"some": ["shout", "pay", "banned", "fall"]},
}


def run_to_the_end(model: Babbler, tools: Tools, limit: int | None, decisions: list[str]) -> Run:
    """A run whose approvals are answered in turn."""
    given_settings = settings_of(tools=SETTINGS | {"max_calls_per_turn": limit})
    graph = build_graph(model, tools.all(), given_settings, checkpointer=memory())
    run = Run({"main": []}, graph=graph).ask()
    for decision in itertools.cycle(decisions):
        if run.state.result is not None:
            return run
        run.decide(**{a["approval_id"]: decision for a in run.question.value["approvals"]})
    raise AssertionError("there is always another decision")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=3),
    repair=REPAIRS,
    limit=st.sampled_from([None, 1, 3]),
    decisions=st.lists(st.sampled_from(["approve", "deny"]), min_size=1, max_size=3),
)
def test_every_call_has_one_result_and_every_request_is_legal(
    answers: list[Any], repair: str, limit: int | None, decisions: list[str]
) -> None:
    """TL-03: and what ran is what the history says was done."""
    model, tools = Babbler(answers=answers, repair=repair), Tools()

    run = run_to_the_end(model, tools, limit, decisions)

    assert [problem for request in model.requests for problem in illegal(request)] == []
    assert unclosed(run.events) == []
    results = [message for message in run.messages if message.type == "tool"]
    said = [message for message in run.messages if isinstance(message, AIMessage)]
    made = [f"{m.id}:{c['id']}" for m in said for c in (*m.tool_calls, *m.invalid_tool_calls)]
    assert sorted(str(message.id) for message in results) == sorted(made)
    assert Counter(str(m.name) for m in results if m.status == "success") == tools.ran
    assert tools.ran["banned"] == tools.ran["hidden"] == 0
