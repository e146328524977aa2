"""Whole cycles of an agent that drives a real Chromium at the simulated marketplace: only here do
the agent, the browser, the marketplace and the server meet.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.marketplace.truth import GONE
from tests.system.browser_shops import BrowserShop, browser_shop, browsers_of
from tests.system.processes import Server, until

import schedule
from cardsync_agent.marketplace.browser_import import READ_BACK

# So many cards that more than a canary's worth of prices change.
MANY = 200
PUBLISH = "/pricing/imports/*/publish"
# The steps that read what a design may have given up.
MAY_BE_GONE = {"feedback_export": "fetch_feedback", "account_export": "refresh_account"}


@pytest.fixture
def a_shop(server: Server, tmp_path: Path) -> Iterator[Callable[..., BrowserShop]]:
    """`a_shop(design=2, rows=60)`: a shop whose seller is signed in."""
    with ExitStack() as held:

        def make(*, signed_in: bool = True, **options: int) -> BrowserShop:
            shop = held.enter_context(browser_shop(server.seller(), tmp_path / "cards", **options))
            if signed_in:
                shop.sign_in()
            return shop

        yield make


def lines_of(shop: BrowserShop) -> list[tuple[int, int]]:
    """Every line that the marketplace has published, as card and price in cents."""
    return [(line["id"], line["price"]) for one in shop.published() for line in one["lines"]]


def test_a_full_cycle_needs_no_person_after_the_sign_in(a_shop) -> None:
    shop = a_shop()
    ended = shop.once()
    assert ended.returncode == 0, ended.events
    steps = shop.steps(ended)
    assert {status for status, _ in steps.values()} == {"success"}, steps
    [published] = shop.published()
    [report] = ended.named("upload_done")
    assert len(published["lines"]) == report["report"]["changed"]
    prices = shop.state()["prices"]
    assert all(int(float(prices[str(id)]) * 100 + 0.5) == price for id, price in lines_of(shop))
    # The server knows the prices, so that the next export has nothing to change.
    again = shop.once()
    assert again.named("export_empty")
    assert len(shop.published()) == 1
    [first, second] = shop.cycles()
    assert (first["status"], second["status"]) == ("success", "success")
    kept = list((shop.folder / ".cardsync-agent" / "downloads").glob("*.csv"))
    assert kept == [], "order files hold streets, and do not stay"


@schedule.whole_night
@pytest.mark.night
def test_the_smallest_changes_go_first_and_a_wrong_price_stops_the_rest(a_shop) -> None:
    shop = a_shop(rows=MANY)
    shop.price_above_market(300)
    before = {int(id): float(price) for id, price in shop.state()["prices"].items()}
    shop.control(fault="wrong_price", by=100)
    ended = shop.once()
    status, error = shop.steps(ended)["import_prices"]
    [canary] = shop.published()
    assert len(canary["lines"]) == 20
    assert status == "failed"
    wrong = next(line for line in canary["lines"] if f"card {line['id']}," in (error or ""))
    sent = wrong["price"] / 100
    assert f"shows ${sent + 1:.2f} for card {wrong['id']}, and ${sent:.2f} was sent" in error
    # The next sync begins with a canary again, and then sends the rest.
    ended = shop.once()
    assert shop.steps(ended)["import_prices"][0] == "success", shop.steps(ended)
    sizes = [len(one["lines"]) for one in shop.published()]
    assert sizes[1] <= 20 < sizes[2]
    moves = [
        [
            abs(line["price"] / 100 - before[line["id"]])
            for line in one["lines"]
            if line["id"] != wrong["id"]
        ]
        for one in shop.published()
    ]
    assert max(moves[0]) <= min(moves[2]) + 0.005
    # The pack has proved itself: no canary in the next file.
    assert (shop.folder / ".cardsync-agent" / "imports" / "canary.txt").read_text()


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("approved", [False, True])
def test_in_the_end_every_price_is_compared(a_shop, approved: bool) -> None:
    shop = a_shop(rows=MANY)
    shop.price_above_market(300)
    if approved:
        shop.set_account("sync_mode = 'read_only'")
        shop.once()
        shop.set_account("upload_approved = true")
    wrong: list[dict[str, Any]] = []

    def spoil() -> None:
        """Change a price that was found right, once the rest is published."""
        [canary] = shop.published()
        wrong.append(canary["lines"][0])
        shop.control(fault="wrong_price", id=wrong[0]["id"], by=100)

    events = events_of(shop, *([] if approved else ["--request"]), on_published=spoil)
    sent, texts = wrong[0]["price"] / 100, " ".join(one["text"] for one in events)
    assert f"shows ${sent + 1:.2f} for card {wrong[0]['id']}, and ${sent:.2f} was sent" in texts
    [_, rest] = shop.published()
    assert len(rest["lines"]) > READ_BACK
    assert (shop.folder / ".cardsync-agent" / "imports" / "canary.txt").read_text() == ""
    assert wrong[0]["id"] not in known_to_server(shop)


@pytest.mark.night
def test_an_import_that_the_marketplace_takes_in_part_is_not_published(a_shop) -> None:
    shop = a_shop()
    shop.control(fault="reject_rows", rows=1, reason="price too low")
    ended = shop.once()
    status, error = shop.steps(ended)["import_prices"]
    assert status == "failed"
    assert "would not take 1 of" in error
    assert "price too low" in error
    assert shop.published() == []
    assert [one["status"] for one in shop.state()["imports"]] == ["discarded"]
    failures = json.loads((shop.folder / ".cardsync-agent" / "card-failures.json").read_text())
    assert [one["reason"] for one in failures.values()] == ["price too low"]
    ended = shop.once()
    assert shop.steps(ended)["import_prices"][0] == "success", shop.steps(ended)
    assert len(shop.published()) == 1


def events_of(
    shop: BrowserShop, *options: str, on_published: Callable[[], object]
) -> list[dict[str, Any]]:
    """Run one cycle, and act once the marketplace has published a batch."""
    process = subprocess.Popen(
        shop.command("--once", *options), env=shop.env(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    events: list[dict[str, Any]] = []
    for line in process.stdout:
        events.append(json.loads(line))
        seen = [event["event"] for event in events]
        if seen[-1] == "prices_published" and seen.count("prices_published") == 1:
            on_published()
    process.wait(60)
    return events


def known_to_server(shop: BrowserShop) -> set[int]:
    """The cards of which the server knows that the marketplace shows the price that was sent."""
    rows = shop.seller.sql(
        "SELECT marketplace_id FROM card WHERE seller_id = %(seller)s AND price = target_price"
    )
    return {row["marketplace_id"] for row in rows}


@schedule.whole_night
@pytest.mark.night
def test_a_cancel_after_the_upload_stops_an_import_before_its_next_batch(a_shop) -> None:
    shop = a_shop(rows=MANY)
    shop.price_above_market(300)

    def cancel() -> None:
        with shop.seller.http() as http:
            http.post("/api/v1/sync/cancel").raise_for_status()

    events = events_of(shop, "--request", on_published=cancel)
    steps = {one["step"]: one for one in events if one["event"] == "step_finished"}
    assert steps["import_prices"]["error"] == "cancelled by the seller"
    assert [len(one["lines"]) for one in shop.published()] == [20]
    assert {one["status"] for one in shop.state()["imports"]} == {"published"}
    assert [one["status"] for one in shop.cycles()] == ["cancelled"]
    sent = {line["id"] for line in shop.published()[0]["lines"]}
    until(lambda: sent <= known_to_server(shop), "the part that was published is known")
    # The next sync brings the rest.
    shop.until_done()
    assert len(set(lines_of(shop))) == len(lines_of(shop))


@schedule.whole_night
@pytest.mark.night
def test_of_an_approved_file_that_is_refused_in_part_the_rest_is_known_at_once(a_shop) -> None:
    shop = a_shop(rows=MANY)
    shop.price_above_market(300)
    shop.set_account("sync_mode = 'read_only'")
    assert shop.steps(shop.once())["download_price_updates"][0] == "success"
    shop.set_account("upload_approved = true")
    refuse = partial(shop.control, fault="reject_rows", rows=1, reason="price too low")
    events = events_of(shop, on_published=refuse)
    [problem] = [one["text"] for one in events if "would not take 1 of" in one["text"]]
    assert "the approved upload" in problem
    [canary] = shop.published()
    sent = {line["id"] for line in canary["lines"]}
    until(lambda: sent <= known_to_server(shop), "the part that was published is known")
    assert not shop.seller.sql(
        "SELECT 1 FROM account WHERE seller_id = %(seller)s AND upload_approved"
    )


def put_up(shop: BrowserShop) -> int:
    """List two more copies of a card; return its id at the marketplace."""
    cards = shop.seller.sql(
        "SELECT set_name, product_name, number, marketplace_id FROM card WHERE NOT gone AND"
        " seller_id = %(seller)s AND condition_label = 'Near Mint' ORDER BY quantity DESC, id"
    )
    entry = {
        "name": cards[0]["product_name"], "set": cards[0]["set_name"],
        "number": cards[0]["number"], "condition": "NM", "quantity": 2, "price": "9.75", "game": "magic",
    }  # fmt: skip
    with shop.seller.http() as http:
        made = http.post("/api/quick_add", json={"entries": [entry]}).json()["entries"]
        http.post("/api/quick_add/publish", json={"ids": [made[0]["id"]]}).raise_for_status()
    id: int = cards[0]["marketplace_id"]
    return id


@schedule.whole_night
@pytest.mark.night
def test_new_stock_goes_in_by_the_form_once_and_exports_come_line_by_line(a_shop) -> None:
    shop = a_shop()
    pack = shop.folder / "packs" / "simulated" / "pack.json"
    told = json.loads(pack.read_text())
    told["elements"]["product_line"] = {"locators": [{"css": "#product-line"}]}
    choose = {
        "verb": "choose", "name": "choose_line", "element": "product_line",
        "value": "product_line", "then": {"url": "/pricing"},
    }  # fmt: skip
    told["workflows"]["export_inventory"]["steps"].insert(1, choose)
    pack.write_text(json.dumps(told))
    shop.until_done()
    lines = shop.seller.sql(
        "SELECT DISTINCT product_line FROM card WHERE seller_id = %(seller)s AND NOT gone"
    )
    assert len(lines) == len(told["product_lines"])
    id = put_up(shop)
    for _ in range(2):
        shop.once()
    assert shop.state()["listed"] == [{"id": id, "quantity": 2, "price": "9.7500"}]


def signing_in(shop, process) -> list[dict[str, Any]]:
    """Return the rest of what an agent says; the person signs in when it asks for that."""
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1]["event"] == "your_turn" and events[-1]["kind"] == "sign_in":
            threading.Thread(target=shop.sign_in_elsewhere).start()
    process.wait(60)
    return events


@schedule.whole_night
@pytest.mark.night
def test_an_approved_upload_waits_for_the_sign_in_and_is_heard_of(a_shop) -> None:
    """Also after a sync in the same process, whose end must not end the upload."""
    shop = a_shop()
    shop.set_account("sync_mode = 'read_only'")
    assert shop.steps(shop.once())["download_price_updates"][0] == "success"
    with shop.seller.http() as http:
        http.post("/api/v1/sync/request", json={"kind": "orders"}).raise_for_status()
    process = subprocess.Popen(
        shop.command(), env=shop.env(CARDSYNC_AGENT_PACE_INTERVAL="0.5"), stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            event = json.loads(line)
            assert "could not be done" not in event["text"]
            if event["event"] == "cycle_finished":
                shop.control(fault="expired_session", path="/pricing")
                shop.set_account("upload_approved = true")
            elif event.get("kind") == "sign_in":
                until(lambda: "Your turn" in shop.seller.get("/api/today").text, "Today says so")
                shop.sign_in_elsewhere()
            elif event["event"] == "approved_upload":
                break
    finally:
        process.terminate()
        process.wait(60)
    assert len(shop.published()) == 1


@schedule.whole_night
@pytest.mark.night
def test_the_person_signs_in_while_the_agent_waits(a_shop) -> None:
    shop = a_shop(signed_in=False)
    process = subprocess.Popen(
        shop.command("--once", "--request"), env=shop.env(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    events = signing_in(shop, process)
    turns = [event["kind"] for event in events if event["event"] == "your_turn"]
    assert turns[0] == "sign_in"
    [finished] = [event for event in events if event["event"] == "cycle_finished"]
    assert finished["status"] == "success"
    assert len(shop.published()) == 1


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("what", ["agent", "browser"])
def test_a_kill_while_prices_are_published_publishes_them_once(a_shop, what: str) -> None:
    shop = a_shop()
    shop.control(fault="latency", seconds=3, path=PUBLISH)
    kill_while_publishing(shop, what)
    shop.until_done()
    sent = lines_of(shop)
    assert len(sent) == len(set(sent)), "a price was published twice"
    assert len(sent) > 0


def kill_while_publishing(shop: BrowserShop, what: str) -> None:
    """Kill the agent or its browser while the marketplace takes its time: nobody knows then whether
    it will do what it was asked for.
    """
    process = subprocess.Popen(
        shop.command("--once", "--request"), env=shop.env(), stdout=subprocess.PIPE, text=True
    )
    journal = shop.folder / ".cardsync-agent" / "imports" / "import.json"
    until(lambda: journal.exists() and '"publishing"' in journal.read_text(), "publishing")
    time.sleep(0.5)
    if what == "agent":
        process.kill()
        process.wait()
    else:
        for pid in browsers_of(shop.folder):
            os.kill(pid, signal.SIGKILL)
        # With its browser the marketplace's session is gone.
        signing_in(shop, process)
    # Whether the click came through or not: the marketplace has ended what it began.
    time.sleep(4)


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("what", ["agent", "browser"])
def test_a_kill_while_stock_is_added_adds_it_once(a_shop, what: str) -> None:
    shop = a_shop()
    shop.until_done()
    id = put_up(shop)
    # The page comes at once, and what its form sends takes its time.
    shop.control(fault="latency", seconds=3, path="/inventory/add", after=1)
    kill_while_publishing(shop, what)
    for _ in range(2):
        shop.once()
    assert [(one["id"], one["quantity"]) for one in shop.state()["listed"]] == [(id, 2)]


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("what", ["agent", "browser"])
@pytest.mark.parametrize(
    "step",
    [
        "export_inventory", "upload_inventory", "await_repricing", "download_price_updates",
        "import_prices", "fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds",
        "fetch_feedback", "fetch_sales_report", "refresh_account",
    ],
)  # fmt: skip
@pytest.mark.parametrize("delay", [0.0, 0.7, 1.8])
def test_a_kill_at_any_step_loses_and_doubles_nothing(a_shop, what, step, delay) -> None:
    shop = a_shop()
    process = subprocess.Popen(
        shop.command("--once", "--request"), env=shop.env(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step_started" and event["step"] == step:
            break
    time.sleep(delay)
    if what == "agent":
        process.kill()
    else:
        for pid in browsers_of(shop.folder):
            os.kill(pid, signal.SIGKILL)
    signing_in(shop, process)
    if what == "browser":
        # A browser that is killed may lose a sign-in that it has not written yet.
        shop.sign_in()
    shop.until_done()
    sent = lines_of(shop)
    assert len(sent) == len(set(sent))
    assert len(sent) > 0
    ids = {line["id"] for one in shop.published() for line in one["lines"]}
    assert len(ids) == len(sent)


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("fault", ["half_download", "error", "too_many", "expired_session"])
def test_a_marketplace_with_a_bad_day_is_asked_again(a_shop, fault: str) -> None:
    shop = a_shop()
    details = {"error": {"status": 500}, "too_many": {"retry_after": 1}}.get(fault, {})
    shop.control(fault=fault, path="/pricing*", **details)
    if fault == "expired_session":
        threading.Timer(3.0, shop.sign_in_elsewhere).start()
    ended = shop.once()
    assert shop.steps(ended)["import_prices"][0] == "success", ended.events
    assert len(shop.published()) == 1


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize(
    ("fault", "path", "after"),
    [
        ("half_upload", "/pricing/import", 0),
        ("hang_up", "/pricing/import", 0),
        ("hang_up", "/pricing/import", 1),
        ("hang_up", PUBLISH, 0),
    ],
)
def test_a_network_that_is_cut_in_an_import_loses_and_doubles_nothing(
    a_shop, fault: str, path: str, after: int
) -> None:
    shop = a_shop()
    shop.control(fault=fault, path=path, after=after)
    shop.once()
    assert shop.control()["faults"] == []
    shop.until_done()
    assert len(shop.published()) == 1


@schedule.whole_night
@pytest.mark.night
@pytest.mark.parametrize("design", [2, 3])
def test_a_redesign_is_repaired_and_a_person_confirms_what_changes_prices(
    a_shop, design: int
) -> None:
    shop = a_shop(design=design, rows=20, orders=4)
    # The seller's first rule never lowers a price, and would change none of these.
    shop.price_above_market(300)
    ended = shop.once()
    steps = shop.steps(ended)
    failed = {name: error or "" for name, (status, error) in steps.items() if status == "failed"}
    lost = {step for element, step in MAY_BE_GONE.items() if element in GONE[design]}
    assert set(failed) == {"import_prices", *lost}, failed
    assert all("no repair" in failed[step] for step in lost), failed
    # Of what the design has no more, the server keeps the question and a picture.
    asked = shop.seller.sql(
        "SELECT screenshot_key FROM workflow_heal WHERE seller_id = %(seller)s AND outcome = 'gone'"
    )
    assert len(asked) == len(lost)
    assert all(one["screenshot_key"] for one in asked)
    assert shop.published() == []
    for _ in range(6):
        if shop.published():
            break
        assert "--confirm" in (shop.steps(ended)["import_prices"][1] or ""), shop.steps(ended)
        shop.confirm_repairs()
        # What only reads was done above.
        ended = shop.once("--request", "pricing")
    assert len(shop.published()) == 1, shop.steps(ended)
    assert shop.steps(ended)["import_prices"] == ("success", None)


@schedule.whole_night
@pytest.mark.night
def test_months_that_the_marketplace_does_not_offer_keep_no_later_month_back(a_shop) -> None:
    """The marketplace's page offers 24 months, and the shop's first order is older."""
    shop = a_shop()
    pack = shop.folder / "packs" / "simulated" / "pack.json"
    told = json.loads(pack.read_text())
    told["elements"]["report_month"] = {"locators": [{"css": "#month"}]}
    choose = {
        "verb": "choose", "name": "choose_month", "element": "report_month", "value": "month",
        "then": {"url": "/payments"},
    }  # fmt: skip
    steps = told["workflows"]["sales_report"]["steps"]
    steps[0]["path"] = "/payments"
    steps.insert(1, choose)
    pack.write_text(json.dumps(told))
    shop.until_done()
    shop.seller.sql(
        "UPDATE orders SET order_date = date_trunc('month', now()) - interval '26 months'"
        " WHERE seller_id = %(seller)s AND id = (SELECT min(id) FROM orders"
        " WHERE seller_id = %(seller)s) RETURNING id"
    )

    def gaps() -> list[str]:
        with shop.seller.http() as http:
            found: list[str] = http.get("/api/v1/sales_report/gaps").json()["gaps"]
            return found

    before = gaps()
    for _ in range(2):
        shop.once("--request", "sales")
    left = gaps()
    # The marketplace's months are those of its own time zone, so only two are surely too old.
    assert left[:2] == before[:2]
    assert set(left) < set(before)
