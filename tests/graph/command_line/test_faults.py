"""Whatever goes wrong is one line; a bug's traceback is kept in a file."""

from pathlib import Path

import openai
import psycopg
import pytest
from tests.daruma_command import DONE, Daruma
from tests.parts import a_failure

from daruma.graph.command_line.app import complaint, failed, kept
from daruma.graph.models.faults import ModelUnavailable
from daruma.state.errors import StorageUnavailable
from daruma.state.failure import TaskFailed


def test_errors_for_people_are_said_as_they_are() -> None:
    """They are one clear line already."""
    assert complaint(ModelUnavailable("no key")) == "no key"
    assert complaint(StorageUnavailable("no database")) == "no database"


def test_a_lost_database_says_how_to_go_on() -> None:
    """DU-04: nothing is lost."""
    said = complaint(psycopg.OperationalError("server closed\nthe connection"))

    assert said is not None
    assert "server closed the connection" in said
    assert "daruma resume" in said


def test_a_role_that_may_not_write_is_no_lost_database(daruma: Daruma) -> None:
    """To wait for it to come back would be waiting for ever: what is missing is a grant."""
    daruma("threads")
    with psycopg.connect(daruma.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE daruma_reader NOLOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO daruma_reader")
        try:
            daruma.setenv("PGOPTIONS", "-c role=daruma_reader")
            said = daruma("run", "Hi", "--mode", "direct_chat", "--model", daruma.script())
        finally:
            connection.execute("DROP OWNED BY daruma_reader")
            connection.execute("DROP ROLE daruma_reader")

    assert "the database refused it (permission denied for table" in said.complaint
    assert "granted" in said.complaint


@pytest.mark.parametrize("name", ["show", "resume", "undo", "retry"])
def test_a_name_that_is_no_text_is_one_line(daruma: Daruma, name: str) -> None:
    """Bytes of another encoding on the command line are a mistake, not a bug."""
    assert "is no thread's name" in daruma(name, "\udcff").complaint


def test_a_key_that_a_provider_quotes_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's own exception, where emergency is switched off, says what it likes."""
    monkeypatch.setenv("SOME_API_KEY", "own-secret")
    said = complaint(openai.OpenAIError("the key own-secret is wrong"))

    assert said is not None
    assert "the key [key] is wrong" in said


def test_a_bug_is_one_line_and_its_traceback_is_kept() -> None:
    """Never a bare traceback, and never a lost one."""
    error = ZeroDivisionError("planted")

    assert complaint(error) is None
    line = kept(error)

    file = Path(line.rsplit(" ", 1)[-1])
    assert "\n" not in line
    assert "ZeroDivisionError: planted" in file.read_text()
    file.unlink()


OFF = {
    "no chain": ("fallback_chain: {enabled: false}", "resume"),
    "no emergency": (
        "fallback_chain: {recovery: {enabled: false}, emergency: {enabled: false}}",
        "retry",
    ),
}


@pytest.mark.parametrize("off", OFF)
def test_a_failure_that_is_raised_is_one_line_and_can_be_gone_on_with(
    daruma: Daruma, off: str
) -> None:
    """EM-05: the exit code is that of a task that failed; the thread is not stuck."""
    rules, again = OFF[off]
    (daruma.folder / "daruma.yaml").write_text(rules)
    model = daruma.script(main=[{"raise": "out of order"}, DONE])
    said = daruma("run", "Do it", "--thread", "t", "--model", model)

    assert said.code == 1
    (line,) = (line for line in said.err.splitlines() if line.startswith("daruma: "))
    assert "out of order" in line
    daruma.script(main=[DONE, DONE])
    assert daruma(again, "t").code == 0


def test_a_task_that_failed_is_no_mistake_of_a_person() -> None:
    """EM-05: a mistake is mended and the command typed again; this is a failure."""
    assert failed(TaskFailed(a_failure()))
    assert failed(TimeoutError("slow"))
    assert not failed(ModelUnavailable("no key"))
    assert not failed(ZeroDivisionError("planted"))
    assert complaint(TaskFailed(a_failure())) == "llm_failure in main: broken"
