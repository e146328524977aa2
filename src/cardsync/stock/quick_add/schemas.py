"""The JSON structs of quick-add. Pure. Amounts are text."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, Usd
from cardsync.platform.shelf_place import Box
from cardsync.stock.quick_add.models import Status


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
    marketplace_id: Annotated[int | None, Column("listing_id")]
    game: Annotated[str, Column("product_line")]
    set_name: str
    product_name: str
    number: str
    condition: str
    condition_label: str
    printing: str
    language: str
    custom: Annotated[bool, Column("title"), Reads(bool)]
    title: str
    """A title of its own, for a custom listing"""
    photo_url: str
    quantity: int
    price: Usd | None
    cost: Usd | None
    source: str
    box: Annotated[Box | None, OfRow(lambda row: row.box_label or row.box)]
    slot: int | None
    contribution_id: int | None
    card_id: int | None
    served: int
    """How often the agent got it in a file"""
    served_at: datetime | None
    reason: str | None
    """Why the marketplace refused it"""
    settled_by: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None
    settled_at: datetime | None


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
    seen_at: datetime | None
    """When an import saw the card last; null: none has"""
    last_sync_at: datetime | None
    retryable: bool


class PendingEntries(msgspec.Struct):
    pending: list[PendingEntry]
