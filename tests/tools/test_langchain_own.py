"""Functions are a class's own as long as nobody puts others in their place."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from daruma.tools.calls.langchain import Own


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


class Around:
    """A function wrapped as ``wrapt`` does it: what it wraps answers for it."""

    def __init__(self, inner: Any) -> None:
        self.__wrapped__ = inner

    def __get__(self, instance: object, owner: type) -> "Around":
        return Around(self.__wrapped__.__get__(instance, owner))

    def __call__(self, *args: Any) -> str:
        return str(self.__wrapped__(*args)) + "!"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def test_what_answers_like_the_function_it_wraps_is_not_its_own() -> None:
    class Later(Bell):
        def ring(self) -> str:
            return "ding"

    own = Own(Later, "ring")
    setattr(Later, "ring", Around(Later.ring))  # noqa: B010  # no method, as a checker sees it

    assert Later().ring() == "ding!"
    assert not own.of(Later())
    assert not own.of(Later)
    assert not Own(Later, "ring").of(Later())


def test_what_is_not_there_is_nobody_s() -> None:
    """Another version may have it no more."""
    assert not Own(Bell, "chime").of(Bell())
