"""Outputs of tools, with what differs from run to run although nothing has changed."""

from random import Random

WORDS = (
    *("parser", "lexer", "router", "cache", "queue", "worker", "session", "token", "invoice"),
    *("ledger", "schema", "index", "cursor", "buffer", "socket", "header", "footer", "widget"),
    *("canvas", "palette", "report", "summary", "digest", "budget", "quota", "policy"),
)


def words(rng: Random, number: int) -> list[str]:
    """Different names, more than there are words."""
    found = [f"{a}_{b}" for a in WORDS for b in WORDS if a != b]
    return rng.sample(found, number)


def noisy(rng: Random, text: str) -> str:
    """The text, with one to three things in it that mean nothing."""
    noises = (
        f"in {rng.uniform(0.01, 9):.2f}s",
        f"took {rng.randint(1, 900)} ms",
        f"<object at {hex(rng.getrandbits(40) + 2**40)}>",
        f"2026-11-{rng.randint(10, 28)}T{rng.randint(10, 23)}:07:{rng.randint(10, 59)}.125Z",
        f"[{rng.randint(10, 23)}:{rng.randint(10, 59)}:{rng.randint(10, 59)}]",
        f"(pid {rng.randint(100, 99999)})",
        f"work/tmp{''.join(rng.choices('abcdefgh_0123', k=8))}/out",
    )
    return " ".join([text, *(noises[n] for n in NOISE_OF[text_key(text)])])


def text_key(text: str) -> int:
    """Which noises a text comes with: the same ones each time."""
    return len(text) % len(NOISE_OF)


NOISE_OF = ((0,), (1, 2), (3,), (4, 5), (0, 2), (6,), (5,), (3, 0, 5))
