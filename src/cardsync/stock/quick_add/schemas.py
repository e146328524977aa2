"""The JSON structs of quick-add, and the functions that fill them from rows. Pure. Amounts are
text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cardsync.platform.clock import rfc3339_or_none
from cardsync.platform.money import usd
from cardsync.platform.shelf_place import Box
from cardsync.stock.quick_add.models import QuickAdd, Status


class Product(msgspec.Struct):
    product_id: int
    game: str
    product_name: str
    set_name: str
    set_code: str | None
    number: str | None
    rarity: str | None
    finish: str | None
    language: str
    marketplace_product_id: int | None


class Products(msgspec.Struct):
    products: list[Product]


class QuickAddEntry(msgspec.Struct):
    """`status` is draft, published, pending, listed or rejected; `reason` says why it was
    rejected or came back. `custom` listings have a title and a photo.
    """

    id: int
    status: Status
    """draft, published, pending, listed or rejected"""
    product_id: int
    marketplace_id: int | None
    game: str
    set_name: str
    product_name: str
    number: str
    condition: str
    condition_label: str
    printing: str
    language: str
    custom: bool
    title: str
    """A title of its own, for a custom listing"""
    photo_url: str
    quantity: int
    price: str | None
    cost: str | None
    source: str
    box: Box | None
    slot: int | None
    contribution_id: int | None
    card_id: int | None
    served: int
    """How often the agent got it in a file"""
    served_at: str | None
    reason: str | None
    """Why the marketplace refused it"""
    settled_by: str | None
    created_by: str
    created_at: str
    updated_at: str
    published_at: str | None
    settled_at: str | None


class Entries(msgspec.Struct):
    entries: list[QuickAddEntry]
    new_printing: int
    """Entries with a printing that no table knows: it is kept as its text"""


class EntryPage(msgspec.Struct):
    entries: list[QuickAddEntry]
    total: int
    page: int
    per_page: int
    total_pages: int


class Published(msgspec.Struct):
    """`task_id` is the agent's task that waits for them, null where none is needed."""

    entries: list[QuickAddEntry]
    """The entries that were published"""
    task_id: int | None
    """The agent's task that lists them; null: none is needed"""


class PendingEntry(msgspec.Struct):
    """`sent` were added to `quantity_before`; the marketplace listed `listed_now` when an import
    saw the card last, at `seen_at` (null: no import has shown the card).

    `retryable`: no agent has it in hand any more, so it may be settled as not listed.
    """

    entry: QuickAddEntry
    """The entry"""
    sent: int
    """The copies that were sent to the marketplace"""
    quantity_before: int
    """The copies that were listed before"""
    listed_now: int | None
    """The copies that the newest import saw"""
    price_now: str | None
    """The price that the newest import saw, in USD"""
    seen_at: str | None
    """When an import saw the card last; null: none has"""
    last_sync_at: str | None
    retryable: bool


class PendingEntries(msgspec.Struct):
    pending: list[PendingEntry]


def entry_body(row: QuickAdd) -> QuickAddEntry:
    moments = ("served_at", "created_at", "updated_at", "published_at", "settled_at")
    own: dict[str, Any] = {
        "marketplace_id": row.listing_id,
        "box": row.box_label or row.box,
        "game": row.product_line,
        "custom": bool(row.title),
        "price": usd(row.price),
        "cost": usd(row.cost),
        **{name: rfc3339_or_none(getattr(row, name)) for name in moments},
    }
    same = {name: getattr(row, name) for name in QuickAddEntry.__struct_fields__ if name not in own}
    return QuickAddEntry(**own, **same)
