"""What went wrong and is not yet dealt with, the codes of failures, and what recovery does about
one (EM-04, RE-04).
"""

import re
import traceback
from typing import Any, Final, Literal, NamedTuple

from typing_extensions import override

from daruma.state.errors import DarumaError
from daruma.state.record import plain_values, record
from daruma.state.text import without_names
from daruma.state.usage import Failover

# --- What is done about a failure: the action that recovery chose, and what is on record of it
# (RE-04).

Strategy = Literal["retry", "alternative-tool", "parameter-adjustment", "escalate", "give-up"]
"""The five strategies of RE-04."""

ChosenBy = Literal["model", "rule", "learned"]

Assent = Literal["", "approval", "question"]
"""What a person is asked before an action is done: nothing, whether to do it, or what to do."""


@record
class RecoveryAction:
    """One action against a failure (RE-04). ``confidence`` is from 0 to 1.

    ``tool_name`` is the tool that the action is about: the one to call with ``parameters``, or the
    one to use in place of what failed. ``escalation_message`` is the question to a person;
    ``assent`` says what a person is asked before anything is done.
    """

    strategy: Strategy
    reasoning: str = ""
    tool_name: str | None = None
    parameters: dict[str, Any] | None = None
    escalation_message: str = ""
    expected_outcome: str = ""
    confidence: float = 0.0
    by: ChosenBy = "model"
    assent: Assent = ""
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of RE-04 as JSON-able values, and who chose it."""
        return {
            "strategy": self.strategy,
            "reasoning": self.reasoning,
            "action": {
                "tool_name": self.tool_name,
                "parameters": self.parameters,
                "escalation_message": self.escalation_message,
            },
            "expected_outcome": self.expected_outcome,
            "confidence": self.confidence,
            "by": self.by,
        }


Carried = Literal["executed", "approved", "denied", "instructed", "answered", "observed"]
"""What became of an action: done at once or after a yes, replaced by a person's, or only seen."""

DONE: Final = ("executed", "approved")
"""The action itself was done."""


@record
class Recovered:
    """What the record of steps keeps of a recovery. ``code`` is that of the failure.

    ``tool`` is the tool that is tried again, ``hides`` the one that the next request does not show,
    ``instead`` the one to use in its place; ``reasoning`` is the chooser's, cut short.
    ``worked`` is set in a task's result: whether work went on and the failure did not come again.
    """

    code: str
    strategy: Strategy
    by: ChosenBy
    carried: Carried
    confidence: float = 0.0
    tool: str = ""
    hides: str = ""
    instead: str = ""
    reasoning: str = ""
    worked: bool | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return plain_values(self)


# --- The code of an exception that no node expected, by the names of its types alone (EM-02).
#
# Names tell as much as the classes would, need no library, and are all that is left of an exception
# after a crash: LangGraph then has its ``repr``.

_STORAGE = frozenset(
    {
        "StorageUnavailable", "OperationalError", "InterfaceError",
        # kinds of OperationalError, for when only a repr is left
        "AdminShutdown", "CannotConnectNow", "CrashShutdown", "ConnectionException",
        "ConnectionDoesNotExist", "ConnectionFailure", "ConnectionTimeout", "DatabaseDropped",
        "DiskFull", "IdleSessionTimeout", "OutOfMemory", "PoolClosed",
        "QueryCanceled", "SerializationFailure", "DeadlockDetected", "TooManyConnections",
    }
)  # fmt: skip
"""Those of psycopg and its pool, and our own."""

_PROVIDER = frozenset(
    {
        # openai and anthropic; most are kinds of APIError
        "APIError", "APIStatusError", "APIConnectionError", "APIResponseValidationError",
        "AuthenticationError", "BadRequestError", "ConflictError", "InternalServerError",
        "NotFoundError", "OAuthError", "OverloadedError", "PermissionDeniedError",
        "RateLimitError", "RequestTooLargeError", "ServiceUnavailableError",
        "UnprocessableEntityError", "LengthFinishReasonError", "ContentFilterFinishReasonError",
        # httpx
        "CloseError", "ConnectError", "DecodingError", "HTTPError", "HTTPStatusError", "SSEError",
        "InvalidURL", "LocalProtocolError", "NetworkError", "ProtocolError", "ProxyError",
        "ReadError", "RemoteProtocolError", "RequestError", "RequestNotRead", "ResponseNotRead",
        "StreamClosed", "StreamConsumed", "StreamError", "TooManyRedirects", "TransportError",
        "UnsupportedProtocol", "WriteError",
        # langchain and its provider packages
        "ChatGoogleGenerativeAIError", "ContextOverflowError", "ModelAPIError",
        "ModelAuthenticationError", "ModelConnectionError", "ModelInvalidRequestError",
        "ModelNotFoundError", "ModelPermissionDeniedError", "ModelRateLimitError",
        "OutputParserException",
        # our own
        "ModelError", "ModelFailed", "ModelUnavailable", "ScriptInvalid", "ScriptedFault",
    }
)  # fmt: skip

_PROVIDERS = ("OpenAI", "Anthropic")
"""What names of a provider's package begin with."""


_SCRIPT = ("ScriptExhausted", "ScriptMismatch")
"""What a scripted model raises where its script does not fit: that is to be mended."""


def classify(error: BaseException | str) -> "Code":
    """Name the code of an exception, or of its ``repr``, by its type alone, no model asked (EM-02).

    Its words do not count.
    """
    if isinstance(error, ModelFailed):
        return error.code
    names = {each.__name__ for each in type(error).mro()}
    if isinstance(error, str):
        names = {*re.findall(r"^<?(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)", error)}
    if names & _STORAGE:
        return "storage_unavailable"
    if "SandboxUnavailable" in names:
        return "sandbox_violation"
    if any("Timeout" in name or name == "DeadlineExceeded" for name in names):
        return "timeout"
    if names & _PROVIDER or any(name.startswith(_PROVIDERS) for name in names):
        return "llm_failure"
    return "internal_error" if names.isdisjoint(_SCRIPT) else "script_mismatch"


# --- What went wrong, as a value that can be stored, routed on and told.

Code = Literal[
    "timeout",
    "loop_detected",
    "llm_failure",
    "script_mismatch",
    "internal_error",
    "verification_failed",
    "max_steps_exceeded",
    "budget_exceeded",
    "rollback_failed",
    "sandbox_violation",
    "workspace_conflict",
    "storage_unavailable",
    "approval_denied",
    "plan_refused",
    "plan_rejected",
    "plan_contradicted",
    "bad_request",
    "structured_output_invalid",
    "stopped",
]

Reason = Literal[
    "too_large",
    "rate_limited",
    "quota",
    "auth",
    "not_found",
    "tools_unsupported",
    "bad_request",
    "server",
    "timeout",
    "connection",
    "unknown",
]
"""What a model call failed for (TL-17a): ``quota`` is used up, or a credit; ``unknown`` a bug."""

UNUSABLE: Final = ("empty_answer", "refusal", "answer_cut_off")
"""What can be wrong with an answer that came: stands in a failure's ``original_error``."""

_LONGEST: Final = 1000
"""Characters of a bug's message that are kept."""


@record
class Failure:
    """One failure: its ``code`` by EM-02, the node it happened in, a line for people.

    ``detail`` keeps a traceback or an excerpt; ``original_error`` names the exception's type, or
    what was wrong with an answer. ``tool`` is the tool that it is about, if any. ``final`` marks
    what no further try of this run can overcome, such as a key that is refused. ``reason`` says
    what a model call failed for.
    """

    code: Code
    node: str
    message: str
    original_error: str | None = None
    detail: str = ""
    tool: str = ""
    final: bool = False
    reason: Reason = "unknown"
    schema_version: int = 1

    @property
    def was_raised(self) -> bool:
        """Whether it was an exception, and not an answer that could not be used."""
        return self.original_error is not None and self.original_error not in UNUSABLE

    @property
    def unanswered(self) -> bool:
        """Whether a model was asked and never heard, so that there is nothing to tell it."""
        asked = self.code in ("timeout", "llm_failure") and self.node in ("main", "plan")
        return asked and self.original_error not in UNUSABLE

    @property
    def signature(self) -> str:
        """Equal for failures that differ only in numbers, such as ids, times and ports.

        Those of a model that was not heard differ by their cause alone: a provider puts an id into
        each message, and who else was asked stands there too. Being stuck is the same for errors
        that differ in names alone (RE-01a).
        """
        if self.code == "loop_detected":
            return f"{self.node}:{self.code}:{without_names(self.message)[:200]}"
        told = self.original_error if self.unanswered else None
        return f"{self.node}:{self.code}:{told or re.sub(r'[0-9]+', '#', self.message)[:200]}"


class TooLong(NamedTuple):
    """A request that a provider found too long, in its tokens; 0 for what it did not say."""

    most: int = 0
    sent: int = 0


class ModelFailed(Exception):
    """Raised when a model call came to no usable answer; carries the code to report it under.

    ``cause`` names the provider's exception, which is also its ``__cause__``. ``final`` says that
    the same would be refused again; ``failover`` tells what was tried; ``too_long`` that the
    request was more than the model can read; ``reason`` what it failed for.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Code = "llm_failure",
        cause: str | None = None,
        final: bool = False,
        failover: Failover | None = None,
        too_long: TooLong | None = None,
        reason: Reason = "unknown",
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self.cause = cause
        self.final = final
        self.failover = failover
        self.too_long = too_long
        self.reason: Reason = reason


class TaskFailed(DarumaError):
    """Raised for a failure where settings ask for exceptions and there is none to raise (EM-05).

    Either nothing was raised, as in a loop, or what was raised is gone with the process or the run
    that it was raised in. ``failure`` says what is known of it.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    @property
    def code(self) -> Code:
        """The code of the failure (EM-02)."""
        return self.failure.code

    @override
    def __str__(self) -> str:
        message = " ".join(self.failure.message.split())
        return f"{self.failure.code} in {self.failure.node}: {message}"


def failure_of(error: ModelFailed, node: str) -> Failure:
    """Record a model call's failure in ``node``."""
    return Failure(
        code=error.code,
        node=node,
        message=str(error),
        original_error=error.cause,
        final=error.final or error.too_long is not None,
        reason=error.reason,
    )


def bug_in(node: str, error: BaseException | str) -> Failure:
    """Record an exception that no node expected, with its traceback.

    After a crash in the handler LangGraph hands over the stored ``repr`` instead of the exception.
    """
    if isinstance(error, str):
        text = error[:_LONGEST]
        return Failure(code=classify(error), node=node, message=text, original_error=text)
    return Failure(
        code=classify(error),
        node=node,
        message=_words_of(error)[:_LONGEST],
        original_error=type(error).__name__,
        detail="".join(traceback.format_exception(error))[-8000:],
        final=isinstance(error, ModelFailed) and error.final,
        reason=error.reason if isinstance(error, ModelFailed) else "unknown",
    )


def _words_of(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - anybody's code, and the last net must not tear
        return name
