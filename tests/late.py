"""Libraries that take long to import, and that few tests need: collecting those needs none."""

from importlib import import_module
from typing import Any


class Late:
    """A module that is imported once something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
