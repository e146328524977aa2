"""The server's tasks worked off by the real agent against the real server: each is handed over
once in effect, whatever is killed or lost on the way.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_process import Agents
from tests.system.inventories import FIRST, NOW, SECOND
from tests.system.processes import Server, until
from tests.system.test_agent_cycle import Shop

from builders import a_csv, a_row, read_csv
from cardsync.platform import clock
from cardsync_demo import order_texts

CARDS = range(1, 11)
THIRD = NOW.isoformat()
# The schedule and the history are of no interest here: only tasks are left to do.
NOTHING_DUE = """
    UPDATE sync_state SET history_fetched_at = now(), last_pricing_at = now(), last_sync_at = now()
     WHERE seller_id = %(seller)s RETURNING 1
"""
RUN_OUT = """
    WITH old AS (
        UPDATE agent_task SET claim_expires_at = now() - interval '1 second'
         WHERE seller_id = %(seller)s AND status = 'claimed' RETURNING 1
    )
    UPDATE sync_state SET tasks_due_at = now(), price_tasks_due_at = now()
     WHERE seller_id = %(seller)s RETURNING (SELECT count(*) FROM old) AS claims
"""
SERVED_LONG_AGO = """
    UPDATE quick_add SET served_at = served_at - interval '31 minutes'
     WHERE seller_id = %(seller)s AND status = 'pending' RETURNING id
"""


@pytest.fixture
def a_shop(server: Server, tmp_path: Path) -> Callable[..., Shop]:
    """A shop with ten cards of 2.00, with nothing due."""

    def make(**settings: Any) -> Shop:
        (tmp_path / "shop" / "inbox").mkdir(parents=True)
        shop = Shop(server.seller(**settings), tmp_path / "shop")
        bring(shop, FIRST, price="2.00", market="2.00")
        return shop

    return make


def bring(shop: Shop, exported_at: str, **cells: str) -> None:
    file = a_csv(*(a_row(n, number=n, **cells) for n in CARDS))
    upload = shop.seller.upload(file, exported_at)
    assert shop.seller.finished(upload)["state"] == "done"
    until(lambda: shop.state()["lease_token"] is None, "the lease")
    assert shop.seller.sql(NOTHING_DUE)


def send(shop: Shop, path: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    with shop.seller.http() as http:
        answer = http.post(path, json=body)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


def tasks(shop: Shop) -> list[tuple[str, str]]:
    """Kind and status of every task, oldest first."""
    found = shop.seller.get("/api/v1/tasks").json()["tasks"]
    return [(task["kind"], task["status"]) for task in reversed(found)]


def told_of(shop: Shop) -> bool:
    return bool(send(shop, "/api/v1/heartbeat", {})["has_pending_tasks"])


def imported(shop: Shop, file: Path, *options: str) -> str:
    """The output of `cardsync-agent imported`."""
    command = [sys.executable, "-m", "cardsync_agent", "imported", str(file), *options]
    command += ["--server", shop.seller.server.url, "--key", shop.seller.api_key]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outbox(shop: Shop) -> list[Path]:
    folder = shop.folder / "outbox"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def published(shop: Shop, *entries: dict[str, Any]) -> list[int]:
    made = send(shop, "/api/quick_add", {"entries": list(entries)}, 201)
    ids = [int(entry["id"]) for entry in made["entries"]]
    send(shop, "/api/quick_add/publish", {"ids": ids})
    return ids


def entry(number: int, **fields: Any) -> dict[str, Any]:
    card = {"name": f"Card {number}", "set": "Dominaria United", "number": str(number)}
    return card | {"game": "magic", "condition": "NM", "quantity": 2, "price": "1.25"} | fields


def statuses(shop: Shop) -> dict[int, tuple[str, str | None]]:
    found = shop.seller.get("/api/quick_add?per_page=200").json()["entries"]
    return {each["id"]: (each["status"], each["reason"]) for each in found}


@pytest.mark.night
def test_orders_that_a_person_asks_for_are_fetched(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    for name, content in order_texts.files(clock.now().date()).items():
        shop.put(content.encode(), name)
    asked = send(shop, "/api/v1/tasks", {"kind": "refresh_orders"}, 201)
    assert send(shop, "/api/v1/tasks", {"kind": "refresh_orders"})["id"] == asked["id"]
    assert told_of(shop)
    ended = shop.once()
    assert ended.returncode == 0, ended.errors
    assert [task["status"] for task in ended.named("task_ended")] == ["completed"]
    assert tasks(shop) == [("refresh_orders", "completed")]
    page = shop.seller.get("/api/orders").json()
    # The rolling window leaves out the older half of the year.
    assert 40 < page["total"] < order_texts.ORDERS
    assert not told_of(shop)
    assert shop.once().named("task_started") == []


def test_prices_are_pushed_by_their_task_and_settled_by_the_event(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop()
    bring(shop, SECOND, price="2.00", market="2.20")
    assert tasks(shop) == [("apply_price_updates", "pending")]
    assert shop.seller.get("/api/v1/status").json()["phase"] == "push_queued"
    ended = shop.once()
    assert ended.returncode == 0, ended.errors
    assert tasks(shop) == [("apply_price_updates", "completed")]
    [file] = outbox(shop)
    assert len(read_csv(file.read_bytes())) == len(CARDS)
    # Only the event moves prices.
    assert {str(card["price"]) for card in cards(shop)} == {"2.0000"}
    assert "10 prices were imported" in imported(shop, file)
    until(lambda: {card["price"] for card in cards(shop)} == targets(shop), "the prices to move")
    assert not told_of(shop)
    imported(shop, file)
    assert {card["price"] for card in cards(shop)} == targets(shop)


def cards(shop: Shop) -> list[dict[str, Any]]:
    return shop.seller.sql("SELECT price, target_price FROM card WHERE seller_id = %(seller)s")


def targets(shop: Shop) -> set[Any]:
    rows = read_csv(shop.files("exports")[-1])
    return {type(cards(shop)[0]["price"])(row["TCG Marketplace Price"]) for row in rows}


@pytest.mark.first(1)
@pytest.mark.parametrize("sync_mode", ["full", "read_only"])
def test_listings_are_placed_and_settled_row_by_row(
    a_shop: Callable[..., Shop], sync_mode: str
) -> None:
    shop = a_shop(sync_mode=sync_mode)
    one, two, new = published(
        shop,
        entry(1, marketplace_id=1),
        entry(2, marketplace_id=2),
        entry(7, condition="LP"),
    )
    ended = shop.once()
    assert ended.returncode == 0, ended.errors
    assert tasks(shop) == [("quick_add_listing", "completed")]
    [file] = outbox(shop)
    rows = read_csv(file.read_bytes())
    assert [(row["TCGplayer Id"], row["Add to Quantity"]) for row in rows] == [
        ("1", "2"),
        ("2", "2"),
        ("", "2"),
    ]
    assert {status for status, _ in statuses(shop).values()} == {"pending"}
    imported(shop, file, "--rejected", "2=price too low")
    assert statuses(shop) == {
        one: ("listed", None),
        two: ("rejected", "price too low"),
        new: ("listed", None),
    }
    assert not told_of(shop)


@pytest.mark.night
def test_a_new_listing_that_was_refused_is_named_by_its_line_or_its_entry(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop()
    one, two, three = published(
        shop, entry(5, condition="LP"), entry(6, condition="MP"), entry(7, condition="LP")
    )
    assert shop.once().returncode == 0
    [file] = outbox(shop)
    options = ("--rejected", "line-3=no such condition", "--rejected", f"entry-{three}")
    assert "2 were refused" in imported(shop, file, *options)
    assert statuses(shop) == {
        one: ("listed", None),
        two: ("rejected", "no such condition"),
        three: ("rejected", "the marketplace refused it"),
    }
    unknown = subprocess.run(
        [sys.executable, "-m", "cardsync_agent", "imported", str(file), "--rejected", "line-9",
         "--server", shop.seller.server.url, "--key", shop.seller.api_key],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (unknown.returncode, "no such line of new listings" in unknown.stderr) == (2, True)


@pytest.mark.night
def test_a_sync_that_gets_the_listings_places_them_in_either_mode(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop(sync_mode="read_only")
    published(shop, entry(1, marketplace_id=1))
    shop.put(a_csv(*(a_row(n, number=n, price="2.00", market="2.00") for n in CARDS)))
    ended = shop.once("--request", "pricing")
    assert ended.returncode == 0, ended.errors
    [file] = outbox(shop)
    assert [row["Add to Quantity"] for row in read_csv(file.read_bytes())] == ["2"]


@pytest.mark.night
def test_listings_that_did_not_arrive_are_placed_again(a_shop: Callable[..., Shop]) -> None:
    """After half an hour the owner compares, and says that the marketplace has none of them."""
    shop = a_shop()
    [id] = published(shop, entry(1, marketplace_id=1))
    assert shop.once().returncode == 0
    [first] = outbox(shop)
    first.unlink()
    assert shop.seller.sql(SERVED_LONG_AGO)
    shop.seller.sql(
        "UPDATE quick_add SET status = 'draft' WHERE seller_id = %(seller)s RETURNING id"
    )
    send(shop, "/api/quick_add/publish", {"ids": [id]})
    assert shop.once().returncode == 0
    [second] = outbox(shop)
    assert [row["Add to Quantity"] for row in read_csv(second.read_bytes())] == ["2"]
    imported(shop, second)
    assert statuses(shop) == {id: ("listed", None)}


def test_listings_whose_download_was_lost_are_placed_exactly_once(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop()
    assert shop.once().returncode == 0
    name = json.loads((shop.folder / ".cardsync-agent" / "state.json").read_text())["agent_id"]
    [id] = published(shop, entry(1, marketplace_id=1))
    with shop.seller.http() as http:
        lost = http.get("/api/v1/export/price-updates", headers={"X-Agent-Id": name})
    assert lost.headers["X-Quick-Add-Ids"] == str(id)
    assert shop.once().returncode == 0
    [file] = outbox(shop)
    assert file.read_bytes() == lost.content
    for _ in range(2):
        assert shop.once("--request", "pricing").returncode in (0, 1)
        assert outbox(shop) == [file]
    imported(shop, file)
    assert statuses(shop) == {id: ("listed", None)}


@pytest.mark.night
def test_a_rollback_is_placed_by_its_task_in_read_only(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    bring(shop, SECOND, price="2.00", market="2.20")
    bring(shop, THIRD, price="2.20", market="2.20")
    runs = shop.seller.get("/api/pricing/runs").json()["runs"]
    shop.seller.sql(
        "UPDATE account SET sync_mode = 'read_only' WHERE seller_id = %(seller)s RETURNING 1"
    )
    rollback = send(shop, "/api/pricing/rollbacks", {"run_id": runs[1]["id"]}, 201)
    address = f"/api/pricing/rollbacks/{rollback['id']}"

    def state() -> str:
        return str(shop.seller.get(address).json()["state"])

    until(lambda: state() == "ready", state)
    assert told_of(shop)
    ended = shop.once()
    assert ended.returncode == 0, ended.errors
    assert tasks(shop)[-1] == ("apply_rollback", "completed")
    [file] = outbox(shop)
    assert {row["TCG Marketplace Price"] for row in read_csv(file.read_bytes())} == {"2.0000"}
    imported(shop, file)
    until(lambda: state() == "applied", state)
    assert {str(card["price"]) for card in cards(shop)} == {"2.0000"}


@pytest.mark.night
def test_a_claim_that_ran_out_is_offered_again_and_done_once(a_shop: Callable[..., Shop]) -> None:
    """Another agent took the task and went away."""
    shop = a_shop()
    [id] = published(shop, entry(1, marketplace_id=1))
    [lost] = send(shop, "/api/v1/tasks/claim", {"kinds": ["quick_add_listing"]})["tasks"]
    assert not told_of(shop)
    assert shop.once().named("task_started") == []
    [ran_out] = shop.seller.sql(RUN_OUT)
    assert ran_out["claims"] == 1
    assert told_of(shop)
    ended = shop.once()
    assert [task["attempt"] for task in ended.named("task_started")] == [1]
    assert tasks(shop) == [("quick_add_listing", "completed")]
    with shop.seller.http() as http:
        late = {"status": "failed", "claim_token": lost["claim_token"]}
        assert http.patch(f"/api/v1/tasks/{lost['id']}", json=late).status_code == 409
    assert len(outbox(shop)) == 1
    assert statuses(shop)[id][0] == "pending"


# Each moment at which something changes outside of the agent, in the task of a listing.
@pytest.mark.night
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", [3, 5, 7, 9, 11, 13])
def test_an_agent_killed_in_the_middle_finishes_its_task(
    a_shop: Callable[..., Shop], agents: Agents, point: int, side: str
) -> None:
    shop = a_shop()
    [id] = published(shop, entry(1, marketplace_id=1))
    killed = agents.run(*shop.arguments(), "--once", kill_at=point, side=side)
    assert killed.returncode in (-signal.SIGKILL, 0), killed.errors
    # An answer to a claim that was lost comes back when the claim has run out.
    if not (shop.folder / "outbox").exists() and tasks(shop)[0][1] == "claimed":
        ended = agents.run(*shop.arguments(), "--once")
        assert ended.returncode == 0, ended.errors
        shop.seller.sql(RUN_OUT)
    ended = agents.run(*shop.arguments(), "--once")
    assert ended.returncode == 0, ended.errors
    assert tasks(shop) == [("quick_add_listing", "completed")]
    [status] = [status for status, _ in statuses(shop).values()]
    assert (status, len(outbox(shop))) in (("pending", 1), ("pending", 0))
    if outbox(shop):
        imported(shop, outbox(shop)[0])
        assert statuses(shop) == {id: ("listed", None)}
