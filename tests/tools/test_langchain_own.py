"""Functions are a class's own as long as nobody puts others in their place."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from daruma.tools.langchain_own import Own


class Bell:
    """Something that rings."""

    def ring(self) -> str:
        return "ding"


def test_they_are_an_object_s_and_its_class_s() -> None:
    own = Own(Bell, "ring")

    assert own.of(Bell())
    assert own.of(Bell)


def test_a_class_that_overrides_one_has_them_not() -> None:
    class Louder(Bell):
        def ring(self) -> str:
            return "dong"

    assert not Own(Bell, "ring").of(Louder())


def test_an_object_with_one_of_its_own_has_them_not() -> None:
    bell: Any = Bell()
    bell.ring = lambda: "dong"

    assert not Own(Bell, "ring").of(bell)


def wrapped(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def counted(*args: Any) -> str:
        return function(*args) + "!"

    return counted


class Instrumented:
    """Something that rings, and is listened to from the moment it was made."""

    @wrapped
    def ring(self) -> str:
        return "ding"


def test_what_was_wrapped_before_is_not_its_own() -> None:
    """Who instruments a process may come first."""
    assert not Own(Instrumented, "ring").of(Instrumented())


def test_what_is_wrapped_later_is_not_its_own_any_more() -> None:
    """Or last."""

    class Later(Bell):
        def ring(self) -> str:
            return "ding"

    own, bell = Own(Later, "ring"), Later()
    was = own.of(bell)
    Later.ring = wrapped(Later.ring)  # type: ignore[method-assign]

    assert was
    assert not own.of(bell)


def test_what_is_not_there_is_nobody_s() -> None:
    """Another version may have it no more."""
    assert not Own(Bell, "chime").of(Bell())
