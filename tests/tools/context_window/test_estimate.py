"""The estimate is not less than a true count of ordinary text.

``python -m pytest tests/tools/context_window -k table -s`` prints the published table.
"""

import base64
import json
import random
import sys
from functools import cache
from pathlib import Path

import pytest

from daruma.graph.models._providers import tokenizer
from daruma.tools.model_requests import Weights, estimate

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
DICE = random.Random(0)  # noqa: S311 - no secret
RECORDS = [
    {"id": n, "name": f"user {n}", "tags": ["a", "b"], "score": n * 1.37, "ok": True}
    for n in range(80)
]
LOG = (
    "2026-11-22T09:{n:02}:07.123Z INFO [worker-{n}] app.requests - GET /v1/items/{n}?page=2"
    " took {n}12 ms status=200\n"
)
HTML = (
    '<div class="col-md-6 px-3"><a href="https://example.org/a/b?c=1&d=2" id="x">Link</a></div>\n'
)
SQL = "SELECT u.id, count(*) FROM users AS u WHERE u.created_at > '2024-01-01' GROUP BY u.id;\n"
CHINESE = (
    "人工智能正在改变我们的生活方式。请检查代码库中的测试是否全部通过，如果没有通过，请修复错误"
    "并重新运行。部署之前务必确认数据库连接的安全性，避免泄露用户的隐私信息。"
)
JAPANESE = "これはテストです。ファイルを確認して、エラーを修正してください。接続も確認します。"
GERMAN = "Die Überprüfung der Datenbankverbindung schlägt fehl, weil Zugangsdaten geändert wurden. "
RUSSIAN = "Проверьте, что все тесты проходят, прежде чем развертывать приложение. "
KEYS = base64.b64encode(DICE.randbytes(3000)).decode()

SAMPLES: dict[str, str] = {
    "English": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    "Markdown": README.read_text(encoding="utf-8")[:20_000],
    "Python": (ROOT / "graph" / "models" / "_asker.py").read_text(encoding="utf-8"),
    "JSON, dense": json.dumps(RECORDS),
    "JSON, indented": json.dumps(RECORDS, indent=2),
    "log lines": "".join(LOG.format(n=n) for n in range(40)),
    "HTML": HTML * 30,
    "SQL": SQL * 20,
    "Chinese": CHINESE * 5,
    "Japanese": JAPANESE * 5,
    "German": GERMAN * 5,
    "Russian": RUSSIAN * 5,
    "numbers": "At 7 there is a thing of size 259, in 12 of 1024 places, 3.5 % of 88 " * 20,
    "emoji": "🎉🚀 done ✅ 🐍🔥" * 20,
    "names in code": "getUserAccountById parseHTMLDocument MAX_BUFFER_SIZE snake_case_name " * 20,
}


@cache
def true_count(text: str, encoding: str) -> int:
    return tokenizer(encoding).of(text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_not_less_than_the_truth(name: str, encoding: str) -> None:
    """A request that is thought to fit, and does not, would be refused."""
    text = SAMPLES[name]

    assert estimate(text) >= true_count(text, encoding)


@pytest.mark.parametrize("name", ["English", "Markdown", "Python", "JSON, dense", "log lines"])
def test_the_estimate_is_of_use(name: str) -> None:
    """Of what agents mostly read it is not more than half as much again."""
    text = SAMPLES[name]

    assert estimate(text) <= 1.5 * true_count(text, "o200k_base")


def test_letters_at_random_are_nearly_counted() -> None:
    """What the docstring says of keys: the tenth to spare is more than what is missing."""
    assert estimate(KEYS) > 0.93 * true_count(KEYS, "cl100k_base")


def test_what_is_remembered_is_short_and_not_too_much() -> None:
    """And comes to the same when it is weighed anew."""
    weights = Weights()
    seen = [weights[f"{n}"] for n in range(30_000)]

    assert len(weights) <= 20_000
    assert [weights[f"{n}"] for n in range(30_000)] == seen
    assert weights["数" * 40] == pytest.approx(40 * weights["数"])
    assert "数" * 40 not in weights


def table() -> str:
    """One row for each sample: characters, true counts, and the estimate against them."""
    lines = [
        "| text | GPT-4o | GPT-4 | estimate | against GPT-4o | against GPT-4 |",
        "|---" * 6 + "|",
    ]
    for name, text in {**SAMPLES, "random keys": KEYS}.items():
        new, old = (true_count(text, each) for each in ("o200k_base", "cl100k_base"))
        guess = estimate(text)
        lines.append(
            f"| {name} | {new} | {old} | {guess} | {guess / new:.2f} | {guess / old:.2f} |"
        )
    return "\n".join(lines)


def test_the_table_can_be_made_again() -> None:
    """It has a row for each sample."""
    printed = table()
    sys.stdout.write(f"\n{printed}\n")

    assert len(printed.splitlines()) == len(SAMPLES) + 3
