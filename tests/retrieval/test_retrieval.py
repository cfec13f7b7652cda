"""What answers a question is found, and as quickly among many as among few.

``python -m tests.retrieval`` measures it with a real model, and with 100,000 passages.
"""

import pytest
from tests.retrieval import quality
from tests.retrieval.__main__ import told_speed
from tests.toy_embeddings import ToyEmbeddings

from daruma.graph.storage import open_postgres


def test_words_find_what_shares_them(postgres_url: str) -> None:
    """Names and telling words at once; questions in other words are what meaning is for."""
    with open_postgres(postgres_url) as pg:
        quality.filled(pg.store)
        rows = {row.kind: row for row in quality.quality(pg.store, ["words"])}

    assert rows["name"].first == 1
    assert rows["words"].first == 1
    assert rows["miss"].among_five == 1
    assert rows["miss"].first >= 0.9
    assert rows["german"].among_five >= 0.6
    assert rows["chinese"].among_five >= 0.8
    assert rows["all"].first >= 0.65


@pytest.mark.long
def test_meaning_finds_other_words_and_takes_nothing_away(postgres_url: str) -> None:
    """With a toy that knows some synonyms: the plumbing, and no promise of how well."""
    with open_postgres(postgres_url, embeddings=ToyEmbeddings()) as pg:
        quality.filled(pg.store)
        rows = {(row.kind, row.way): row for row in quality.quality(pg.store)}

    assert rows["other", "both"].among_five > rows["other", "words"].among_five
    assert rows["name", "both"].among_five == 1
    assert rows["words", "both"].among_five == 1


@pytest.mark.long
def test_the_measurement_of_time_can_be_made(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its long form, with few passages: each way has its line, and nothing is left unsaid."""
    told_speed(postgres_url, 40, rounds=2)

    lines = capsys.readouterr().out.splitlines()
    assert sum("passages taken in" in line for line in lines) == 2
    assert [line.split(":")[0] for line in lines[-3:]] == ["words", "meaning", "both"]
    assert not any("alone" in line for line in lines)
