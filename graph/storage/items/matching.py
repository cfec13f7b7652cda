"""Which namespaces fit what is asked of them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition


def matching(
    namespaces: Iterable[tuple[str, ...]], asked: ListNamespacesOp
) -> list[tuple[str, ...]]:
    """Return the namespaces that fit, cut to the depth, sorted: one page of them."""
    fitting = [
        namespace
        for namespace in namespaces
        if all(_fits(namespace, condition) for condition in asked.match_conditions or ())
    ]
    cut = sorted({namespace[: asked.max_depth] for namespace in fitting})
    return cut[asked.offset : asked.offset + asked.limit]


def fixed_prefix(asked: ListNamespacesOp) -> tuple[str, ...]:
    """Return the labels that all namespaces asked for begin with."""
    for condition in asked.match_conditions or ():
        if condition.match_type == "prefix":
            labels = list(condition.path)
            return tuple(labels[: labels.index("*")] if "*" in labels else labels)
    return ()


def _fits(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path: Sequence[Any] = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "suffix":
        namespace, path = namespace[::-1], path[::-1]
    return all(label in ("*", own) for own, label in zip(namespace, path, strict=False))
