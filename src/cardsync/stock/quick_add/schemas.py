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
    """An entry of quick-add. `status` is draft, published, pending, listed or rejected; `reason` is
    why the entry was rejected or is to be served again. `custom` listings have a title and a photo.
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
    """The title of a custom listing, otherwise empty"""
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
    """The number of files that contained the entry"""
    served_at: datetime | None
    reason: str | None
    """Why the entry was rejected or is to be served again"""
    settled_by: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None
    settled_at: datetime | None


class Entries(msgspec.Struct):
    entries: list[QuickAddEntry]
    new_printing: int
    """The number of entries whose printing is not a known one; it is stored as sent"""


class EntryPage(msgspec.Struct):
    entries: list[QuickAddEntry]
    total: int
    page: int
    per_page: int
    total_pages: int


class Published(msgspec.Struct):
    """The published entries, and the id of the agent's task that lists them."""

    entries: list[QuickAddEntry]
    """The entries that were published"""
    task_id: int | None
    """The agent's task that lists the entries; null if no entry needs a task"""


class PendingEntry(msgspec.Struct):
    """An entry that was sent to the marketplace and not answered. If it was listed, the marketplace
    lists `quantity_before` + `sent` copies; in the newest import with the card, at `seen_at`, it
    listed `listed_now`.

    An entry is `retryable` 30 minutes after its file, because no agent imports the file any more.
    It may then be settled as not listed.
    """

    entry: QuickAddEntry
    sent: int
    """The copies that were sent to the marketplace"""
    quantity_before: int
    """The copies that were listed before the file"""
    listed_now: int | None
    """The listed copies in the newest import with the card"""
    price_now: str | None
    """The price in the newest import with the card, in USD"""
    seen_at: datetime | None
    """When the newest import with the card was made; null if no import has the card"""
    last_sync_at: datetime | None
    retryable: bool


class PendingEntries(msgspec.Struct):
    pending: list[PendingEntry]
