"""A database that is lost during a command: one line, exit code 2, and how to go on (DU-04)."""

from tests.daruma_command import DONE, Daruma, command
from tests.fault_proxy import FaultProxy, fault_proxy, passing

LOOK = {"calls": [command("true")]}


def run(daruma: Daruma, proxy: FaultProxy, thread: str, last: int) -> list[str]:
    """Run a task whose database is lost from a message on; return what was complained about."""
    daruma.setenv("DARUMA_POSTGRES_URL", proxy.url)
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    model = daruma.script(main=[LOOK, LOOK, DONE])
    proxy.count_from_here(lambda number: "pass" if number < last else "cut before")
    task = ("run", "Do it", "--workspace", "ws", "--mode", "react", "--yes", "--json")
    said = daruma(*task, "--thread", thread, "--model", model)
    proxy.mend()
    assert said.code == (2 if last < 10**6 else 0)
    return [line for line in said.err.splitlines() if line.startswith("daruma: ")]


def test_a_lost_database_is_one_line_and_the_task_can_be_gone_on_with(daruma: Daruma) -> None:
    """Lost half-way through the task."""
    with fault_proxy(daruma.url) as proxy:
        run(daruma, proxy, "whole", 10**6)
        (line,) = run(daruma, proxy, "t", proxy.messages * 2 // 3)

        assert "was lost" in line
        assert "`daruma resume THREAD`" in line
        resumed = daruma("resume", "t", "--yes", "--json")
        assert (resumed.code, resumed.json["status"]) == (0, "completed")
        assert proxy.fate is passing


def test_a_time_that_is_none_is_one_line(daruma: Daruma) -> None:
    """It names the variable."""
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "soon")

    assert "DARUMA_POSTGRES_OUTAGE_SECONDS" in daruma("threads").complaint
