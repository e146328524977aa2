"""kill -9 in the middle of every stream of work: nothing is lost, nothing is done twice, and it ends
as if nothing had happened.

`make test` kills the streams of money once, at their most dangerous moment, a third of the others,
the next one each day, and one kind of waiting decision; `make nightly` at every moment that can be
held, and at random ones.
"""

from __future__ import annotations

import random
import time

import pytest
from tests.kills.brought_files import Collection
from tests.kills.decisions import DECISIONS
from tests.kills.imports import Cancel, Import
from tests.kills.offers_in_stock import IntoStock
from tests.kills.order_uploads import OrderUploads
from tests.kills.price_file import PriceFile
from tests.kills.pulls import Pulls
from tests.kills.recommendations import Acceptance, Generation
from tests.kills.removals import Removal
from tests.kills.reprices import Reprice
from tests.kills.rollbacks import MoveBack, Preparation
from tests.kills.room import Room, Work
from tests.kills.sales_sums import SalesSums

import schedule

STREAMS: tuple[type[Work], ...] = (
    Import,
    Cancel,
    OrderUploads,
    Collection,
    Reprice,
    Preparation,
    MoveBack,
    Generation,
    SalesSums,
    PriceFile,
    Acceptance,
    IntoStock,
    Pulls,
    Removal,
    *DECISIONS,
)
# Each day kills these, another third of the others, and the decisions on another kind of what waits.
DAILY = (Import, OrderUploads, Reprice, Removal)
OTHERS = [stream for stream in STREAMS if stream not in (*DAILY, *DECISIONS)]
BY_DAY = {*DAILY, *OTHERS[schedule.DAY % 3 :: 3], DECISIONS[schedule.DAY % len(DECISIONS)]}


def named(stream: type[Work]) -> str:
    return stream.__name__


@pytest.fixture(scope="module", autouse=True)
def _undisturbed_by_day(room: Room, request: pytest.FixtureRequest) -> None:
    """Let all streams be before the first is killed. In the soak each runs alone, when it is needed:
    its seconds are measured.
    """
    mine = [item for item in request.session.items if item.path == request.path]
    if not any(item.get_closest_marker("night") for item in mine):
        room.let_be({item.callspec.params["stream"] for item in mine})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stream", "moment"),
    [
        pytest.param(
            stream,
            moment,
            id=f"{named(stream)}, {moment}",
            marks=[] if stream in BY_DAY and not place else [pytest.mark.night],
        )
        for stream in STREAMS
        for place, moment in enumerate(stream.moments)
    ],
)
def test_killed_where_it_is_held(room: Room, stream: type[Work], moment: str) -> None:
    work = stream(room.server)
    with work.held_at(moment):
        work.kill()
    room.is_whole(work)


@pytest.mark.night
@pytest.mark.parametrize(
    ("stream", "number"),
    [
        pytest.param(stream, number, id=f"{named(stream)}-{number}")
        for stream in STREAMS
        for number in range(schedule.count("CARDSYNC_SOAK_ROUNDS", stream.rounds, 3))
    ],
)
def test_killed_at_any_moment(room: Room, stream: type[Work], number: int) -> None:
    _, seconds = room.undisturbed(stream)
    work = stream(room.server)
    work.start()
    for _ in range(random.randint(1, 2)):
        time.sleep(random.uniform(0, seconds * 1.1))  # the moment is what is tested
        work.kill()
    room.is_whole(work)
