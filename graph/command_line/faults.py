"""What went wrong, as one line on standard error and exit code 2; never a bare traceback."""

import tempfile
import traceback

from daruma.state.errors import DarumaError
from daruma.state.failure import classify

USAGE = 2


def complaint(error: Exception) -> str | None:
    """Return the one line that says what is wrong and what to do; None for a bug of ours."""
    if isinstance(error, DarumaError):
        return str(error)
    from psycopg import Error

    if isinstance(error, Error):
        reason = " ".join(str(error).split())
        return f"the database was lost ({reason}): when it is back, `daruma resume THREAD` goes on"
    code = classify(error)
    if code in ("llm_failure", "timeout"):  # raised as it is where emergency is switched off
        reason = " ".join(str(error).split())
        return f"{code}: {type(error).__name__}: {reason}; `daruma retry THREAD` tries again"
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
