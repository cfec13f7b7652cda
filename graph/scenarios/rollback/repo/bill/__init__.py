"""Splitting a bill among friends."""

from bill.split import split

__all__ = ["split"]
