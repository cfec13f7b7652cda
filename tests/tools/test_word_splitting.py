"""Index, query and ranking know the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.text.search import LONGEST, query_terms, terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("... \x00 \ud83d !?", []),
        ("Configurations CONFIGURED", ["configur", "configur"]),
        ("Café cafe CAFÉ", ["cafe"] * 3),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("max_retry_count", ["max_retry_count", "max", "retri", "count"]),
        ("tools/search.py", ["tools/search.py", "tool", "search", "py"]),
        ("3.11.2", ["3.11.2", "3", "11", "2"]),
        ("utf8", ["utf8", "utf"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("数据库索引", ["数据", "据库", "库索", "索引"]),
        ("用Postgres存", ["用", "postgr", "存"]),
        ("데이터베이스", ["데이", "이터", "터베", "베이", "이스"]),
        ("x" * 1000, ["x" * LONGEST]),
    ],
)
def test_a_text_has_these_words(text: str, found: list[str]) -> None:
    """Case, accents and forms do not count; what is joined is known whole and by its parts."""
    assert terms(text) == found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Kündigungsfristen der Mietverträge", "Kündigungsfrist Mietvertrag"),
        ("Les bibliothèques nationales de France", "la bibliothèque"),
        ("las configuraciones del servidor", "la configuración"),
        ("straße", "STRASSE"),
        ("Datenbankverbindungen für alle", "Datenbankverbindungen"),
        ("leases are renewed", "renewing a lease"),
        ("get_user_name()", "getUserName"),
    ],
)
def test_other_forms_share_a_word(text: str, query: str) -> None:
    """In English always; in others where the text, or the query, shows its language."""
    assert set(terms(text)) & set(query_terms(query))


def test_a_query_of_nothing_but_filling_words_keeps_them() -> None:
    """Else it could find nothing; beside others they only cost time."""
    assert query_terms("Where is the lease of the lease?") == ["leas"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), max_size=6)


@given(WORDS, st.data())
def test_whatever_stands_in_a_text_is_found_by_it(words: list[str], data: st.DataObject) -> None:
    """Each word of a text that is a word at all shares one with the text."""
    text = " ".join(words)
    for word in data.draw(st.permutations(words))[:2]:
        assert set(query_terms(word)) <= set(terms(text))
