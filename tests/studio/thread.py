"""A thread on the development server, driven as its clients do."""

from pathlib import Path
from typing import Any

from tests.studio.dev_server import ASSISTANT, PLAYED, DevServer

ASKED = {"run_command": "confirm"}
PLAN = {"json": {"phases": [{"id": "p1", "title": "Do it", "instructions": "Just do it."}]}}
DONE = {"say": "It is done."}


def command(line: str, id_: str) -> dict[str, Any]:
    """A turn that calls ``run_command``."""
    return {"calls": [{"name": "run_command", "args": {"command": line}, "id": id_}]}


class Thread:
    """A thread, and what a client sees of it; ``context`` are what it sets for its runs."""

    def __init__(self, server: DevServer, workspace: Path) -> None:
        self.server, self.workspace = server, workspace
        self.client = server.client
        self.id = self.client.threads.create()["thread_id"]
        self.context: dict[str, Any] = {}
        self.assistant = ASSISTANT

    def plays(self, policy: dict[str, Any] | None = None, **roles: Any) -> "Thread":
        """Have a script played from now on, under a policy that is stricter than the server's."""
        self.server.plays(self.id, **roles)
        self.context, self.assistant = {"tools": {"policy": policy or {}}}, PLAYED
        return self

    def request(self, text: str, **more: Any) -> dict[str, Any]:
        """Return a request for work in the workspace."""
        messages = [{"role": "user", "content": text}]
        return {"messages": messages, "workspace": str(self.workspace), **more}

    def starts(self, given: Any, **options: Any) -> str:
        """Begin a run behind the client's back; return its id."""
        made = self.client.runs.create(
            self.id, self.assistant, input=given, context=self.context, **options
        )
        return str(made["run_id"])

    def runs(self, given: Any = None, **options: Any) -> str:
        """Run to its end; return the error's message, empty for none."""
        options = {"context": self.context} | options
        ended: Any = self.client.runs.wait(
            self.id, self.assistant, input=given, raise_error=False, **options
        )
        return str(ended["__error__"]["message"]) if ended and "__error__" in ended else ""

    def answers(self, reply: Any, **options: Any) -> str:
        """Send a reply that names no question."""
        return self.runs(command={"resume": reply}, **options)

    @property
    def state(self) -> Any:
        return self.client.threads.get_state(self.id)

    @property
    def question(self) -> Any:
        """The one open question, its id, value and schema."""
        (interrupt,) = self.state["interrupts"]
        return interrupt

    @property
    def status(self) -> str | None:
        """The status of its task; None while that is not over."""
        result = self.state["values"].get("result")
        return result["status"] if result else None

    @property
    def said(self) -> list[str]:
        return [message["content"] for message in self.state["values"]["messages"]]
