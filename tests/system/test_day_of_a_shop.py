"""A whole day of a shop in a real browser: Today in the morning, 14 orders pulled on two phones with
one card missing, orders shipped, a price review, a rule changed with its preview, a rollback, and a
box counted. Two processes serve the pages.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.system.processes import Server
from tests.system.processes import until as eventually
from tests.system.pull_streams import seconds_to_each
from tests.system.shop_with_pages import NOW, Shop, a_shop_with_pages
from tests.system.test_pages_in_browser import a_window
from tests.system.test_phones_pull import a_phone, pull_if_shown, shown

import schedule
from builders import an_order

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]
ORDERS = 14


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    return a_shop_with_pages(server, hostile=False)


@contextmanager
def member(shop: Shop) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shop.seller.server.url, timeout=30) as http:
        told = http.post("/api/session", json={"email": shop.email, "password": shop.password})
        http.headers["X-CSRF-Token"] = told.json()["csrf_token"]
        yield http


def a_night(shop: Shop) -> list[str]:
    """Bring in 14 orders of cards on two shelves before the morning, and a run that leaps."""
    with shop.seller.http() as http, member(shop) as owner:
        http.post(f"/api/pull_sessions/{shop.session_id}/cancel")
        found = http.get("/api/cards", params={"per_page": 200, "search": "qty>0 price>0"}).json()
        cards = [card for card in found["cards"] if card["game"] == found["cards"][0]["game"]][:20]
        assert len(cards) >= ORDERS
        for place, card in enumerate(cards):
            body = {"card_id": card["id"], "box": 1 + place % 2, "slot": 1 + place, "quantity": 2}
            put = owner.post("/api/shelves/put", json=body)
            assert put.status_code in (200, 201), put.text
        numbers = [f"DAY-{n:04}" for n in range(ORDERS)]
        day = NOW.strftime("%m/%d/%Y")
        orders = [
            an_order(number, buyer_name="Morning Buyer", order_date=day, status="Ready to Ship")
            for number in numbers
        ]
        items = [
            {"order_number": number, "sku_id": card["marketplace_id"], "quantity": 1,
             "product_name": card["product_name"], "product_line": card["product_line"],
             "set_name": card["set_name"], "condition": card["condition_label"]}
            for number, card in zip(numbers, cards, strict=False)
        ]  # fmt: skip
        for path, rows in (("orders", orders), ("order_items", items)):
            assert http.post(f"/api/v1/{path}", json=rows).status_code == 202
        query = {"search": "DAY-", "per_page": 50}

        def arrived() -> bool:
            told = http.get("/api/orders", params=query).json()["orders"]
            return len(told) == ORDERS and all(order["items"] for order in told)

        eventually(arrived, "the night's orders with their items")
        leap = {"name": "Leap", "query": "price>0", "price_source": "current", "adjust_bp": 9000,
                "state": "published", "priority": 1}  # fmt: skip
        made = http.post("/api/pricing/rules", json=leap)
        assert made.status_code == 201, made.text
        asked = http.post("/api/pricing/reprice", json={})
        assert asked.status_code == 202, asked.text
        eventually(lambda: newest_run(http)["state"] == "awaiting_review", "the run in review")
    return numbers


def newest_run(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/api/pricing/runs").json()["runs"][0]
    return found


@schedule.whole_night
@pytest.mark.night
def test_a_whole_day(browser: Browser, shop: Shop) -> None:
    numbers = a_night(shop)
    with a_window(browser, shop) as page:
        morning(page)
        link = a_cover(page)
        pulled_on_two_phones(browser, page, link)
        shipped(page, numbers)
        reviewed(page, shop)
        a_rule_changed(page, shop)
        rolled_back(page, shop)
        a_box_counted(page)


def morning(page: Page) -> None:
    page.goto("/today")
    work = page.get_by_role("list").filter(has_text="pull").first
    work.wait_for()
    page.get_by_role("link", name="Review the run").wait_for()


def a_cover(page: Page) -> str:
    """Open a pull of the night's orders; return the link behind the cover's code."""
    page.goto("/pulls")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Order number or buyer").fill("Morning")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("button", name=f"Start pull ({ORDERS} orders)").click()
    link = page.get_by_role("link", name="Pull on this device")
    link.wait_for()
    return str(link.get_attribute("href"))


def pulled_on_two_phones(browser: Browser, page: Page, link: str) -> None:
    phones = [a_phone(browser, link), a_phone(browser, link)]
    done = 0
    first = phones[0]
    first.get_by_role("button", name="Missing").click()
    first.get_by_role("button", name="None here").click()
    first.locator("#lines li.bad").wait_for()
    while done < ORDERS - 1:
        # The last card is on one of them, and claims decide on which.
        turns = cycle((phones[done % 2], phones[(done + 1) % 2]))
        done += eventually(lambda turns=turns: pull_if_shown(next(turns)), "a card on a phone")
        for each in phones:
            each.wait_for_function(
                "n => document.querySelector('#progress progress').value >= n", arg=done
            )
    assert {shown(phone) for phone in phones} == {ORDERS - 1}
    for phone in phones:
        phone.get_by_role("heading", name="All done here").wait_for()
        assert "Morning" not in phone.content()
        phone.context.close()
    page.get_by_role("heading", name="Orders in shelf order").wait_for()
    page.reload()
    assert page.get_by_role("button", name="Found it").count() == 1
    page.get_by_role("button", name="End the pull").first.click()
    page.get_by_text("Pull ended.").wait_for()
    page.goto("/cards?search=is:audit")
    assert page.locator("[data-rows] tr").count() >= 1


def shipped(page: Page, numbers: list[str]) -> None:
    page.goto(f"/orders?search={numbers[3]}")
    page.locator("[data-rows] th a").first.click()
    page.get_by_role("button", name="Mark shipped").click()
    page.get_by_role("button", name="Undo shipped").wait_for()


def reviewed(page: Page, shop: Shop) -> None:
    page.goto("/today")
    page.get_by_role("link", name="Review the run").click()
    page.get_by_role("button", name="Confirm").click()
    page.locator("#notices :is(.toast, .notice.good)").first.wait_for()
    with shop.seller.http() as http:
        eventually(lambda: newest_run(http)["state"] == "completed", "the run that was confirmed")


def a_rule_changed(page: Page, shop: Shop) -> None:
    page.goto("/pricing")
    page.get_by_role("link", name="Leap").first.click()
    draft = page.locator("#draft")
    draft.get_by_text("Matches", exact=True).wait_for()
    before = draft.inner_text()
    page.get_by_label("Percent above or below").fill("12")
    page.wait_for_function(
        "before => document.getElementById('draft').innerText !== before", arg=before
    )
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator("#notices :is(.toast, .notice.good)").first.wait_for()
    page.goto("/pricing/runs")
    with shop.seller.http() as http:
        last = newest_run(http)["id"]
        page.get_by_role("button", name="Reprice now").click()
        eventually(
            lambda: newest_run(http)["id"] > last and newest_run(http)["state"] != "running",
            "the run of the changed rule",
        )
        run = newest_run(http)
        assert run["state"] == "completed", run
        assert run["changed"]


def rolled_back(page: Page, shop: Shop) -> None:
    with shop.seller.http() as http:
        run = newest_run(http)["id"]
    page.goto(f"/pricing/runs/{run}")
    page.get_by_role("link", name="Roll back").click()
    button = page.get_by_role("button", name=re.compile(r"Roll back \d"))
    button.wait_for()
    assert page.locator("[data-rows] tr").count() >= 1
    button.click()
    page.wait_for_url(re.compile(r"/pricing/rollback/\d+"))


def a_box_counted(page: Page) -> None:
    page.goto("/shelves/1")
    page.get_by_role("button", name=re.compile("Count")).first.click()
    page.wait_for_url(re.compile(r"/counts/\d+"))
    seen = page.locator("input[name^=seen-]")
    for n in range(seen.count()):
        seen.nth(n).fill("1" if n == 0 else "2")
    page.get_by_role("button", name="Save counts").click()
    page.get_by_role("button", name="Finish, keep uncounted cards").click()
    page.get_by_text("settled").first.wait_for()
    figures = page.locator("dl.figures").inner_text()
    assert re.search(r"Wrong\s+1\b", figures), figures


@pytest.mark.night
def test_a_mark_reaches_the_streams_of_both_processes_within_a_second(shop: Shop) -> None:
    """A page may listen at another process than the one that takes the mark."""
    server = shop.seller.server
    assert len(server.children("web")) >= 2
    with shop.seller.http() as http, member(shop) as owner:
        for one in http.get("/api/orders", params={"per_page": 1}).json()["pull_sessions"]:
            if one["status"] == "open":
                http.post(f"/api/pull_sessions/{one['id']}/cancel")
        session = http.post("/api/pull_sessions", json={}).json()["id"]
        links = [a_phone_link(owner, session, server) for _ in range(16)]
    item = httpx.get(f"{links[0]}/queue").json()["lines"][0]["item_id"]
    slowest = listened(links, item, len(server.children("web")), server)
    assert slowest < 1.0


def a_phone_link(owner: httpx.Client, session: int, server: Server) -> str:
    made = owner.post("/api/pull_links", json={"session_id": session}).json()["links"]
    return server.url + made[0]["url"][made[0]["url"].index("/p/") :]


def listened(links: list[str], item: int, processes: int, server: Server) -> float:
    """Return how long the slowest of many streams waits for a mark; some are at each process."""
    spread, waits = seconds_to_each(links, item, [p.pid for p in server.children("web")])
    # The first one starts the others and serves no page.
    assert len(spread) == processes - 1, spread
    return max(waits)


@pytest.mark.night
def test_a_rule_is_dragged_by_the_mouse(browser: Browser, shop: Shop) -> None:
    with shop.seller.http() as http:
        body = {"name": "Dragged", "query": "qty>100000", "price_source": "market"}
        assert http.post("/api/pricing/rules", json=body).status_code == 201
    with a_window(browser, shop) as page:
        page.goto("/pricing")
        page.wait_for_load_state("networkidle")
        rows = page.locator("[data-order] > tr")
        names = rows.locator("th").all_inner_texts()
        assert len(names) >= 2
        last, first = rows.nth(len(names) - 1), rows.nth(0)
        grip, goal = last.locator("td").first.bounding_box(), first.bounding_box()
        assert grip
        assert goal
        page.mouse.move(grip["x"] + 5, grip["y"] + 5)
        page.mouse.down()
        page.mouse.move(goal["x"] + 60, goal["y"] + goal["height"] - 3, steps=5)
        page.mouse.move(goal["x"] + 60, goal["y"] + 3, steps=5)
        with page.expect_navigation():
            page.mouse.up()
        page.wait_for_load_state("networkidle")
        assert rows.locator("th").all_inner_texts() == [names[-1], *names[:-1]]
    with shop.seller.http() as http:
        found = http.get("/api/pricing/rules").json()["rules"]
        assert [rule["name"] for rule in found] == [names[-1].strip(), *map(str.strip, names[:-1])]
