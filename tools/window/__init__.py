"""Keeping requests within the context: counting, showing less of the history, summarising it."""
