"""The model reads on in what was left out of a long output."""

from typing import Any

import pytest

from daruma.tools.calls import Outputs, ProcessOutputs, Surroundings
from daruma.tools.calls._outputs import MANY, READ_OUTPUT
from daruma.tools.errors import ToolError

TEXT = "".join(f"line {n}\n" for n in range(2000)) + "the Error is here\n"


async def read(text: str = TEXT, **args: Any) -> str:
    outputs = Outputs(ProcessOutputs())
    id_ = await outputs.keep(text)
    return await READ_OUTPUT.run({"id": id_} | args, Surroundings(outputs=outputs))


async def test_a_part_says_where_it_is() -> None:
    """From an offset, as long as is asked, no further than the end."""
    size = len(TEXT)

    assert await read(offset=7, length=6) == f"[characters 7 to 13 of {size}]\nline 1"
    assert await read(offset=size - 6) == f"[characters {size - 6} to {size} of {size}]\n here\n"


async def test_lines_are_found_with_their_offsets() -> None:
    """In any case; an offset that was told shows the line and what follows it."""
    found = await read(find="error")

    offset, line = found.split(": ", 1)
    assert line == "the Error is here"
    assert (await read(offset=int(offset))).splitlines()[1] == line


async def test_many_lines_are_cut_and_say_where_to_go_on() -> None:
    """Each is shown once."""
    first = (await read(find="line")).splitlines()
    offset = int(first[-1].removeprefix("[more from offset ").removesuffix(" on]"))
    second = (await read(find="line", offset=offset)).splitlines()

    assert len(first) == len(second) == MANY + 1
    assert first[0].endswith(": line 0")
    assert second[0].endswith(f": line {MANY}")
    assert await read(find="nowhere") == "no line from offset 0 on holds that"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"id": "0123456789abcdef"}, "there is no output '0123456789abcdef' of this thread"),
        ({"offset": 10**6}, r"has \d+ characters: nothing at 1000000"),
        ({"length": 0}, "length"),
        ({"where": 1}, "where: Extra inputs are not permitted"),
    ],
)
async def test_what_can_not_be_read_is_said(args: dict[str, Any], said: str) -> None:
    """In words that a model can act on."""
    with pytest.raises(ToolError, match=said):
        await read(**args)
