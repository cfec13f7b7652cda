"""Work that hangs keeps neither the process nor other work."""

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from daruma.tools.threads import DaemonThreads


def test_no_more_threads_are_started_than_needed() -> None:
    """One that is idle takes the next piece of work; more than the limit wait."""
    threads = DaemonThreads("work", 2)
    both = threading.Barrier(3)
    waiting = [threads.submit(both.wait) for _ in range(2)]
    late = threads.submit(lambda: threading.current_thread().name)

    both.wait(5)

    assert late.result(5) in {"work-1", "work-2"}
    assert {future.result(5) for future in waiting} <= {0, 1, 2}
    names = {threads.submit(lambda: threading.current_thread().name).result(5) for _ in range(20)}
    assert names <= {"work-1", "work-2"}


def test_who_is_woken_by_the_end_of_work_finds_its_thread_free() -> None:
    """Pieces of work one after the other run on one thread, however soon the next one comes."""
    threads = DaemonThreads("chained", 8)
    names: SimpleQueue[str] = SimpleQueue()

    def work() -> str:
        return threading.current_thread().name

    def go_on(ended: Future[str]) -> None:  # on the thread itself, before it looks for more
        names.put(ended.result())
        if names.qsize() < 20:
            threads.submit(work).add_done_callback(go_on)
        else:
            done.set()

    done = threading.Event()
    threads.submit(work).add_done_callback(go_on)

    assert done.wait(30)
    assert {names.get() for _ in range(20)} == {"chained-1"}


class Hanging:
    """Pieces of work that have begun and do not end."""

    def __init__(self, threads: DaemonThreads, number: int) -> None:
        self.gate = threading.Event()
        begun = threading.Barrier(number + 1)

        def hang() -> str:
            begun.wait(30)
            self.gate.wait()
            return threading.current_thread().name

        self.futures: list[Future[Any]] = [threads.submit(hang) for _ in range(number)]
        begun.wait(30)


def test_work_that_was_left_gives_its_place_away() -> None:
    """Also to what is waiting already."""
    threads = DaemonThreads("work", 2, left_limit=2)
    hanging = Hanging(threads, 2)
    waiting = threads.submit(lambda: "ran")

    threads.leave(hanging.futures[0])
    ran = waiting.result(30)
    hanging.gate.set()

    assert ran == "ran"


def test_no_more_threads_than_the_limit_work_once_what_was_left_has_ended() -> None:
    """A thread that has lost its place ends with its work."""
    threads = DaemonThreads("leaving", 1, left_limit=1)
    hanging = Hanging(threads, 1)
    threads.leave(hanging.futures[0])
    assert threads.submit(lambda: "ran").result(30) == "ran"
    (left,) = named("leaving-1")

    hanging.gate.set()
    left.join(30)

    assert not left.is_alive()
    assert hanging.futures[0].result() == "leaving-1"
    assert threads.submit(lambda: threading.current_thread().name).result(30) == "leaving-2"


def test_no_more_work_is_left_than_the_limit() -> None:
    """Then it keeps its place, and others wait for it: threads do not grow without a bound."""
    threads = DaemonThreads("bounded", 2, left_limit=1)
    hanging = Hanging(threads, 2)
    for each in hanging.futures:
        threads.leave(each)
    held = Hanging(threads, 1)
    waiting = threads.submit(lambda: "ran")
    started = len(named("bounded-"))
    held.gate.set()

    assert started == len([*hanging.futures, *held.futures])
    assert waiting.result(30) == "ran"
    hanging.gate.set()


def test_leaving_work_that_has_ended_keeps_no_other_from_its_turn() -> None:
    """Who gives up may be a moment late."""
    threads = DaemonThreads("late", 1, left_limit=1)
    ended = threads.submit(lambda: "ended")
    ended.result(30)

    threads.leave(ended)

    assert [threads.submit(lambda: "ran").result(30) for _ in range(3)] == ["ran"] * 3


def named(start: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(start)]
