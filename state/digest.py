"""Short digests, for comparing what is too long to keep."""

import hashlib
import json

LENGTH = 16
"""Hexadecimal digits of a digest: 64 bits, so that no two things of one thread share one."""


def digest(value: object) -> str:
    """Return the digest of a JSON-able value; the order of a mapping's keys does not count."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]
