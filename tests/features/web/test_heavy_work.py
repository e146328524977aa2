"""Heavy reads of a shop that is not small are answered by processes beside the web process, in the
same words; one that dies takes nothing with it, and one whose caller left goes on to the next.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tests.system.processes import kill

from browsers import signed_in
from builders import Seller, SellerBuilder, Service, a_csv, a_row, a_shop, an_order
from cardsync.asgi import create_app
from cardsync.operations import put_away
from cardsync.operations.processes.heavy_process import tell
from cardsync.platform import clock, errors
from cardsync.platform.old_data.old_kinds import ACTIVITY, HISTORY
from cardsync.platform.settings import Settings
from cardsync.web import heavy_work, made_files
from cardsync.web.heavy_child import LENGTH, Answered
from cardsync.web.heavy_work import FOLDER, PROGRAM, TOO_MUCH
from cardsync.web.made_files import SMALL
from plans_builder import PLANS, a_sale, lowered
from waiting import eventually

RULES = {"rules": [{"name": "All", "priority": 1, "query": "", "adjust_bp": -500}]}
DRAFT = {"rule": {"query": "", "adjust_bp": -700}}
DAYS = RULES | {"from": "2020-01-01", "to": "2100-01-01"}
TABLE = "/api/pricing/preview?format=csv"
ASKED = {
    "a preview": ("POST", "/api/pricing/preview", RULES),
    "a table": ("POST", TABLE, RULES),
    "presets": ("GET", "/api/pricing/presets", None),
    "a draft": ("POST", "/api/pricing/preview/draft", DRAFT),
    "a promotion": ("POST", "/api/pricing/preview/sale", {"sale": {"adjust_bp": -700}}),
    "a backtest": ("POST", "/api/pricing/backtest", DAYS),
    "a price file": ("GET", "/api/pricing/updates.csv", None),
    "an agent's file": ("GET", "/api/v1/export/price-updates", None),
    "a search in a file": ("GET", "/api/cards/export.csv?search=price%3E%3E", None),
    "an order's days": ("GET", "/api/orders/export.csv?pull_session=77", None),
    "a search that cannot be read": ("POST", "/api/pricing/preview", {"search": "price>>"}),
    "days that are none": ("POST", "/api/pricing/backtest", DAYS | {"from": "soon"}),
}
EVERYTHING = "/api/export/everything"
# The fields that differ between the same write sent twice.
OWN = {"plan_id", "created_at", "expires_at", "proposal_id", "confirm_url", "request_id"}
FILES = (
    "/api/cards/export.csv",
    "/api/pricing/updates.csv",
    "/cards/export.csv?search=price%3E1",
    "/api/orders/export.csv",
    "/api/customers/export.csv",
    "/api/lists/export.csv",
    "/api/buying/lots.csv",
    "/api/pricing/runs/export.csv",
    "/api/v1/agent/activity/export.csv",
    EVERYTHING,
)


@pytest.fixture(scope="module")
async def beside(service, settings, alive) -> AsyncIterator[Service]:
    """The service, to which every shop is large."""
    # The service of other files may have one at rest.
    kill(*processes())
    app = create_app(settings.model_copy(update={"heavy_cards": 0}))
    async with alive(app):
        yield replace(service, app=app)


def processes() -> list[psutil.Process]:
    def is_heavy(one: psutil.Process) -> bool:
        # Tests of other files may have left a process that has ended.
        with suppress(psutil.Error):
            return one.cmdline()[-2:] == ["cardsync", "heavy"]
        return False

    return list(filter(is_heavy, psutil.Process().children(recursive=True)))


async def asked(seller, what: str):
    method, path, body = ASKED[what]
    return await seller.http.request(method, path, json=body)


async def test_processes_answer_as_the_web_process_does(
    a_seller: SellerBuilder, service: Service, beside: Service
) -> None:
    shop = await a_shop(a_seller, a_row(1001), a_row(1002, price="9.00"))
    same = replace(shop, service=beside, http=beside.client(**shop.http.headers))
    assert not processes()
    for what in ASKED:
        here, there = await asked(shop, what), await asked(same, what)
        assert (there.status_code, there.content) == (here.status_code, here.content), what
        assert there.headers.get("content-type") == here.headers.get("content-type")
    # One after the other, they need one process.
    assert len(processes()) == 1


async def test_a_write_of_prices_is_weighed_there_as_in_the_web_process(
    a_limited_seller: Any, settings: Settings, alive: Any
) -> None:
    shop = await a_limited_seller(loss_budget=1000)
    rows = [a_row(n, market="10.00", price="10.00", low="") for n in range(1, 11)]
    await shop.import_csv(a_csv(*rows))
    owner = await signed_in(shop)
    [rule] = (await shop.get("/api/pricing/rules")).json()["rules"]
    path = f"/api/pricing/rules/{rule['id']}"
    plain = {"never_lower": False, "adjust_bp": 0, "fallback_sources": [], "cap": None}
    answer = await owner.send("PATCH", path, json=plain | {"confirm": True})
    assert answer.status_code == 200, answer.text
    app = create_app(settings.model_copy(update={"heavy_cards": 0, "price_write_limits": True}))
    there = replace(shop.service, app=app).client(**shop.http.headers)

    async def code(method: str, address: str, body: Any) -> str | None:
        """Send a write to both and return their answer's code, if there is one."""
        told = [await one.request(method, address, json=body) for one in (shop.http, there)]
        here, same = ({k: v for k, v in one.json().items() if k not in OWN} for one in told)
        assert (told[1].status_code, same) == (told[0].status_code, here), address
        return here.get("code")

    before = len(processes())
    async with alive(app):
        plan = lowered(rule["id"], 900, dry_run=True)
        assert await code("POST", PLANS, plan) is None
        assert await code("PATCH", path, {"adjust_bp": -9000}) == "needs_review"
        sale = a_sale(-9000, starts=3)
        assert await code("POST", "/api/pricing/sales", sale) == "needs_review"
        assert await code("POST", "/api/pricing/reprice", None) is None
        floor = {"name": "Never under 9", "search": "", "expectation": "never under 9"}
        assert (await shop.post("/api/pricing/rule_tests", json=floor)).status_code == 201
        assert await code("PATCH", path, {"adjust_bp": -1500}) == "rule_tests_failed"
        assert await code("POST", PLANS, lowered(rule["id"], 1500)) == "rule_tests_failed"
        # No other process sees the list that this plan makes.
        few = {"list": "Few", "marketplace_ids": [1, 2, 3]}
        listed = {"type": "lists.change_set", "create": ["Few"], "add": [few]}
        half = {"name": "Half", "query": "list:Few", "adjust_bp": -5000, "state": "published"}
        created = {"op": "create", "set": half | {"never_lower": False}}
        rules = {"type": "pricing.change_set", "changes": [created]}
        mixed = {"actions": [listed, rules], "dry_run": True}
        assert await code("POST", PLANS, mixed) == "rule_tests_failed"
        assert len(processes()) == before + 1


async def test_a_process_that_dies_is_a_refusal_and_the_next_one_answers(
    a_seller: SellerBuilder, beside: Service
) -> None:
    shop = await a_shop(SellerBuilder(beside), a_row(1001))
    assert (await asked(shop, "presets")).status_code == 200
    [process] = processes()
    process.suspend()
    waiting = asyncio.create_task(asked(shop, "presets"))
    await asyncio.sleep(0.2)
    process.kill()
    answer = await waiting
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert "memory" in answer.json()["error"]
    assert (await asked(shop, "presets")).status_code == 200


async def test_a_rule_is_there_before_its_process_and_the_owners_next_page_finds_one(
    beside: Service,
) -> None:
    """A start takes longer than a read: it begins with the first page that an owner opens, and goes
    on though the reader leaves.
    """
    shop = await a_shop(SellerBuilder(beside), a_row(1001))
    [rule] = (await shop.get("/api/pricing/rules")).json()["rules"]
    owner = await signed_in(shop)
    page = f"/pricing/rules/{rule['id']}"
    kill(*processes())
    await asyncio.sleep(0.2)
    at_once = (await owner.get(page)).text
    assert "The effect on your cards follows" in at_once
    assert 'data-hx-trigger="load, input' in at_once
    typing = asyncio.create_task(owner.get("/pricing/presets"))
    await asyncio.sleep(0.1)
    typing.cancel()
    await asyncio.gather(typing, return_exceptions=True)

    async def shown() -> str:
        # As long as none is free, each page says the same.
        while "follows" in (text := (await owner.get(page)).text):
            await asyncio.sleep(0.05)
        return text

    assert "Matches" in await asyncio.wait_for(shown(), 60)
    assert len(processes()) == 1


async def moved(seller: Seller) -> None:
    """Rows that are a year old leave the database."""
    work = seller.service.work
    days = {"history_retention_days": 31, "activity_retention_days": 31}
    work = replace(work, settings=work.settings.model_copy(update=days))
    for kind in (HISTORY, ACTIVITY):
        assert sum([rows async for rows in put_away.slabs(work, seller.id, kind)])


def told(answer: httpx.Response) -> object:
    """The answer without the moment at which it was made."""
    if answer.headers["content-type"] != "application/zip":
        return answer.content
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    assert any(name.startswith("old/") for name in files)
    return files | {"manifest.json": json.loads(files["manifest.json"])["files"]}


async def test_files_and_old_rows_come_from_a_process_with_the_same_bytes(
    a_seller: SellerBuilder, service: Service, beside: Service, monkeypatch
) -> None:
    """A thousand cards are more than a part of a file: it alone finds what parts leave out."""
    shop = await a_seller()
    rows = [a_row(n) for n in range(1, 1_003)]
    year_ago = clock.rfc3339(clock.now() - timedelta(days=400))
    await shop.import_csv(a_csv(*rows), **{"X-Exported-At": year_ago})
    await shop.import_csv(a_csv(a_row(1, price="9.00"), *rows[1:]))
    await shop.orders([an_order()])
    await shop.post("/api/lists", json={"name": "Binder"})
    await shop.made_old("activity", "created_at", 365)
    await moved(shop)
    here, there = await signed_in(shop), await signed_in(replace(shop, service=beside))
    [card] = (await shop.get("/api/cards?search=id%3E0&per_page=1")).json()["cards"]
    old = f"/api/cards/{card['id']}?history=all"
    assert len((await here.get(old)).json()["history"]) > 1
    prices = await there.get("/api/pricing/updates.csv")
    assert len(prices.content) == int(prices.headers["content-length"]) > SMALL
    for path in (*FILES, old):
        for process in processes():
            process.suspend()
        waiting = asyncio.create_task(there.get(path))
        await asyncio.sleep(0.1)
        # It is made in none but them.
        assert not waiting.done(), path
        for process in processes():
            process.resume()
        assert told(await waiting) == told(await here.get(path)), path
    # Here the table comes from a file, and there as bytes.
    monkeypatch.setattr(made_files, "SMALL", 0)
    tables = [await owner.post(TABLE, json=RULES) for owner in (here, there)]
    assert tables[0].content == tables[1].content


async def test_a_reader_who_leaves_leaves_no_file(beside: Service) -> None:
    shop = await a_shop(SellerBuilder(beside), a_row(1001))
    owner = await signed_in(shop)
    for seconds in (0.05, 0.1, 0.2):
        waiting = asyncio.create_task(owner.get(EVERYTHING))
        await asyncio.sleep(seconds)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert (await owner.get(EVERYTHING)).status_code == 200

    def left() -> list[Path]:
        folders = [Path(process.environ()["TMPDIR"]) for process in processes()]
        return [file for folder in folders for file in folder.iterdir()]

    # A reader who leaves does not wait until the process has left the work.
    await eventually(lambda: not left(), "the process to leave the work")


async def test_a_seller_has_one_archive_at_a_time_and_others_their_own(
    beside: Service, monkeypatch
) -> None:
    """The part of an archive that is made and not read yet is on the disk."""
    monkeypatch.setattr(heavy_work, "WAIT_SECONDS", 0.1)
    greedy, other = [await a_shop(SellerBuilder(beside), a_row(1001)) for _ in range(2)]
    owners = [await signed_in(shop) for shop in (greedy, other)]
    async with beside.app.state.heavy.place(greedy.id):
        refused, served = [await owner.get(EVERYTHING) for owner in owners]
    assert (refused.status_code, refused.json()["code"]) == (503, "service_unavailable")
    assert served.status_code == (await owners[0].get(EVERYTHING)).status_code == 200


@pytest.mark.night
async def test_a_process_that_died_at_rest_is_nobodys_refusal_and_leaves_nothing(
    beside: Service, monkeypatch, tmp_path
) -> None:
    shop = await a_shop(SellerBuilder(beside), a_row(1001))
    for process in processes():
        process.kill()
    await asyncio.sleep(0.2)
    # Its supervisor shows the metrics of web processes; those of this one would stay for ever.
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert (await asked(shop, "presets")).status_code == 200
    [process] = processes()
    folder = Path(process.environ()["TMPDIR"])
    (folder / "cardsync-half").write_bytes(b"half an answer")
    process.kill()
    await asyncio.sleep(0.2)
    assert (await asked(shop, "presets")).status_code == 200
    assert not folder.exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.night
async def test_a_process_whose_caller_left_serves_the_next_and_a_stuck_one_is_ended(
    beside: Service,
) -> None:
    shop = await a_shop(SellerBuilder(beside), a_row(1001))
    assert (await asked(shop, "a draft")).status_code == 200
    [process] = processes()
    for is_stuck in (False, True):
        if is_stuck:
            process.suspend()
        waiting = asyncio.create_task(asked(shop, "a draft"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (await asked(shop, "a draft")).status_code == 200
        assert (process in processes()) is not is_stuck


@pytest.mark.night
async def test_a_seller_has_one_long_read_at_a_time_and_others_their_own(
    beside: Service, monkeypatch
) -> None:
    # Five backtests, one after the other, take longer on a slow machine than a person waits.
    monkeypatch.setattr("cardsync.platform.database.seller_slots.WAIT_SECONDS", 300)
    greedy, other = [await a_shop(SellerBuilder(beside), a_row(1001)) for _ in range(2)]
    many = [asked(greedy, "a backtest") for _ in range(5)]
    answers = await asyncio.gather(*many, asked(other, "a backtest"), asked(greedy, "a draft"))
    assert {answer.status_code for answer in answers} == {200}
    # One of each seller's backtests, and the draft beside them.
    assert len(processes()) <= 3


@pytest.mark.night
async def test_a_price_file_waits_for_no_backtests(service, settings, alive) -> None:
    """A host of four web processes has less than two heavy ones for each: there are two."""
    app = create_app(settings.model_copy(update={"heavy_cards": 0, "web_workers": 4}))
    others = processes()
    async with alive(app):
        service = replace(service, app=app)
        shops = [await a_shop(SellerBuilder(service), a_row(1001)) for _ in range(3)]
        assert (await asked(shops[0], "presets")).status_code == 200
        [process] = [one for one in processes() if one not in others]
        process.suspend()
        backtests = [asyncio.create_task(asked(shop, "a backtest")) for shop in shops[:2]]
        await asyncio.sleep(0.2)
        assert (await asked(shops[2], "an agent's file")).status_code == 200
        process.resume()
        assert {one.status_code for one in await asyncio.gather(*backtests)} == {200}


def test_a_process_whose_web_process_was_killed_removes_its_files(tmp_path) -> None:
    folder = tmp_path / f"{FOLDER}1"
    folder.mkdir()
    (folder / "cardsync-unread").touch()
    environment = os.environ | {"TMPDIR": str(folder)}
    subprocess.run(PROGRAM, input=b"", capture_output=True, env=environment)
    assert not folder.exists()


def test_a_process_has_no_more_memory_than_its_limit() -> None:
    program = (
        "from cardsync.operations.processes.worker_memory import limit_memory; limit_memory(256);"
        " small = bytearray(64 << 20); bytearray(512 << 20)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("MemoryError")


class TooLarge:
    """An answer that there is no memory to write."""

    def __reduce__(self):
        raise MemoryError


@pytest.mark.parametrize("answered", [Answered(None, MemoryError()), Answered(TooLarge())])
def test_no_room_for_the_work_or_its_answer_is_the_refusal(answered: Answered) -> None:
    told = io.BytesIO()
    tell(told, answered)
    path = Path(told.getvalue()[LENGTH.size :].decode())
    failure = pickle.loads(path.read_bytes()).failure
    path.unlink()
    assert (type(failure), str(failure)) == (errors.ServiceUnavailable, TOO_MUCH)


def test_a_process_whose_web_process_ends_first_ends_without_a_word():
    command = [sys.executable, "-m", "cardsync", "heavy"]
    ended = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
