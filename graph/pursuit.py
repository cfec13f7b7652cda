"""One answer that is asked for: where in the chain of models we are, and what failed so far."""

from dataclasses import dataclass, field, replace
from typing import Any

from daruma.graph.answers import AGENTS
from daruma.graph.failover import Move, Tried
from daruma.graph.model_request import Request
from daruma.graph.models.errors import CircuitOpen, ModelUnavailable
from daruma.graph.models.faults import Fault, fault_of
from daruma.graph.models.model_keys import keys_of
from daruma.state.failure import ModelFailed
from daruma.state.usage import Attempt, Failover, Role, Usage
from daruma.tools.calls.results import clean
from daruma.tools.text.secrets import without_keys

MAX_MESSAGE = 500
"""Characters of a provider's message that are kept; some send whole pages."""


@dataclass
class Pursuit:
    """A call under way; ``began`` is by the asker's clock. ``circuit`` is that of the model
    ``asked`` just now, ``charged`` what its last answer cost that could not be used.
    """

    node: str
    call: int
    role: Role
    chain: tuple[str, ...]
    request: Request
    began: float
    member: str = ""
    place: int = 0
    circuit: str | None = None
    asked: object = None
    tried: list[Tried] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    charged: Usage | None = None

    @property
    def model(self) -> str:
        """The name of the model that is asked just now."""
        return self.chain[self.place]

    @property
    def is_last(self) -> bool:
        """Whether no other model is left."""
        return self.place + 1 == len(self.chain)

    @property
    def requests(self) -> int:
        """How many requests have failed."""
        return sum(each.asked for each in self.tried)

    @property
    def used(self) -> Role:
        """What the model that is asked just now is asked as."""
        return self.role if self.place == 0 else "fallback"

    @property
    def metadata(self) -> dict[str, Any]:
        """What traces and streamed chunks show of the request that is made just now."""
        agent, task = AGENTS.get(self.node, ("", ""))
        return {
            "daruma_role": self.node,
            "daruma_call": self.call,
            "daruma_model": self.model,
            "daruma_attempt": self.requests + 1,
            "daruma_model_role": self.used,
            **({"daruma_failover": self._failover()} if self.tried else {}),
            **({"daruma_member": self.member} if self.member else {}),
            **({"daruma_agent": agent, "daruma_task": task} if agent else {}),
        }

    def _failover(self) -> dict[str, Any]:
        """Say what this request makes up for: which one failed last, and why."""
        last = self.tried[-1]
        return {
            "attempt": self.requests + 1,
            "from": self.chain[last.place],
            "to": self.model,
            "why": last.fault.message,
        }

    def failed(self, error: Exception) -> Tried:
        """Take down what failed; a request without an option that was refused comes next."""
        fault = fault_of(error)
        said = clean(without_keys(fault.message, keys_of(self.asked))[:MAX_MESSAGE])
        fault = replace(fault, message=said)
        request = self.request.without_refused(fault)
        if request is not self.request:
            self.request, fault = request, replace(fault, kind="mend")
        asked = not isinstance(error, CircuitOpen | ModelUnavailable)
        self.tried.append(Tried(self.place, fault, asked))
        return self.tried[-1]

    def moved(self, move: Move, seconds: float) -> Attempt:
        """Take down what was done about the last failure, and go on from there."""
        fault = self.tried[-1].fault
        attempt = Attempt(
            model=self.model,
            error=fault.message,
            then=move.then,
            status=fault.status,
            seconds=round(seconds, 3),
            usage=self.charged,
        )
        self.charged = None
        self.attempts.append(attempt)
        self.place = move.place
        return attempt

    def failover(self, used: str = "") -> Failover | None:
        """Return what it took, None if the first request brought the answer."""
        if not self.attempts:
            return None
        return Failover(requested=self.chain[0], used=used, attempts=tuple(self.attempts))

    def given_up(self) -> ModelFailed:
        """Return the failure of the call: what its one model said, or what each one did.

        It is final if each model would say the same at any later time.
        """
        last: dict[int, Fault] = {each.place: each.fault for each in self.tried}
        fault = self.tried[-1].fault
        said = [f"{self.chain[place]}: {each.message}" for place, each in last.items()]
        return ModelFailed(
            fault.message if len(last) == 1 else "; ".join(said),
            code=fault.code,
            cause=fault.cause,
            final=all(each.hopeless for each in last.values()),
            failover=self.failover(),
            too_long=fault.too_long,
        )
