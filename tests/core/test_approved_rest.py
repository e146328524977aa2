"""An approved upload that fails leaves the marketplace alone for longer each time."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from cardsync_agent.approved import ApprovedUpload, Backoff
from cardsync_agent.events import Reporter
from cardsync_agent.state import Store
from cardsync_agent.step_ends import StepFailed

FIRST, SECOND = "price-updates-20261128T010000Z.csv", "price-updates-20261128T020000Z.csv"


def failing(folder: Path, *, publishes: bool) -> tuple[ApprovedUpload, list[str]]:
    """Return an approved upload at a marketplace that takes nothing, and the files it was asked for."""
    asked: list[str] = []
    (folder / "exports").mkdir()
    (folder / "exports" / FIRST).write_bytes(b"a")

    def refuse(prices: Path, *_: object, **__: object) -> None:
        asked.append(prices.name)
        raise StepFailed("the publish button is not on the page")

    market = SimpleNamespace(
        publishes=publishes, begin_cycle=lambda: None, import_prices=refuse,
        has_imported=lambda *_, **__: False,
    )  # fmt: skip
    upload = ApprovedUpload(
        Store(folder), cast(Any, market), folder / "exports", lambda: None, lambda *_: None,
        lambda *_: None, lambda: True, Reporter(StringIO()), 30.0,
    )  # fmt: skip
    return upload, asked


def test_each_failure_of_a_file_doubles_the_rest_up_to_a_quarter_of_an_hour() -> None:
    backoff = Backoff()
    rests = [backoff.begin("a.csv", 30.0) for _ in range(7)]
    assert rests == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0, 900.0]


def test_a_rest_ends_by_itself() -> None:
    backoff = Backoff()
    backoff.begin("a.csv", 0.0)
    assert not backoff.holds("a.csv")


def test_a_marketplace_is_left_alone_but_for_a_newer_file_and_a_new_approval(
    tmp_path: Path,
) -> None:
    upload, asked = failing(tmp_path, publishes=True)
    for _ in range(3):
        upload.honour(True)
    assert asked == [FIRST]
    (tmp_path / "exports" / SECOND).write_bytes(b"b")
    for _ in range(3):
        upload.honour(True)
    assert asked == [FIRST, SECOND]
    upload.honour(False)
    upload.honour(True)
    assert asked == [FIRST, SECOND, SECOND]


def test_a_folder_is_tried_with_each_heartbeat(tmp_path: Path) -> None:
    upload, asked = failing(tmp_path, publishes=False)
    for _ in range(3):
        upload.honour(True)
    assert asked == [FIRST] * 3
