"""What each notebook says that will be seen: patterns that its outputs hold, in this order."""

from collections.abc import Mapping


def lit(*edges: str) -> tuple[str, ...]:
    """Patterns of a picture: edges that are lit, such as ``main recovery``, wherever they stand."""
    return tuple(edges)


CLAIMS: Mapping[str, tuple[str, ...]] = {
    "01_quickstart": (
        "spec_review_request",
        "Make total",
        "verification_completed - pytest.*failed",
        "reflected - I only thought of two prices",
        "verification_completed - pytest.*: passed",
        "task_completed - completed",
        r"return sum\(prices\)",
    ),
    "02_failure_lab": (
        "'completed'.*'status': 503",
        "'completed', 'It is 2, says the spare.'",
        "'completed', 'retry'",
        "'llm_failure', \"the model's answer was empty\", True",
        "'completed'",
        "single quotes.*trailing comma",
        "'completed'",
        "loop_detected",
        "'completed', 'grep -qx 2 answer.txt: passed'",
        "exit code: [12]",
        "False",
        "EmergencyError.*the provider is down",
    ),
    "03_review_and_approve": (
        "'Delete everything'",
        "'Tidy up'",
        "'command': 'rm notes.txt'",
        "'completed', 'Then I leave it as it is.', True",
        "the digest given for 'greet' is not that of what would run",
        "False",
        "hello from a person",
        "'echo one >> said.txt', 'echo two >> said.txt'",
        "^two$",
        "What should be done",
        "Bonjour!",
    ),
    "04_kill_resume_time_travel": (
        r"\(-9, 'paid 10 EUR\\nreceipt\\n'\)",
        r"\('tool',\)",
        "completed - .*A receipt is there.\npaid 10 EUR\nreceipt\n\n",
        r"\('Pay', 'completed'\), \('Write a receipt', 'pending'\)",
        r"\('ledger.txt',\)\npaid 10 EUR\n\n",
        "They are thanked.\npaid 10 EUR\nThank you!\n\n",
        r"'.*They are thanked.', '.*A receipt is there.'",
        r"\('ledger.txt',\) False\npaid 10 EUR\nThank you!\n",
    ),
    "05_team_and_rollback": (
        "'price', 'completed', .*'price-merge', 'completed'",
        r"-bread   1\n-cake    3\n\+rye     2\n\+cake    4\n",
        r"'gave_up_after_reflections', \[\('tea', 'completed'\), \('mess', 'failed'\)\]",
        r"\['hours.txt', 'menu.txt'\]",
        r"\+tea     2\n\+cake    4\n",
        "'1', '1/tea', '1/tea/done', '1/mess', '1/mess/done'",
        r"\('menu.txt',\) True\nsoup    4\nrye     2\ncake    4\n",
    ),
    "06_learning": (
        "'gave_up_after_reflections'",
        "'high', 'sh check.sh failed: FAILED: the changelog does not name 2.0'",
        r"'gave_up_after_reflections',\s+\['sh check.sh failed",
        r"'completed', \['sh check.sh failed",
        r"\(2, 1, 0.71\)",
        r"\('completed', None\)",
        "(retry by model - worked: True\n){3}retry by learned - worked: True",
    ),
}
