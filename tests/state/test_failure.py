"""A failure is a value: it can be compared, stored and told, and a bug keeps its traceback."""

import asyncio
import concurrent.futures
import pickle
import socket
import subprocess
from dataclasses import replace
from typing import Any

import httpx
import openai
import psycopg
import psycopg_pool
import pytest
from langchain_core.exceptions import ContextOverflowError, OutputParserException
from langgraph.errors import NodeTimeoutError
from tests.parts import a_failure

from daruma.graph.models import ModelUnavailable
from daruma.graph.models._faults import ScriptExhausted, ScriptMismatch
from daruma.state.errors import StorageUnavailable
from daruma.state.failure import Code, ModelFailed, TaskFailed, bug_in, classify, failure_of
from daruma.tools.sandbox import SandboxUnavailable

UNHEARD: dict[str, Any] = {"original_error": "InternalServerError"}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (
            {"message": "request 71 to port 8080 failed"},
            {"message": "request 2 to port 9 failed"},
            True,
        ),
        (
            UNHEARD | {"message": "a: sorry, request req_7f3a; b: sorry"},
            UNHEARD | {"message": "a: not asked; b: sorry, request req_c0de"},
            True,
        ),
        (UNHEARD, UNHEARD | {"original_error": "RateLimitError"}, False),
        ({}, {"message": "other"}, False),
        ({}, {"code": "timeout"}, False),
        ({}, {"node": "plan"}, False),
    ],
    ids=["numbers", "a model unheard", "unheard otherwise", "words", "code", "node"],
)
def test_failures_are_the_same_in_other_numbers_and_not_in_other_words(
    one: dict[str, Any], other: dict[str, Any], *, alike: bool
) -> None:
    """RE-07 counts recoveries of the same failure only; a provider puts an id into each message."""
    first, second = replace(a_failure(), **one), replace(a_failure(), **other)

    assert (first.signature == second.signature) is alike


def test_a_bug_keeps_its_traceback() -> None:
    """The last net: the type, the words and where it happened."""

    def broken() -> None:
        raise KeyError("absent")

    with pytest.raises(KeyError) as caught:
        broken()
    failure = bug_in("verify", caught.value)

    assert (failure.code, failure.node) == ("internal_error", "verify")
    assert failure.message == "KeyError: 'absent'"
    assert failure.original_error == "KeyError"
    assert "in broken" in failure.detail


def test_a_bug_may_come_as_its_repr() -> None:
    """After a crash in the handler LangGraph hands over text."""
    failure = bug_in("verify", "KeyError('absent')")

    assert (failure.code, failure.message) == ("internal_error", "KeyError('absent')")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (ModelFailed("x"), "llm_failure"),
        (ModelFailed("x", code="timeout"), "timeout"),
        (ValueError("timeout"), "internal_error"),
        ("TimeoutError()", "timeout"),
        ("ValueError('TimeoutError')", "internal_error"),
    ],
)
def test_an_exception_is_classified_by_its_type(error: BaseException | str, code: Code) -> None:
    """EM-02: never by its words; a ``repr`` begins with the type."""
    assert classify(error) == code


def kinds(*roots: type[BaseException]) -> list[type[BaseException]]:
    """All exceptions of a library, by the classes that they descend from."""
    below = [kind for root in roots for kind in kinds(*root.__subclasses__())]
    return [*roots, *below]


def without_arguments(kind: type[BaseException]) -> BaseException:
    return kind.__new__(kind)


@pytest.mark.parametrize("kind", kinds(openai.APIError, httpx.HTTPError, httpx.StreamError))
def test_what_providers_raise_is_a_model_that_failed(kind: type[BaseException]) -> None:
    """EM-02: or one that took too long; the same for what is left of it after a crash."""
    code = classify(without_arguments(kind))

    assert code == ("timeout" if "Timeout" in kind.__name__ else "llm_failure")
    assert classify(f"{kind.__name__}('text')") == code


@pytest.mark.parametrize(
    "kind",
    [
        TimeoutError,
        asyncio.TimeoutError,
        concurrent.futures.TimeoutError,
        socket.timeout,
        subprocess.TimeoutExpired,
        NodeTimeoutError,
        httpx.ConnectTimeout,
        openai.APITimeoutError,
    ],
)
def test_every_librarys_timeout_is_one(kind: type[BaseException]) -> None:
    """EM-02."""
    assert classify(without_arguments(kind)) == "timeout"
    assert classify(f"{kind.__name__}('text')") == "timeout"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (psycopg.OperationalError, "storage_unavailable"),
        (psycopg.errors.AdminShutdown, "storage_unavailable"),
        (psycopg_pool.PoolClosed, "storage_unavailable"),
        (psycopg.ProgrammingError, "internal_error"),
        (StorageUnavailable, "storage_unavailable"),
        (SandboxUnavailable, "sandbox_violation"),
        (ModelUnavailable, "llm_failure"),
        (ScriptExhausted, "script_mismatch"),
        (ScriptMismatch, "script_mismatch"),
        (KeyError, "internal_error"),
        (ContextOverflowError, "llm_failure"),
        (OutputParserException, "llm_failure"),
    ],
)
def test_an_exceptions_family_counts(kind: type[BaseException], code: Code) -> None:
    """EM-02: a database that is gone, a sandbox, a model; anything else is a bug."""
    assert classify(without_arguments(kind)) == code
    assert classify(f"{kind.__name__}('text')") == code


def test_a_bug_in_words_is_no_exception() -> None:
    """What is said in a message does not count, nor does a subclass's family after a crash."""
    assert classify("<Weird 'TimeoutError('>") == "internal_error"
    assert classify("") == "internal_error"
    assert classify("openai.RateLimitError('slow down')") == "llm_failure"


def test_a_task_that_failed_can_be_told_from_another_and_travels() -> None:
    """EM-05: code, words and one line; queues of workers pickle what is raised."""
    failed = TaskFailed(a_failure("timeout", message="too\nslow"))

    again = pickle.loads(pickle.dumps(failed))  # noqa: S301  # our own bytes

    assert (again.code, str(again)) == ("timeout", "timeout in main: too slow")
    assert again.failure == failed.failure


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_a_bug_without_words_is_told_by_its_type() -> None:
    """The last net must not tear: what it raises ends the run."""
    assert bug_in("verify", Speechless()).message == "Speechless"


@pytest.mark.parametrize("error", [ValueError("x" * 9000), f"ValueError('{'x' * 9000}')"])
def test_a_bug_is_told_in_few_words(error: BaseException | str) -> None:
    """Its message goes into the state, the result and what the model is told."""
    failure = bug_in("verify", error)

    assert len(failure.message) <= 1000
    assert len(failure.original_error or "") <= 1000


@pytest.mark.parametrize("final", [True, False])
def test_what_can_not_be_overcome_stays_so(final: bool) -> None:
    """RE-07: a refused key is given up at once, wherever the exception is caught."""
    error = ModelFailed("401", final=final)

    assert failure_of(error, "main").final is final
    assert bug_in("main", error).final is final


@pytest.mark.parametrize(
    ("node", "original", "unanswered", "raised"),
    [
        ("main", "APIError", True, True),
        ("plan", "APIError", True, True),
        ("main", None, True, False),
        ("verify", "OSError", False, True),
        ("main", "empty_answer", False, False),
    ],
)
def test_a_model_that_was_heard_is_told_from_one_that_was_not(
    node: str, original: str | None, unanswered: bool, raised: bool
) -> None:
    """What is said to it depends on that, and whether there is an exception to raise (EM-05)."""
    failure = replace(a_failure(node=node), original_error=original)

    assert (failure.unanswered, failure.was_raised) == (unanswered, raised)
