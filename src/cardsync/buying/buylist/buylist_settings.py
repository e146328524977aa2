"""Reads and changes the settings of the public buylist: whether it is open (it is closed until the
owner opens it), and the terms, which visitors and customers with an offer read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import UndoRows
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.limits import BUYLIST_TERMS_CHARACTERS
from cardsync.buying.offers.offer_links import BUYLIST
from cardsync.buying.offers.schemas import Shop
from cardsync.platform import errors
from cardsync.platform.database.columns import FALSE, Base, DefaultNow, KeyPart
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, row_as
from cardsync.platform.database.row_images import SHOP, RowImages
from cardsync.platform.database.session import in_one_message


class BuylistSettings(msgspec.Struct):
    """The settings of the public buylist. `path` is its address, which works while `is_open`."""

    is_open: bool
    terms: str
    path: str
    """The address of the public buylist, which works while it is open"""


class PublicBuylist(Base):
    """A tenant table: the settings of a shop's public buylist. Without a row, it is closed."""

    __tablename__ = "public_buylist"
    seller_id: Mapped[KeyPart]
    is_open: Mapped[bool] = mapped_column(server_default=FALSE)
    terms: Mapped[str] = mapped_column(server_default="")
    updated_at: Mapped[DefaultNow]


PATH: Final = BUYLIST
KIND: Final = "buylist.changed"
UNDO: Final = UndoRows(
    RowImages(PublicBuylist, "is_open", "terms", keys=SHOP),
    "the public buylist was changed in the meantime",
)


async def read_settings(source: Source, caller: Caller) -> BuylistSettings:
    """Return the settings. Raises OwnerRequired."""
    caller.must_be_owner()
    return _body(caller, await row_as(source, PublicBuylist, caller.seller_id, ""))


_SHOP: Final = (
    "SELECT name FROM seller WHERE id = :seller",
    "SELECT terms FROM public_buylist WHERE seller_id = :seller",
)


async def shop_of(source: Source, caller: Caller) -> Shop:
    """Return the shop's details as its customers see them."""
    names, terms = await in_one_message(source, _SHOP, {"seller": caller.seller_id})
    return Shop(names[0][0] if names else "", terms[0][0] if terms else "")


async def change_settings(
    session: AsyncSession,
    caller: Caller,
    is_open: bool | UnsetType,
    terms: str | UnsetType,
    now: datetime,
) -> BuylistSettings:
    """Change the settings. Raises OwnerRequired, RefusedByGrant, InvalidPayload."""
    must_bind_shop(caller)
    row = await _locked(session, caller, now)
    was = [row.is_open, row.terms]
    if is_open is not UNSET:
        row.is_open = is_open
    if terms is not UNSET:
        row.terms = _readable(terms)
    became = [row.is_open, row.terms]
    if became != was:
        row.updated_at = now
        what = "open" if row.is_open else "closed"
        undo = {"kind": KIND, "was": was, "became": became}
        note(session, caller, KIND, f"public buylist {what}", now, undo=undo)
    return _body(caller, row)


async def _locked(session: AsyncSession, caller: Caller, now: datetime) -> PublicBuylist:
    await locked(session, Lock.SHOP, caller.seller_id)
    row = await session.get(PublicBuylist, caller.seller_id, populate_existing=True)
    if row is None:
        row = PublicBuylist(seller_id=caller.seller_id, is_open=False, terms="", updated_at=now)
        session.add(row)
    return row


def _readable(given: str) -> str:
    kept = given.strip()
    if len(kept) > BUYLIST_TERMS_CHARACTERS:
        raise errors.InvalidPayload(
            f"terms: must have at most {BUYLIST_TERMS_CHARACTERS} characters"
        )
    return kept


def _body(caller: Caller, row: PublicBuylist | None) -> BuylistSettings:
    path = f"{PATH}/{caller.seller_id}"
    if row is None:
        return BuylistSettings(is_open=False, terms="", path=path)
    return BuylistSettings(row.is_open, row.terms, path)
