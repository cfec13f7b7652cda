"""Keeping keys out of what is told and kept: servers quote them, and models repeat them."""

import os
import re
from collections.abc import Iterable, Iterator

_SHAPES = re.compile(
    r"\bsk-[\w*.-]{6,}"  # OpenAI's and those made after them, also where a server masked a part
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{15,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
"""What keys of model providers, GitHub, GitLab, AWS, Google and Slack, JSON Web Tokens and private
keys in PEM look like, by their own documentation."""
_BEGINNINGS = (
    "sk-",
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("AKIA", "ASIA", "AIza", "xox", "eyJ", "-----BEGIN "),
)
"""What each of the shapes begins with: to look for these takes a hundredth of the shapes' time."""
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_SHORTEST = 6
"""Characters; anything shorter is an ordinary word."""


def without_keys(text: str, keys: Iterable[str] = ()) -> str:
    """Return a text in which `[key]` stands for `keys`, for those of the environment, and alike.

    Names and passwords in addresses are among them.
    """
    known = {key for key in (*keys, *_of_environment()) if len(key) >= _SHORTEST}
    for key in sorted(known, key=len, reverse=True):
        text = text.replace(key, "[key]")
    if any(each in text for each in _BEGINNINGS):
        text = _SHAPES.sub("[key]", text)
    return _IN_ADDRESS.sub("[key]", text) if "://" in text else text


def _of_environment() -> Iterator[str]:
    """Return them as they are now; what other variables hold is not read, nor decoded."""
    named = (name for name in os.environ if name.upper().endswith("_API_KEY"))
    return (os.environ.get(name, "") for name in named)
