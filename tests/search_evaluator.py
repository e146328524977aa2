"""Evaluates a search slowly, row by row, over a seller's tables, and returns the ids that it
selects. It knows nothing of SQL.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from builders import Seller
from cardsync.catalog.collector_number import read_collector_number
from cardsync.catalog.condition import LANGUAGES
from cardsync.platform.shelf_place import Box
from cardsync.stock.search.folding import folded, pictures, spellings, words
from cardsync.stock.search.known_names import name_key
from cardsync.stock.search.tree import (
    And,
    Named,
    Not,
    Or,
    Phrase,
    Range,
    Term,
    Tree,
    WordTerm,
    asks_for_gone,
)
from cardsync.stock.search.variants import STAMPS

Row = dict[str, Any]
ORDER = ["NM", "LP", "MP", "HP", "DMG"]


@dataclass
class Inventory:
    now: datetime
    cards: list[Row]
    # By slug and by name's key; published rules in their order: (id, name, tree), without one if
    # it can't be read.
    lists: dict[str, set[int]]
    names: dict[str, set[int]]
    rules: list[tuple[int, str, Tree | None]]
    places: dict[int, list[tuple[int, int, int]]]
    # By card, oldest first, without the newest, which stands on the card.
    observed: dict[int, list[Row]]
    pinned: set[int]
    seen: dict[str, datetime]
    sold: list[tuple[int, datetime, int]]
    codes: dict[int, str]
    # Product lines whose last pricing after a sync was written down.
    told: set[str]
    held: set[int]
    capped: set[int]
    stuck: set[int]
    # SKUs with the days of the orders that have them.
    ordered: dict[int, list[date]]
    has_orders: bool
    # What the copies in lots cost, and since when the oldest lot is there.
    costs: dict[int, tuple[Any, date]]


async def inventory_of(
    seller: Seller, rules: list[tuple[int, str, Tree | None]], now: datetime
) -> Inventory:
    async def rows(query: str) -> list[Row]:
        return await seller.service.sql(seller.id, query, s=seller.id)

    slugs, names = defaultdict(set), defaultdict(set)
    for row in await rows(
        "SELECT l.*, e.card_id FROM card_list l"
        " LEFT JOIN card_list_entry e ON e.seller_id = l.seller_id"
        " AND e.list_id = l.id WHERE l.seller_id = :s"
    ):
        slugs[row["slug"]].add(row["card_id"])
        names[name_key(row["name"])].add(row["card_id"])
    places = defaultdict(list)
    for row in await rows(
        "SELECT l.card_id, l.slot, l.quantity,"
        " coalesce(to_jsonb(b.label), to_jsonb(l.box)) AS box"
        " FROM card_location l LEFT JOIN shelf_box b USING (seller_id, box) WHERE seller_id = :s"
    ):
        places[row["card_id"]].append((row["box"], row["slot"], row["quantity"]))
    history: dict[int, list[Row]] = defaultdict(list)
    for row in await rows(
        "SELECT * FROM price_observation WHERE seller_id = :s ORDER BY observed_at"
    ):
        history[row["card_id"]].append(row)
    seen = await rows("SELECT * FROM line_snapshot WHERE seller_id = :s")
    sold = await rows(
        "SELECT i.sku_id, timezone('America/New_York', o.order_date::timestamp)"
        " AS placed_at,"
        " i.quantity FROM order_item i"
        " JOIN orders o ON o.seller_id = i.seller_id AND o.id = i.order_id"
        " WHERE i.seller_id = :s AND i.sku_id IS NOT NULL"
        " AND o.status_group <> 'Cancelled'"
        " AND (o.refund_amt IS NULL OR o.total_amt IS NULL"
        " OR o.refund_amt < o.total_amt)"
    )
    runs = await rows(
        "SELECT * FROM price_run"
        " WHERE seller_id = :s AND trigger = 'sync' AND state = 'completed'"
        " ORDER BY id"
    )
    capped = {row["marketplace_id"] for row in await rows(f"{_DECIDED} AND kind = 'cap'")}
    ordered = defaultdict(list)
    for row in await rows(
        "SELECT i.sku_id, o.order_date FROM order_item i"
        " JOIN orders o ON o.seller_id = i.seller_id AND o.id = i.order_id"
        " WHERE i.seller_id = :s AND i.sku_id IS NOT NULL AND o.order_date IS NOT NULL"
    ):
        ordered[row["sku_id"]].append(row["order_date"])
    codes = await rows(
        "SELECT id, set_code FROM product WHERE set_code IS NOT NULL AND CAST(:s AS bigint) > 0"
    )
    return Inventory(
        now,
        await rows("SELECT * FROM card WHERE seller_id = :s"),
        slugs,
        names,
        rules,
        places,
        history,
        {row["marketplace_id"] for row in await rows(f"{_DECIDED} AND kind = 'pin'")},
        {row["product_line"]: row["observed_at"] for row in seen},
        [(row["sku_id"], row["placed_at"], row["quantity"]) for row in sold],
        {row["id"]: row["set_code"].lower() for row in codes},
        {row["product_line"] for row in seen if _is_told(runs, row["upload_id"])},
        capped,
        capped,
        {row["marketplace_id"] for row in await rows(f"{_DECIDED} AND kind = 'cap' AND part = 1")},
        ordered,
        bool(await rows("SELECT 1 FROM orders WHERE seller_id = :s LIMIT 1")),
        {
            row["marketplace_id"]: (row["cost"], row["oldest"])
            for row in await rows("SELECT * FROM card_cost WHERE seller_id = :s")
        },
    )


_DECIDED = "SELECT marketplace_id FROM price_decision WHERE seller_id = :s"


def _is_told(runs: list[Row], upload_id: int) -> bool:
    of_line = [run for run in runs if run["upload_id"] in (None, upload_id)]
    return bool(of_line and of_line[-1]["summary"].get("receipts"))


def selected(inventory: Inventory, tree: Tree) -> list[int]:
    gone_too = asks_for_gone(tree)
    rows = [card for card in inventory.cards if gone_too or not card["gone"]]
    return sorted(card["id"] for card in rows if holds(inventory, card, tree))


def holds(inv: Inventory, card: Row, tree: Tree) -> bool:
    match tree:
        case WordTerm(text):
            return _word(card, text)
        case Phrase(text):
            return _contains(card, text)
        case Not(part):
            return not holds(inv, card, part)
        case And(parts):
            return all(holds(inv, card, part) for part in parts)
        case Or(parts):
            return any(holds(inv, card, part) for part in parts)
        case Term():
            return _term(inv, card, tree)


def _contains(card: Row, text: str) -> bool:
    return any(plain in folded(card["product_name"]).strip(" ") for plain in spellings(text))


def _measure(inv: Inventory, card: Row, field: str) -> Any:
    shelved = sum(quantity for _, _, quantity in inv.places.get(card["id"], []))
    match field:
        case "target":
            return card["target_price"]
        case "lowship":
            return card["low_with_shipping"]
        case "direct":
            return card["direct_low"]
        case "cost":
            return inv.costs.get(card["marketplace_id"], (None, None))[0]
        case "margin":
            cost, price = inv.costs.get(card["marketplace_id"], (None, None))[0], card["price"]
            known = price and cost is not None
            return Fraction(price - cost) * 100 / Fraction(price) if known else None
        case "qty":
            return card["quantity"]
        case "unshelved":
            return max(0, card["quantity"] - shelved)
        case "change":
            price, target = card["price"], card["target_price"]
            return (
                Fraction(target - price) * 100 / Fraction(price)
                if price and target is not None
                else None
            )
        case "age":
            oldest = inv.costs.get(card["marketplace_id"], (None, None))[1]
            since = card["created_at"]
            if oldest is not None:
                since = datetime.combine(oldest, time(), UTC)
            return (inv.now - since) // timedelta(days=1)
        case "unsold":
            sold = [at for sku, at, _ in inv.sold if sku == card["listing_id"] and at]
            return (inv.now - max(sold, default=card["created_at"])) // timedelta(days=1)
        case "sku":
            return card["marketplace_id"]
    return card[field]


MEASURED = (
    "price",
    "target",
    "market",
    "low",
    "lowship",
    "direct",
    "cost",
    "qty",
    "unshelved",
    "change",
    "margin",
    "age",
    "unsold",
    "id",
    "sku",
)
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _within(value: Any, wanted: Any) -> bool:
    value = Fraction(value)
    if isinstance(wanted, Range):
        return (wanted.low is None or value >= Fraction(wanted.low)) and (
            wanted.high is None or value <= Fraction(wanted.high)
        )
    return value == Fraction(wanted)


def _term(inv: Inventory, card: Row, term: Term) -> bool:
    if term.field in MEASURED:
        value = _measure(inv, card, term.field)
        if value is None:
            return False
        if term.op in SIGNS:
            return SIGNS[term.op](Fraction(value), Fraction(term.values[0]))
        return any(_within(value, wanted) for wanted in term.values) != (term.op == "!=")
    present, one = _field(inv, card, term)
    if term.op in SIGNS:
        return one(term.values[0])
    if term.op == "!=":
        return present and not any(map(one, term.values))
    return any(map(one, term.values))


def _word(card: Row, text: str) -> bool:
    of_name = words(folded(card["product_name"]))
    number = re.fullmatch(
        r"(?i)#?(?=.*[0-9])[a-z0-9]+[★*+]?/[a-z0-9-]+|#[a-z0-9-]+[★*+]?[a-z]?", text
    )
    if number and read_collector_number(card["number"]).agrees_with(read_collector_number(text)):
        return True
    for plain in spellings(text):
        cut = words(plain)
        if not cut and (pictures(plain) or plain) in folded(card["product_name"]).strip(" "):
            return True
        if cut and all(any(word.startswith(part) for word in of_name) for part in cut):
            return True
    return False


def _leading(number: str) -> int | None:
    found = re.match(r"[0-9]{1,9}(?![0-9])", read_collector_number(number).key)
    return int(found.group()) if found else None


def _field(inv: Inventory, card: Row, term: Term) -> tuple[bool, Callable[[Any], bool]]:
    exact = term.op != ":"
    places = inv.places.get(card["id"], [])
    match term.field:
        case "name":
            name = folded(card["product_name"]).strip(" ")
            return bool(
                name
            ), lambda v: folded(v).strip(" ") == name if exact else folded(v) in name
        case "set":
            name, code = folded(card["set_name"]).strip(" "), inv.codes.get(card["product_id"])
            return (
                bool(name),
                lambda v: (
                    (folded(v).strip(" ") == name if exact else folded(v) in name)
                    or code == folded(v).strip(" ")
                ),
            )
        case "rarity":
            rarity = folded(card["rarity"]).strip(" ")
            return bool(rarity), lambda v: folded(v).strip(" ") == rarity
        case "number":
            return _number(card, term)
        case "game":
            return True, lambda v: card["product_line"] == v
        case "cond":
            return card["condition"] is not None, lambda v: _condition(
                card["condition"], term.op, v
            )
        case "printing":
            return bool(card["printing"]), lambda v: _printing(
                card["printing"], folded(v).strip(" "), exact
            )
        case "lang":
            return bool(
                card["language"]
            ), lambda v: v in (card["language"], LANGUAGES.get(card["language"], ""))
        case "v":
            return bool(_variants(card)), lambda v: _variant(card, v)
        case "box":
            return bool(places), lambda v: any(_is_box(box, v) for box, _, _ in places)
        case "loc":
            return bool(places), lambda v: any(
                _is_box(box, v.box) and slot == v.slot for box, slot, _ in places
            )
        case "list":
            return (
                True,
                lambda v: (
                    card["id"]
                    in (inv.names[name_key(v.name)] if isinstance(v, Named) else inv.lists[v])
                ),
            )
        case "rule":
            return True, lambda v: _is_rule(_governing(inv, card), v)
        case "has":
            return True, lambda v: _has(inv, card, v)
    return True, lambda v: _flag(inv, card, v)


def _number(card: Row, term: Term) -> tuple[bool, Callable[[Any], bool]]:
    own, leading = read_collector_number(card["number"]), _leading(card["number"])

    def one(value: Any) -> bool:
        if term.op in SIGNS:
            return leading is not None and SIGNS[term.op](leading, value)
        if isinstance(value, Range):
            return leading is not None and _within(leading, value)
        return own.agrees_with(read_collector_number(value))

    return bool(own.key or own.total), one


def _condition(code: str | None, op: str, wanted: str) -> bool:
    if op in SIGNS:
        return code in ORDER and SIGNS[op](ORDER.index(code), ORDER.index(wanted))
    return code == wanted


def _printing(printing: str, wanted: str, exact: bool) -> bool:
    named = {
        "normal": "Normal",
        "foil": "Foil",
        "holofoil": "Holofoil",
        "reverse": "Reverse Holofoil",
        "limited": "Limited",
    }
    if wanted in named:
        return printing == named[wanted]
    if wanted in ("1st", "unlimited"):
        return printing.lower().startswith(wanted)
    return printing.lower() == wanted if exact else bool(printing) and wanted in printing.lower()


def _variant(card: Row, wanted: str) -> bool:
    if wanted == "No Rarity" and card["product_line"] != "pokemon_japan":
        return False
    inner = folded(wanted).strip(" ")
    return any(_has_words(variant, inner) for variant in _variants(card))


def _variants(card: Row) -> list[str]:
    """The texts between an opening bracket and the next closing one of its kind."""
    found = []
    for text in (folded(card[field]).strip(" ") for field in ("product_name", "set_name")):
        for opens, closes in ("()", "[]"):
            for at in (place for place, letter in enumerate(text) if letter == opens):
                inside, closed, _ = text[at + 1 :].partition(closes)
                found += [inside] if closed and inside else []
    return found


def _has_words(text: str, wanted: str) -> bool:
    """Neither end of it goes on with a letter or digit."""
    letters = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
    for at in range(len(text) - len(wanted) + 1):
        before, behind = text[:at][-1:], text[at + len(wanted) :][:1]
        if text[at : at + len(wanted)] == wanted:
            cut_before = wanted[0] in letters and before in letters
            cut_behind = wanted[-1] in letters and behind in letters
            if not cut_before and not cut_behind:
                return True
    return False


def _governing(inv: Inventory, card: Row) -> tuple[int, str] | None:
    for id, name, tree in inv.rules:
        if tree is None:
            return None
        if holds(inv, card, tree):
            return id, name_key(name)
    return None


def _is_rule(governing: tuple[int, str] | None, wanted: Any) -> bool:
    return (
        governing is not None
        and (name_key(wanted.name) if isinstance(wanted, Named) else int(wanted)) in governing
    )


def _has(inv: Inventory, card: Row, thing: str) -> bool:
    match thing:
        case "photo":
            return bool(card["photo_url"])
        case "list":
            return any(card["id"] in ids for ids in inv.lists.values())
        case "rule":
            return _governing(inv, card) is not None
        case "cost":
            return inv.costs.get(card["marketplace_id"], (None, None))[0] is not None
        case "receipt":
            return (
                not card["gone"]
                and card["contribution"] is None
                and card["product_line"] in inv.told
            )
    return bool(inv.places.get(card["id"]))


def _flag(inv: Inventory, card: Row, flag: str) -> bool:
    price, target = card["price"], card["target_price"]
    shelved = sum(quantity for _, _, quantity in inv.places.get(card["id"], []))
    seen = [*inv.observed.get(card["id"], []), card]
    before = seen[-2] if len(seen) > 1 else None
    match flag:
        case "gone" | "custom":
            return bool(card[flag])
        case "active":
            return not card["gone"]
        case "unshelved":
            return card["quantity"] > 0 and not inv.places.get(card["id"])
        case "location-drift":
            return shelved > card["quantity"]
        case "stamped":
            return any(_variant(card, stamp) for stamp in STAMPS)
        case "priced" | "unpriced":
            return (price is not None) == (flag == "priced")
        case "underpriced" | "overpriced":
            return None not in (price, target) and (
                price < target if flag == "underpriced" else price > target
            )
        case "sealed":
            return card["condition"] == "U"
        case "foil":
            return "foil" in card["printing"].lower()
        case "moved":
            recent = inv.now - timedelta(days=14)
            return any(
                new["observed_at"] >= recent and _moves(old, new) for old, new in pairwise(seen)
            )
        case "pinned":
            return card["marketplace_id"] in inv.pinned
        case "held":
            return not card["gone"] and card["marketplace_id"] in inv.held
        case "capped":
            return not card["gone"] and card["marketplace_id"] in inv.capped
        case "stuck":
            return not card["gone"] and card["marketplace_id"] in inv.stuck
        case "dropped":
            return _dropped(inv, card, seen)
        case "review":
            return card["match"] == "ambiguous" or card["condition"] is None
        case "confirmed" | "in-flux":
            uploaded = not card["gone"] and card["contribution"] is None
            return uploaded and _agreed(inv, card, before) == (flag == "confirmed")
        case "audit":
            return _audit(
                inv, card, [old for old in seen[:-1] if old["quantity"] != card["quantity"]]
            )
    return False


def _dropped(inv: Inventory, card: Row, seen: list[Row]) -> bool:
    """Whether a card that had copies left within a week, and no order of three weeks has it."""
    week = inv.now - timedelta(days=7)
    places = [place for place, row in enumerate(seen[:-1]) if row["quantity"] > 0]
    if not card["gone"] or card["contribution"] or card["updated_at"] < week or not places:
        return False
    left = seen[places[-1] + 1]["observed_at"]
    since = (inv.now - timedelta(days=21)).date()
    sold = any(day >= since for day in inv.ordered.get(card["marketplace_id"], ()))
    return bool(inv.has_orders and left >= week and not sold)


def _moves(old: Row, new: Row) -> bool:
    was, now = old["market"] or 0, new["market"] or 0
    return bool(was > 0 and now > 0 and abs(now - was) >= was * Decimal("0.05"))


def _agreed(inv: Inventory, card: Row, before: Row | None) -> bool:
    seen = inv.seen.get(card["product_line"])
    return bool(seen and seen > card["observed_at"]) or bool(
        before and before["quantity"] == card["quantity"]
    )


def _audit(inv: Inventory, card: Row, others: list[Row]) -> bool:
    recent = inv.now - timedelta(days=90)
    return any(
        _lost(inv, card, old) for old in others if old is others[-1] or old["observed_at"] >= recent
    )


def _lost(inv: Inventory, card: Row, old: Row) -> bool:
    since = old["observed_at"] - timedelta(days=1)
    sold = sum(n for sku, at, n in inv.sold if sku == card["listing_id"] and at and at >= since)
    return sold < old["quantity"] - card["quantity"]


def _is_box(box: Box, wanted: Any) -> bool:
    if isinstance(wanted, Range):
        low, high = wanted.low or 1, wanted.high or box
        return isinstance(box, int) and low <= box <= high
    return _box_read(str(box)) == _box_read(str(wanted))


def _box_read(label: str) -> list[str]:
    """Letters without case and numbers without zeros in front."""
    parts = re.split("([0-9]+)", label.casefold())
    return [part.lstrip("0") if part.isdigit() else part for part in parts]
