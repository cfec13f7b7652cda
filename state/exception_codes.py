"""The code of an exception that no node expected, by the names of its types alone (EM-02).

Names tell as much as the classes would, need no library, and are all that is left of an exception
after a crash: LangGraph then has its ``repr``.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daruma.state.failure import Code

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
        "CloseError", "ConnectError", "DecodingError", "HTTPError", "HTTPStatusError",
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


def code_of(error: BaseException | str) -> "Code":
    """Name the code of an exception, or of an exception's ``repr``; its words do not count."""
    names = _names_in(error) if isinstance(error, str) else {c.__name__ for c in type(error).mro()}
    if names & _STORAGE:
        return "storage_unavailable"
    if "SandboxUnavailable" in names:
        return "sandbox_violation"
    if any("Timeout" in name or name == "DeadlineExceeded" for name in names):
        return "timeout"
    if names & _PROVIDER or any(name.startswith(_PROVIDERS) for name in names):
        return "llm_failure"
    return "internal_error"


def _names_in(text: str) -> set[str]:
    found = re.match(r"<?(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)", text)
    return {found[1]} if found else set()
