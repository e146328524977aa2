"""Stores a member's choices for a collection: the products of rows, the rows to leave out, and the
meanings of columns that no format declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.buying.collections.drain_collections import COLLECTIONS, drain_collections
from cardsync.buying.collections.file_formats import FIELDS, header_key, says_card
from cardsync.buying.collections.models import Collection, CollectionColumns
from cardsync.buying.collections.read_collections import ALIKE, counts_of, one_collection
from cardsync.buying.collections.schemas import Choice, Chosen, Counts
from cardsync.catalog.condition import CODES, LANGUAGES
from cardsync.catalog.models import Product
from cardsync.catalog.printings import PRINTINGS
from cardsync.platform import errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.table_text import column_name
from cardsync.platform.work.jobs import enqueue, mark_due

# A chosen condition or finish corrects its row `r`, and similar rows `o` if `r` has a reason to
# wait, such as an unknown word.
_MEANT: Final = "(o.row = r.row OR r.reason <> '')"
# A choice changes its row, even if the row already has a choice, and similar rows that still wait.
# An unknown finish becomes the product's finish, an unknown condition becomes Damaged.
_CHOOSE: Final = queries_of(__package__)["choose"].format(meant=_MEANT, alike=ALIKE)


async def choose_rows(
    session: AsyncSession,
    caller: Caller,
    collection_id: int,
    choices: list[Choice],
    now: datetime,
) -> Chosen:
    """Apply each choice to its row and to similar rows. If one choice is invalid, none is applied.
    Raises NotFound, InvalidPayload.
    """
    await one_collection(session, caller, collection_id, lock=True)
    await _need_products(session, caller, choices)
    settled = 0
    for place, choice in enumerate(choices):
        chosen = choice.product_id is not None
        changed = await run(
            session,
            _CHOOSE,
            {
                "seller": caller.seller_id,
                "collection": collection_id,
                "row": choice.row,
                "product": choice.product_id,
                "left_out": not chosen,
                "certainty": "certain" if chosen else None,
                "how": "chosen" if chosen else None,
                "actor": caller.actor,
                "now": now,
                "condition": choice.condition,
                "finish": choice.finish,
                "copies": choice.copies,
                "conditions": list(CODES.values()),
                "finishes": list(PRINTINGS),
                "languages": list(LANGUAGES),
            },
        )
        if not changed:
            raise errors.InvalidPayload(
                f"choices[{place}].row: the collection has no row {choice.row}"
            )
        settled += changed
    said = f"collection {collection_id}: {settled} rows matched"
    note(session, caller, "buying.rows_chosen", said, now)
    counts = await counts_of(session, caller.seller_id, [collection_id])
    return Chosen(settled, counts.get(collection_id, Counts()).waiting)


async def _need_products(session: AsyncSession, caller: Caller, choices: list[Choice]) -> None:
    ids = [choice.product_id for choice in choices if choice.product_id is not None]
    known = select(Product.id).where(
        Product.id.in_(ids),
        Product.game.in_(caller.account.product_lines),
        ~Product.provisional,
    )
    found = set(await session.scalars(known))
    for place, choice in enumerate(choices):
        if choice.product_id is not None and choice.product_id not in found:
            raise errors.InvalidPayload(
                f"choices[{place}].product_id: the catalog has no product {choice.product_id}"
                " of this account's product lines"
            )


async def name_columns(
    session: AsyncSession,
    caller: Caller,
    collection_id: int,
    columns: Mapping[str, str],
    now: datetime,
) -> Collection:
    """Set the meaning of each column, for this file and for later files with the same header.
    Raises NotFound, InvalidPayload.
    """
    row = await one_collection(session, caller, collection_id, lock=True)
    if row.state != "needs_columns":
        raise errors.InvalidPayload("columns: this file's columns are already matched")
    places = {column_name(name): at for at, name in reversed(list(enumerate(row.header)))}
    for field, name in columns.items():
        if field not in FIELDS:
            known = ", ".join(FIELDS)
            raise errors.InvalidPayload(f"columns.{field[:60]}: must be one of {known}")
        if column_name(name) not in places:
            raise errors.InvalidPayload(f"columns.{field}: the file has no column {name[:60]!r}")
    if not says_card(columns):
        raise errors.InvalidPayload("columns.name: is missing")
    named = {field: column_name(name) for field, name in columns.items()}
    row.columns = {field: places[name] for field, name in named.items()}
    row.state = "queued"
    kept = {
        "seller_id": caller.seller_id,
        "header": header_key(row.header),
        "columns": named,
        "updated_at": now,
    }
    named_before = insert(CollectionColumns).values(kept)
    await session.execute(
        named_before.on_conflict_do_update(
            index_elements=["seller_id", "header"],
            set_={name: named_before.excluded[name] for name in ("columns", "updated_at")},
        )
    )
    said = f"collection {collection_id} “{row.name}”: columns matched"
    note(session, caller, "buying.columns_named", said, now)
    await mark_due(session, caller.seller_id, COLLECTIONS)
    await enqueue(session, drain_collections, seller_id=caller.seller_id)
    return row


async def delete_collection(
    session: AsyncSession,
    caller: Caller,
    collection_id: int,
    now: datetime,
) -> None:
    """Delete a collection. Raises NotFound."""
    caller.must_be_owner()
    row = await one_collection(session, caller, collection_id, lock=True)
    said = f"collection {collection_id} “{row.name}” deleted"
    own = (Collection.seller_id == caller.seller_id) & (Collection.id == collection_id)
    await session.execute(delete(Collection).where(own))
    note(session, caller, "buying.collection_deleted", said, now)
