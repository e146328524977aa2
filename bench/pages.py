"""`python bench/pages.py [--rows 300000] [--rounds 100] [--orders 1000000]`: every page over HTTP,
beside the JSON read that it shows, asked in turn by the same member's session; and pages in
Debian's chromium, by its own DevTools protocol, on a desktop and on a telephone.
`--budgeted 1` leaves pages out that have no budget.
"""

from __future__ import annotations

import json
import statistics
from html.parser import HTMLParser
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx

import acts_in_browser
import ground
import import_inventory
import pages_in_browser
import read_orders
from budgets import BY_NAME
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.platform.derived.stock import STOCK
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from cardsync.sales.orders.sales_sums import SALES_SUMS
from cardsync.sales.orders.search_parts import ORDER_SEARCH
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import Ground, Report

TODAY = "/api/today", "/api/listed_value", "/api/movers"
# A page and the JSON reads that it shows.
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "today": ("/today", TODAY),
    "cards": ("/cards", ("/api/cards",)),
    "cards, a search": (
        "/cards?search=is:foil+price>5",
        ("/api/cards?search=is:foil+price>5",),
    ),
    "cards, rows of any place": ("/cards/more?ids={cards}", ()),
    "card": ("/cards/{card}", ("/api/cards/{card}", "/api/v1/pricing/explain/{listing}")),
    "orders": ("/orders", ("/api/orders",)),
    "orders, a search": ("/orders?search=smith", ("/api/orders?search=smith",)),
    "orders, a rare search": ("/orders?search={number}", ("/api/orders?search={number}",)),
    "order": ("/orders/{order}", ("/api/orders/{order}",)),
    "customers": ("/customers", ("/api/customers",)),
    "returns": ("/returns", ()),
    "lists": ("/lists", ("/api/lists",)),
    "pulls": ("/pulls", ()),
    "shelves": ("/shelves", ()),
    "counts": ("/counts", ()),
    "sales": ("/sales", ()),
    "profit": ("/profit", ()),
    "reviews": ("/pricing/reviews", ()),
    "suggestions": ("/recommendations", ()),
    "pricing": ("/pricing", ("/api/pricing/rules",)),
    "pricing runs": ("/pricing/runs", ("/api/pricing/runs",)),
    "sync": ("/sync", ("/api/v1/status",)),
    "activity": ("/activity", ("/api/v1/agent/activity",)),
    "settings": ("/settings/shop", ("/api/account",)),
    "completion of a set": ("/api/cards/complete?text=set:a", ()),
}
EVERYDAY = ("today", "sales", "profit", "pulls", "reviews", "suggestions")
# A slow page is asked less often than the others.
LONGEST = 10.0
FEWEST = 5
QUERIES = ("is:foil price>5", "game:magic", "set:a market>1", "quantity>2")

ALL_DAYS = "SELECT DISTINCT order_date FROM orders WHERE seller_id = :seller"


def timed(http: httpx.Client, path: str) -> float:
    began = perf_counter()
    answer = http.get(path)
    took = (perf_counter() - began) * 1000
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:200])
    return took


def p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


def a_shop(made: Ground, orders: int, days: int = read_orders.SIX_YEARS) -> CreatedSeller:
    """Make a seller with the inventory's cards and as many orders, and keep the figures of both."""
    seller = made.new_seller()
    with ground.service(made, workers=1):
        import_inventory.upload(made, seller, made.inventory.read_bytes())
        _with_reviews(made, seller)
    read_orders.fill(made, seller.seller_id, orders, days)

    async def kept(database: Database) -> None:
        async with database.tenant(seller.seller_id) as session:
            await mark_changed(session, ALL_DAYS, {"seller": seller.seller_id})
            figures = (Figure.STOCK, Figure.SALES_SUMS, Figure.ORDER_SEARCH)
            await mark(session, seller.seller_id, *figures)
        work = Work(made.settings, database, open_store(made.settings))
        await STOCK.work_off(work, seller.seller_id)
        for figure in (SALES_SUMS, ORDER_SEARCH):
            while await figure.work_off(work, seller.seller_id):
                pass

    made.in_database(kept)
    with made.admin() as connection:
        connection.execute("VACUUM ANALYZE")
    made.settle()
    return seller


def _with_reviews(made: Ground, seller: CreatedSeller) -> None:
    """Price a part of the cards by a rule; what rises or falls far is to be reviewed."""
    rule = {"name": "Foils", "query": "is:foil", "state": "published", "priority": 1}
    with httpx.Client(base_url=f"http://{made.settings.bind}", timeout=120) as http:
        http.headers["Authorization"] = f"Bearer {seller.api_key}"
        for method, path, body in (
            ("PATCH", "/api/pricing/settings", {"review_up_bp": 1_500}),
            ("POST", "/api/pricing/rules", rule),
            ("POST", "/api/pricing/reprice", {}),
        ):
            http.request(method, path, json=body).raise_for_status()
        until = perf_counter() + 120
        while not http.get("/api/pricing/reviews").json()["total"]:
            assert perf_counter() < until, "no price is to be reviewed"
            sleep(0.5)


def measure(data: Path, rows: int, rounds: int, orders: int, budgeted: int = 0) -> Report:
    report = Report("The pages")
    with ground.ground(data, rows) as made:
        seller = a_shop(made, orders)
        with (
            ground.service(made, workers=0),
            httpx.Client(base_url=f"http://{made.settings.bind}", timeout=120) as http,
        ):
            credentials = {"email": seller.email, "password": seller.password}
            assert http.post("/api/session", json=credentials).status_code == 200
            cards: list[dict[str, Any]] = json.loads(http.get("/api/cards").text)["cards"]
            card = cards[0]
            order: dict[str, Any] = json.loads(http.get("/api/orders?per_page=1").text)["orders"][0]
            ids = {"card": card["id"], "listing": card["marketplace_id"], "order": order["id"]}
            ids["cards"] = ",".join(str(one["id"]) for one in cards)
            ids["number"] = order["order_number"][-7:]
            paths = {name: page.format(**ids) for name, (page, _) in PAGES.items()}
            took: dict[str, tuple[float, float]] = {}
            firsts: dict[str, float] = {}
            for name, (_, reads) in PAGES.items():
                if budgeted and ("pages", f"{name}: p50") not in BY_NAME and name not in EVERYDAY:
                    continue
                beside = [one.format(**ids) for one in reads]
                firsts[name] = timed(http, paths[name])
                took[name] = _one(report, http, name, paths[name], beside, rounds)
                report.note(f"{name}: first {firsts[name]:.0f} ms, then {took[name][0]:.0f} ms")
            report.figure("first page after a start", max(firsts.values()), "ms")
            for n, name in enumerate(("p50", "p99")):
                slowest = max(took[page][n] for page in EVERYDAY)
                report.figure(f"the slowest everyday page: {name}", slowest, "ms")
            _typing(report, http, max(5, rounds // 10))
            seen = {name: paths[name] for name in pages_in_browser.PAGES}
            cookies = dict(http.cookies)
            pages_in_browser.measure(report, str(http.base_url), cookies, seen)
            acts_in_browser.measure(report, http, cookies, rounds)
    return report


def _one(
    report: Report, http: httpx.Client, name: str, page: str, reads: list[str], rounds: int
) -> tuple[float, float]:
    """Report a page's p50 and p99, and return them."""
    pages, beside = [], []
    began = perf_counter()
    for turn in range(rounds + 3):
        took, read = timed(http, page), sum(timed(http, path) for path in reads)
        if turn >= 3:
            pages.append(took)
            beside.append(read)
        if len(pages) >= FEWEST and perf_counter() - began > LONGEST:
            break
    middle, slow = statistics.median(pages), p99(pages)
    report.figure(f"{name}: p50", middle, "ms")
    report.figure(f"{name}: p99", slow, "ms")
    if reads:
        report.figure(f"{name}: beside its JSON", middle / statistics.median(beside))
    return middle, slow


class Fields(HTMLParser):
    """The fields that the page's forms send as they stand."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "select":
            self._select = told.get("name", "")
        elif tag == "option" and (self._select not in self.found or "selected" in told):
            self.found[self._select] = told.get("value", "")
        elif tag == "input" and told.get("type") not in ("checkbox", "radio"):
            self.found.setdefault(told.get("name", ""), told.get("value", ""))


def _typing(report: Report, http: httpx.Client, rounds: int) -> None:
    """Ask what the page asks after a word of a rule's query: count and largest moves, first those
    of a sample, then those of all cards.
    """
    fields = Fields(http.get("/pricing/rules/new").text).found
    for what, path in (("typing in a rule's query", "?sample=1"), ("its exact effect", "")):
        times = []
        for turn in range(rounds + 2):
            form = fields | {"query": QUERIES[turn % len(QUERIES)], "percent": "-5"}
            began = perf_counter()
            answer = http.post(f"/pricing/draft{path}", data=form)
            if turn >= 2:
                times.append((perf_counter() - began) * 1000)
            assert answer.status_code == 200, answer.text[:500]
        report.figure(f"{what}: p50", statistics.median(times), "ms")


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=100, orders=1_000_000, budgeted=0)
