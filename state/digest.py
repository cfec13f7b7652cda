"""Short digests, for comparing what is too long to keep."""

import hashlib
import json

LENGTH = 16
"""Hexadecimal digits of a digest: 64 bits, so that no two things of one thread share one."""

_written = json.JSONEncoder(sort_keys=True, default=repr).encode


def digest(value: object) -> str:
    """Return the digest of a JSON-able value; the order of a mapping's keys does not count."""
    return hashlib.sha256(_written(value).encode()).hexdigest()[:LENGTH]
