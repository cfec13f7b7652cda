"""Loops and dead ends: the endless part, and how many turns one round of it takes."""

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import NamedTuple

from tests.state.traces.noise import noisy, words
from tests.state.traces.trace import Call, Turn


class Endless(NamedTuple):
    """Turns for ever, ``round`` of which are gone through again and again."""

    turns: Callable[[Random], Iterator[Turn]]
    round: int = 1


def cycle_of(length: int) -> Endless:
    """The same ``length`` calls with the same results."""

    def turns(rng: Random) -> Iterator[Turn]:
        calls = [_look(name) for name in words(rng, length)]
        while True:
            yield from ([call] for call in calls)

    return Endless(turns, length)


def parallel(rng: Random) -> Iterator[Turn]:
    calls = [_look(name) for name in words(rng, 3)]
    while True:
        yield calls


def same_error(rng: Random) -> Iterator[Turn]:
    while True:
        said = f"refused: request {rng.getrandbits(48):012x}, line {rng.randint(1, 99)}"
        yield [Call("book", {"seat": 4}, said, ok=False)]


def noise_in_it(rng: Random) -> Iterator[Turn]:
    (name,) = words(rng, 1)
    while True:
        yield [Call("run_tests", {}, noisy(rng, f"1 failed: test_{name}"))]


def noise_in_a_cycle(rng: Random) -> Iterator[Turn]:
    names = words(rng, 2)
    while True:
        yield from ([_look(name, noisy(rng, f"{name} is red"))] for name in names)


def near_identical(rng: Random) -> Iterator[Turn]:
    a, b = (name.split("_")[0] for name in words(rng, 2))
    for n in count():
        forms = (f"{a} {b}", f"{a.title()}  {b}", f"{a}, {b}.", f'"{a} {b}"', f"{a.upper()} {b}!")
        yield [Call("search", {"query": rng.choice(forms), "limit": 5}, "no matches")]
        if n > 50:
            return


def other_arguments(rng: Random) -> Iterator[Turn]:
    while True:
        for name in words(rng, 20):
            old = {"path": "a.py", "old": name}
            yield [Call("replace", old, "the text to replace is not there", ok=False)]


def error_and_look(rng: Random) -> Iterator[Turn]:
    while True:
        for name in words(rng, 20):
            old = {"path": "a.py", "old": name}
            yield [Call("replace", old, "the text to replace is not there", ok=False)]
            yield [Call("view", {"path": "a.py"}, "x = 1")]


def known_things(rng: Random) -> Iterator[Turn]:
    calls = [_look(name) for name in words(rng, 5)]
    while True:
        yield from ([call] for call in calls)
        rng.shuffle(calls)


def _look(name: str, said: str = "") -> Call:
    return Call("view", {"path": f"{name}.py"}, said or f"content of {name}")


ENDLESS: dict[str, Endless] = {
    "one call: A A A": cycle_of(1),
    "a cycle: A B": cycle_of(2),
    "a cycle: A B C": cycle_of(3),
    "a cycle: A B C D": cycle_of(4),
    "an answer: with three calls": Endless(parallel),
    "arguments: nearly the same": Endless(near_identical),
    "noise in the results: of one call": Endless(noise_in_it),
    "noise in the results: of a cycle": Endless(noise_in_a_cycle, 2),
    "one error: with other numbers in it": Endless(same_error),
    "one error: of calls with other arguments": Endless(other_arguments),
    "one error: with a look in between": Endless(error_and_look, 2),
    "what is known: looked at in any order": Endless(known_things, 5),
}
"""By family and name."""
