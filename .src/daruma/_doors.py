"""Doors of packages that import late: what one hands out is imported when it is asked for."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def open_late(
    package: str,
    homes: Mapping[str, str],
    explain: Callable[[str], ImportError | None] = lambda _: None,
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that not every user needs the whole of.

    ``homes`` says which names each of its modules has. A value is kept once it was asked for.
    ``explain`` is given the name of what is not installed, and returns the error that says how to
    get it; None for what no extra brings.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def import_late(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        except ImportError as error:
            if explained := explain((error.name or "").partition(".")[0]):
                raise explained from error
            raise
        setattr(sys.modules[package], name, value)
        return value

    return import_late
