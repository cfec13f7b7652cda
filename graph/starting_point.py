"""The checkpoint that a run goes on from: a thread's newest one, or another that was asked for."""

from langchain_core.runnables import RunnableConfig

_POINTS = ("checkpoint_id", "checkpoint_map")


def newest(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of a thread without any checkpoint of it."""
    given = dict((config or {}).get("configurable", {}))
    return RunnableConfig(configurable={k: v for k, v in given.items() if k not in _POINTS})


def start_of(config: RunnableConfig) -> tuple[str, str] | None:
    """Return the thread and the checkpoint that was asked for; None for the newest one."""
    given = config.get("configurable", {})
    if given.get("checkpoint_ns") or not given.get("checkpoint_id"):
        return None
    return str(given["thread_id"]), str(given["checkpoint_id"])


def without_start(config: RunnableConfig | None) -> RunnableConfig:
    """Return the whole config of a run that goes on from the newest checkpoint."""
    return (config or RunnableConfig()) | newest(config)
