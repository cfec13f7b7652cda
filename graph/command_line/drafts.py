"""Texts that a person works on in an editor, kept until they are of use: nothing is lost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from daruma.graph.command_line.choosing import Read, choice
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.text_editor import Edit, edited
from daruma.state.errors import DarumaError

T = TypeVar("T")


@dataclass
class Drafts:
    """What was written last, by what it is about; also where it could not be used."""

    edit: Edit = edited
    texts: dict[str, str] = field(default_factory=dict)

    def written(
        self, about: str, text: str, check: Callable[[str], T], paper: Paper, read: Read
    ) -> T | None:
        """Have a text edited until ``check`` takes it; None where it is left as it was.

        What ``check`` raises (a :class:`~daruma.state.errors.DarumaError`) is told, and the text
        can be edited on; it is there again when the same thing is edited later.
        """
        before = self.texts.get(about, text)
        while True:
            try:
                after = self.edit(before, ".yaml")
                if after == text or not after.strip():
                    paper.put(Line("note", "nothing was changed"))
                    return None
                before = self.texts[about] = after
                return check(after)
            except DarumaError as error:
                paper.put(Line("bad", str(error)))
            offered = {"e": "[e]dit on", "b": "[b]ack (what you wrote is kept)"}
            if choice(offered, read) == "b":
                return None
