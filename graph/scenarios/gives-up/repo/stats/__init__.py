"""A few numbers about numbers."""

from stats.median import median

__all__ = ["median"]
