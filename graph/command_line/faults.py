"""What went wrong, as one line on standard error and exit code 2; never a bare traceback."""

import tempfile
import traceback

from daruma.state.errors import DarumaError

FAILED = 1
USAGE = 2


def failed(error: Exception) -> bool:
    """Whether it is what a task failed of, raised as it is where emergency is switched off."""
    from daruma.graph.models.errors import ScriptedFault
    from daruma.state.failure import TaskFailed, classify

    if isinstance(error, DarumaError):
        return isinstance(error, TaskFailed | ScriptedFault)
    return classify(error) in ("llm_failure", "timeout")


def complaint(error: Exception) -> str | None:
    """Return the one line that says what is wrong and what to do; None for a bug of ours."""
    if isinstance(error, DarumaError):
        return str(error)
    from psycopg import Error
    from psycopg.errors import InsufficientPrivilege

    if isinstance(error, Error):
        reason = " ".join(str(error).split())
        if isinstance(error, InsufficientPrivilege):
            return (
                f"the database refused it ({reason}): its role has to be granted reading and "
                "writing of all tables there, or let DARUMA_POSTGRES_URL name another role"
            )
        return f"the database was lost ({reason}): when it is back, `daruma resume THREAD` goes on"
    if failed(error):
        from daruma.tools.text.secrets import without_keys

        reason = " ".join(without_keys(str(error)).split())
        return f"{type(error).__name__}: {reason}; `daruma show THREAD` says where it stands"
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; `daruma threads` shows what can be resumed"
    return None


def kept(error: Exception) -> str:
    """Keep the traceback of a bug in a file, and return the line that says so."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="daruma-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.writelines(traceback.format_exception(error))
    return f"this is a bug ({type(error).__name__}: {error}): report it with {file.name}"
