"""Figures that cannot mislead, over all pages: one format for each kind, an unknown that is never a
zero, sums that are those of their parts, and counts of Today that are those of the lists behind
them.
"""

from __future__ import annotations

import html
import re
from datetime import date
from decimal import Decimal

from browsers import signed_in
from builders import a_csv, a_row, a_shop
from cardsync import clock
from dashboard_builder import filled_shop
from orders_builder import an_item, an_order
from pages import Page, built
from quick_add_builder import JAGUAR, published, rejected, served

VIEWS = [
    Page("/sales", query="by=day"),
    Page("/sales", query="by=game"),
    Page("/sales", query="by=cards"),
    Page("/cards", query="status=all&edit=columns"),
    Page("/cards/{card_id}", query="percent=-5"),
    Page("/pricing/pins", query="find=lotus"),
    Page("/pricing/backtest", query="from=2026-01-01&to=2026-12-31"),
]
# Text that is no figure: what was typed, code, and examples of what may be typed.
APART = re.compile(
    r"<(script|style|code|textarea|title|datalist)\b.*?</\1>|<p class=\"hint[^\"]*\" id=.*?</p>",
    re.S,
)
MISTAKES = {
    "an amount with more than two decimals": re.compile(r"(?<![\d.])\d+\.\d{3,}(?![\d.])"),
    "a percent apart from its sign": re.compile(r"\d %|\d per cent"),
    "a day in figures": re.compile(r"\b20\d\d-\d\d(-\d\d)?\b|\b\d?\d/\d\d/20\d\d\b"),
    "a game by its code": re.compile(
        r"(?<![\w/.-])(flesh_and_blood|one_piece|yugioh|pokemon|magic|lorcana)(?![\w.-])"
    ),
}


def seen(page):
    """Return the text of a page's main part as a reader sees it."""
    main = re.search(r"<main.*</main>", page, re.S)[0]
    text = re.sub(r"<[^>]*>", " ", APART.sub(" ", main))
    return " ".join(html.unescape(text).split())


def mistakes(text):
    return {
        kind: [
            text[max(found.start() - 30, 0) : found.end() + 10] for found in pattern.finditer(text)
        ]
        for kind, pattern in MISTAKES.items()
        if pattern.search(text)
    }


def test_a_mistake_is_found():
    wrong = "Up $10.1724, 20.0 %, sold 2026-11-24 in pokemon"
    assert set(mistakes(wrong)) == set(MISTAKES)
    assert mistakes("Up $10.17, 20.0%, sold November 24, 2026 in Pokémon, version 1.2.345") == {}


async def test_amounts_percents_days_and_games_have_one_format_on_every_page(a_seller):
    seller, ids = await filled_shop(a_seller)
    rows = [a_row(n, price="10.00", market=f"{n}.3333", low="9.8765") for n in range(11, 15)]
    await seller.import_csv(a_csv(*rows, a_row(15, line="Pokemon", price="2.00", market="2.51")))
    browser = await signed_in(seller)
    found = {}
    for page in [*built(), *VIEWS]:
        if page.route == "/operator/installation":  # It names the lines by their codes.
            continue
        answer = await browser.get(page.address(ids))
        assert answer.status_code == 200, page
        found[page.address(ids)] = mistakes(seen(answer.text))
    assert {address: wrong for address, wrong in found.items() if wrong} == {}


async def test_what_is_not_known_is_never_a_zero(a_seller):
    """A shop that knows no price of a card or item: each zero on its pages is one that is known."""
    seller = await a_seller()
    bare = {"price": "", "market": "", "low": "", "low_with_shipping": "", "direct": ""}
    await seller.import_csv(a_csv(a_row(1, name="Black Lotus", **bare)))
    today = clock.now().date()
    order = await an_order(
        seller, order_number="A-1", order_date=today, buyer_name="Ada", total_amt=5
    )
    await an_item(seller, order, sku_id=1, product_name="Black Lotus", quantity=2)
    [card] = (await seller.get("/api/cards")).json()["cards"]
    [customer] = (await seller.get("/api/customers")).json()["customers"]
    browser = await signed_in(seller)
    zeros = {}
    for address in (
        "/cards", f"/cards/{card['id']}", f"/orders/{order}", "/orders", "/sales?by=game",
        "/sales?by=cards", f"/print/orders/{order}", "/pricing/backtest?from=2026-01-01&to=2027-01-01",
        "/sync/prices", "/pricing/presets", "/pulls", "/recommendations", "/returns",
        f"/customers/{customer['key']}", "/customers",
    ):  # fmt: skip
        answer = await browser.get(address)
        assert answer.status_code == 200, address
        text = seen(answer.text)
        zeros[address] = [
            text[max(at.start() - 40, 0) : at.end()] for at in re.finditer(r"\$0\.00", text)
        ]
    # These are sums of nothing, or of what is known to be none.
    for address in ("/pricing/presets",):
        zeros.pop(address)
    # No card has a price, so nothing is listed.
    known = re.compile(r"(Refunds|Refunded|Listed at first|Listed at last|Listed value) ")
    wrong = {a: [one for one in found if not known.search(one)] for a, found in zeros.items()}
    assert {address: found for address, found in wrong.items() if found} == {}


def amounts(text):
    return [Decimal(found.replace(",", "")) for found in re.findall(r"\$([\d,]+\.\d\d)", text)]


async def test_the_parts_of_the_sales_are_their_total_or_the_page_says_what_is_missing(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    today = clock.now().date()
    for number, (month, total) in enumerate([(1, "10.00"), (1, "2.50"), (2, "7.25")]):
        order = await an_order(
            seller,
            order_number=f"S-{number}",
            order_date=date(today.year - 1, month, 5 + number),
            product_amt=Decimal(total) - 1,
            total_amt=Decimal(total),
        )
        await an_item(seller, order, sku_id=1, unit_price=Decimal("1.00"))
        await an_item(seller, order, sku_id=2, product_line="pokemon")
    browser = await signed_in(seller)
    span = {"from": f"{today.year - 1}-01-01", "to": f"{today.year - 1}-12-31"}
    for by in ("month", "week", "day"):
        told = (await browser.get("/api/sales/summary", params=span | {"by": by})).json()
        parts = [Decimal(one["gross"]) for one in told["periods"]]
        assert sum(parts) == Decimal(told["total"]["gross"]) == Decimal("19.75")
    text = seen((await browser.get("/sales", params=span | {"by": "game"})).text)
    # The card's price is on record for half of the items; the others share what is left of the
    # order's products.
    assert "Magic: The Gathering 3 3 $3.00" in text
    assert "Pokémon 3 3 about $13.75" in text
    assert "The games come to $16.75 of the gross of $19.75." in text
    assert "The other $3.00 is shipping, and items that are not known." in text
    assert "An order of several games counts in each of them." in text


# A condition of Today, and the noun of the count on the page behind it.
LISTS = {
    "orders_to_pull": r"(\d+) orders?\b",
    "prices_held": r"(\d+) cards?\b",
    "prices_to_review": r"(\d+) prices?\b",
    "listings_rejected": r"(\d+) entr(?:y|ies)\b",
    "cards_dropped": r"(\d+) cards?\b",
    "price_file_to_approve": None,
}


async def counted(browser, condition):
    """Return the count on the page behind a condition."""
    text = seen((await browser.get(condition["next_step"]["path"])).text)
    pattern = LISTS[condition["kind"]]
    if pattern is None:
        return sum(map(int, re.findall(r"(\d+) (?:prices?|cards?) (?:\$|no price)", text)))
    return int(re.findall(pattern, text)[-1])


async def conditions(seller):
    return {one["kind"]: one for one in (await seller.get("/api/today")).json()["conditions"]}


async def test_a_count_on_today_is_that_of_the_list_behind_its_link(a_seller):
    rows = [a_row(n, price="2.00", market="2.00", quantity=2) for n in range(1, 31)]
    seller = await a_shop(a_seller, *rows)
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    cap = {"mode": "hold", "up_bp": 1_000, "down_bp": 1_000, "period": "day"}
    review = {"up_bp": 500, "down_bp": 500, "first_price": False}
    body = {"cap": cap, "adjust_bp": 0, "review": review}
    answer = await seller.http.patch(f"/api/pricing/rules/{rule['id']}", json=body)
    assert answer.status_code == 200, answer.text
    for number in range(3):
        order = await an_order(seller, order_number=f"T-{number}", order_date=clock.now().date())
        await an_item(seller, order, sku_id=900 + number)
    # Two prices are held by the cap, three need review, four cards leave, and one left long ago.
    moved = {1: "2.90", 2: "2.80", 3: "2.14", 4: "2.15", 5: "2.16"}
    kept = [row | {"TCG Market Price": moved.get(n, "2.00")} for n, row in enumerate(rows[:26], 1)]
    await seller.import_csv(a_csv(*kept))
    await seller.service.sql(
        seller.id,
        "UPDATE card SET gone = true, updated_at = updated_at - interval '30 days'"
        " WHERE seller_id = :seller AND marketplace_id = 26",
        seller=seller.id,
    )
    ids = await published(seller, JAGUAR)
    await served(seller)
    await rejected(seller, dict.fromkeys(ids, "no such card"))
    browser = await signed_in(seller)
    found = await conditions(seller)
    for kind, count in {
        "orders_to_pull": 3, "prices_held": 2, "prices_to_review": 3, "listings_rejected": 1,
        "cards_dropped": 4,
    }.items():  # fmt: skip
        assert found[kind]["count"] == count, kind
        assert await counted(browser, found[kind]) == count, kind
    today = (await browser.get("/today")).text
    links = re.findall(r'href="(/cards\?search[^"]*)">(\d+) prices?<', today)
    assert len(links) == 2
    for link, count in links:
        behind = seen((await browser.get(html.unescape(link))).text)
        assert (f"{count} card" if int(count) else "No cards match") in behind, link
    links = re.findall(r'href="(/orders\?pull[^"]*)">\s*(\d+) to pull<', today)
    links += re.findall(r'href="(/orders\?pull[^"]*)">[^<]*</a><span>\s*(\d+)</span>', today)
    assert len(links) == 2
    for link, count in links:
        behind = seen((await browser.get(html.unescape(link))).text)
        assert re.search(rf"\b{count} orders?\b", behind), link


async def test_the_file_that_waits_has_as_many_rows_as_today_says(a_seller):
    seller = await a_seller(sync_mode="read_only")
    rows = (a_row(n, price="1.00", market="1.10") for n in range(1, 5))
    await seller.import_csv(a_csv(*rows, a_row(5, price="", market="3.00")))
    condition = (await conditions(seller))["price_file_to_approve"]
    assert condition["count"] == 5
    assert await counted(await signed_in(seller), condition) == 5
