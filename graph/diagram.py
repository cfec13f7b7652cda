"""The machine drawn from its table, with the edges that only error handlers take."""

from collections.abc import Iterator

from langgraph.graph import END

from daruma.graph.machine import ENTRY, ON_BUG, TABLE, Each, Target


def mermaid() -> str:
    """Return the machine as a Mermaid flowchart.

    Solid edges are the table's, labelled with their outcomes; thick ones are entered once for each
    item. Dotted edges are the error handlers', drawn once where several nodes share one.
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
    groups: dict[str, list[str]] = {}
    for name, target in ON_BUG.items():
        groups.setdefault(target, []).append(name)
    most = max(groups, key=lambda target: len(groups[target]))
    for target, names in groups.items():
        end = "__end__" if target == END else target
        if len(names) == 1:
            yield f"    {names[0]} -.->|bug| {end}"
        else:
            where = "any other node" if target == most else ", ".join(names)
            yield f'    bug_{target}{{{{"a bug in {where}"}}}} -.-> {end}'
