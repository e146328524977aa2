"""After any sequence of order uploads a seller's orders are those of a slow, plain model."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cardsync.sales.orders.shipping_type import shipping_type

pytestmark = pytest.mark.day

Row = dict[str, Any]
PATHS = {
    "orders": "/orders",
    "refunds": "/order_refunds",
    "items": "/order_items",
    "shipping": "/orders/shipping",
}
NUMBERS = st.sampled_from(["A-1", "A-2", "A-3"])
AMOUNTS = st.sampled_from([None, "0", "12.5", "12.50", "60.00", "free"])
TEXTS = st.sampled_from([None, "", "one", "two", 7])
WHOLE = st.sampled_from([None, 0, 1, "3", 2.5])
ORDER = {
    "buyer_name": TEXTS, "order_date": st.sampled_from([None, "07/03/2026", "2026-01-15", "soon"]),
    "status": st.sampled_from([None, "Completed - Paid", "Canceled", "Shipped"]),
    "product_amt": AMOUNTS, "shipping_amt": AMOUNTS,
    "total_amt": AMOUNTS,
}  # fmt: skip
FIELDS = {
    "orders": ORDER,
    "refunds": {**ORDER, "refund_type": st.sampled_from([None, "full", " Partial", "", "some", 7]),
                "refund_reason": TEXTS},
    "items": {"sku_id": st.sampled_from([None, 1, 2, "2", "x"]), "product_name": TEXTS,
              "quantity": WHOLE, "unit_price": AMOUNTS},
    "shipping": {
        "shipping_method": st.sampled_from([None, "Standard", "Expedited"]),
        "tracking_number": st.sampled_from([None, "", "9400"]),
        "item_count": WHOLE,
    },
}  # fmt: skip
DATES = {"07/03/2026": date(2026, 7, 3), "2026-01-15": date(2026, 1, 15)}
REFUNDED = {
    "product_amt": "refund_product_amt",
    "shipping_amt": "refund_shipping_amt",
    "total_amt": "refund_total_given",
}
ABSENT = object()


def usable(name: str, value: Any) -> Any:
    """The value as it counts: ABSENT if its field can't take it."""
    if value is None:
        return None
    if name.endswith("_amt") or name == "unit_price":
        return ABSENT if value == "free" else value
    if name == "order_date":
        return DATES.get(value, ABSENT)
    if name == "refund_type":
        kind = str(value).strip().lower()
        return kind if kind in ("full", "partial") else ABSENT
    if name in ("quantity", "item_count"):
        return ABSENT if value == 2.5 else int(value)
    if name == "sku_id":
        return ABSENT if value == "x" else int(value)
    return value if isinstance(value, str) else ABSENT


def carried(row: Row) -> Row:
    read = {name: usable(name, value) for name, value in row.items()}
    return {name: value for name, value in read.items() if value is not ABSENT}


@dataclass
class Order:
    fields: Row = field(default_factory=dict)
    skus: dict[int, Row] = field(default_factory=dict)
    loose: list[Row] = field(default_factory=list)

    def refund(self) -> str | None:
        """Its amount, of what is known of the order now; None without a refund."""
        get = self.fields.get
        if "refunded" not in self.fields:
            return None
        if (total := get("refund_total_given")) is not None:
            return total
        parts = [
            Decimal(given)
            for name in ("product", "shipping")
            if (given := get(f"refund_{name}_amt")) is not None
        ]
        if parts:
            return str(sum(parts[1:], parts[0]))
        return get("total_amt") or "0.00" if get("refund_type") in (None, "full") else "0.00"

    def view(self) -> Row:
        get = self.fields.get
        items = [self.skus[sku] | {"sku_id": sku} for sku in sorted(self.skus)] + self.loose
        total = get("total_amt")
        names = [
            *ORDER,
            *REFUNDED.values(),
            "refund_amt",
            "refund_type",
            "refund_reason",
            "shipping_method",
            "tracking_number",
            "item_count",
        ]
        return {
            **{name: get(name) for name in names},
            "refund_amt": self.refund(),
            "shipping_type": shipping_type(get("shipping_method"), get("tracking_number"),
                                           total and Decimal(total), Decimal(50)),
            "items": [[item.get(name) for name in FIELDS["items"]] for item in items],
            "items_total": len(items),
            "items_quantity": sum(item.get("quantity") or 0 for item in items),
        }  # fmt: skip


@dataclass
class Shop:
    orders: dict[str, Order] = field(default_factory=dict)

    def upload(self, kind: str, rows: Iterable[Row]) -> int:
        """Returns how many rows are skipped."""
        if kind == "items":
            return self._items(map(carried, rows))
        merged: dict[str, Row] = {}
        for row in map(carried, rows):
            merged.setdefault(row["order_number"], {}).update(row)
        skipped = 0
        for number, row in merged.items():
            known = self.orders.get(number)
            if kind == "shipping" and known is None:
                skipped += 1
                continue
            order = self.orders.setdefault(number, Order())
            given = {name: value for name, value in row.items() if name != "order_number"}
            order.fields |= (
                self._refund(order, given, new=known is None) if kind == "refunds" else given
            )
        return skipped

    def _refund(self, order: Order, given: Row, *, new: bool) -> Row:
        out: Row = {"refunded": True}
        for name, value in given.items():
            if name in REFUNDED:
                out[REFUNDED[name]] = value
                if new:
                    out[name] = value
            elif name in ("buyer_name", "order_date"):
                if not order.fields.get(name) and (value is not None or new):
                    out[name] = value
            else:
                out[name] = value
        return out

    def _items(self, rows: Iterable[Row]) -> int:
        skipped, lines, keys = 0, dict[str, list[Row]](), set()
        for row in rows:
            number, sku = row["order_number"], row.get("sku_id")
            order = self.orders.get(number)
            if order is None:
                # Rows of one SKU are one row, unknown or not.
                skipped += (number, sku) not in keys
                keys |= {(number, sku)} if sku is not None else set()
                continue
            given = {
                name: value for name, value in row.items() if name not in ("order_number", "sku_id")
            }
            if sku is None:
                lines.setdefault(number, []).append(given)
            else:
                order.skus[sku] = order.skus.get(sku, {}) | given
        for number, loose in lines.items():
            self.orders[number].loose = loose
        return skipped

    def view(self) -> dict[str, Row]:
        return {number: order.view() for number, order in sorted(self.orders.items())}


async def stored(seller) -> dict[str, Row]:
    """The same of what stands in the tables."""
    found = {}
    for order in await seller.stored_orders():
        items = await seller.stored_items(order["order_number"])
        items = sorted((i for i in items if i["sku_id"] is not None), key=lambda i: i["sku_id"]) + [
            i for i in items if i["sku_id"] is None
        ]
        order["item_count"] = order["shipping_item_count"]
        names = Order().view().keys() - {"items"}
        found[order["order_number"]] = {name: plain(order[name]) for name in names} | {
            "items": [[plain(item[name]) for name in FIELDS["items"]] for item in items]
        }
    return found


def plain(value: Any) -> Any:
    return (
        str(value)
        if isinstance(value, Decimal)
        else value.date()
        if isinstance(value, datetime)
        else value
    )


@st.composite
def uploads(draw: st.DrawFn) -> tuple[str, list[Row]]:
    kind = draw(st.sampled_from(list(PATHS)))
    row = st.fixed_dictionaries({"order_number": NUMBERS}, optional=FIELDS[kind])
    return kind, draw(st.lists(row, min_size=1, max_size=6))


QUICK: dict[str, Any] = {
    "deadline": None, "derandomize": True, "database": None,
    # Shrinking would upload for minutes.
    "phases": [Phase.generate],
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                              HealthCheck.data_too_large],
}  # fmt: skip


async def ends_in_what_a_plain_model_says(a_seller, steps):
    """Repeated, overlapping and out of order; applied one by one or many after another."""
    seller, shop, expected = await a_seller(), Shop(), {}
    for (kind, rows), again, now in steps:
        for _ in range(1 + again):
            answer = await seller.send(PATHS[kind], rows)
            assert answer.status_code == 202, answer.text
            expected[answer.json()["upload_id"]] = shop.upload(kind, rows)
        if now:
            await seller.service.run_jobs()
    await seller.service.run_jobs()
    reports = {upload: await seller.report(upload) for upload in expected}
    assert {upload: report["skipped"] for upload, report in reports.items()} == expected
    for report in reports.values():
        assert report["state"] == "done"
        assert report["applied"] + report["skipped"] + report["duplicates"] == report["rows"]
    assert await stored(seller) == shop.view()


of_any_steps = given(
    steps=st.lists(st.tuples(uploads(), st.integers(0, 2), st.booleans()), min_size=4, max_size=16)
)
test_any_sequence_of_uploads = settings(max_examples=3, **QUICK)(
    of_any_steps(ends_in_what_a_plain_model_says)
)
test_very_many_sequences_of_uploads = pytest.mark.night(
    settings(max_examples=100, **QUICK)(of_any_steps(ends_in_what_a_plain_model_says))
)


def history(chance: random.Random) -> dict[str, list[Row]]:
    """Rows that agree with each other, as those of one marketplace do."""
    numbers = [f"A-{number}" for number in range(12)]
    return {
        "orders": [{"order_number": n, "status": "Shipped",
                    "total_amt": f"{chance.randrange(9999)}.10", "buyer_name": n} for n in numbers],
        "refunds": [{"order_number": n, "total_amt": "1.00",
                     "status": "Shipped"} for n in numbers[::3]],
        "items": [{"order_number": n, "sku_id": sku,
                   "quantity": chance.randrange(1, 4)} for n in numbers for sku in (1, 2)],
        "shipping": [{"order_number": n, "shipping_method": "Standard",
                      "city": n} for n in numbers],
    }  # fmt: skip


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.night) for seed in range(2, 24))]
)
async def test_split_repeated_shuffled_and_interleaved_it_is_the_same_history(a_seller, seed):
    """As long as everything came once more after its order, no order of arrival matters."""
    chance = random.Random(seed)
    rows = history(chance)
    whole, pieces = await a_seller(), await a_seller()
    for kind, path in PATHS.items():
        assert (await whole.send(path, rows[kind])).status_code == 202
    parts = []
    for kind in PATHS:
        for _ in range(2):
            shuffled = chance.sample(rows[kind], len(rows[kind]))
            cuts = sorted(chance.sample(range(1, len(shuffled)), min(3, len(shuffled) - 1)))
            parts += [
                (kind, shuffled[a:b])
                for a, b in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)
            ]
    chance.shuffle(parts)
    # An order is there once its own row or its refund came: what came before that comes again, as
    # agents upload windows that overlap.
    for kind, part in [*parts, *(part for part in parts if part[0] in ("items", "shipping"))]:
        assert (await pieces.send(PATHS[kind], part)).status_code == 202
    await whole.service.run_jobs()
    # A refund that came first made the order with its amounts; the order's own row came later and
    # has the last word.
    assert await stored(pieces) == await stored(whole)
