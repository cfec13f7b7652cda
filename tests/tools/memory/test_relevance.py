"""Which memories fit: none that is about something else."""

import pytest

from daruma.tools.text.search import is_name, related, telling_words

BILLING = "The billing tests need DB_URL to point at the test database."


@pytest.mark.parametrize(
    ("goal", "memory", "fits"),
    [
        ("Fix the failing test in billing", BILLING, True),
        ("Set DB_URL in the deployment of everything we have", BILLING, True),
        ("Move all parsing libraries of the server to v2", "v2 is slow.", True),
        ("Deploy to staging", "The staging server is host-3.", True),
        ("Why does parseInvoice round wrongly?", "Rounding is decided in parse_invoice.py.", True),
        ("Translate the café menu into German", "The Cafe menu lies in menus/today.md.", True),
        ("修复计费模块的测试", "计费模块的测试需要数据库。", True),
        ("修复计费模块的测试", "文档写在另一个仓库。", False),
        ("Write the README of the parser", BILLING, False),
        ("Make it work, please, as we did before", "We did it before, and it works.", False),
        ("Rename the column amount to total in all invoices", "Prices have a total.", False),
        ("Do it", BILLING, False),
        ("", BILLING, False),
        ("Fix the failing test in billing", "", False),
    ],
)
def test_what_is_recalled_shares_what_the_goal_is_about(
    goal: str, memory: str, *, fits: bool
) -> None:
    """CX-05: the floor beneath which nothing is injected, on both of its sides."""
    assert related(goal, memory) is fits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The tests were failing", {"test", "fail"}),
        ("HttpServer", {"httpserver", "http", "server"}),
        ("src/app/main.py", {"src/app/main.py", "src", "app", "main", "py"}),
        ("计费模块", {"计费", "费模", "模块"}),
        ("Über", {"uber"}),
        ("of and the", set()),
    ],
)
def test_words_are_taken_from_a_text(text: str, words: set[str]) -> None:
    """Whole and in parts, without case, accents and what stands everywhere."""
    assert telling_words(text) == words


def test_names_of_code_are_told_from_words() -> None:
    """One of them shared is no chance."""
    assert [is_name(word) for word in ("db_url", "a.py", "v2", "billing", "2024", "e-mail")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
