"""Tasks over providers that find a request too large, each in its own words: less, then an answer.

The phrasings are those of ``tests/graph/models/provider_words.py``, through the real clients; their
numbers are made to fit the server's window.
``python -m tests.context_window.provider_figures`` prints the figures of each.
"""

import json
import re
import sys
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr
from tests.context_window.thread_server import Provider, is_summary, request_tokens
from tests.context_window.threads import thread
from tests.graph.models.provider_words import TOO_LARGE, Row
from tests.openai_server import Fault

WINDOW: Final = 1200
STEPS: Final = (6, 12)
ROWS: Final = [row for row in TOO_LARGE if row.status is not None]
ANTHROPIC: Final = [
    row
    for row in ROWS
    if row.who.startswith(("Anthropic", "LiteLLM", "nginx", "Bedrock", "Vertex"))
]


def claude(url: str) -> BaseChatModel:
    """Anthropic's client, which asks once."""
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(
        model_name="claude-of-a-test",
        api_key=SecretStr("sk-ant-a-test"),
        base_url=url.removesuffix("/v1"),
        max_retries=0,
        timeout=10,
        stop=None,
    )


CLIENTS: Final[dict[str, Any]] = {"OpenAI": "openai:gpt-4o", "Anthropic": claude}
CASES: Final = [
    *(("OpenAI", row) for row in ROWS),
    *(("Anthropic", row) for row in ANTHROPIC),
]


def refusal_of(row: Row) -> Fault:
    """Return what the provider says, with its numbers in proportion to the window."""
    text = row.body if isinstance(row.body, str) else json.dumps(row.body)
    if row.limit:
        scale = WINDOW / row.limit
        text = re.sub(r"[0-9]{4,}", lambda found: str(round(int(found[0]) * scale)), text)
    body = text if isinstance(row.body, str) else json.loads(text)
    return Fault(row.status or 400, body)


def run(client: str, row: Row, steps: int) -> dict[str, Any]:
    """Run a task of so many steps, and return how it went."""
    provider = Provider(rounds=steps - 1, window=WINDOW, refusal=refusal_of(row))
    with thread(provider, model=CLIENTS[client], budget=None) as it:
        it.ask("Look around.")

        result = it.state.result
        assert result is not None
        sizes = [request_tokens(request) for request in it.sent]
        return {
            "status": result.status,
            "steps": result.budgets["think"],
            "requests": len(sizes),
            "refused": sum(size > WINDOW for size in sizes),
            "compactions": result.budgets["compress"],
            "summaries": sum(map(is_summary, it.server.requests)),
            "error": result.error_message,
        }


def main() -> None:
    """Print a row for each phrasing, client and length of a task."""
    sys.stdout.write("| client | who | steps | refused | compactions | requests | status |\n")
    sys.stdout.write("|" + "---|" * 7 + "\n")
    for client, row in CASES:
        for steps in STEPS:
            told = run(client, row, steps)
            figures = (told[name] for name in ("refused", "compactions", "requests", "status"))
            cells = " | ".join(map(str, (client, row.who, steps, *figures)))
            sys.stdout.write(f"| {cells} |\n")


if __name__ == "__main__":
    main()
