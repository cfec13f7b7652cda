"""LangGraph's runtime, which it copies several times for each task, field by field.

``dataclasses.replace`` looks anew at what fields a kind has: that took more of a step than most of
our nodes.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_RUNTIME
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from typing_extensions import override

from daruma.state.settings import Settings

T = TypeVar("T")


class QuickRuntime(Runtime[Settings]):
    """The same, but for how it is copied; what comes of it is one, too."""

    __slots__ = ()

    @override
    def merge(self, other: Runtime[Settings]) -> "QuickRuntime":
        merged = super().merge(other)
        return QuickRuntime(**{name: getattr(merged, name) for name in _names(Runtime)})

    @override
    def patch_execution_info(self, **overrides: Any) -> Runtime[Settings]:
        if self.execution_info is None:
            return super().patch_execution_info(**overrides)
        return _with(self, {"execution_info": _with(self.execution_info, overrides)})

    @override  # the last one: from here on the name means the method
    def override(self, **overrides: Any) -> "QuickRuntime":
        return _with(self, overrides)


def quickly(config: RunnableConfig, store: BaseStore | None) -> RunnableConfig:
    """Return the config of a run whose tasks have such runtimes; ``store`` is its graph's.

    A run within another graph's takes on that one's, as ever.
    """
    around = config, var_child_runnable_config.get() or {}
    if any(CONFIG_KEY_RUNTIME in each.get("configurable", {}) for each in around):
        return config
    configurable = config.get("configurable", {}) | {CONFIG_KEY_RUNTIME: QuickRuntime(store=store)}
    return RunnableConfig(**{**config, "configurable": configurable})


def _with(value: T, changes: Mapping[str, Any]) -> T:
    """Return a copy of a frozen value with changes, made past what keeps it from being changed."""
    kind: Any = type(value)
    made: T = object.__new__(kind)
    for name in _names(kind):
        _put(made, name, changes[name] if name in changes else getattr(value, name))
    return made


_put: Final = object.__setattr__


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
