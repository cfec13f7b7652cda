"""What an edit takes away and puts there, as people read it."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.printable import beginning

_SHOWN = 6


def change_lines(args: Mapping[str, Any]) -> list[Line]:
    """Return what an edit takes away and what it puts there, by their beginnings."""
    gone, new = args.get("old_str"), args.get("new_str")
    minus = [Line("minus", beginning(gone, _SHOWN))] if isinstance(gone, str) else []
    plus = [Line("plus", beginning(new, _SHOWN))] if isinstance(new, str) else []
    return minus + plus
