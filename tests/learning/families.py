"""Ten kinds of task, three alike of each, with what goes wrong in them and what tells how not to.

A task can be carried out again as it was: its workspace is made anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Way = Literal["file", "loop", "tool", "plan"]
"""It writes a file that the check reads, waits for a job, exports a table, or plans."""


@dataclass(frozen=True)
class Family:
    """Tasks that go wrong in the same way.

    Who reads ``clue`` does what is right; ``wrong`` is done by who does not. ``said`` is what the
    check says of it, if there is one: the clue stands in it, but where the text is of no use.
    """

    name: str
    way: Way
    planned: bool
    goal: str
    clue: str
    right: str = ""
    wrong: str = ""
    said: str = ""
    helps: bool = True

    @property
    def file(self) -> str:
        """The file that is looked at in the end."""
        return f"{self.name}.txt"


PARTS = ("north", "south", "east")
"""What the three tasks of a family differ in."""

FAMILIES = (
    Family(
        "rounding", "file", planned=False, clue="half_up", right="half_up", wrong="bankers",
        goal="Set how amounts on invoices of the {} office are rounded",
        said="AssertionError: invoices are rounded half_up, never bankers",
    ),
    Family(
        "calendar", "file", planned=False, clue="YYYY-MM-DD", right="YYYY-MM-DD", wrong="DD.MM.YY",
        goal="Choose the date format that reports for the {} warehouse carry",
        said="AssertionError: the archive reads YYYY-MM-DD alone",
    ),
    Family(
        "gateway", "file", planned=True, clue="8443", right="8443", wrong="8080",
        goal="Configure which port the payment gateway of the {} region listens on",
        said="AssertionError: the firewall lets only 8443 through",
    ),
    Family(
        "verbosity", "file", planned=True, clue="NOTICE", right="NOTICE", wrong="DEBUG",
        goal="Pick the log level for the {} cluster's billing daemon",
        said="AssertionError: syslog wants NOTICE or quieter",
    ),
    Family(
        "nightly", "loop", planned=False, clue="poll_status",
        goal="Wait until the nightly import for the {} branch has finished",
    ),
    Family(
        "backup", "loop", planned=True, clue="poll_status",
        goal="See that the weekly backup at the {} site is complete",
    ),
    Family(
        "export", "tool", planned=False, clue="export_rows",
        goal="Export the customers table from the {} database as rows",
    ),
    Family(
        "migration", "plan", planned=True, clue="depend on each other",
        goal="Migrate the inventory schema in the {} factory to its new version",
    ),
    Family(
        "quota", "file", planned=False, clue="12 GB", right="12 GB", wrong="10 GB",
        goal="Raise the disk quota that students at the {} campus have",
        said="AssertionError: that is not what was agreed", helps=False,
    ),
    Family(
        "greeting", "file", planned=True, clue="Guten Tag", right="Guten Tag", wrong="Hello",
        goal="Translate the greeting on the home page of the {} hotel",
        helps=False,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class ATask:
    """One task of a family."""

    family: Family
    part: str

    @property
    def goal(self) -> str:
        """What is asked for."""
        return self.family.goal.format(self.part)

    @property
    def request(self) -> str:
        """What is sent: the goal, and which mode it is for."""
        return f"@plan {self.goal}" if self.family.planned else self.goal

    def prepare(self, folder: Path) -> None:
        """Make the workspace with its check."""
        folder.mkdir(parents=True)
        family = self.family
        check = f"echo '{family.said}'; exit 1" if family.said else "exit 1"
        look = f"grep -qF '{family.right}' {family.file}" if family.way == "file" else "true"
        (folder / "check.sh").write_text(f"{look} || {{ {check}; }}\n")


def tasks(parts: tuple[str, ...] = PARTS) -> Iterator[ATask]:
    """Yield all tasks, those of one family apart from each other."""
    for part in parts:
        for family in FAMILIES:
            yield ATask(family, part)
