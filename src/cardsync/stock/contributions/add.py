"""Adds a contribution: a row of the inventory for a card that a member has and that no marketplace
lists yet.

A private contribution is visible only to its member, a published contribution to all members. When
the marketplace lists its copies, the contribution is retired (promote.py). A contribution has no
target and is in no export. Its marketplace_id is a unique negative number, below the ids of custom
listings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked
from cardsync.catalog import products
from cardsync.catalog.condition import CODES, LANGUAGES
from cardsync.catalog.printings import NORMAL, checked_printing
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.value_types import Values
from cardsync.stock.cards.bulk_selection import Selection, run_picked
from cardsync.stock.cards.models import CARD_ID_BLOCK, Card
from cardsync.stock.contributions.promote import note_listed
from cardsync.stock.limits import PUBLISHED_AT_ONCE
from cardsync.stock.search.folding import search_columns

# Contributions are numbered from here on, because custom listings use the numbers from 1 on.
_FIRST_NUMBER = 10**12
_PRICES_END = 10**8
_LABELS = {code: name.title() for name, code in CODES.items()}
_CONDITIONS = {name: code for code in _LABELS for name in (code.lower(), _LABELS[code].lower())}
_LANGUAGES = {name.lower(): name for name in LANGUAGES}


@dataclass(frozen=True)
class WantedCard:
    """A card to contribute. `product_id` identifies the card; if it is None, the texts identify the
    card, as in a row of an upload.
    """

    product_id: int | None
    game: str | None
    name: str | None
    set_name: str | None
    number: str | None
    condition: str
    printing: str | None
    language: str
    quantity: int
    price: Decimal | None
    shared: bool


class _Product(NamedTuple):
    product_id: int
    match: str
    product_line: str
    product_name: str
    set_name: str
    number: str
    rarity: str
    finish: str | None


async def contribute(database: Database, caller: Caller, wanted: WantedCard, now: datetime) -> int:
    """Add the card and return its id. Raises InvalidPayload."""
    described = _read(wanted)
    if wanted.product_id is not None:
        product = await _known(database, caller, wanted.product_id)
    else:
        product = await _described(database, caller, wanted, described)
    described["printing"] = described["printing"] or product.finish or NORMAL
    row = _row_of(product, described, wanted) | {"contributed_by": caller.member_id}
    async with database.tenant(caller.seller_id) as session:
        card_id = await _insert(session, caller.seller_id, row, now)
        if wanted.shared:
            await locked(session, caller.seller_id)
            await note_listed(session, caller.seller_id, [card_id], now)
        note(
            session,
            caller,
            "contribution.added",
            # Other members must not learn the names of a member's private cards.
            f"{wanted.quantity} of {product.product_name if wanted.shared else 'a card'} contributed",
            now,
        )
    return card_id


def _read(wanted: WantedCard) -> dict[str, Any]:
    """Return condition, printing and language in the spelling of the table `card`. The printing is
    None if the caller sent none. Raises InvalidPayload.
    """
    described = {
        "condition": _one_of("condition", wanted.condition, _CONDITIONS),
        "printing": wanted.printing
        and checked_printing("printing", wanted.printing, wanted.game or ""),
        "language": _one_of("language", wanted.language, _LANGUAGES),
    }
    price = wanted.price
    if price is not None and not (price.is_finite() and 0 <= price < _PRICES_END):
        raise errors.InvalidPayload("price: an amount like 1.50")
    return described


def _row_of(
    product: _Product, described: Mapping[str, str], wanted: WantedCard
) -> dict[str, object]:
    """Return the column values of the new card."""
    searched = ("product_name", "set_name", "rarity", "number")
    words = search_columns(pl.DataFrame({name: [getattr(product, name)] for name in searched}))
    printing = described["printing"]
    return {
        **{name: text for name, text in product._asdict().items() if name != "finish"},
        **described,
        **words.row(0, named=True),
        "product_line_label": LABEL_BY_NAME.get(product.product_line, product.product_line),
        "condition_label": _LABELS[described["condition"]]
        + ("" if printing == NORMAL else f" {printing}"),
        "quantity": wanted.quantity,
        "price": wanted.price,
        "contribution": "published" if wanted.shared else "private",
    }


async def publish(session: AsyncSession, caller: Caller, card_id: int, now: datetime) -> None:
    """Publish a private contribution. A published contribution does not change.

    Raises NotFound if the card is no contribution that the member may see, StockPromotedReload if
    it is retired, and ListFull.
    """
    await locked(session, caller.seller_id)
    if await _publish(session, caller, card_id, now):
        await note_listed(session, caller.seller_id, [card_id], now)


async def _publish(session: AsyncSession, caller: Caller, card_id: int, now: datetime) -> bool:
    """Publish a contribution; return whether it was private before."""
    named = {"seller": caller.seller_id, "id": card_id, "member": caller.member_id}
    lists = await _held_lists(session, caller.seller_id, card_id)
    row = (
        await session.execute(
            text("""
                SELECT contribution, product_name FROM card
                 WHERE seller_id = :seller AND id = :id
                   AND (contribution <> 'private' OR contributed_by = :member) FOR UPDATE
            """),
            named,
        )
    ).first()
    if row is None:
        raise errors.NotFound(f"there is no contribution {card_id}")
    if row.contribution == "retired":
        raise errors.StockPromotedReload
    if row.contribution == "published":
        return False
    await _need_room(session, caller.seller_id, lists)
    done = text(
        "UPDATE card SET contribution = 'published', updated_at = :now"
        " WHERE seller_id = :seller AND id = :id"
    )
    await session.execute(done, named | {"now": now})
    note(session, caller, "contribution.published", f"{row.product_name} published", now)
    return True


_OWN: Final = """
    WITH picked AS MATERIALIZED ({picked})
    SELECT c.id FROM picked p JOIN card c ON c.seller_id = :seller AND c.id = p.id
     WHERE c.contribution = 'private' AND c.contributed_by = :member
     ORDER BY p.place, c.id LIMIT :most + 1
"""


async def publish_picked(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    now: datetime,
    seconds: float,
) -> tuple[int, bool]:
    """Publish up to PUBLISHED_AT_ONCE of the member's own contributions in a selection. Return the
    number of published contributions, and whether the selection has more. Raises InvalidPayload,
    ListFull.
    """
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "most": PUBLISHED_AT_ONCE,
        "now": now,
    }
    rows = await run_picked(session, caller, selection, _OWN, values, seconds)
    own = [row.id for row in rows]
    await locked(session, caller.seller_id)
    # Contributions are published in the order of their ids, so that two members do not deadlock.
    new = [
        card_id
        for card_id in sorted(own[:PUBLISHED_AT_ONCE])
        if await _publish(session, caller, card_id, now)
    ]
    await note_listed(session, caller.seller_id, new, now)
    return min(len(own), PUBLISHED_AT_ONCE), len(own) > PUBLISHED_AT_ONCE


async def _held_lists(session: AsyncSession, seller_id: int, card_id: int) -> list[int]:
    """Lock and return the lists that the card is on.

    Lists are locked in the order of their ids and before cards, as in promote.py, so that the two
    modules do not deadlock.
    """
    held = text("""
        SELECT l.id
          FROM card_list l JOIN card_list_entry e
            ON e.seller_id = l.seller_id AND e.list_id = l.id
         WHERE l.seller_id = :seller AND e.seller_id = :seller AND e.card_id = :id
         ORDER BY l.id FOR UPDATE OF l
    """)
    return list(await session.scalars(held, {"seller": seller_id, "id": card_id}))


async def _need_room(session: AsyncSession, seller_id: int, lists: list[int]) -> None:
    """Check that each list has room for one more card. The card did not count toward a list's cap
    while it was private. Raises ListFull.
    """
    full = text("""
        SELECT min(l.name)
          FROM card_list l JOIN card_list_entry e
            ON e.seller_id = l.seller_id AND e.list_id = l.id
          JOIN card c ON c.seller_id = e.seller_id AND c.id = e.card_id
         WHERE l.seller_id = :seller AND e.seller_id = :seller AND c.seller_id = :seller
           AND l.id = ANY (CAST(:lists AS bigint[]))
           AND c.contribution IS DISTINCT FROM 'private'
         GROUP BY l.id HAVING count(*) >= :cap ORDER BY l.id LIMIT 1
    """)
    values = {"seller": seller_id, "lists": lists, "cap": limits.CARDS_PER_LIST}
    if lists and (name := await session.scalar(full, values)) is not None:
        raise errors.ListFull(
            f"the card is on the list {name!r}, which already has {limits.CARDS_PER_LIST:,} cards and is full"
        )


def _one_of(field: str, given: str, known: dict[str, str]) -> str:
    found = known.get(" ".join(given.lower().split()))
    if found is None:
        raise errors.InvalidPayload(
            f"{field}: {given[:60]!r} is not one of {', '.join(dict.fromkeys(known.values()))}"
        )
    return found


async def _known(database: Database, caller: Caller, product_id: int) -> _Product:
    """Return a product of the catalog, or a provisional product of one of this seller's cards.
    Provisional products of other sellers are refused, because their texts are private.
    """
    query = text("""
        SELECT p.id, CASE WHEN p.provisional THEN 'provisional' ELSE 'matched' END, p.game,
               p.product_name, p.set_name,
               coalesce(p.number, ''), coalesce(p.rarity, ''), nullif(p.finish, 'Sealed')
          FROM product p
         WHERE p.id = :id AND (NOT p.provisional
            OR EXISTS (SELECT FROM card c WHERE c.seller_id = :seller AND c.product_id = p.id))
    """)
    async with database.tenant(caller.seller_id) as session:
        row = (await session.execute(query, {"id": product_id, "seller": caller.seller_id})).first()
    if row is None:
        raise errors.InvalidPayload(f"product_id: there is no product {product_id}")
    product = _Product(*row)
    if product.product_line not in caller.account.product_lines:
        raise errors.InvalidPayload(
            f"product_id: {product.product_line} is none of this account's product lines,"
            f" which product {product_id} is of"
        )
    return product


async def _described(
    database: Database,
    caller: Caller,
    wanted: WantedCard,
    described: dict[str, object],
) -> _Product:
    """Return the catalog product that the texts of `wanted` match, as for a row of an upload, or a
    provisional product made from these texts.
    """
    if not wanted.name or not wanted.set_name:
        raise errors.InvalidPayload("product_id, or name and set: one of them is needed")
    texts: Values = {
        "product_line": wanted.game or "", "product_name": wanted.name,
        "set_name": wanted.set_name, "number": wanted.number or "", "rarity": "",
    }  # fmt: skip
    lines = caller.account.product_lines
    [line] = (await products.lines_meant(database, lines, {"": {**texts, **described}})).values()
    texts["product_line"] = line
    rows = pl.DataFrame(
        [{"row": 0, **texts, **described, "title": ""}],
        schema_overrides={"row": pl.UInt32, "printing": pl.String},
    )
    [found] = (
        (await products.resolve(database, rows)).select("product_id", "match").iter_rows(named=True)
    )
    finish = None
    if found["match"] == "matched":
        finish = (await _known(database, caller, found["product_id"])).finish
    return _Product(**found, **texts, finish=finish)


async def _insert(
    session: AsyncSession,
    seller_id: int,
    row: dict[str, object],
    now: datetime,
) -> int:
    card_id: int = (
        await session.scalar(text(f"SELECT nextval('card_id_block') * {CARD_ID_BLOCK}")) or 0
    )
    number = -(_FIRST_NUMBER + card_id)
    session.add(
        Card(
            seller_id=seller_id,
            id=card_id,
            marketplace_id=number,
            listing_id=number,
            identity_hash=0,
            observed_at=now,
            created_at=now,
            updated_at=now,
            title="",
            photo_url="",
            **row,
        )
    )
    await session.flush()
    return card_id
