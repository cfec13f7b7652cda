"""The librarian's tools: what they find, what they say of it, and that there are no others."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool, Tool, tool
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr
from tests.parts import memory, settings
from tests.scripted_runs import Run, call, calls, say, shout
from tests.toy_embeddings import ToyEmbeddings
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import open_postgres
from daruma.tools.calls import Surroundings, ToolRefused, wrap_tool
from daruma.tools.errors import ToolError
from daruma.tools.knowledge import KNOWLEDGE_TOOLS, Relation, aingest, ingest, web_search
from daruma.tools.knowledge._knowledge_tools import (
    FROM_DOCUMENTS,
    FROM_WEB,
    render_web_results,
)
from daruma.tools.text import WORDS_ONLY

TOOLS = {tool.name: tool for tool in KNOWLEDGE_TOOLS}
DOCS = """# Cars

The automobile was built in Turin. A Garage needs the [[PowerGrid]].

# Farm

It has an office, and is lit by the [[PowerGrid]].

## Kennel

Dogs of the Farm sleep here, beside the [Stable](stable.md).
"""


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    (tmp_path / "docs.md").write_text(DOCS)
    if request.param == "memory":
        kept = InMemoryStore()
        ingest(kept, tmp_path / "docs.md")
        yield kept
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        ingest(pg.store, tmp_path / "docs.md")
        yield pg.store


async def told(store: BaseStore, name: str, **args: Any) -> str:
    return await TOOLS[name].run(args, Surroundings(store=store))


async def test_passages_come_with_their_source(store: BaseStore, tmp_path: Path) -> None:
    """And marked as data; by words there is nothing to apologise for."""
    answer = await told(store, "search_knowledge", query="Turin")

    head, cited, passage = answer.split("\n", 2)[0], *answer.split("\n")[2:4]
    assert head == FROM_DOCUMENTS
    assert cited == f"[1] {tmp_path / 'docs.md'}:3 (docs.md > Cars)"
    assert passage.startswith("The automobile was built")
    assert "by words" not in answer
    assert "nothing found" in await told(store, "search_knowledge", query="zebra")
    assert "nothing found" in await told(store, "search_knowledge", query="Turin", collection="x")


async def test_a_hybrid_search_says_when_it_had_words_alone(store: BaseStore) -> None:
    """In one line, under what it found."""
    answer = await told(store, "hybrid_search", query="Turin", limit=1)

    assert answer.endswith(f"[{WORDS_ONLY}]")
    assert "[2]" not in answer


def test_a_hybrid_search_finds_other_words(postgres_url: str) -> None:
    """With an embedding model, and then without a note."""
    with open_postgres(postgres_url, embeddings=ToyEmbeddings()) as pg:
        ingest(pg.store, DOCS)

        answer = asyncio.run(told(pg.store, "hybrid_search", query="vehicle", limit=1))

    assert "The automobile was built" in answer
    assert "alone" not in answer


async def test_a_thing_is_told_with_its_relations(store: BaseStore, tmp_path: Path) -> None:
    """Each with its ground and source; deeper, those of what it is related to."""
    near = await told(store, "get_knowledge_graph_context", entity="kennel")
    far = await told(store, "get_knowledge_graph_context", entity="The Kennel", depth=3)
    farm = await told(store, "get_knowledge_graph_context", entity="stable")

    ground = "heading: docs.md > Farm > Kennel"
    assert f'- Kennel — is part of — Farm: "{ground}" [{tmp_path}/docs.md:11]' in near
    assert "PowerGrid" not in near
    assert "Farm — links to — PowerGrid" in far
    assert "Cars — links to — PowerGrid" in far
    assert "Named in the same passages, with how many: " in farm
    assert "farm (1)" in farm
    assert "those of headings and links" in near


async def test_a_thing_is_found_by_a_query(store: BaseStore) -> None:
    """Or by words of its name; what nobody knows is told so, with what there is."""
    assert "Kennel — links to — Stable" in await told(
        store, "get_knowledge_graph_context", query="what is beside the kennel?"
    )
    unknown = await told(store, "get_knowledge_graph_context", entity="the zoo of Farm", depth=1)
    assert "Farm — links to — PowerGrid" in unknown
    nobody = await told(store, "get_knowledge_graph_context", entity="zoo")
    assert nobody == "nothing is known of 'zoo' by that name"


async def test_stated_relations_are_told(store: BaseStore) -> None:
    """They have no sentence."""
    await aingest(store, [], relations=[Relation("Ann", "leads", "Farm")])

    answer = await told(store, "get_knowledge_graph_context", entity="ann")

    assert "- Ann — leads — Farm [stated:" in answer


@pytest.mark.parametrize("args", [{}, {"entity": ""}, {"entity": "x", "depth": 9}])
async def test_arguments_that_ask_for_nothing_are_refused(args: dict[str, Any]) -> None:
    """In one line for the model."""
    with pytest.raises(ToolError, match="invalid arguments"):
        await told(InMemoryStore(), "get_knowledge_graph_context", **args)


async def test_without_a_store_there_is_nothing_to_search() -> None:
    """The tools are not shown then; who calls one is told."""
    with pytest.raises(ToolError, match="built without a store"):
        await TOOLS["search_knowledge"].run({"query": "x"}, Surroundings())


def found(query: str) -> str:
    """Look on the web."""
    return f'[{{"title": "A page", "url": "https://x.org", "content": "about {query}"}}]'


class Seeing(ScriptedChatModel):
    """A scripted model that keeps the tools it was shown."""

    _shown: list[Mapping[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def shown(self) -> list[Mapping[str, Any]]:
        return self._shown

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._shown.extend(tools)
        return super().answer(messages, metadata=metadata, tools=tools)


@pytest.mark.parametrize(("web", "with_workspace"), [(False, True), (True, False)])
def test_the_librarian_has_exactly_its_tools(
    store: BaseStore, tmp_path: Path, web: bool, with_workspace: bool
) -> None:
    """AS-02: three, and the web's where the application brings one; it works in a run."""
    tools: list[Any] = [shout, *([web_search(found)] if web else [])]
    wanted = ["search_knowledge", "hybrid_search", "get_knowledge_graph_context"]
    script = [
        calls(
            call("search_knowledge", "c1", query="Turin"),
            call("get_knowledge_graph_context", "c2", entity="Farm"),
            *([call("web_search", "c3", query="cats", max_results=1)] if web else []),
        ),
        say("Found."),
    ]
    run, model = Run({"main": script}), Seeing(script={"main": script})
    run.graph = build_graph(
        model,
        tools,
        settings(tools={"profile": "librarian_retrieval"}),
        checkpointer=memory(),
        store=store,
    )

    run.ask(mode="react", **({"workspace": str(tmp_path)} if with_workspace else {}))

    assert run.result.completed
    shown = {tool["function"]["name"] for tool in model.shown}
    assert shown - {"read_output"} == {*wanted, *(["web_search"] if web else [])}
    results = {m.tool_call_id: m for m in run.messages if isinstance(m, ToolMessage)}
    assert {m.status for m in results.values()} == {"success"}
    assert "built in Turin" in results["c1"].text
    assert "links to — PowerGrid" in results["c2"].text
    if web:
        assert "[1] A page — https://x.org\nabout cats" in results["c3"].text


# --- Any search tool becomes ``web_search``.


@tool
def tavily(query: str, max_results: int = 3, topic: str = "general") -> dict[str, Any]:
    """Search as Tavily does."""
    result = {"title": "T", "url": "https://t", "content": f"{query} {max_results} {topic}"}
    return {"query": query, "results": [result] * 9}


@tool
def duck(query: str) -> str:
    """Search as DuckDuckGo does."""
    return f"snippet: about {query}, title: D, link: https://d"


@tool
async def odd(phrase: str) -> list[dict[str, str]]:
    """Search with a name of its own, asynchronously."""
    return [{"snippet": phrase, "link": "https://o"}]


def serp(text: str) -> str:
    """Search as an old-fashioned tool of one text does."""
    return f"plain {text}"


OLD = Tool(name="serp", func=serp, description="Search.")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (tavily, "[1] T — https://t\ncats 2 general\n\n[2] T — https://t\ncats 2 general"),
        (duck, "snippet: about cats, title: D, link: https://d"),
        (odd, "[1] https://o\ncats"),
        (serp, "plain cats"),
        (OLD, "plain cats"),
    ],
)
async def test_a_query_reaches_the_tool_and_its_results_come_back(given: Any, answer: str) -> None:
    """Whatever it calls the query, and however it tells its results."""
    wrapped = wrap_tool(web_search(given))

    result = await wrapped.run({"query": "cats", "max_results": 2}, Surroundings())

    assert (wrapped.name, wrapped.effect) == ("web_search", "none")
    assert set(wrapped.parameters["properties"]) == {"query", "max_results"}
    assert result == f"{FROM_WEB}\n\n{answer}"


def two(first: str, second: str) -> str:
    """Compare."""
    return first + second


def number(n: int) -> str:
    """Count."""
    return str(n)


@pytest.mark.parametrize("given", [two, number, StructuredTool.from_function(two, name="t")])
def test_a_tool_that_searches_for_nothing_is_refused(given: Any) -> None:
    """With what it has; when it is wrapped, not when it is called."""
    with pytest.raises(ToolRefused, match="it needs one text to look for, such as query"):
        web_search(given)


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ("", ["nothing found"]),
        ("[]", [FROM_WEB, "", "[]"]),
        ('{"a": 1}', [FROM_WEB, "", "[1] result", '{"a": 1}']),
        ('{"items": [{"name": "N"}]}', [FROM_WEB, "", "[1] N"]),
        ("[1, 2]", [FROM_WEB, "", "[1, 2]"]),
    ],
)
def test_results_of_any_form_are_told(result: str, lines: list[str]) -> None:
    """What is no record is shown as it is."""
    assert render_web_results(result, 5).split("\n") == lines
