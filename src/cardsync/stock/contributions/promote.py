"""Turns published contributions into live cards once the marketplace lists them, and retires the
private contributions of a member who leaves. Each function runs in its caller's transaction.

`note_listed` records how many copies of the card are listed when a contribution is published. When
an upload lists more copies, `promote` moves the additional copies with their places, and the
contribution's lists, to the live card (`newly_listed.py` decides which copies). A contribution
without remaining copies is retired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, KeyPart
from cardsync.platform.database.locks import Lock, locked
from cardsync.stock.contributions.newly_listed import (
    Live,
    Place,
    Published,
    TakenOver,
    listed_before,
    moved,
    taken,
)
from cardsync.stock.lists.seller_lists import alone_with_lists


class PublishedContribution(Base):
    """A tenant table: the published contributions that are not retired yet. `listed` maps the id of
    each live listing of the same card to the largest quantity that the marketplace listed since
    the publication.
    """

    __tablename__ = "published_contribution"
    seller_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    published_at: Mapped[datetime]
    listed: Mapped[dict[str, int]] = mapped_column(JSONB)


_SAME_CARD: Final = """
    l.seller_id = :seller AND l.product_id = coalesce(a.adopted_by, p.product_id)
    AND l.condition IS NOT DISTINCT FROM p.condition
    AND l.printing = p.printing AND l.language = p.language
    AND l.contribution IS NULL AND NOT l.custom
"""
_NOTED: Final = f"""
    INSERT INTO published_contribution (seller_id, card_id, published_at, listed)
    SELECT :seller, p.id, CAST(:now AS timestamptz),
           coalesce(jsonb_object_agg(l.id, l.quantity) FILTER (WHERE l.id IS NOT NULL), '{{}}')
      FROM card p LEFT JOIN product a ON a.id = p.product_id LEFT JOIN card l ON {_SAME_CARD}
     WHERE p.seller_id = :seller AND p.id = ANY (CAST(:ids AS bigint[]))
     GROUP BY p.id
"""
_LISTED: Final = f"""
    SELECT p.id AS contributed, p.quantity AS copies, n.published_at, n.listed,
           l.product_id, l.condition, l.printing, l.language,
           l.id AS live, l.quantity, l.created_at, l.observed_at
      FROM published_contribution n
      JOIN card p ON p.seller_id = :seller AND p.id = n.card_id
      LEFT JOIN product a ON a.id = p.product_id JOIN card l ON {_SAME_CARD}
     WHERE n.seller_id = :seller AND p.contribution = 'published' AND NOT l.gone
"""
_STILL_PUBLISHED: Final = """
    UPDATE card SET quantity = quantity - :copies WHERE seller_id = :seller AND id = :contributed
"""
_RETIRED: Final = """
    WITH noted AS (
        DELETE FROM published_contribution
         WHERE seller_id = :seller AND card_id = ANY (CAST(:ids AS bigint[]))
    )
    UPDATE card SET contribution = 'retired', gone = true, quantity = 0
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
"""
_LISTS: Final = """
    INSERT INTO card_list_entry (seller_id, list_id, card_id, added_at)
    SELECT e.seller_id, e.list_id, pair.live, min(e.added_at)
      FROM card_list_entry e
      JOIN unnest(CAST(:contributed AS bigint[]), CAST(:live AS bigint[]))
        AS pair (contributed, live) ON e.card_id = pair.contributed
     WHERE e.seller_id = :seller GROUP BY e.seller_id, e.list_id, pair.live
    ON CONFLICT DO NOTHING
"""
_PLACES: Final = """
    SELECT card_id, box, slot, quantity FROM card_location
     WHERE seller_id = :seller AND card_id = ANY (CAST(:ids AS bigint[]))
"""
_PLACED: Final = """
    INSERT INTO card_location AS l (seller_id, card_id, box, slot, quantity)
    SELECT :seller, place.*
      FROM unnest(CAST(:card AS bigint[]), CAST(:box AS integer[]), CAST(:slot AS integer[]),
                  CAST(:quantity AS integer[])) AS place
    ON CONFLICT (seller_id, card_id, box, slot)
       DO UPDATE SET quantity = l.quantity + excluded.quantity
"""


async def note_listed(
    session: AsyncSession, seller_id: int, card_ids: Sequence[int], now: datetime
) -> None:
    """Record how many copies of these newly published cards the marketplace lists now.

    The caller holds the lock of the seller's row, so that no import ends meanwhile.
    """
    await session.execute(text(_NOTED), {"seller": seller_id, "ids": list(card_ids), "now": now})


async def promote(session: AsyncSession, seller_id: int) -> None:
    """Move contributed copies that the marketplace lists by now to the live cards. For a seller
    without published contributions, this costs one index read. The caller holds the lock of the
    seller's row.
    """
    published = "SELECT count(*) FROM published_contribution WHERE seller_id = :seller"
    if not await session.scalar(text(published), {"seller": seller_id}):
        return
    await locked(session, Lock.SHOP, seller_id)
    groups = await _listed(session, seller_id)
    takings = [one for waiting, live in groups for one in taken(waiting, live)]
    if takings:
        await _take_over(session, seller_id, groups, takings)
    await _note_most(session, seller_id, groups)


_Group = tuple[list[Published], list[Live]]


async def _listed(session: AsyncSession, seller_id: int) -> list[_Group]:
    """Return one group per card: its published contributions and its live listings."""
    groups: defaultdict[tuple[object, ...], tuple[dict[int, Published], dict[int, Live]]]
    groups = defaultdict(lambda: ({}, {}))
    for row in await session.execute(text(_LISTED), {"seller": seller_id}):
        waiting, live = groups[row.product_id, row.condition, row.printing, row.language]
        listed = {int(card): most for card, most in row.listed.items()}
        waiting[row.contributed] = Published(row.contributed, row.copies, row.published_at, listed)
        live[row.live] = Live(row.live, row.quantity, row.created_at, row.observed_at)
    return [(list(waiting.values()), list(live.values())) for waiting, live in groups.values()]


async def _take_over(
    session: AsyncSession, seller_id: int, groups: list[_Group], takings: list[TakenOver]
) -> None:
    copies = {one.id: one.quantity for waiting, _ in groups for one in waiting}
    left = {one.contributed: copies[one.contributed] for one in takings}
    for one in takings:
        left[one.contributed] -= one.copies
    retired = [contributed for contributed, quantity in left.items() if not quantity]
    await _hold_lists(session, seller_id)
    for contributed, quantity in left.items():
        if quantity:
            less = {"contributed": contributed, "copies": copies[contributed] - quantity}
            await session.execute(text(_STILL_PUBLISHED), less | {"seller": seller_id})
    await session.execute(text(_RETIRED), {"seller": seller_id, "ids": retired})
    pairs = {
        "contributed": [one.contributed for one in takings],
        "live": [one.live for one in takings],
    }
    await session.execute(text(_LISTS), pairs | {"seller": seller_id})
    found = await session.execute(text(_PLACES), {"seller": seller_id, "ids": list(left)})
    places = moved([Place(*row) for row in found], takings, set(retired))
    await _leave(session, seller_id, list(left), ("card_location",))
    columns = {name: [getattr(place, name) for place in places] for name in Place._fields}
    await session.execute(text(_PLACED), columns | {"seller": seller_id})
    await _leave(session, seller_id, retired, ("card_list_entry",))


async def _note_most(session: AsyncSession, seller_id: int, groups: list[_Group]) -> None:
    """Store the largest listed quantities, so that a copy that was counted once is not counted as a
    contributed copy later.
    """
    most = text("""
        UPDATE published_contribution SET listed = :listed
         WHERE seller_id = :seller AND card_id = :id
    """).bindparams(bindparam("listed", type_=JSONB))
    for waiting, live in groups:
        for one in waiting:
            seen = {card.id: max(listed_before(one, card), card.quantity) for card in live}
            if seen.items() - one.listed.items():
                listed = {str(id): quantity for id, quantity in (dict(one.listed) | seen).items()}
                named = {"seller": seller_id, "id": one.id, "listed": listed}
                await session.execute(most, named)


async def retire_private(session: AsyncSession, seller_id: int, member_id: int) -> None:
    """Retire the private contributions of a member who leaves, because no other member can see
    them.
    """
    await locked(session, Lock.SHOP, seller_id)
    await _hold_lists(session, seller_id)
    private = text(
        "SELECT id FROM card"
        " WHERE seller_id = :seller AND contribution = 'private' AND contributed_by = :member"
    )
    ids = list(await session.scalars(private, {"seller": seller_id, "member": member_id}))
    gone = text(
        "UPDATE card SET gone = true, quantity = 0"
        " WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))"
    )
    await session.execute(gone, {"seller": seller_id, "ids": ids})
    await _leave(session, seller_id, ids, ("card_list_entry", "card_location"))


async def _hold_lists(session: AsyncSession, seller_id: int) -> None:
    """Lock all lists, so that no other transaction adds cards to a list or makes a list until this
    transaction ends.
    """
    await alone_with_lists(session, seller_id)
    held = text("SELECT id FROM card_list WHERE seller_id = :seller ORDER BY id FOR UPDATE")
    await session.execute(held, {"seller": seller_id})


async def _leave(
    session: AsyncSession, seller_id: int, card_ids: list[int], tables: Sequence[str]
) -> None:
    for table in tables:
        theirs = (
            f"DELETE FROM {table}"
            " WHERE seller_id = :seller AND card_id = ANY (CAST(:ids AS bigint[]))"
        )
        await session.execute(text(theirs), {"seller": seller_id, "ids": card_ids})
