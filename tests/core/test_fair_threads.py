"""Threads divided among sellers: events instead of clocks say who runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

import pytest

from cardsync.platform.database import seller_slots
from cardsync.web.fair_threads import TURN_SECONDS, USUAL_TURN_SECONDS, FairThreads

GREEDY, OTHER = 1, 2
PATIENCE = 20


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    made = FairThreads(6)
    yield made
    made.shutdown(cancel_futures=True)


def of_seller(
    threads: FairThreads, seller_id: int, do: Callable[..., Any], *given: Any
) -> Future[Any]:
    """The work as a request of that seller gives it away."""

    def submitted() -> Future[Any]:
        with seller_slots.answering():
            seller_slots.asked_by(seller_id)
            return threads.submit(do, *given)

    return copy_context().run(submitted)


def test_one_sellers_work_leaves_threads_to_all_others(threads):
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def waits(number: int) -> int:
        begun.release()
        go_on.wait(PATIENCE)
        return number

    many = [of_seller(threads, GREEDY, waits, number) for number in range(60)]
    assert all(begun.acquire(timeout=PATIENCE) for _ in range(2))
    assert of_seller(threads, OTHER, lambda: "other").result(PATIENCE) == "other"
    assert threads.submit(lambda: "nobody").result(PATIENCE) == "nobody"
    assert not begun.acquire(blocking=False)
    go_on.set()
    assert [one.result(PATIENCE) for one in many] == list(range(60))


def test_a_failure_is_told_and_the_next_piece_has_its_turn(threads):
    def fails() -> None:
        raise ValueError("no")

    many = [of_seller(threads, GREEDY, fails) for _ in range(5)]
    assert [str(one.exception(PATIENCE)) for one in many] == ["no"] * 5
    assert of_seller(threads, GREEDY, lambda: 1).result(PATIENCE) == 1


def test_work_whose_caller_left_is_not_done(threads):
    go_on = threading.Event()
    running = [of_seller(threads, GREEDY, go_on.wait, PATIENCE) for _ in range(2)]
    done: list[int] = []
    left = of_seller(threads, GREEDY, done.append, 1)
    after = of_seller(threads, GREEDY, done.append, 2)
    assert left.cancel()
    go_on.set()
    after.result(PATIENCE)
    assert done == [2]
    assert all(one.result(PATIENCE) for one in running)


def test_turns_are_short_only_while_a_thread_computes(threads):
    assert sys.getswitchinterval() == pytest.approx(USUAL_TURN_SECONDS)
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> float:
        begun.set()
        go_on.wait(PATIENCE)
        return sys.getswitchinterval()

    first = of_seller(threads, GREEDY, waits)
    assert begun.wait(PATIENCE)
    second = of_seller(threads, OTHER, lambda: None)
    nobodys = threads.submit(lambda: None)
    second.result(PATIENCE)
    nobodys.result(PATIENCE)
    assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
    go_on.set()
    assert first.result(PATIENCE) == pytest.approx(TURN_SECONDS)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(PATIENCE)
    assert sys.getswitchinterval() == pytest.approx(USUAL_TURN_SECONDS)
