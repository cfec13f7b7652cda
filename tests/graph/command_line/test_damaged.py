"""What the command line says of a damaged thread, and how one goes on with it (DU-05)."""

import re

import psycopg
import pytest
from tests.damages import DAMAGES, KEY, restored
from tests.daruma_command import DONE, PLAN, Daruma


@pytest.fixture
def damaged(daruma: Daruma, postgres_url: str) -> Daruma:
    """The command, with a whole thread ``w``, and a finished one ``t`` whose end is damaged."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    assert daruma("run", "Chat", "--mode", "direct_chat", "--model", model, "--thread", "w")
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    assert daruma("answer", "t", "--confirm").code == 0
    with psycopg.connect(postgres_url) as connection:
        connection.execute(DAMAGES["a lost value"].encode())
    return daruma


def test_it_is_said_in_one_line_with_the_way_out(damaged: Daruma) -> None:
    """By each command that reads the thread."""
    for args in (["show", "t"], ["resume", "t"], ["retry", "t"], ["undo", "t"]):
        complaint = damaged(*args).complaint
        assert re.search(
            r"checkpoint \S+ of thread 't': the value of channel 'result' is lost; the one before "
            r"it, (\S+), is whole: go on from there with `daruma resume t --from \1`",
            complaint,
        )


LISTED = (
    "a lost value",
    "a row of another form",
    "a row of nothing",
    "a row with no time",
    "a broken manifest",
    "metadata of another form",
)


def test_the_other_threads_are_listed(damaged: Daruma, postgres_url: str) -> None:
    """The damaged one among them, by its name, whatever the damage is."""
    for name in LISTED:
        with restored(postgres_url) as connection:
            connection.execute(DAMAGES[name].encode())
            listed = dict(line.split("\t")[:2] for line in damaged("threads").out.splitlines())

        assert listed == {"t": "damaged", "w": "completed, not checked"}, name


def test_a_thread_goes_on_from_the_checkpoint_that_is_named(damaged: Daruma) -> None:
    """And is a thread like any other then."""
    (command,) = re.findall(r"`daruma (resume t --from \S+)`", damaged("show", "t").complaint)

    resumed = damaged(*command.split(), "--json")

    assert (resumed.code, resumed.json["status"]) == (0, "completed")
    assert "It is done." in damaged("show", "t").out
    assert damaged("resume", "t").code == 0


def test_a_checkpoint_that_the_thread_has_not_is_refused(damaged: Daruma) -> None:
    """Nothing is begun from nowhere."""
    said = damaged("resume", "t", "--from", "nowhere")

    assert said.complaint == "daruma: thread 't' has no checkpoint 'nowhere'"


def test_a_question_of_an_earlier_checkpoint_can_be_answered(
    daruma: Daruma, postgres_url: str
) -> None:
    """The thread asks again what was open there."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    with psycopg.connect(postgres_url) as connection:
        connection.execute(DAMAGES["a row of nothing"].encode())
    (command,) = re.findall(r"`daruma (resume t --from \S+)`", daruma("show", "t").complaint)

    assert daruma(*command.split()).code == 3
    assert daruma("answer", "t", "--confirm").code == 0


@pytest.mark.parametrize("key", ["s3cret", bytes(32).hex()])
def test_a_wrong_key_is_one_line_that_does_not_quote_it(daruma: Daruma, key: str) -> None:
    """The same command with the right key finds the thread."""
    daruma.setenv("DARUMA_POSTGRES_KEY", KEY.hex())
    model = daruma.script(main=[DONE])
    daruma("run", "Chat", "--mode", "direct_chat", "--model", model, "--thread", "t")

    daruma.setenv("DARUMA_POSTGRES_KEY", key)
    refused = daruma("show", "t").complaint
    daruma.setenv("DARUMA_POSTGRES_KEY", "")
    without = daruma("show", "t").complaint
    daruma.setenv("DARUMA_POSTGRES_KEY", KEY.hex())

    assert "DARUMA_POSTGRES_KEY" in refused
    assert key not in refused
    assert without == "daruma: this database is sealed: set DARUMA_POSTGRES_KEY to its key"
    assert daruma("show", "t").code == 0
