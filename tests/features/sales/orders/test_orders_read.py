"""GET /api/orders: every parameter, sort and field over HTTP, and each against a slow model in
plain Python on random orders.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

import schedule
from builders import Seller, SellerBuilder
from cardsync.asgi import create_app
from cardsync.sales.orders import pullable, queries
from orders_builder import an_item, an_order, change_order, keep_sums

NOON = datetime(2026, 7, 3, 12, tzinfo=UTC)


async def read(seller: Seller, **query: Any) -> dict[str, Any]:
    answer = await seller.get("/api/orders", params=query)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def numbers(seller: Seller, **query: Any) -> list[str]:
    return [order["order_number"] for order in (await read(seller, **query))["orders"]]


async def a_shop(seller: Seller, *orders: dict[str, Any]) -> list[int]:
    """Orders A, B, C … with these columns."""
    return [
        await an_order(seller, **{"order_number": chr(ord("A") + n), **columns})
        for n, columns in enumerate(orders)
    ]


async def test_a_seller_without_orders(a_seller):
    assert await read(await a_seller()) == {
        "orders": [], "total": 0, "page": 1, "per_page": 50, "total_pages": 0, "status_counts": {},
        "pull_sessions": [],
    }  # fmt: skip


async def test_an_order_with_everything(a_seller):
    seller = await a_seller()
    order = await an_order(
        seller, order_number="1-A", buyer_name="Ann", order_date=date(2026, 7, 3),
        status="Canceled", product_amt=Decimal("10"),
        shipping_amt=Decimal("1.2700"), total_amt=Decimal("11.27"), shipping_type="tracked",
        shipped_marked_at=NOON,
        pull_dismissed_at=NOON, refund_type="full", refund_origin="marketplace",
        refund_amt=Decimal("0"),
        refund_reason="late\u200b", refund_note="x" * 600, feedback_rating=5,
        feedback_comment="fine",
    )  # fmt: skip
    item = await an_item(
        seller, order, condition="Near Mint", quantity=3, unit_price=Decimal("1.500")
    )
    [told] = (await read(seller))["orders"]
    assert told == {
        "id": order, "order_number": "1-A", "buyer_name": "Ann", "order_date": "2026-07-03",
        "order_placed_at": "2026-07-03T04:00:00Z",
        "status": "Cancelled", "product_amt": "10.00", "shipping_amt": "1.2700",
        "total_amt": "11.27", "shipping_type": "tracked",
        "item_count": 3, "shipped_marked_at": "2026-07-03T12:00:00Z",
        "marked_shipped_pending": False, "pulled_at": None, "missing_count": 0, "copies_pulled": None,
        "copies_to_pull": None,
        "pull_dismissed_at": "2026-07-03T12:00:00Z", "refund_type": "full",
        "refund_origin": "marketplace", "refund_amt": "0.00",
        "refund_reason": "late", "refund_note": "x" * 500, "feedback_rating": 5,
        "feedback_comment": "fine", "shipping_item_count": None, "product_weight": None,
        "refund_total_amt": None,
        "items": [{"id": item, "product_name": "Alacrian Jaguar", "product_line": "magic",
                   "condition": "Near Mint", "quantity": 3,
                   "unit_price": "1.500", "line_total": "4.50"}],
        "items_truncated": False, "items_total_count": 1,
    }  # fmt: skip


async def test_what_is_uploaded_is_read(a_seller, service):
    seller = await a_seller()
    row = {
        "order_number": "U-1",
        "buyer_name": "Ann",
        "order_date": "07/03/2026",
        "status": "Completed",
        "total_amt": 12.5,
    }
    assert (await seller.post("/api/v1/orders", json=[row])).status_code == 202
    await service.run_jobs()
    told = await read(seller, search="u-1")
    assert [order["total_amt"] for order in told["orders"]] == ["12.50"]
    assert told["status_counts"] == {"Completed": 1}


async def test_newest_first_and_orders_without_a_date_last_both_ways(a_seller):
    seller = await a_seller()
    days = [
        {"order_date": date(2026, 7, 1)},
        {},
        {"order_date": date(2026, 7, 2)},
        {"order_date": date(2026, 7, 1)},
        {},
    ]
    await a_shop(seller, *days)
    assert await numbers(seller) == ["C", "D", "A", "E", "B"]
    assert await numbers(seller, direction="asc") == ["A", "D", "C", "B", "E"]
    pages = [await numbers(seller, direction="asc", per_page=2, page=page) for page in (1, 2, 3, 4)]
    assert pages == [["A", "D"], ["C", "B"], ["E"], []]


async def test_pages(a_seller):
    seller = await a_seller()
    await a_shop(seller, *[{}] * 5)
    told = await read(seller, page=2, per_page=2)
    assert [order["order_number"] for order in told["orders"]] == ["C", "B"]
    assert (told["total"], told["page"], told["per_page"], told["total_pages"]) == (5, 2, 2, 3)
    beyond = await read(seller, page=10**12, per_page=10**12)
    assert (beyond["orders"], beyond["total"], beyond["page"], beyond["per_page"]) == (
        [],
        5,
        10**9,
        200,
    )


async def test_status_counts_follow_all_filters_but_the_status(a_seller):
    seller = await a_seller()
    await a_shop(
        seller, {"status": "Completed"}, {"status": "Canceled"},
        {"status": "Cancelled", "shipping_type": "tracked"}, {"status": None},
    )  # fmt: skip
    everything = {"Cancelled": 2, "Completed": 1, "Unknown": 1}
    for query, found in (
        ({}, ["D", "C", "B", "A"]),
        ({"status": "Canceled"}, ["C", "B"]),
        ({"status[]": ["Unknown", "Completed"]}, ["D", "A"]),
        (
            {"status[]": ["Unknown", "Completed"], "direction": "asc", "per_page": 1, "page": 2},
            ["D"],
        ),
        ({"status": "Lost"}, []),
    ):
        told = await read(seller, **query)
        assert [order["order_number"] for order in told["orders"]] == found, query
        assert told["status_counts"] == everything
    told = await read(seller, shipping_type="tracked", status="Completed")
    assert (told["total"], told["status_counts"]) == (0, {"Cancelled": 1})


async def test_search_folds_case_and_takes_every_sign_as_it_is(a_seller):
    seller = await a_seller()
    names = [
        "Ännchen Straße",
        "O'Brien 100%",
        "under_score",
        "back\\slash",
        "ΣΊΣΥΦΟΣ",
        "İstanbul",
        None,
        'say "hi"',
        "東京 花子",
    ]
    await a_shop(seller, *({"buyer_name": name} for name in names))
    for word, found in {
        "ännchen": "A", "STRASSE": "A", "o'b": "B", "0%": "B", "%": "B", "_": "C", "\\": "D",
        "σίσυφος": "E", "i̇s": "F", '"HI': "H",
        "京 花": "I", "annchen": "", "\u0001": "", "a\u0001ä": "", "g": "G", "' OR 1=1 --": "",
        "x": "",
    }.items():  # fmt: skip
        assert (
            "".join(await numbers(seller, search=word, sort="number", direction="asc")) == found
        ), word


async def test_a_search_that_is_nothing_the_database_could_store(a_seller):
    seller = await a_seller()
    await an_order(seller)
    for raw in ("%00", "%ff", "%ed%a0%80"):
        answer = await seller.get(f"/api/orders?search={raw}")
        assert (answer.status_code, answer.json()["total"]) == (200, 0)


@pytest.mark.night
async def test_items_are_the_first_by_id_as_many_as_asked_for(a_seller):
    seller = await a_seller()
    order, bare = await a_shop(seller, {}, {})
    ids = [await an_item(seller, order, sku_id=n) for n in range(23)]
    for query, shown in (
        ({}, 20),
        ({"items_per_order": 3}, 3),
        ({"items_per_order": 0}, 0),
        ({"items_per_order": -1}, 0),
        ({"items_per_order": 23}, 23),
        ({"items": "full"}, 23),
        ({"items": "full", "items_per_order": 0}, 23),
    ):
        told = {row["id"]: row for row in (await read(seller, **query))["orders"]}
        assert [item["id"] for item in told[order]["items"]] == ids[:shown], query
        assert (told[order]["items_truncated"], told[order]["items_total_count"]) == (
            shown < 23,
            23,
        )
        assert (
            told[bare]["items"],
            told[bare]["items_truncated"],
            told[bare]["items_total_count"],
        ) == ([], False, 0)


async def test_very_many_items_are_all_there(a_seller, service):
    seller = await a_seller()
    order = await an_order(seller, items_total=3000, items_quantity=3000)
    await service.sql(
        seller.id,
        "INSERT INTO order_item (seller_id, order_id, product_name, quantity)"
        " SELECT :s, :o, n::text, 1 FROM generate_series(1, 3000) n",
        s=seller.id,
        o=order,
    )
    [told] = (await read(seller, items="full"))["orders"]
    assert [item["product_name"] for item in told["items"]] == [str(n + 1) for n in range(3000)]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"sort": "price"}, "sort"), ({"direction": "up"}, "direction"),
        ({"date_from": "yesterday"}, "date_from"),
        ({"date_to": "2026-02-30"}, "date_to"), ({"refund": "maybe"}, "refund"),
        ({"unfeedbacked": "2"}, "unfeedbacked"),
        ({"shipping_type": "ups"}, "shipping_type"), ({"ship_mark": "x"}, "ship_mark"),
        ({"items": "some"}, "items"),
        ({"pull_session": "mine"}, "pull_session"), ({"pull_session": "77"}, "pull_session"),
        ({"pull_session": "9" * 18}, "pull_session"),
    ],
)  # fmt: skip
async def test_a_value_that_cannot_be_is_refused_naming_the_parameter(a_seller, query, name):
    answer = await (await a_seller()).get("/api/orders", params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert answer.json()["error"].startswith(f"{name}: ")


async def test_pull_sessions_are_listed_and_filtered_by(a_seller):
    seller, other = await a_seller(), await a_seller()
    first, second, away, shipped = await a_shop(
        seller, {}, {}, {}, {"status": "Shipped - In Transit"}
    )
    assert await numbers(seller, pull_session="none") == ["C", "B", "A"]
    await seller.post(f"/api/orders/{away}/dismiss")
    session = (await seller.post("/api/pull_sessions", json={"order_ids": [first, shipped]})).json()
    assert await numbers(seller, pull_session="active") == ["A"]
    assert await numbers(seller, pull_session=session["id"]) == ["A"]
    assert await numbers(seller, pull_session="none") == ["B"]
    assert await numbers(seller, pull_session="dismissed") == ["C"]
    assert (await read(seller))["pull_sessions"] == [session]
    await seller.post(f"/api/pull_sessions/{session['id']}/complete")
    assert await numbers(seller, pull_session="active") == []
    assert await numbers(seller, pull_session=session["id"]) == ["A"]
    assert (await read(other))["pull_sessions"] == []
    assert (
        await other.get("/api/orders", params={"pull_session": session["id"]})
    ).status_code == 422
    marked = (await seller.post(f"/api/orders/{second}/mark_shipped")).json()
    assert await numbers(seller, ship_mark="pending") == ["B"]
    [told] = (await read(seller, ship_mark="pending"))["orders"]
    assert (told["shipped_marked_at"], told["marked_shipped_pending"]) == (
        marked["shipped_marked_at"],
        True,
    )


async def test_another_sellers_orders_are_never_among_them(a_seller):
    mine, theirs = await a_seller(), await a_seller()
    await an_item(theirs, await an_order(theirs, buyer_name="Ann"))
    for query in (
        {},
        {"search": "ann"},
        {"status": "Ready to Ship"},
        {"product_line": "magic"},
        {"pull_session": "none"},
    ):
        assert (await read(mine, **query))["total"] == 0
        assert (await read(theirs, **query))["total"] == 1
    assert (await mine.get("/api/customers")).json()["customers"] == []


@pytest.mark.parametrize("path", ["/api/orders", "/api/customers"])
async def test_a_key_is_needed(service, path):
    async with service.client() as http:
        assert (await http.get(path)).status_code == 401


@pytest.mark.night
@pytest.mark.day
async def test_what_takes_too_long_is_refused_in_a_sentence_and_the_heartbeat_goes_on(
    a_seller, service, alive
):
    seller = await a_seller()
    await service.sql(
        seller.id,
        "INSERT INTO orders (seller_id, order_number, buyer_name)"
        " SELECT :s, n::text, repeat('ä', 200) FROM generate_series(1, 20000) n",
        s=seller.id,
    )
    undated = "INSERT INTO sales_stale (seller_id, ordered) VALUES (:s, DATE '0001-01-01')"
    await service.sql(seller.id, undated, s=seller.id)
    app = create_app(service.settings.model_copy(update={"read_seconds": 0.001}))
    async with (
        alive(app),
        replace(service, app=app).client(Authorization=f"Bearer {seller.api_key}") as http,
    ):
        slow = [http.get("/api/orders", params={"search": "nobody"}) for _ in range(12)]
        *answers, beat = await asyncio.gather(*slow, http.post("/api/v1/heartbeat", json={}))
        assert beat.status_code == 200
        for answer in answers:
            assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
            assert "too long to answer" in answer.json()["error"]
            assert int(answer.headers["retry-after"]) > 0


# Customers.


@pytest.mark.parametrize(
    "change", ["DEALLOCATE ALL", "DEALLOCATE ALL; PREPARE orders_shown AS SELECT 1"]
)
async def test_a_connection_that_lost_its_plans_or_has_anothers_answers_all_the_same(
    a_seller, service, change
):
    """As a pooler does that stands between us and the database, and gives connections other
    sessions.
    """
    seller = await a_seller()
    [order] = await a_shop(seller, {"order_date": date(2026, 7, 3), "status": "Ready to Ship"})
    await an_item(seller, order)
    told = [await read(seller), await read(seller, pull_session="none")]
    readings = service.app.state.database.readings
    for _ in range(2):
        async with readings.pool.connection() as connection:
            await connection.execute(change)
            if "PREPARE " in change:
                readings._messages._known.pop(connection, None)
        assert [await read(seller, pull_session="none"), await read(seller)] == told[::-1]


@pytest.mark.parametrize("kept", [False, True], ids=["counted", "kept"])
async def test_customers_by_what_they_spent(a_seller, kept):
    seller = await a_seller()
    day = {"order_date": date(2026, 7, 1)}
    await a_shop(
        seller, {"buyer_name": "Ann", "total_amt": Decimal("5.00"), **day},
        {"buyer_name": "Bob", "total_amt": Decimal("7.5")},
        {"buyer_name": "ANN", "total_amt": Decimal("3.250"), "order_date": date(2026, 7, 3)},
        {"buyer_name": None, "total_amt": Decimal(99)},
        {"buyer_name": "Cid"}, {"buyer_name": ""},
    )  # fmt: skip
    if kept:
        await keep_sums(seller)
    told = (await seller.get("/api/customers")).json()
    assert len({row.pop("key") for row in told["customers"]}) == 3
    nothing = {"pieces": 0, "costed": 0, "profit": None}
    assert told == {
        "customers": [
            {"buyer_name": "ANN", "order_count": 2, "first_order_at": "2026-07-01T04:00:00Z",
             "last_order_at": "2026-07-03T04:00:00Z",
             "lifetime_total": "8.250", **nothing},
            {"buyer_name": "Bob", "order_count": 1, "first_order_at": None, "last_order_at": None,
             "lifetime_total": "7.50", **nothing},
            {"buyer_name": "Cid", "order_count": 1, "first_order_at": None, "last_order_at": None,
             "lifetime_total": "0.00", **nothing},
        ],
        "total": 3, "page": 1, "per_page": 50, "total_pages": 1, "repeat_rate": 0.3333,
    }  # fmt: skip
    second = (await seller.get("/api/customers", params={"page": 2, "per_page": 1})).json()
    assert ([row["buyer_name"] for row in second["customers"]], second["total_pages"]) == (
        ["Bob"],
        3,
    )
    beyond = (await seller.get("/api/customers", params={"page": 9})).json()
    assert (beyond["customers"], beyond["total"]) == ([], 3)


async def test_nobody_yet(a_seller):
    told = (await (await a_seller()).get("/api/customers")).json()
    assert told == {
        "customers": [],
        "total": 0,
        "page": 1,
        "per_page": 50,
        "total_pages": 0,
        "repeat_rate": 0.0,
    }


# Everything against a model.

STATUSES = [
    None,
    "Ready to Ship",
    "Completed",
    "Canceled",
    "Cancelled",
    "Shipped - In Transit",
    "It's 100%",
]
NAMES = [
    None,
    "",
    "Ann",
    "ann",
    "ÄNNE",
    "Straße",
    "STRASSE",
    "a%b",
    "a_b",
    "a\\b",
    "O'Neil",
    '"q"',
    "İ",
    "ς",
    "Zoë \N{COMBINING ACUTE ACCENT}e",
]
WORDS = [
    "",
    "a",
    "AN",
    "ss",
    "SS",
    "%",
    "_",
    "\\",
    "'",
    '"',
    "i̇",
    "Σ",
    "ë",
    "e\N{COMBINING ACUTE ACCENT}",
    "n-",
    "N-00",
    "nowhere",
]
FIRST = date(2026, 5, 28)
DAYS = [None, *(FIRST + timedelta(days=n) for n in (0, 1, 3, 4, 5, 33, 34, 35, 36, 70))]
AMOUNTS = [None, Decimal("0"), Decimal("1.5"), Decimal("1.50"), Decimal("49.9999"), Decimal("50")]


@dataclass
class Order:
    id: int
    number: str
    columns: dict[str, Any]
    lines: list[str]
    in_session: bool = False

    def __getattr__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def group(self) -> str:
        status = self.columns["status"]
        return "Unknown" if status is None else "Cancelled" if status == "Canceled" else status


def found(orders: list[Order], query: dict[str, Any], session_id: int) -> list[Order]:
    """Those that the filters leave, but for the status; slowly, by the words of the
    specification.
    """
    kept = []
    for order in orders:
        can_be_pulled = pullable.can_be_pulled(
            to_ship=pullable.to_ship(order.status, order.refund_amt),
            shipped_marked_at=order.shipped_marked_at,
            pull_dismissed_at=order.pull_dismissed_at,
            in_open_session=order.in_session,
        )
        word = query.get("search", "").casefold()
        passes = [
            word in order.number.casefold() or word in (order.buyer_name or "").casefold(),
            "date_from" not in query
            or (order.order_date is not None and order.order_date >= query["date_from"]),
            "date_to" not in query
            or (order.order_date is not None and order.order_date <= query["date_to"]),
            "product_line" not in query or query["product_line"] in order.lines,
            query.get("refund") != "true" or order.refund_amt is not None,
            query.get("unfeedbacked") != "1" or order.feedback_rating is None,
            "shipping_type" not in query or order.shipping_type == query["shipping_type"],
            "ship_mark" not in query
            or pullable.marked_shipped_pending(order.status, order.shipped_marked_at),
            query.get("pull_session") not in ("active", session_id) or order.in_session,
            query.get("pull_session") != "none" or can_be_pulled,
            query.get("pull_session") != "dismissed" or order.pull_dismissed_at is not None,
        ]
        if all(passes):
            kept.append(order)
    return kept


def in_order(orders: list[Order], sort: str, direction: str) -> list[str]:
    def by_date(order: Order, *, newest: bool) -> tuple[bool, int, int]:
        day = order.order_date.toordinal() if order.order_date else 0
        # Within a status, the undated stand at the old end.
        return (False, -day or 1, -order.id) if newest else (False, day, order.id)

    falling = direction == "desc"
    if sort == "status":
        orders = sorted(orders, key=lambda order: by_date(order, newest=not falling))
        return [
            order.number for order in sorted(orders, key=lambda order: order.group, reverse=falling)
        ]
    value = {
        "date": lambda order: order.order_date, "total": lambda order: order.total_amt,
        "number": lambda order: order.number,
        # A blank name is none.
        "buyer": lambda order: (order.buyer_name or "").casefold() or None,
    }[sort]  # fmt: skip
    some = [order for order in orders if value(order) is not None]
    none = [order for order in orders if value(order) is None]
    some.sort(key=lambda order: (value(order), order.id), reverse=falling)
    none.sort(key=lambda order: order.id, reverse=falling)
    return [order.number for order in some + none]


async def a_random_shop(seller: Seller, seed: int) -> tuple[list[Order], int]:
    """Sixty orders of every sort, some with items, some in an open pull session."""
    chance = random.Random(seed)
    orders = []
    for n in chance.sample(range(1000), 60):
        refunded = chance.random() < 0.3
        columns: dict[str, Any] = {
            "status": chance.choice(STATUSES), "buyer_name": chance.choice(NAMES),
            "order_date": chance.choice(DAYS),
            "total_amt": chance.choice(AMOUNTS),
            "refund_amt": chance.choice(AMOUNTS) if refunded else None,
            "shipping_type": chance.choice(["pwe", "pwe", "tracked", "expedited"]),
            "feedback_rating": chance.choice([None, None, 1, 5]),
            "shipped_marked_at": chance.choice([None, None, NOON]),
            "pull_dismissed_at": chance.choice([None, None, NOON]),
        }  # fmt: skip
        number = f"N-{n:04}"
        order = Order(await an_order(seller, order_number=number, **columns), number, columns, [])
        for _ in range(chance.choice([0, 0, 1, 2])):
            line = chance.choice(["magic", "pokemon", "Other"])
            await an_item(seller, order.id, product_line=line)
            order.lines.append(line)
        orders.append(order)
    opened = await seller.post(
        "/api/pull_sessions", json={"order_ids": [order.id for order in orders[:20]]}
    )
    inside = await seller.service.sql(
        seller.id, "SELECT order_id FROM pull_session_order WHERE seller_id = :s", s=seller.id
    )
    for order in orders:
        order.in_session = {"order_id": order.id} in inside
    return orders, opened.json()["id"]


def maybe(name: str, values: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), st.just({}), values.map(lambda value: {name: value}))


DAY = st.integers(-3, 75).map(lambda n: FIRST + timedelta(days=n))
TALLIED = [
    maybe("date_from", DAY), maybe("date_to", DAY),
    maybe("refund", st.sampled_from(["true", "false"])),
    maybe("shipping_type", st.sampled_from(["pwe", "tracked", "expedited"])),
    maybe("status[]",
          st.lists(st.sampled_from([status or "Unknown" for status in STATUSES]), min_size=1,
                   max_size=3)),
    maybe("sort", st.sampled_from(["date", "total", "buyer", "status", "number"])),
    maybe("direction", st.sampled_from(["asc", "desc"])),
    maybe("per_page", st.integers(1, 70)), maybe("page", st.integers(1, 8)),
]  # fmt: skip
OTHERS = [
    maybe("search", st.sampled_from(WORDS)),
    maybe("product_line", st.sampled_from(["magic", "pokemon", "Other", "nothing"])),
    maybe("unfeedbacked", st.sampled_from(["1", "0"])), maybe("ship_mark", st.just("pending")),
    maybe("pull_session", st.sampled_from(["active", "none", "dismissed", "id"])),
]  # fmt: skip


def queries_of(
    filters: list[st.SearchStrategy[dict[str, Any]]],
) -> st.SearchStrategy[dict[str, Any]]:
    """One, a few or many filters: with all at once hardly an order would be left."""
    return st.lists(st.sampled_from(filters), max_size=7).flatmap(
        lambda some: st.tuples(*some).map(
            lambda parts: {name: value for part in parts for name, value in part.items()}
        )
    )


QUERIES = st.one_of(queries_of(TALLIED), queries_of(TALLIED + OTHERS))


@pytest.fixture(scope="module")
async def random_shops(service):
    shops = []
    for seed in range(2):
        seller = await SellerBuilder(service)()
        shops.append((seller, *await a_random_shop(seller, seed)))
    return shops


def wanted_statuses(query: dict[str, Any]) -> set[str]:
    return {"Cancelled" if status == "Canceled" else status for status in query.get("status[]", [])}


async def agrees(shop: tuple[Seller, list[Order], int], query: dict[str, Any]) -> None:
    seller, orders, session_id = shop
    query = {name: session_id if value == "id" else value for name, value in query.items()}
    told = await read(seller, **query)
    all_statuses = found(orders, query, session_id)
    statuses = wanted_statuses(query)
    kept = [order for order in all_statuses if not statuses or order.group in statuses]
    page, per_page = query.get("page", 1), query.get("per_page", 50)
    expected = in_order(kept, query.get("sort", "date"), query.get("direction", "desc"))
    shown = [order["order_number"] for order in told["orders"]]
    assert shown == expected[(page - 1) * per_page : page * per_page], query
    assert (told["total"], told["total_pages"]) == (len(kept), -(-len(kept) // per_page)), query
    assert told["status_counts"] == dict(Counter(order.group for order in all_statuses)), query
    assert all(len(order["items"]) == order["items_total_count"] for order in told["orders"])


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


# With all orders within the reach of the short ways, and with most of them beyond.
@pytest.mark.night
@pytest.mark.day
@pytest.mark.parametrize("reach", [10_000, 12])
@settings(
    max_examples=schedule.examples(40, 250),
    deadline=None,
    database=None,
    suppress_health_check=QUIET,
)
@given(QUERIES, st.integers(0, 1))
async def test_any_query_finds_what_the_model_finds(random_shops, monkeypatch, reach, query, which):
    monkeypatch.setattr(queries, "PROBED", reach)
    monkeypatch.setattr(queries, "MERGED", reach)
    await agrees(random_shops[which], query)


# The tally.


async def tally_is_right(seller: Seller) -> None:
    rows = await seller.service.sql(
        seller.id,
        """
        WITH counted AS (
            SELECT period, day, status_group, shipping_type, refund_amt IS NOT NULL AS refunded,
                count(*) AS orders
              FROM orders CROSS JOIN LATERAL
                  (VALUES ('ever', DATE '-infinity'), ('days', order_date)) AS periods (period, day)
             WHERE seller_id = :seller AND day IS NOT NULL GROUP BY 1, 2, 3, 4, 5
        ), tally AS (
            SELECT * FROM order_tally WHERE seller_id = :seller
        ), kept AS (
            SELECT period, DATE '-infinity', status_group, shipping_type, refunded, orders
            FROM tally WHERE period = 'ever' AND orders <> 0
             UNION ALL
            SELECT period, DATE '2000-01-01' + 32 * block + place::int - 1, status_group,
                shipping_type, refunded, n
              FROM tally CROSS JOIN LATERAL unnest(days) WITH ORDINALITY AS u (n, place)
              WHERE n <> 0
        ), summed AS (
            SELECT period FROM tally WHERE period = 'days'
                AND orders <> (SELECT sum(n) FROM unnest(days) AS n)
        )
        SELECT 'missing' AS what, to_jsonb(m) AS row
        FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept) m
        UNION ALL SELECT 'wrong', to_jsonb(w)
        FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted) w
        UNION ALL SELECT 'another sum', to_jsonb(s) FROM summed s
        """,
        seller=seller.id,
    )
    assert rows == []


CHANGES = st.one_of(
    st.fixed_dictionaries({"status": st.sampled_from(STATUSES)}),
    st.fixed_dictionaries({"order_date": st.sampled_from(DAYS)}),
    st.fixed_dictionaries(
        {
            "shipping_type": st.sampled_from(["pwe", "tracked"]),
            "refund_amt": st.sampled_from(AMOUNTS),
        }
    ),
    st.fixed_dictionaries({"buyer_name": st.sampled_from(NAMES)}),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(CHANGES, min_size=1, max_size=4)),
        st.tuples(st.just("update"), CHANGES, st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
    ),
    max_size=8,
)


@schedule.deeper
@settings(
    max_examples=schedule.examples(5, 25), deadline=None, database=None, suppress_health_check=QUIET
)
@given(STEPS)
async def test_the_tally_is_what_counting_gives_after_any_changes(a_seller, service, steps):
    seller = await a_seller()
    for step in steps:
        match step:
            case ("insert", rows):
                for columns in rows:
                    await an_order(seller, **columns)
            case ("update", columns, remainder):
                names = ", ".join(f"{name} = :{name}" for name in columns)
                change = f"UPDATE orders SET {names} WHERE seller_id = :s AND id % 4 = :r"
                await service.sql(seller.id, change, s=seller.id, r=remainder, **columns)
            case ("delete", remainder):
                erase = "DELETE FROM orders WHERE seller_id = :s AND id % 4 = :r"
                await service.sql(seller.id, erase, s=seller.id, r=remainder)
        await tally_is_right(seller)


async def test_two_writers_at_once_keep_the_tally_and_never_block_each_other_for_good(
    a_seller, service
):
    seller = await a_seller()

    async def write(name: str, statuses: list[str]) -> None:
        for turn in range(6):
            async with service.database.tenant(seller.id) as session:
                # Each statement counts in another order of keys than the other writer's.
                for status in statuses:
                    await session.execute(
                        text("""
                            INSERT INTO orders (seller_id, order_number, status, order_date)
                            SELECT :s, :name || n, :status, DATE '2026-07-01' + n
                            FROM generate_series(1, 9) n
                        """),
                        {"s": seller.id, "name": f"{name}-{turn}-{status}-", "status": status},
                    )
                    await asyncio.sleep(0.001)
                await session.execute(
                    text(
                        "UPDATE orders SET status = 'Shipped'"
                        " WHERE seller_id = :s AND order_number LIKE :mine"
                    ),
                    {"s": seller.id, "mine": f"{name}-{turn}-A-%"},
                )

    await asyncio.gather(write("x", ["A", "B", "C"]), write("y", ["C", "B", "A"]))
    assert (await read(seller))["status_counts"] == {"B": 108, "C": 108, "Shipped": 108}
    await tally_is_right(seller)


async def test_what_touches_no_count_leaves_the_tally_alone(a_seller, service):
    seller = await a_seller()
    order = await an_order(seller, order_date=date(2026, 7, 3))
    versions = (
        "SELECT array_agg(xmin::text || ctid::text ORDER BY period) AS versions FROM order_tally"
        " WHERE seller_id = :s"
    )
    before = await service.sql(seller.id, versions, s=seller.id)
    await change_order(
        seller,
        order,
        buyer_name="Ann",
        total_amt=Decimal(3),
        feedback_rating=4,
        shipped_marked_at=NOON,
    )
    assert await service.sql(seller.id, versions, s=seller.id) == before
    await change_order(seller, order, status="Completed")
    assert await service.sql(seller.id, versions, s=seller.id) != before
