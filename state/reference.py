"""The line that stands for what a long result leaves out, and says where to read it."""

import re
from typing import Final

REFERENCE: Final = "daruma_output"
"""The key among a message's ``additional_kwargs`` that holds the id of the whole text."""

READER: Final = "read_output"
"""The name of the tool that reads it."""

_ID: Final = re.compile(rf"(?<=; {READER} shows them: id )[0-9a-f]{{16}}(?= ?\])")


def left_out(count: int, id_: str) -> str:
    """Say how many characters are left out, and how to read them."""
    return f"[{count} characters left out; {READER} shows them: id {id_}]"


def without_reference(text: str) -> str:
    """Return a result without the id of its whole text, which noise alone makes another one."""
    return _ID.sub("", text) if READER in text else text
