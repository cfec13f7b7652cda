"""Telling somebody that a thread begins to wait for a person: over a webhook, by a program."""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR
from threading import Timer
from typing import Any, Final
from urllib.parse import urlsplit

from daruma.graph.learning_jobs import SECONDS, Job, Jobs
from daruma.graph.storage import OpenQuestion, PostgresSaver, claim_questions, settle_question
from daruma.state.errors import DarumaError
from daruma.state.settings import Notify
from daruma.tools.calls import resolve_program
from daruma.tools.commands import DEVNULL, CannotRun, ask_program, host_environment
from daruma.tools.text import mask_keys, note_secrets, without_keys
from daruma.tools.threads import to_thread

LOG: Final = logging.getLogger("daruma.notify")

_JOBS: Final = Jobs(SECONDS)
_PENDING: Final = 100
_AT_ONCE: Final = 4
_TEXT: Final = 500
_WAIT: Final = 1.0
"""Seconds before the second try."""


def notify(
    saver: object, settings: Notify, workspace: str | None = None, thread: str | None = None
) -> None:
    """Tell of each question of a thread, or of all, that nobody was told of yet (PL-04).

    It returns at once, and raises nothing: what goes wrong is logged. Whoever claims a question
    tells of it; of one whose teller was killed somebody else tells after two minutes, so it is told
    once, or after a kill at least once.
    """
    if not isinstance(saver, PostgresSaver) or not (settings.webhook or settings.command):
        return
    note_secrets([settings.webhook] if settings.webhook else [])
    work = partial(_notify, saver, settings, workspace, thread)
    job = Job(work=work, told=_log_failure, at_once=_AT_ONCE, place=saver.database)
    if not _JOBS.take(job, _PENDING):
        _log_failure(RuntimeError(f"{_PENDING} wait to be told already"))


async def _notify(
    saver: PostgresSaver, settings: Notify, workspace: str | None, thread: str | None
) -> None:
    for asked in await claim_questions(saver, thread):
        body = json.dumps(message_of(asked)).encode()
        post = partial(_post, settings.webhook or "", body, settings.timeout)
        run = partial(_run, settings, workspace, body)
        for is_wanted, way in ((settings.webhook, post), (settings.command, run)):
            try:
                if is_wanted:
                    await _deliver(way)
            except (OSError, HTTPException, DarumaError, *CannotRun) as error:
                _log_failure(error, asked.thread_id)
        await settle_question(saver, asked)


def message_of(asked: OpenQuestion) -> dict[str, Any]:
    """Return what is told of a question: never its arguments or files, and no keys."""
    told = {
        "thread": asked.thread_id,
        "kind": asked.kind,
        "id": asked.interrupt_id,
        "since": asked.since.isoformat(),
        "text": asked.text[:_TEXT],
    }
    return {**mask_keys(told)}


async def _deliver(way: Callable[[], None]) -> None:
    try:
        await to_thread(way)
    except (OSError, HTTPException, DarumaError, *CannotRun):
        await asyncio.sleep(_WAIT)
        await to_thread(way)


def _post(url: str, body: bytes, seconds: float) -> None:
    """Post a JSON object; a redirect is not followed, an answer without an end is cut."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    cutting = Timer(seconds, _cut, [connection])  # the other limit is one for each part of it
    cutting.daemon = True
    try:
        connection.connect()
        cutting.start()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        status = connection.getresponse().status
    finally:
        cutting.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise DarumaError(f"{parts.hostname} answered {status}")


def _cut(connection: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # it is closed
        connection.sock.shutdown(SHUT_RDWR)


def _run(settings: Notify, workspace: str | None, body: bytes) -> None:
    argv = resolve_program(settings.command, workspace, "notify.command")
    environment = host_environment(Path(workspace) if workspace else None)
    code = ask_program(
        argv, body, settings.timeout, stdout=DEVNULL, stderr=DEVNULL, env=environment
    )
    if code:
        raise DarumaError(f"notify.command ended with exit code {code}")


def _log_failure(error: BaseException | None, thread: str = "") -> None:
    if error:
        of = f" of thread {thread!r}" if thread else ""
        said = " ".join(without_keys(str(error)).split()) or type(error).__name__
        LOG.warning(f"nobody was told{of} that it waits: {said}")
