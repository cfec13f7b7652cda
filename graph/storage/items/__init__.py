"""The items of the store: values by namespace and key, found by name, filter, words, or meaning.

Only ``PostgresStore``, a module of the package around this one, uses them.
"""

__all__: list[str] = []
