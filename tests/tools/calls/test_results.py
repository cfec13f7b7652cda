"""Every call gets one result, whose text any database and any provider takes."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from tests.mcp_servers import PICTURE
from tests.parts import a_call
from tests.scripted_runs import illegal

from daruma.state.messages import Growing, cut_off_reason, has_shortened_results
from daruma.state.text import without_reference
from daruma.tools.calls import (
    Outputs,
    ProcessOutputs,
    results_for_unanswered,
    tool_result,
)
from daruma.tools.calls._results import IMAGES, LIMIT, MOST, TextWithImages, storable


def test_a_result_answers_its_call() -> None:
    """TL-03: by the call's id, under an id of its own; providers refuse an empty name."""
    result = tool_result(a_call("c1"), "fine")

    assert (result.tool_call_id, result.id, result.name) == ("c1", "m1:c1", "shout")
    assert (result.content, result.status) == ("fine", "success")
    assert tool_result(a_call("c1"), "bad", ok=False).status == "error"
    assert tool_result(a_call(name="", requested_name=""), "x").name == "unknown"


@given(st.text(alphabet=st.characters(), max_size=50) | st.sampled_from(["\ud800", "a\0b"]))
def test_what_is_stored_is_utf8_without_nul(text: str) -> None:
    """Postgres takes neither NUL nor lone surrogates; all other text stays as it is."""
    stored = storable(text)

    assert "\0" not in stored
    assert stored.encode().decode() == stored
    if "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text):
        assert stored == text


def test_long_text_keeps_both_ends() -> None:
    """30,000 characters; the middle is cut and counted."""
    stored = storable("a" * LIMIT + "b" * LIMIT)

    assert storable("a" * LIMIT) == "a" * LIMIT
    assert stored.startswith("a" * (LIMIT // 2))
    assert stored.endswith("b" * (LIMIT // 2))
    assert "[... 30000 characters cut ...]" in stored


ANSWER = AIMessage(
    "",
    id="m1",
    tool_calls=[{"name": "shout", "args": {}, "id": id_} for id_ in ("c1", "c2")],
    invalid_tool_calls=[{"name": "shout", "args": "{", "id": "c3", "error": None}],
)


def test_calls_that_did_not_run_are_answered_at_the_end() -> None:
    """TL-03: those that can not be read as well; with them the conversation is legal."""
    history: list[AnyMessage] = [HumanMessage("hi"), ANSWER, tool_result(a_call("c2"), "fine")]

    missing = results_for_unanswered(history)

    assert [m.tool_call_id for m in missing] == ["c1", "c3"]
    assert illegal([*history, *missing]) == []
    talk: list[AnyMessage] = [HumanMessage("hi"), AIMessage("Done.", id="m2")]
    for whole in ([*history, *missing], talk[:0], talk):
        assert results_for_unanswered(whole) == []


def test_an_answer_that_a_limit_ended_is_known() -> None:
    """TL-12, MO-10: in the words of many providers, unknown ones too: nothing of it may run."""
    bad = [
        *("refusal", "content_filtered", "guardrail_intervened", "error", "RECITATION", "OTHER"),
        *("PROHIBITED_CONTENT", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "pause_turn"),
        *("SPII", "ERROR_TOXIC", "max_output", "incomplete", "lengthlength", "any_new_word"),
    ]
    good = [
        *("end_turn", "STOP", "stopstop", "tool-calls", "tool_use", "TOOL_CALL", "stop_sequence"),
        *("function_call", "COMPLETE", "eos_token", "eos", "FINISHED", "REASON_STOP", "null", ""),
    ]
    metadata: Any
    for metadata, why in (
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "content_filter"}, "content_filter"),
        ({"finish_reason": "MAX_TOKENS"}, "MAX_TOKENS"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"done_reason": "length"}, "length"),
        ({"finish_reason": "stop"}, ""),
        ({"stop_reason": None}, ""),
        ({}, ""),
        ({"finish_reason": "stop", "stop_reason": 128009}, ""),
        ({"stopReason": "guardrail_intervened"}, "guardrail_intervened"),
        ({"stopReason": "end_turn"}, ""),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_tokens"}}, "max_tokens"),
        ({"status": "completed", "incomplete_details": None}, ""),
        *(({"finish_reason": each}, each) for each in bad),
        *(({"finish_reason": each}, "") for each in good),
    ):
        assert cut_off_reason(AIMessage("x", response_metadata=metadata)) == why


def test_a_result_that_was_left_out_in_part_is_known_from_then_on() -> None:
    """The tool that reads on in it stays with the thread, however long that gets."""
    cut = tool_result(a_call("c1"), "its ends", reference="0123456789abcdef")
    history: Growing[AnyMessage] = Growing([HumanMessage("hi")])
    before = has_shortened_results(history)
    history = history.with_more([cut])
    then = has_shortened_results(history)

    assert (before, then) == (False, True)
    assert has_shortened_results(history.with_more([HumanMessage("And now?")]))
    assert has_shortened_results([*history, HumanMessage("And now?")])


# --- What is too long to show is kept whole, and its two ends say where.


@given(text=st.text(max_size=3000), limit=st.integers(200, 2000))
async def test_what_is_shown_fits_and_what_is_left_out_is_counted(text: str, limit: int) -> None:
    """The ends are the text's own, the whole is under the id that is told."""
    outputs = Outputs(ProcessOutputs())
    text = text.encode(errors="replace").decode().replace("\0", "?")

    short = await outputs.shorten(text, limit)

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


async def test_a_thread_reads_its_own_outputs_only() -> None:
    """An id that was overheard in another thread leads nowhere; the same text has the same one."""
    store = ProcessOutputs()
    first, again, other = [await Outputs(store, "one").keep(text) for text in ("a", "a", "b")]

    assert first == again != other
    assert await Outputs(store, "one").read(first) == "a"
    assert await Outputs(store, "two").read(first) is None


async def test_of_an_endless_text_a_beginning_is_kept() -> None:
    """The ends that are shown are those of all of it."""
    outputs = Outputs(ProcessOutputs())

    short = await outputs.shorten("a" * MOST + "b" * 5000, 1000)

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
    one, two = [
        await outputs.shorten("x" * 3000 + f"took {n} s" + "y" * 3000, 1000) for n in (1, 2)
    ]

    assert one.text != two.text
    assert without_reference(one.text) == without_reference(two.text)


# --- Images of a result (FA-11).

PNG: dict[str, Any] = {"type": "image", "mime_type": "image/png", "base64": PICTURE}
IMAGES_AS_WRITTEN = (
    PNG,
    {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PICTURE},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
    {"type": "image_url", "image_url": f"data:image/png;base64,{PICTURE}"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
)
LEFT_OUT = (
    {"type": "image", "url": "http://x/a.png", "mime_type": "image/png"},
    {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
    {"type": "image", "mime_type": "image/png", "base64": "no base 64!"},
    {"type": "image", "mime_type": "image/png", "base64": ""},
    {"type": "image", "mime_type": "image/svg+xml", "base64": PICTURE},
    {"type": "image", "mime_type": "image/png", "base64": 7},
    {"type": "audio", "mime_type": "audio/wav", "base64": PICTURE},
)


def test_an_image_is_read_in_all_forms_that_it_is_written_in() -> None:
    """And is kept in LangChain's own one; what can not be shown is named.

    No address is fetched, and nothing is sent that a provider would refuse.
    """
    for part in IMAGES_AS_WRITTEN:
        read = TextWithImages.of([{"type": "text", "text": "see"}, part, "that"])

        assert (read, read.images) == ("see\n[image 1: image/png]\nthat", (PNG,))
    for part in LEFT_OUT:
        read = TextWithImages.of([part])
        said = f"[{part['type']} left out: only text and images are shown]"

        assert (read, read.images) == (said, ())


def test_images_are_bounded() -> None:
    """All of one result together."""
    large = PNG | {"base64": "A" * (IMAGES - 100)}
    read = TextWithImages.of([large, large, PNG])

    assert read.images == (large, PNG)
    assert read.splitlines()[1] == "[image left out: it is too large]"
