"""A call whose tool is gone is not called failed if it may have been made (DU-06)."""

from dataclasses import replace

from tests.parts import a_call, a_context

from daruma.graph.storage.ledgers import Place, ProcessJournals
from daruma.state.text import digest
from daruma.tools.calls.journal import Effect, Outcome
from daruma.tools.calls.once import without_tool
from daruma.tools.context import Context

CALL = a_call(args={"amount": 5})
PAY = Effect(CALL.result_id, digest([CALL.name, CALL.args]), "ask")


def lives() -> tuple[Context, Context]:
    """The contexts of two lives, one after the other, over the same journal."""
    journals, here = ProcessJournals(), Place("t", "", "1")
    first, second = (journals.journal_at(here, run) for run in ("one", "two"))
    return replace(a_context(), journal=first), replace(a_context(), journal=second)


async def test_a_call_that_was_never_begun_has_failed() -> None:
    """However often it is looked for."""
    first, second = lives()

    for context in (first, second):
        outcome = await without_tool(CALL, context)
        assert outcome == Outcome("failed", "Error: the tool 'shout' is no longer there")


async def test_a_call_that_was_made_is_answered_with_what_came_of_it() -> None:
    """Resumed under another set of tools, the machine is told what was done before."""
    first, second = lives()
    done = Outcome("done", "paid")
    await first.journal.end(await first.journal.begin(PAY), done)

    assert await without_tool(CALL, second) == done


async def test_of_a_call_that_was_cut_short_nobody_knows() -> None:
    """It may have had its effect; and so it stays on record."""
    first, second = lives()
    await first.journal.begin(PAY)

    outcome = await without_tool(CALL, second)

    assert outcome.status == "unknown"
    assert outcome.text.startswith("Error: outcome_unknown: shout was cut short")
    assert await without_tool(CALL, second) == outcome
