"""The systems that are measured, each built as its documentation says."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
)
from tests.benchmarks.ground import Stores
from tests.benchmarks.plain_graph import plain_graph
from tests.benchmarks.raw_loop import RawLoop
from tests.benchmarks.task import PROMPT, Task

from daruma import Settings, build_graph

Build = Callable[[Task, Stores], Any]

RAW: Final = "raw loop"
PLAIN: Final = "plain LangGraph"
BARE: Final = "`create_agent`"
FULL: Final = "`create_agent`, 5 middlewares"
DEEP: Final = "deepagents"
FREE: Final = "Daruma, tools without effect"
JOURNALLED: Final = "Daruma, journalled tools"
STOCKED: Final = "Daruma, tools without effect, on the stock saver"


def raw(task: Task, stores: Stores) -> Any:
    """A loop without a framework."""
    return RawLoop(task, stores.raw)


def plain(task: Task, stores: Stores) -> Any:
    """Two nodes and two edges."""
    return plain_graph(task, stores.stock)


def bare(task: Task, stores: Stores) -> Any:
    """LangChain's agent with a prompt and a saver."""
    return create_agent(task.model, [task.tool()], system_prompt=PROMPT, checkpointer=stores.stock)


def full(task: Task, stores: Stores) -> Any:
    """LangChain's agent with what makes it reliable; nothing fails, is too long or is asked."""
    middleware: list[Any] = [
        ModelRetryMiddleware(),
        ModelFallbackMiddleware(task.model),
        ToolCallLimitMiddleware(run_limit=task.steps * task.at_once + 1),
        SummarizationMiddleware(task.model, trigger=("tokens", 1_000_000)),
        HumanInTheLoopMiddleware({"pay": True}),
    ]
    return create_agent(
        task.model,
        [task.tool()],
        system_prompt=PROMPT,
        middleware=middleware,
        checkpointer=stores.stock,
    )


def deep(task: Task, stores: Stores) -> Any:
    """The deep agent with its own tools and prompt beside ours."""
    from deepagents import create_deep_agent

    return create_deep_agent(
        task.model, [task.tool()], system_prompt=PROMPT, checkpointer=stores.stock
    )


def free(task: Task, stores: Stores) -> Any:
    """Daruma under its default settings, with a tool that changes nothing outside."""
    return daruma(task, stores, "none")


def journalled(task: Task, stores: Stores) -> Any:
    """Daruma under its default settings, with a tool that declares nothing: each call is noted."""
    return daruma(task, stores, "external")


def stocked(task: Task, stores: Stores) -> Any:
    """The same as ``free`` on LangGraph's saver: no lease, no fence, no checks of what is kept."""
    settings = _enough(task)
    return build_graph(task.model, [task.tool("none")], settings, checkpointer=stores.stock)


def daruma(task: Task, stores: Stores, effect: str, budget: int | None = None) -> Any:
    """Daruma with enough steps for the task; ``budget`` is the most tokens of a request."""
    settings = _enough(task, budget)
    return build_graph(task.model, [task.tool(effect)], settings, persistence=stores.daruma)


def _enough(task: Task, budget: int | None = None) -> Settings:
    given = {
        "budgets": {"max_steps": task.steps + 1},
        "llm": {"context_window_tokens": budget},
        "tools": {"max_calls_per_turn": max(20, task.at_once)},
    }
    return Settings.model_validate(given)


SYSTEMS: Final[Mapping[str, Build]] = {
    RAW: raw,
    PLAIN: plain,
    BARE: bare,
    FULL: full,
    **({DEEP: deep} if find_spec("deepagents") else {}),  # of the extra `benchmarks`
    FREE: free,
    JOURNALLED: journalled,
}
