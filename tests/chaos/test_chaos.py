"""Rounds of faults under the load of several agents. After each heal the server is ready within ten
seconds; what was accepted is applied once, and nobody does anything by hand.

A round draws its moments from the seed of the soak (tests/schedule.py).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil
import pytest
from tests.chaos.agents import Crowd, PayingShop, Shop, answers
from tests.chaos.grounds import BUCKET, CLOCK, LOCAL, Fault, Ground
from tests.system.processes import a_folder, until

import schedule

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]
ROUNDS = schedule.count("CARDSYNC_CHAOS_ROUNDS", 10, 1)
# A machine with much else to do needs longer to start a process again.
READY_SECONDS = float(os.environ.get("CARDSYNC_CHAOS_READY") or 10)
ENDED_SECONDS = 120
# Seconds of a fault; the longest is as rare as it is in life.
SHORT, LONGEST = (0.5, 6.0), 60.0


@dataclass(frozen=True)
class Scene:
    ground: Ground
    shops: list[Shop]


@contextmanager
def a_scene(*, bucket: bool = False, clock: bool = False) -> Iterator[Scene]:
    with ExitStack() as stack:
        folder = stack.enter_context(a_folder())
        ground = Ground(stack, folder, bucket=bucket, clock=clock)
        stack.enter_context(ground)
        shops = [Shop(ground, ground.seller()) for _ in range(2)]
        payer = PayingShop(ground, ground.seller())
        granted = ("admin", "credits", "grant", str(payer.seller.id), "100000")
        ran = ground.run(*granted, "--reason", "chaos")
        assert ran.code == 0, ran.err
        yield Scene(ground, [*shops, payer])


@pytest.fixture(scope="module")
def local() -> Iterator[Scene]:
    with a_scene() as scene:
        yield scene


@pytest.fixture(scope="module")
def bucket() -> Iterator[Scene]:
    with a_scene(bucket=True) as scene:
        yield scene


@pytest.fixture(scope="module")
def wrong_clock() -> Iterator[Scene]:
    with a_scene(clock=True) as scene:
        yield scene


def a_round(scene: Scene, fault: Fault, seconds: float) -> None:
    with Crowd(scene.shops):
        time.sleep(random.uniform(0.2, 1.5))  # the moment is what is tested
        with fault(scene.ground, seconds):
            pass
        healed = time.monotonic()
        until(
            lambda: answers(scene.shops[0]),
            lambda: f"the server to be ready again; it says\n{scene.ground.said()[-4000:]}",
            READY_SECONDS,
        )
        print(f"\nready {time.monotonic() - healed:.1f} s after the heal, {seconds:.1f} s of it")
        time.sleep(0.5)
    for shop in scene.shops:
        shop.ended(ENDED_SECONDS)
        shop.is_whole()
    promised = [shop.promised for shop in scene.shops]
    used = psutil.disk_usage(str(scene.ground.disk)).used
    print(
        f"{used / 1e6:.1f} MB on the disk",
        [(len(one.editions), len(one.orders), len(one.charged)) for one in promised],
    )


def a_duration() -> float:
    return LONGEST if random.random() < 0.03 else random.uniform(*SHORT)


@pytest.mark.night
@schedule.whole_night
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("name", LOCAL)
def test_a_fault_under_load_loses_and_doubles_nothing(local: Scene, name: str, number: int) -> None:
    a_round(local, LOCAL[name], a_duration())


@pytest.mark.night
@schedule.whole_night
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("name", BUCKET)
def test_a_fault_of_the_bucket_under_load_loses_and_doubles_nothing(
    bucket: Scene, name: str, number: int
) -> None:
    a_round(bucket, BUCKET[name], a_duration())


@pytest.mark.night
@schedule.whole_night
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("name", CLOCK)
def test_a_jump_of_the_clock_under_load_loses_and_doubles_nothing(
    wrong_clock: Scene, name: str, number: int
) -> None:
    a_round(wrong_clock, CLOCK[name], a_duration())


# In so long an outage each process has ended and begun anew several times.
@pytest.mark.night
@schedule.whole_night
@pytest.mark.parametrize("name", ["database, cut", "database, half_open", "database killed"])
def test_an_outage_of_a_minute_loses_and_doubles_nothing(local: Scene, name: str) -> None:
    a_round(local, LOCAL[name], LONGEST)


# In that time workers that died have begun anew, and look for what is too old.
@pytest.mark.night
@schedule.whole_night
@pytest.mark.parametrize("name", ["clock an hour behind", "clock forty days ahead"])
def test_a_wrong_clock_for_a_minute_loses_and_doubles_nothing(
    wrong_clock: Scene, name: str
) -> None:
    a_round(wrong_clock, CLOCK[name], LONGEST)
