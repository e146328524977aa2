"""Wraps each operation that writes prices: a function of the same name applies the loss limits and
a member's confirmation (`writer.py`). Routes and pages call these functions, never the operations
themselves; a contract test checks this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.decisions.accept_reviews import REVIEWS
from cardsync.prices.models import PriceRollback, PricingRule, PricingSale
from cardsync.prices.plans import lot_changes
from cardsync.prices.plans import write_actions as actions
from cardsync.prices.plans.asked_data import Data
from cardsync.prices.plans.permissions import who_writes
from cardsync.prices.plans.price_effect import Reach
from cardsync.prices.plans.writer import Waiting, Writer, write, write_beside
from cardsync.prices.proposals.decide_proposals import Answer, Decided, SeenProposal, decide
from cardsync.prices.rollback import prepare, rollbacks
from cardsync.prices.rollback.scope import Scope, is_newest_run
from cardsync.prices.rules import pin_many as pins
from cardsync.prices.rules import rule_sets, sale_sets, shown_changes
from cardsync.prices.runs import reprice as runs
from cardsync.sales.lots import write_lots
from cardsync.sales.lots.add_lots import NewLot
from cardsync.sales.lots.lot_csv import LotRows
from cardsync.sales.lots.models import Lot
from cardsync.sales.orders import returned_copies
from cardsync.sales.orders.returns_schemas import RestockedShown
from cardsync.stock.cards import chosen_match
from cardsync.stock.cards.bulk_selection import Selection
from cardsync.stock.lists import entries, seller_lists
from cardsync.stock.lists.schemas import CardListBody
from cardsync.stock.quick_add import publish_drafts as listings
from cardsync.stock.quick_add.models import QuickAdd

# Time for which a key may roll back the newest run, whatever the size of its moves.
_RECENT: Final = timedelta(days=1)
Body = JsonMapping
_COSTS: Final[frozenset[Data]] = frozenset({"costs"})


async def create_rule(writer: Writer, body: Body, reason: str | None = None) -> rule_sets.Saved:
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.rule_create(body)):
        return await rule_sets.create(session, caller, body, now, reason)


async def change_rule(
    writer: Writer,
    rule_id: int,
    body: Body,
    reason: str | None = None,
    shown: Body | None = None,
) -> rule_sets.Saved:
    """Change a rule; with `shown`, only if the rule still equals `shown`."""
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.rule_update(rule_id, body)):
        if shown is None:
            return await rule_sets.change(session, caller, rule_id, body, now, reason)
        return await shown_changes.change_rule(session, caller, rule_id, shown, body, now, reason)


async def remove_rule(writer: Writer, rule_id: int, reason: str | None = None) -> None:
    async with write(writer, actions.rule_delete(rule_id)):
        await rule_sets.remove(writer.session, writer.caller, rule_id, writer.now, reason)


async def reorder_rules(
    writer: Writer,
    ids: Sequence[int],
    reason: str | None = None,
    shown: Sequence[int] | None = None,
) -> list[PricingRule]:
    """Reorder the rules; with `shown`, only if their order still equals `shown`."""
    session, caller, _, now, _ = writer
    async with write(writer, actions.rule_reorder(ids)):
        if shown is None:
            return await rule_sets.reorder(session, caller, ids, now, reason)
        return await shown_changes.reorder(session, caller, shown, ids, now, reason)


async def apply_preset(writer: Writer, preset: str, reason: str | None = None) -> rule_sets.Saved:
    session, caller, _, now, _ = writer
    async with write(writer, actions.preset_apply(preset)):
        return await rule_sets.apply_preset(session, caller, preset, now, reason)


async def create_sale(writer: Writer, body: Body) -> PricingSale:
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.sale_create(body)) as written:
        sale = await sale_sets.create_sale(session, caller, body, now)
        written.source = f"sale {sale.id}"
    return sale


async def change_sale(writer: Writer, sale_id: int, body: Body) -> PricingSale:
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.sale_update(sale_id, body)) as written:
        written.source = f"sale {sale_id}"
        return await sale_sets.change_sale(session, caller, sale_id, body, now)


async def remove_sale(writer: Writer, sale_id: int) -> None:
    async with write(writer, actions.sale_delete(sale_id)) as written:
        written.source = f"sale {sale_id}"
        await sale_sets.remove_sale(writer.session, writer.caller, sale_id, writer.now)


async def change_settings(writer: Writer, body: Body) -> Account:
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.settings_update(body)):
        return await sale_sets.change_settings(session, caller, body, now)


async def change_shown_settings(writer: Writer, shown: Mapping[str, str], body: Body) -> None:
    """Change settings that have not changed since they were shown."""
    session, caller, _, now, _ = writer
    async with write(writer, actions.settings_update(body)):
        await shown_changes.change_settings(session, caller, shown, body, now)


async def pin(
    writer: Writer, marketplace_id: int, body: Body, shown_at: datetime | None = None
) -> int:
    """Pin a card; with `shown_at`, only if nobody has pinned the card since that time."""
    session, caller, _, now, _ = writer
    async with write(writer.confirmed_by(body), actions.pin_set(marketplace_id, body)):
        if shown_at is None:
            return await sale_sets.pin(session, caller, marketplace_id, body, now)
        return await shown_changes.pin(session, caller, marketplace_id, shown_at, body, now)


async def unpin(writer: Writer, marketplace_id: int) -> None:
    async with write(writer, actions.pin_remove(marketplace_id)):
        await sale_sets.unpin(writer.session, writer.caller, marketplace_id, writer.now)


async def pin_many(writer: Writer, selection: Selection) -> pins.Pinned:
    session, caller, settings, now, _ = writer
    async with write(writer, actions.pins_of("pin", selection)):
        return await pins.pin_many(session, caller, selection, now, settings)


async def unpin_many(writer: Writer, selection: Selection) -> pins.Pinned:
    session, caller, settings, now, _ = writer
    async with write(writer, actions.pins_of("unpin", selection)):
        return await pins.unpin_many(session, caller, selection, now, settings)


async def create_list(writer: Writer, name: object) -> CardListBody:
    """Create a list. A new list has no cards, but it can change prices: a query may select the
    cards that are not on it.
    """
    async with write(writer, actions.list_edit("create", name=name)):
        return await seller_lists.create_list(writer.session, writer.caller, name, writer.now)


async def rename_list(writer: Writer, list_id: int, name: object) -> CardListBody:
    session, caller, _, now, _ = writer
    async with write(writer, actions.list_edit("rename", id=list_id, name=name)):
        return await seller_lists.rename_list(session, caller, list_id, name, now)


async def delete_list(writer: Writer, list_id: int) -> None:
    async with write(writer, actions.list_edit("delete", id=list_id)):
        await seller_lists.delete_list(writer.session, writer.caller, list_id, writer.now)


async def add_cards(writer: Writer, list_id: int, selection: Selection) -> entries.Added:
    session, caller, settings, now, _ = writer
    seconds = settings.read_seconds
    async with write(writer, actions.list_edit("add", selection, id=list_id)):
        return await entries.add_cards(session, caller, list_id, selection, now, seconds)


async def remove_cards(writer: Writer, list_id: int, selection: Selection) -> int:
    session, caller, settings, now, _ = writer
    seconds = settings.read_seconds
    async with write(writer, actions.list_edit("remove", selection, id=list_id)):
        return await entries.remove_cards(session, caller, list_id, selection, now, seconds)


async def add_lots(writer: Writer, lots: Sequence[NewLot]) -> list[int]:
    async with write_beside(writer, _COSTS, lot_changes.add(lots)):
        return await write_lots.add_by_hand(writer.session, writer.caller, lots, writer.now)


async def add_file_of_lots(writer: Writer, body: bytes, rows: LotRows) -> tuple[int, bool]:
    async with write_beside(writer, _COSTS, lot_changes.add_file(body)):
        return await write_lots.add_by_file(writer.session, writer.caller, body, rows, writer.now)


async def correct_lot(writer: Writer, lot_id: int, changes: Body) -> Lot:
    async with write_beside(writer, _COSTS, lot_changes.correct(lot_id, changes)):
        return await write_lots.correct(writer.session, writer.caller, lot_id, changes, writer.now)


async def remove_lot(writer: Writer, lot_id: int) -> None:
    async with write_beside(writer, _COSTS, lot_changes.remove(lot_id)):
        await write_lots.remove(writer.session, writer.caller, lot_id, writer.now)


async def settle_match(writer: Writer, card_id: int, product_id: int) -> None:
    session, caller, _, now, _ = writer
    reach = Reach("c.id = :matched", {"matched": card_id}, anew=True)
    waiting = Waiting(card_id, f"/cards/{card_id}", reach)
    async with write_beside(writer, frozenset({"products", "market"}), waiting):
        await chosen_match.settle_match(session, caller, card_id, product_id, now)


async def restock(
    writer: Writer,
    order_id: int,
    reported: Sequence[returned_copies.PutCopies] | None,
    *,
    came_back: bool = True,
) -> RestockedShown:
    session, caller, _, now, _ = writer
    restock = returned_copies.restock
    data: frozenset[Data] = frozenset({"costs", "places"})
    async with write_beside(writer, data, Waiting(order_id, "/returns")):
        return await restock(session, caller, order_id, reported, now, came_back=came_back)


def stock_offer(writer: Writer, offer_id: int) -> AbstractAsyncContextManager[None]:
    """Run the block, which adds an offer's cards to the stock, and so adds lots."""
    return write_beside(writer, _COSTS, Waiting(offer_id, f"/buying/offers/{offer_id}"))


def _seen(writer: Writer) -> Writer:
    """Return the writer as confirmed, because a member has seen the requested prices."""
    return writer._replace(confirmed=True)


async def reprice(writer: Writer) -> int:
    """Start a run. The run sets the prices that the next sync would set anyway, so it is not
    measured.
    """
    action = {"type": "pricing.reprice", "op": "start"}
    async with write(_seen(writer), action, weighed=False):
        return await runs.request(writer.session, writer.caller, writer.now)


async def request_rollback(writer: Writer, scope: Scope, cards: int) -> tuple[PriceRollback, bool]:
    session, caller, settings, now, _ = writer
    lasts = timedelta(seconds=settings.rollback_seconds)
    action = {"type": "pricing.rollback", "op": "request", "scope": scope}
    newest = caller.identity.credential == "key" and await is_newest_run(
        session, caller.seller_id, scope, now - _RECENT
    )
    async with write(_seen(writer), action, weighed=not newest) as written:
        rollback, is_new = await prepare.request(session, caller, scope, cards, now, lasts)
        written.source = f"rollback {rollback.id}" if is_new else None
    return rollback, is_new


async def cancel_rollback(
    session: AsyncSession,
    caller: Caller,
    rollback_id: int,
    now: datetime,
) -> PriceRollback:
    """Cancel a rollback, which moves no price. Raises the errors of `rollbacks.cancel`, and
    RefusedByGrant.
    """
    await who_writes(session, caller, "pricing.change_set")
    return await rollbacks.cancel(session, caller, rollback_id, now)


async def publish_listings(writer: Writer, ids: Sequence[int]) -> tuple[list[QuickAdd], int | None]:
    action = {"type": "quick_add.publish", "op": "publish", "ids": list(ids)}
    async with write(_seen(writer), action):
        return await listings.publish(writer.session, writer.caller, ids, writer.now)


async def decide_reviews(
    writer: Writer,
    asked: Sequence[SeenProposal],
    answer: Answer,
    *,
    seen: bool = True,
) -> Decided:
    """Decide price proposals. A member who has not seen the prices must confirm a large change."""
    numbers = [one.key for one in asked]
    reach = Reach("c.marketplace_id = ANY (CAST(:reviewed AS bigint[]))", {"reviewed": numbers})
    session, caller, _, now, _ = writer
    waiting = Waiting(numbers[0], "/pricing/reviews", reach)
    async with write(_seen(writer) if seen else writer, waiting):
        return await decide(session, caller, REVIEWS, asked, answer, now)
