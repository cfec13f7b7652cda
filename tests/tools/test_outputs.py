"""What is too long to show is kept whole, and its two ends say where."""

import re

from hypothesis import given
from hypothesis import strategies as st

from daruma.state.text import without_reference
from daruma.tools.calls.results import MOST, Outputs, ProcessOutputs, shown


@given(text=st.text(max_size=3000), limit=st.integers(200, 2000))
async def test_what_is_shown_fits_and_what_is_left_out_is_counted(text: str, limit: int) -> None:
    """The ends are the text's own, the whole is under the id that is told."""
    outputs = Outputs(ProcessOutputs())
    text = text.encode(errors="replace").decode().replace("\0", "?")

    short = await shown(text, limit, outputs)

    assert len(short.text) <= limit
    if len(text) <= limit:
        assert (short.text, short.reference) == (text, "")
        return
    found = re.search(r"\n\[(\d+) characters left out; .* id ([0-9a-f]{16})\]\n", short.text)
    assert found
    head, tail = short.text[: found.start()], short.text[found.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(found[1]) + len(tail) == len(text)
    assert found[2] == short.reference
    assert await outputs.read(short.reference) == text


async def test_the_same_text_has_the_same_id() -> None:
    """A call that is made again after a crash keeps nothing twice."""
    store = ProcessOutputs()
    first, again, other = [await Outputs(store).keep(text) for text in ("a", "a", "b")]

    assert first == again != other


async def test_a_thread_reads_its_own_outputs_only() -> None:
    """An id that was overheard in another thread leads nowhere."""
    store = ProcessOutputs()
    id_ = await Outputs(store, "one").keep("secret")

    assert await Outputs(store, "one").read(id_) == "secret"
    assert await Outputs(store, "two").read(id_) is None


async def test_of_an_endless_text_a_beginning_is_kept() -> None:
    """The ends that are shown are those of all of it."""
    outputs = Outputs(ProcessOutputs())

    short = await shown("a" * MOST + "b" * 5000, 1000, outputs)

    assert short.text.endswith("b" * 400)
    assert await outputs.read(short.reference) == "a" * MOST


async def test_the_oldest_goes_where_a_number_is_set() -> None:
    """Without a checkpointer nobody deletes the thread."""
    outputs = Outputs(ProcessOutputs(most=2))

    ids = [await outputs.keep(text) for text in ("a", "b", "c")]

    assert [await outputs.read(id_) for id_ in ids] == [None, "b", "c"]


async def test_results_that_differ_in_the_middle_by_noise_alone_compare_as_equal() -> None:
    """RE-02: the id of the whole would hide every loop with a duration in its output."""
    outputs = Outputs(ProcessOutputs())
    one, two = [await shown("x" * 3000 + f"took {n} s" + "y" * 3000, 1000, outputs) for n in (1, 2)]

    assert one.text != two.text
    assert without_reference(one.text) == without_reference(two.text)
