"""Histories of any kind, for properties of what is shown of them."""

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

TEXTS = st.sampled_from(["hi", "a word or two ", "数据库 ", "x = f(y)\n"]).flatmap(
    lambda text: st.sampled_from([1, 3, 60, 900]).map(lambda n: text * n)
)
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def rounds(number: int, text: str, outputs: list[str], kept: bool) -> list[AnyMessage]:
    """An answer with a call for each output, and the results."""
    calls = [
        {"name": "look", "args": {"path": f"src/{number}.py", "text": text}, "id": f"c{number}.{n}"}
        for n in range(len(outputs))
    ]
    extra = {"daruma_output": "0123456789abcdef"} if kept else {}
    results = [
        ToolMessage(
            output,
            tool_call_id=f"c{number}.{n}",
            name="look",
            id=f"m{number}:c{number}.{n}",
            status="error" if output == "hi" else "success",
            additional_kwargs=extra,
        )
        for n, output in enumerate(outputs)
    ]
    return [AIMessage(text, id=f"m{number}", tool_calls=calls), *results]


def said(kind: str, number: int, text: str) -> list[AnyMessage]:
    """One message without calls."""
    made: dict[str, AnyMessage] = {
        "asks": HumanMessage(text, id=f"m{number}"),
        "answers": AIMessage(text, id=f"m{number}"),
        "instructs": SystemMessage(text[:50], id=f"m{number}"),
        "shows": HumanMessage([{"type": "text", "text": text}, IMAGE], id=f"m{number}"),
        "nameless": HumanMessage(text[:200]),
    }
    return [made[kind]]


PART = st.one_of(
    st.tuples(st.sampled_from(["asks", "answers", "instructs", "shows", "nameless"]), TEXTS),
    st.tuples(st.just("works"), TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.booleans()),
)


def _history(parts: list[Any]) -> list[AnyMessage]:
    history: list[AnyMessage] = [HumanMessage("Do it", id="first")]
    for number, (kind, *given) in enumerate(parts):
        history += rounds(number, *given) if kind == "works" else said(kind, number, *given)
    return history


HISTORIES = st.lists(PART, max_size=25).map(_history)


def working(steps: int, size: int = 800) -> list[AnyMessage]:
    """A task that has looked at so many things, with outputs of so many characters."""
    history: list[AnyMessage] = [HumanMessage("Do it", id="first")]
    for number in range(steps):
        history += rounds(
            number, f"I look at {number}.", [f"{number} " + "word " * (size // 5)], False
        )
    return history
