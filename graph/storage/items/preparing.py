"""Bringing what is to be put into the form that is written; refusing what can not be."""

import json
from collections.abc import Sequence
from typing import Any, Final

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
)

from daruma.graph.storage.items.index_words import IndexWords
from daruma.graph.storage.items.names import stored_name, stored_namespace
from daruma.graph.storage.items.rows import Row
from daruma.graph.storage.items.texts import text_of
from daruma.graph.storage.items.values import ValueRefused, sealed_value
from daruma.state.text import digest
from daruma.tools.threads import to_thread

_LONGEST_NAME: Final = 2000
"""Characters of namespace and key as they are stored; an index of Postgres takes little more."""


def refuse_unusable(ops: Sequence[Op]) -> None:
    """Raise ``ValueRefused``, or LangGraph's errors, for what no store or this one can not do."""
    for op in ops:
        if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
            raise ValueRefused(f"a store knows no operation {type(op).__name__}")
        if isinstance(op, GetOp | PutOp) and not isinstance(op.key, str):
            raise ValueRefused(f"a key is a text, and not {op.key!r:.80}")
        if isinstance(op, PutOp):
            _refuse_put(op)
        if isinstance(op, SearchOp | ListNamespacesOp) and min(op.limit, op.offset) < 0:
            raise ValueRefused("limit and offset must not be negative")


def _refuse_put(op: PutOp) -> None:
    if not op.namespace or not all(isinstance(each, str) and each for each in op.namespace):
        raise InvalidNamespaceError(f"a namespace is made of texts, and has one: {op.namespace!r}")
    if op.ttl is not None:
        raise NotImplementedError("items do not expire here: put them without a ttl")
    if len(stored_namespace(op.namespace)) + len(stored_name(op.key)) > _LONGEST_NAME:
        raise ValueRefused(
            f"the item {op.key[:40]!r}... can not be kept: its namespace and key are longer than "
            f"{_LONGEST_NAME} characters"
        )


async def prepared(index: IndexWords, puts: Sequence[PutOp]) -> list[Row]:
    """Return the rows of items, made in a thread: splitting texts into words takes its time."""
    if not puts:
        return []
    return await to_thread(lambda: [_row(index, op) for op in puts])


def _row(index: IndexWords, op: PutOp) -> Row:
    value: dict[str, Any] = dict(op.value or {})
    sealed = sealed_value(index.sealing, op.namespace, op.key, value)
    text = text_of(value, op.index)
    return Row(
        namespace=stored_namespace(op.namespace),
        key=stored_name(op.key),
        value=sealed,
        indexed=index.of_item(op.namespace, value, text),
        text=text,
        meant="" if index.sealing.hides or not text.strip() else digest(text),
        fields=json.dumps(None if index.sealing.hides else op.index),
    )
