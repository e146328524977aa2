"""Figures that cannot mislead, over all pages: one format for each kind, an unknown that is never a
zero, sums that are those of their parts, and counts of Today that are those of the lists behind
them.
"""

from __future__ import annotations

import html
import re
from datetime import date, timedelta
from decimal import Decimal

from browsers import signed_in
from builders import a_csv, a_row, a_shop
from cardsync.platform import clock
from cardsync.prices.engine.holdout_draw import window
from dashboard_builder import filled_shop
from lots_builder import settle
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
    Page("/pricing/rollback", query="scope=since&value=2026-01-01T00:00"),
    Page("/shelves/put", query="search=lotus"),
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
    "a code of the program": re.compile(r"(?<![\w/.:-])[a-z]+_[a-z_]+(?![\w.:-])"),
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
    wrong = "Up $10.1724, 20.0 %, sold 2026-11-24 in pokemon, awaiting_review"
    assert set(mistakes(wrong)) == set(MISTAKES)
    assert mistakes("Up $10.17, 20.0%, sold November 24, 2026 in Pokémon, version 1.2.345") == {}


async def test_amounts_percents_days_and_games_have_one_format_on_every_page(a_seller):
    seller, ids = await filled_shop(a_seller)
    rows = [a_row(n, price="10.00", market=f"{n}.3333", low="9.8765") for n in range(11, 15)]
    await seller.import_csv(a_csv(*rows, a_row(15, line="Pokemon", price="2.00", market="2.51")))
    browser = await signed_in(seller)
    found, without_picture = {}, {}
    for page in [*built(), *VIEWS]:
        if page.route == "/operator/installation":  # It names the lines by their codes.
            continue
        answer = await browser.get(page.address(ids))
        assert answer.status_code == 200, page
        found[page.address(ids)] = mistakes(seen(answer.text))
        rows = re.findall(r'<th scope="row".*?</th>', answer.text, re.S)
        of_cards = [row for row in rows if re.search(r'href="/cards/\d+[#"]', row)]
        without_picture[page.address(ids)] = [row for row in of_cards if 'class="pic' not in row]
    assert {address: wrong for address, wrong in found.items() if wrong} == {}
    assert {address: rows for address, rows in without_picture.items() if rows} == {}


# A card without any price.
BARE = {"price": "", "market": "", "low": "", "low_with_shipping": "", "direct": ""}
# These are sums of nothing, or of what is known to be none: no card has a price, no month has a
# sale, no rule changes a price, and nobody set what a parcel costs to send.
ZEROS = re.compile(
    r"(Refunds|Refunded|Listed at first|Listed at last|Listed value( at start| at end)?"
    r"|Listed before|Listed after|Listed value (\$0\.00 →|[A-Z][a-z]+ \d+, \d+)"
    r"|0 prices (raised|lowered)|Listed before|Listed now"
    r"|Sales today|This month|no change (vs\.|from)|prices up|prices down|Up 0|Down 0"
    r"|(Cash|Credit) (now|with this (draft|change))|all published"
    r"|rules buy 0 copies for( \$0\.00 in cash or)?|cuts this week( \$0\.00 of)?"
    r"|stay · 0 limited( \$0\.00 →)?"
    r"|A parcel worth|Postage and supplies|July 2026 2 \$1,197\.00 \$\d+\.\d\d) $"
)


async def test_what_is_not_known_is_never_a_zero(a_seller):
    """A shop that knows no price of a card or item: each zero on its pages is one that is known."""
    seller, ids = await filled_shop(a_seller, **BARE)
    browser = await signed_in(seller)
    wrong = {}
    for page in [*built(), *VIEWS]:
        address = page.address(ids)
        answer = await browser.get(address)
        assert answer.status_code == 200, address
        text = seen(answer.text)
        zeros = [text[max(at.start() - 40, 0) : at.start()] for at in re.finditer(r"\$0\.00", text)]
        wrong[address] = [zero for zero in zeros if not ZEROS.search(zero)]
    assert {address: zeros for address, zeros in wrong.items() if zeros} == {}


async def test_a_page_says_the_state_of_a_price_instead_of_a_dash(a_seller):
    seller = await a_shop(
        a_seller,
        a_row(1, name="Lotus", **BARE),
        a_row(2, name="Even", price="0.99", market="1.00"),
    )
    browser = await signed_in(seller)
    cards = {one["product_name"]: one["id"] for one in await seller.cards()}
    told = seen((await browser.get(f"/cards/{cards['Lotus']}")).text)
    assert "Price no price Target no target Stock" in told
    assert "on target Stock" in seen((await browser.get(f"/cards/{cards['Even']}")).text)
    for rule in (await seller.get("/api/pricing/rules")).json()["rules"]:
        await seller.http.delete(f"/api/pricing/rules/{rule['id']}")
    for address in (f"/cards/{cards['Lotus']}", f"/cards?card={cards['Lotus']}"):
        assert "no rule" in seen((await browser.get(address)).text), address


async def test_a_held_price_has_its_day_and_its_amount_as_every_page_has_them(a_seller):
    seller = await a_shop(a_seller, a_row(1, price="10.00", market="11.00"))
    rule = {"name": "At market", "state": "published", "priority": 1, "holdout_bp": 2_000}
    made = (await seller.post("/api/pricing/rules", json=rule)).json()
    sql = """
        INSERT INTO price_decision (seller_id, kind, source_id, part, marketplace_id, price, asked)
        VALUES (:id, 'held_out', :rule, :part, 1, 10, 11)
    """
    part = window(clock.now())
    await seller.service.sql(seller.id, sql, id=seller.id, rule=made["id"], part=part)
    browser = await signed_in(seller)
    [card] = await seller.cards()
    for address in ("/cards", f"/cards/{card['id']}"):
        page = (await browser.get(address)).text
        assert mistakes(seen(page)) == {}, address
        [held] = set(re.findall(r"It&#39;s in its rule&#39;s control group until [^<\"]*", page))
        assert held.endswith(" the rule would set $11.00."), address
        assert not MISTAKES["a day in figures"].search(held)


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
    assert "Games total $16.75 of the gross of $19.75." in text
    assert "The other $3.00 is shipping and unknown items." in text
    assert "An order with several games counts once for each." in text


def tiles(page):
    """Return the amounts of a page's figures by their names."""
    found = re.findall(r"<dt[^>]*>([^<]*)</dt>\s*<dd[^>]*>(.*?)</dd>", page, re.S)
    return {name: amounts(value.partition("<small")[0]) for name, value in found}


def column(page, label):
    """Return the sum of a column of a table."""
    cells = re.findall(rf'data-label="{label}">(.*?)</td>', page, re.S)
    return sum((amount for cell in cells for amount in amounts(cell)), Decimal())


async def test_the_parts_of_profit_and_of_an_order_are_their_totals(a_seller):
    seller = await a_shop(a_seller, a_row(1), a_row(2))
    today = clock.now().date()
    lots = [
        {
            "marketplace_id": sku,
            "quantity": 9,
            "cost": "1.25",
            "bought_on": f"{today.year - 1}-01-01",
        }
        for sku in (1, 2)
    ]
    assert (await seller.post("/api/buying/lots", json={"lots": lots})).status_code == 201
    for number, (month, product) in enumerate([(2, "10.00"), (2, "10.00"), (3, "12.00")]):
        order = await an_order(
            seller,
            order_number=f"P-{number}",
            order_date=date(today.year - 1, month, 5),
            product_amt=Decimal(product),
            shipping_amt=1,
            total_amt=Decimal(product) + 1,
        )
        await an_item(seller, order, sku_id=1, unit_price=Decimal("3.00"), quantity=2)
        await an_item(seller, order, sku_id=2, unit_price=Decimal("4.00"))
    await settle(seller)
    browser = await signed_in(seller)
    span = {"by": "month", "from": f"{today.year - 1}-01-01", "to": f"{today.year - 1}-12-31"}
    page = (await browser.get("/profit", params=span)).text
    total = {name: found[0] for name, found in tiles(page).items()}
    taken = {"Fees": "Fees", "Postage": "Postage and supplies", "Cost": "Cost of the cards"}
    left = total["Received"] - sum(total[name] for name in taken.values())
    assert left == total["Earned"] == column(page, "Earned")
    assert column(page, "Received") == total["Received"]
    for label, name in taken.items():
        assert column(page, label) == total[name], name
    # The page of the same days, without a view, has the same figures.
    own = tiles((await browser.get("/profit", params=span | {"by": ""})).text)
    assert {name: own[name][0] for name in total if name in own} == total
    first, _, last = sorted(
        (await seller.get("/api/orders")).json()["orders"], key=lambda one: one["order_number"]
    )
    for order, adds_up in ((first, True), (last, False)):
        page = (await browser.get(f"/orders/{order['id']}")).text
        [products] = next(it for name, it in tiles(page).items() if name.startswith("Cards, "))
        assert (column(page, "Total") == products) is adds_up
        assert ("add up to the order" in page) is not adds_up


async def test_the_parts_of_a_run_and_of_a_price_file_are_their_totals(a_seller):
    rows = [
        a_row(1, price="5.00", market="9.00", quantity=2),
        a_row(2, price="8.00", market="4.00", quantity=3),
        a_row(3, price="1.00", market=""),
        a_row(4, price="", market="2.00"),
    ]
    seller = await a_shop(a_seller, *rows, sync_mode="read_only")
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    path = f"/api/pricing/rules/{rule['id']}"
    free = {"cap": None, "never_lower": False}
    assert (await seller.http.patch(path, json=free)).status_code == 200
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    browser = await signed_in(seller)
    run = (await seller.get("/api/pricing/runs")).json()["runs"][0]["id"]
    text = seen((await browser.get(f"/pricing/runs/{run}")).text)
    cards, priced, up, down = (
        int(re.search(rf"\b{name} (\d+)", text)[1]) for name in ("Cards", "Priced", "Up", "Down")
    )
    blocked = re.findall(r"\((\d+) cards?", text.partition("Not priced")[2])
    assert cards == priced + sum(map(int, blocked)) == 4
    page = (await browser.get("/sync/prices")).text
    text = seen(page)
    by = {"up": Decimal(), "down": Decimal()}
    for row in page.split("<tr>"):
        stock = re.search(r'data-label="Stock">(\d+)<', row)
        change = re.search(r'class="change (up|down)">(.*?)<small', row, re.S)
        if stock and change:
            by[change[1]] += amounts(change[2])[0] * int(stock[1])
    assert f"{up - 1} price{'s' * (up != 2)} to raise by ${by['up']}" in text
    assert f"{down} to lower by ${by['down']}, 1 card without a price before" in text


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
        parts = r"(\d+) (?:prices? to raise|to lower|cards? without a price)"
        return sum(map(int, re.findall(parts, text)))
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
        "UPDATE card SET gone = true, updated_at = :at WHERE seller_id = :s AND marketplace_id = 26",
        s=seller.id,
        at=clock.now() - timedelta(days=30),
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
