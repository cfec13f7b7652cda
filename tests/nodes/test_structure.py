"""Answers in a structure that is asked for: right, nearly right, wrong (FA-10)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field, RootModel, field_validator
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, calls, phases, say, shout
from typing_extensions import TypedDict

from daruma.graph.build import PartRefused, build_graph
from daruma.graph.storage import open_postgres
from daruma.state.result import TaskResult


class Customer(BaseModel):
    name: str
    vip: bool


class Order(BaseModel):
    customer: Customer
    total: int


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: int


class Shape(BaseModel):
    shape: Annotated[Circle | Square, Field(discriminator="kind")]


class Folder(BaseModel):
    name: str
    folders: "list[Folder]"


class Event(BaseModel, strict=True):
    day: date
    at: datetime
    id: UUID
    price: Decimal


Colour = Enum("Colour", {f"C{n}": f"colour-{n}" for n in range(300)})  # type: ignore[misc]


class Paint(BaseModel):
    colour: Colour


class Maybe(BaseModel):
    count: int | None
    note: str | None = None


class Search(BaseModel):
    words: str
    limit: int = 10
    tags: list[str] = []


class Cart(BaseModel):
    customers: list[Customer]


class Rating(BaseModel):
    stars: int = Field(ge=1, le=5)
    code: str = Field(pattern="^[A-Z]{3}$")


class Level(BaseModel):
    level: Literal["low", "in between", "high"]


class Book(RootModel[dict[str, Customer]]):
    pass


class Share(BaseModel):
    of: int

    @field_validator("of")
    @classmethod
    def divides(cls, of: int) -> int:
        assert 12 // of < 13  # raises what Pydantic expects from no validator
        return of


class Open(BaseModel, extra="allow"):
    name: str


@dataclass
class Point:
    x: int
    y: int = 0


class Hook(BaseModel):
    call: Callable[[], None]


class Place(TypedDict):
    city: str
    zip: str


TOTAL: Final = {
    "title": "Total",
    "type": "object",
    "properties": {"total": {"type": "integer"}, "unit": {"enum": ["EUR", "USD"]}},
    "required": ["total"],
}


class Row(NamedTuple):
    """A form, the value that is meant, an answer that means it for sure, and one that does not."""

    form: Any
    right: dict[str, Any]
    near: str
    wrong: str
    value: Any = None


ANN: Final[dict[str, Any]] = {"name": "Ann", "vip": True}
WHEN: Final = {
    "day": "2026-11-25",
    "at": "2026-11-25T09:00:00Z",
    "id": "12345678123456781234567812345678",
    "price": "1.10",
}
EVENT: Final = Event(
    day=date(2026, 11, 25),
    at=datetime(2026, 11, 25, 9, tzinfo=UTC),
    id=UUID(int=0x12345678123456781234567812345678),
    price=Decimal("1.10"),
)

ROWS: Final[dict[str, Row]] = {
    "nested": Row(
        Order,
        {"customer": ANN, "total": 3},
        'Done: 3 items.\n```json\n{"Customer": {"name": "Ann", "vip": "true"}, "total": "3"}\n```',
        '{"customer": "Ann", "total": 3}',
    ),
    "union": Row(
        Shape,
        {"shape": {"kind": "square", "side": 2}},
        '{"shape": {"kind": "square", "side": "2"}}',
        '{"shape": {"kind": "square", "radius": 2}}',
    ),
    "recursion": Row(
        Folder,
        {"name": "a", "folders": [{"name": "b", "folders": []}]},
        "{'name': 'a', 'folders': [{'name': 'b', 'folders': []},]}",
        '{"name": "a", "folders": [{"name": "b"}]}',
    ),
    "dates": Row(
        Event, WHEN, f"```\n{json.dumps(WHEN)}\n```", json.dumps(WHEN | {"day": "soon"}), EVENT
    ),
    "big enum": Row(Paint, {"colour": "colour-7"}, '{"colour": "Colour_7"}', '{"colour": "red"}'),
    "optional": Row(Maybe, {"count": None}, '{"count": "null"}', '{"note": "none"}'),
    "defaults": Row(
        Search, {"words": "x", "tags": ["a"]}, '{"words": "x", "tags": "a"}', '{"limit": 5}'
    ),
    "list of models": Row(
        Cart, {"customers": [ANN]}, json.dumps({"customers": ANN}), '{"customers": ["Ann"]}'
    ),
    "constraints": Row(
        Rating,
        {"stars": 5, "code": "ABC"},
        '{"stars": 5.0, "code": "ABC"}',
        '{"stars": 6, "code": "ABC"}',
    ),
    "literal": Row(Level, {"level": "in between"}, '{"level": "In-Between"}', '{"level": "none"}'),
    "dict of models": Row(
        Book, {"a": ANN}, '{"a": {"name": "Ann", "vip": "True"}}', '{"a": {"name": "Ann"}}'
    ),
    "dataclass": Row(Point, {"x": 1}, '{"X": "1"}', '{"x": "one"}', Point(1)),
    "TypedDict": Row(
        Place, {"city": "Bern", "zip": "3000"}, '{city: "Bern", zip: "3000"}', '{"city": "Bern"}'
    ),
    "JSON schema": Row(TOTAL, {"total": 3}, 'It is {"total": "3"}: 3.', '{"total": 3, "sum": 3}'),
    "a key more": Row(
        Paint, {"colour": "colour-7"}, '{"colour": "Colour_7"}', '{"colour": "colour-7", "x": 1}'
    ),
    "a key more where any may be": Row(
        Open, {"name": "Ann", "x": 1}, '{"name": "Ann", "x": 1,}', '{"x": 1}'
    ),
    "a pattern that could take for ever": Row(
        {"type": "object", "properties": {"version": {"pattern": r"^\d+(\.\d+)*$"}}},
        {"version": "1.2.3"},
        '{"Version": "1.2.3"}',
        '{"version": "latest"}',
    ),
    "a long list without doubles": Row(
        {"type": "object", "properties": {"ids": {"type": "array", "uniqueItems": True}}},
        {"ids": [*range(300)]},
        json.dumps({"IDS": [*range(300)]}),
        json.dumps({"ids": [*range(300), 1.0]}),
    ),
    "a validator that breaks": Row(Share, {"of": 3}, '{"of": "3"}', '{"of": 0}'),
}

BEHAVIOURS: Final = {"right": 1, "nearly right": 1, "wrong once": 3, "wrong always": 3}
"""How many requests each takes, that of the work itself included."""


def expected(row: Row) -> Any:
    if row.value is not None:
        return row.value
    kept = isinstance(row.form, dict) or not issubclass(row.form, BaseModel)
    return row.right if kept else row.form.model_validate(row.right)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("name", ROWS)
def test_answers_are_read_repaired_asked_for_again_or_refused(name: str, behaviour: str) -> None:
    """FA-10: never guessed, never more than two requests, and never completed without it."""
    row = ROWS[name]
    right, wrong, prose = say(json.dumps(row.right)), say(row.wrong), say("It is done.")
    script: dict[str, dict[str, Any]] = {
        "right": {"main": [right]},
        "nearly right": {"main": [say(row.near)]},
        "wrong once": {"main": [prose], "structure": [wrong, right]},
        "wrong always": {"main": [wrong], "structure": [wrong, wrong]},
    }
    model = RecordingModel(script=script[behaviour])
    out = build_graph(model, response_format=row.form).invoke({"messages": [("user", "Do it")]})
    result = out["result"]

    assert len(model.requests) == BEHAVIOURS[behaviour]
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    if behaviour == "wrong always":
        assert (result.status, result.structured) == ("failed", None)
        assert result.error_struct.error_code == "structured_output_invalid"
        assert "structured" not in result.to_dict()
    else:
        assert result.completed
        assert result.structured == expected(row)
        assert type(result.structured) is type(expected(row))
    if behaviour == "wrong once":
        assert row.wrong in model.requests[-1][-2].text
        assert "does not fit" in model.requests[-1][-1].text


REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "an instance": (Point(1), "has to be a Pydantic class"),
    "a plain class": (int, "has to be a Pydantic class"),
    "a function": (len, "has to be a Pydantic class"),
    "no schema": ({"type": "objekt"}, "objekt"),
    "no object": ({"type": "array"}, "of type object"),
    "a list": (RootModel[list[int]], "of type object"),
    "a dangling reference": (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        "#/$defs/A",
    ),
    "no JSON": ({"type": "object", "default": {1, 2}}, "JSON"),
    "a pattern that nobody can check in bounded time": (
        {"type": "object", "properties": {"a": {"pattern": r"^(?=.*\d)(\w+)+$"}}},
        "bounded time",
    ),
    "keys that nobody can check in bounded time": (
        {"type": "object", "patternProperties": {"^(a+)+$": True}},
        "bounded time",
    ),
    "no class of JSON": (Hook, "without a JSON schema"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_form_is_refused_when_the_graph_is_built(case: str) -> None:
    """FA-10: in one line that names the part."""
    form, said = REFUSED[case]
    with pytest.raises(PartRefused) as refused:
        build_graph(RecordingModel(script=[]), response_format=form)

    assert str(refused.value).startswith("response_format ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mode", ["direct_chat", "react", "plan_exec", "team_collab"])
def test_every_mode_ends_with_it_and_only_at_its_end(mode: str) -> None:
    """FA-10: phases and members answer in words; what they came to is asked for in the form."""
    planned = mode in ("plan_exec", "team_collab")
    script = {
        "plan": [phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})],
        "main": [say("Ann is a customer."), say("She is a VIP.")][: 2 if planned else 1],
        "main@a": [say("Ann is a customer.")],
        "main@b": [say("She is a VIP.")],
        "structure": [say(json.dumps(ANN))],
    }
    model = RecordingModel(script=script)
    off = settings(spec_review={"enabled": False})
    graph = build_graph(model, settings=off, response_format=Customer)
    result = graph.invoke({"messages": [("user", "Who?")], "mode": mode})["result"]
    last = model.requests[-1][-1].text

    assert result.structured == Customer(**ANN)
    assert ("Ann is a customer." in last, "VIP" in last) == (True, planned)
    said = [request[0].text for request in model.requests[:-1]]
    assert all(('"vip"' in each) is not planned for each in said)


AMBIGUOUS: Final = {
    "two that fit": '{"x": 1} or {"x": 2}',
    "too many": '{"y": 1} ' * 60 + '{"x": 1}',
    "too long to look through": '{"x": 1}' + ('{"k":[' + "1," * 500) * 50,
    "cut off": 'It is {"x": 1',
    "half of it": '{"x": 1, "y": 2',
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_is_in_doubt_is_asked_about(case: str) -> None:
    """FA-10, SE-07: in bounded time."""
    model = RecordingModel(script={"main": [say(AMBIGUOUS[case])], "structure": [say('{"x": 2}')]})
    out = build_graph(model, response_format=Point).invoke({"messages": [("user", "Do it")]})

    assert out["result"].structured == Point(2)


def test_it_is_json_in_postgres_and_typed_for_whoever_has_the_class(postgres_url: str) -> None:
    """FA-10: a spent budget pauses it; another graph goes on, and knows the schema alone."""
    usage = {"input": 60, "output": 60}
    script = {
        "main": [say("Point one.") | {"usage": usage}],
        "structure": [say('{"x": "one"}'), say('{"x": 1}')],
    }
    request: Any = {"messages": [("user", "Do it")]}
    limits = settings(budgets={"tokens": 100})
    with open_postgres(postgres_url) as pg:
        thread: Any = {"configurable": {"thread_id": "t"}}
        mine = build_graph(
            RecordingModel(script=script), settings=limits, persistence=pg, response_format=Point
        )
        other = build_graph(RecordingModel(script=script), settings=limits, persistence=pg)
        (asked,) = mine.invoke(request, thread)["__interrupt__"]
        out = other.invoke(Command(resume={asked.id: {"answer": "tokens 1000"}}), thread)

        assert out["result"].structured == {"x": 1}
        assert out["result"].budgets["structure"] == 2
        assert other.get_state(thread).values["result"].structured == {"x": 1}
        assert mine.get_state(thread).values["result"].structured == Point(1)
        assert mine.look(thread).to_dict()["result"]["structured"] == {"x": 1, "y": 0}


def test_a_stopped_budget_and_a_model_that_is_gone_end_the_task() -> None:
    """FA-10, BU-04: as anywhere; never completed."""
    plan = [phases({"id": "a"})]
    costly = say("One.") | {"usage": {"input": 60_000, "output": 60_000}}
    gone = {"raise": "gone", "status": 404}
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"main": [costly]}, {"tokens": 100_000, "when_spent": "stop"}, "budget_exceeded"),
        (
            {"plan": plan, "main": [costly]},
            {"tokens": 100_000, "when_spent": "stop"},
            "budget_exceeded",
        ),
        ({"main": [say("One.")], "structure": [gone]}, {}, "llm_failure"),
    ]
    for script, budgets, code in cases:
        given = settings(budgets=budgets, spec_review={"enabled": False})
        graph = build_graph(RecordingModel(script=script), settings=given, response_format=Point)
        mode = "plan_exec" if "plan" in script else "react"
        result = graph.invoke({"messages": [("user", "Do it")], "mode": mode})["result"]

        assert result.error_struct.error_code == code
        assert result.status == ("failed" if code == "llm_failure" else code)
        assert not result.completed
        assert result.structured is None


async def test_each_face_gives_instances_and_the_next_task_starts_anew() -> None:
    """FA-10: `stream`, `astream` and time travel; a failed task of the thread leaves no value."""
    script = {"main": [say('{"x": 1}'), say("No."), say('{"x": 3}')], "structure": [say("?")] * 2}
    model = RecordingModel(script=script)
    graph = build_graph(model, checkpointer=memory(), response_format=Point)
    thread: Any = {"configurable": {"thread_id": "t"}}
    request: Any = {"messages": [("user", "Do it")]}
    modes: list[Any] = ["values", "updates"]
    parts = [part async for part in graph.astream(request, thread, stream_mode=modes)]
    assert [
        part["result"].structured for mode, part in parts if mode == "values" and "result" in part
    ][-1:] == [Point(1)]
    ends = [
        part["finish"]["result"] for mode, part in parts if mode == "updates" and "finish" in part
    ]
    assert [each.structured for each in ends] == [Point(1)]

    failed = (await graph.ainvoke(request, thread))["result"]
    assert (failed.status, failed.structured) == ("failed", None)
    better = RecordingModel(script={"structure": [say("?"), say('{"x": 2}')]})
    other = build_graph(better, checkpointer=graph.checkpointer, response_format=Point)
    await other.areopen(thread)
    assert (await other.ainvoke(None, thread))["result"].structured == Point(2)
    done = (await graph.ainvoke(request, thread))["result"]
    assert done.structured == Point(3)
    history = [each.values.get("result") async for each in graph.aget_state_history(thread)]
    assert Point(1) in [each.structured for each in history if each]


@pytest.mark.parametrize("name", ["gpt-4o", "some-model"])
def test_a_model_that_can_is_held_to_the_schema(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FA-10: by its provider's own interface; one that refuses it is asked in words alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    refusal = Fault(400, {"error": {"message": "response_format is not known here"}})
    can = name == "gpt-4o"
    replies: list[Answer] = [Reply("One."), *([refusal] if can else []), Reply('{"x": 1}')]
    with openai_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph = build_graph(f"openai:{name}", response_format=Point)
        out = graph.invoke({"messages": [("user", "Do it")], "mode": "direct_chat"})
        sent: list[Any] = [request.get("response_format") for request in server.requests]

    assert out["result"].structured == Point(1)
    assert [bool(each) for each in sent] == ([False, True, False] if can else [False, False])
    assert not can or sent[1]["json_schema"]["schema"]["required"] == ["x"]


class Ticket(MessagesState, total=False):
    result: TaskResult


def test_a_parent_graph_gets_instances() -> None:
    """FA-10, FA-08: its own nodes read them, and its saver keeps them."""
    seen = []
    around: Any = StateGraph(Ticket)
    model = RecordingModel(script=[say('{"x": 1}')])
    around.add_node("ask", build_graph(model, response_format=Point))
    around.add_node("read", lambda state: seen.append(state["result"].structured))
    around.add_edge(START, "ask").add_edge("ask", "read")
    graph = around.compile(checkpointer=memory())
    graph.invoke({"messages": [("user", "Do it")]}, {"configurable": {"thread_id": "t"}})

    assert seen == [Point(1)]


def test_a_tool_loop_ends_with_it() -> None:
    """FA-10: calls go on as ever; the answer behind them is what counts."""

    model = RecordingModel(script=[calls("shout"), say('{"x": 3}')])
    graph = build_graph(model, [shout], response_format=Point)
    out = graph.invoke({"messages": [("user", "Do it")]})

    assert out["result"].structured == Point(3)
    assert out["result"].output == '{"x": 3}'
