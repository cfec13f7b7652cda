"""The machine drawn from its table, with the edges that only error handlers take."""

from collections.abc import Iterator

from langgraph.graph import END

from daruma.graph.machine import ENTRY, ON_BUG, TABLE, Each, Target

_BUG_ANYWHERE = "bug"


def mermaid() -> str:
    """Return the machine as a Mermaid flowchart.

    Solid edges are the table's, labelled with their outcomes; thick ones are entered once for each
    item. Dotted edges are the error handlers': those that most nodes share are drawn once.
    """
    lines = ["flowchart TD", '    __start__(["start"]) --> ' + ENTRY, *_edges(), *_bugs()]
    return "\n".join(lines) + "\n"


def _edges() -> Iterator[str]:
    for name, (_, outcomes) in TABLE.items():
        by_target: dict[Target, list[str]] = {}
        for outcome, target in outcomes.items():
            by_target.setdefault(target, []).append(outcome)
        for target, labels in by_target.items():
            yield f"    {name} {_arrow(target)}|{', '.join(labels)}| {_end(target)}"


def _arrow(target: Target) -> str:
    return "==>" if isinstance(target, Each) else "-->"


def _end(target: Target) -> str:
    if isinstance(target, Each):
        return target.node
    return '__end__(["end"])' if target == END else target


def _bugs() -> Iterator[str]:
    shared = max(ON_BUG.values(), key=list(ON_BUG.values()).count)
    others = {name: target for name, target in ON_BUG.items() if target != shared}
    yield f'    {_BUG_ANYWHERE}{{{{"a bug in any other node"}}}} -.-> {shared}'
    for name, target in others.items():
        yield f"    {name} -.->|bug| {'__end__' if target == END else target}"
