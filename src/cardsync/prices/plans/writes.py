"""Wraps each operation that writes prices: a function of the same name applies the loss limits and
a member's confirmation (`writer.py`). Routes and pages call these functions, never the operations
themselves; a contract test checks this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
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

T = TypeVar("T")
# Time for which a key may roll back the newest run, whatever the size of its moves.
_RECENT: Final = timedelta(days=1)
Body = Mapping[str, Any]
_COSTS: Final[frozenset[Data]] = frozenset({"costs"})


async def create_rule(writer: Writer, body: Body, reason: str | None = None) -> rule_sets.Saved:
    session, caller, _, now, _ = writer
    do = partial(rule_sets.create, session, caller, body, now, reason)
    return await write(writer.confirmed_by(body), actions.rule_create(body), do)


async def change_rule(
    writer: Writer,
    rule_id: int,
    body: Body,
    reason: str | None = None,
    shown: Body | None = None,
) -> rule_sets.Saved:
    """Change a rule; with `shown`, only if the rule still equals `shown`."""
    session, caller, _, now, _ = writer
    do = partial(rule_sets.change, session, caller, rule_id, body, now, reason)
    if shown is not None:
        do = partial(shown_changes.change_rule, session, caller, rule_id, shown, body, now, reason)
    return await write(writer.confirmed_by(body), actions.rule_update(rule_id, body), do)


async def remove_rule(writer: Writer, rule_id: int, reason: str | None = None) -> None:
    session, caller, _, now, _ = writer
    do = partial(rule_sets.remove, session, caller, rule_id, now, reason)
    await write(writer, actions.rule_delete(rule_id), do)


async def reorder_rules(
    writer: Writer,
    ids: Sequence[int],
    reason: str | None = None,
    shown: Sequence[int] | None = None,
) -> list[PricingRule]:
    """Reorder the rules; with `shown`, only if their order still equals `shown`."""
    session, caller, _, now, _ = writer
    do = partial(rule_sets.reorder, session, caller, ids, now, reason)
    if shown is not None:
        do = partial(shown_changes.reorder, session, caller, shown, ids, now, reason)
    return await write(writer, actions.rule_reorder(ids), do)


async def apply_preset(writer: Writer, preset: str, reason: str | None = None) -> rule_sets.Saved:
    session, caller, _, now, _ = writer
    do = partial(rule_sets.apply_preset, session, caller, preset, now, reason)
    return await write(writer, actions.preset_apply(preset), do)


def _of_sale(sale: PricingSale) -> str:
    return f"sale {sale.id}"


async def create_sale(writer: Writer, body: Body) -> PricingSale:
    do = partial(sale_sets.create_sale, writer.session, writer.caller, body, writer.now)
    return await write(writer.confirmed_by(body), actions.sale_create(body), do, _of_sale)


async def change_sale(writer: Writer, sale_id: int, body: Body) -> PricingSale:
    do = partial(sale_sets.change_sale, writer.session, writer.caller, sale_id, body, writer.now)
    return await write(writer.confirmed_by(body), actions.sale_update(sale_id, body), do, _of_sale)


async def remove_sale(writer: Writer, sale_id: int) -> None:
    do = partial(sale_sets.remove_sale, writer.session, writer.caller, sale_id, writer.now)
    await write(writer, actions.sale_delete(sale_id), do, lambda _: f"sale {sale_id}")


async def change_settings(writer: Writer, body: Body) -> Account:
    do = partial(sale_sets.change_settings, writer.session, writer.caller, body, writer.now)
    return await write(writer.confirmed_by(body), actions.settings_update(body), do)


async def change_shown_settings(writer: Writer, shown: Mapping[str, str], body: Body) -> None:
    """Change settings that have not changed since they were shown."""
    session, caller, _, now, _ = writer
    do = partial(shown_changes.change_settings, session, caller, shown, body, now)
    await write(writer, actions.settings_update(body), do)


async def pin(
    writer: Writer, marketplace_id: int, body: Body, shown_at: datetime | None = None
) -> int:
    """Pin a card; with `shown_at`, only if nobody has pinned the card since that time."""
    session, caller, _, now, _ = writer
    do = partial(sale_sets.pin, session, caller, marketplace_id, body, now)
    if shown_at is not None:
        do = partial(shown_changes.pin, session, caller, marketplace_id, shown_at, body, now)
    return await write(writer.confirmed_by(body), actions.pin_set(marketplace_id, body), do)


async def unpin(writer: Writer, marketplace_id: int) -> None:
    do = partial(sale_sets.unpin, writer.session, writer.caller, marketplace_id, writer.now)
    await write(writer, actions.pin_remove(marketplace_id), do)


async def pin_many(writer: Writer, selection: Selection) -> pins.Pinned:
    session, caller, settings, now, _ = writer
    do = partial(pins.pin_many, session, caller, selection, now, settings)
    return await write(writer, actions.pins_of("pin", selection), do)


async def unpin_many(writer: Writer, selection: Selection) -> pins.Pinned:
    session, caller, settings, now, _ = writer
    do = partial(pins.unpin_many, session, caller, selection, now, settings)
    return await write(writer, actions.pins_of("unpin", selection), do)


async def create_list(writer: Writer, name: object) -> CardListBody:
    """Create a list. A new list has no cards, but it can change prices: a query may select the
    cards that are not on it.
    """
    do = partial(seller_lists.create_list, writer.session, writer.caller, name, writer.now)
    return await write(writer, actions.list_edit("create", name=name), do)


async def rename_list(writer: Writer, list_id: int, name: object) -> CardListBody:
    do = partial(seller_lists.rename_list, writer.session, writer.caller, list_id, name, writer.now)
    return await write(writer, actions.list_edit("rename", id=list_id, name=name), do)


async def delete_list(writer: Writer, list_id: int) -> None:
    do = partial(seller_lists.delete_list, writer.session, writer.caller, list_id, writer.now)
    await write(writer, actions.list_edit("delete", id=list_id), do)


async def add_cards(writer: Writer, list_id: int, selection: Selection) -> entries.Added:
    session, caller, settings, now, _ = writer
    seconds = settings.read_seconds
    do = partial(entries.add_cards, session, caller, list_id, selection, now, seconds)
    return await write(writer, actions.list_edit("add", selection, id=list_id), do)


async def remove_cards(writer: Writer, list_id: int, selection: Selection) -> int:
    session, caller, settings, now, _ = writer
    seconds = settings.read_seconds
    do = partial(entries.remove_cards, session, caller, list_id, selection, now, seconds)
    return await write(writer, actions.list_edit("remove", selection, id=list_id), do)


async def add_lots(writer: Writer, lots: Sequence[NewLot]) -> list[int]:
    do = partial(write_lots.add_by_hand, writer.session, writer.caller, lots, writer.now)
    return await write_beside(writer, _COSTS, lot_changes.add(lots), do)


async def add_file_of_lots(writer: Writer, body: bytes, rows: LotRows) -> tuple[int, bool]:
    do = partial(write_lots.add_by_file, writer.session, writer.caller, body, rows, writer.now)
    return await write_beside(writer, _COSTS, lot_changes.add_file(body), do)


async def correct_lot(writer: Writer, lot_id: int, changes: Body) -> Lot:
    do = partial(write_lots.correct, writer.session, writer.caller, lot_id, changes, writer.now)
    return await write_beside(writer, _COSTS, lot_changes.correct(lot_id, changes), do)


async def remove_lot(writer: Writer, lot_id: int) -> None:
    do = partial(write_lots.remove, writer.session, writer.caller, lot_id, writer.now)
    await write_beside(writer, _COSTS, lot_changes.remove(lot_id), do)


async def settle_match(writer: Writer, card_id: int, product_id: int) -> None:
    session, caller, _, now, _ = writer
    do = partial(chosen_match.settle_match, session, caller, card_id, product_id, now)
    reach = Reach("c.id = :matched", {"matched": card_id}, anew=True)
    waiting = Waiting(card_id, f"/cards/{card_id}", reach)
    await write_beside(writer, frozenset({"products", "market"}), waiting, do)


async def restock(
    writer: Writer,
    order_id: int,
    reported: Sequence[returned_copies.PutCopies] | None,
    *,
    came_back: bool = True,
) -> RestockedShown:
    session, caller, _, now, _ = writer
    restock = returned_copies.restock
    do = partial(restock, session, caller, order_id, reported, now, came_back=came_back)
    data: frozenset[Data] = frozenset({"costs", "places"})
    return await write_beside(writer, data, Waiting(order_id, "/returns"), do)


async def stock_offer(writer: Writer, offer_id: int, do: Callable[[], Awaitable[T]]) -> T:
    """Add an offer's cards to the stock by `do`, which adds lots."""
    waiting = Waiting(offer_id, f"/buying/offers/{offer_id}")
    return await write_beside(writer, _COSTS, waiting, do)


def _seen(writer: Writer) -> Writer:
    """Return the writer as confirmed, because a member has seen the requested prices."""
    return writer._replace(confirmed=True)


async def reprice(writer: Writer) -> int:
    """Start a run. The run sets the prices that the next sync would set anyway, so it is not
    measured.
    """
    do = partial(runs.request, writer.session, writer.caller, writer.now)
    action = {"type": "pricing.reprice", "op": "start"}
    return await write(_seen(writer), action, do, weighed=False)


async def request_rollback(writer: Writer, scope: Scope, cards: int) -> tuple[PriceRollback, bool]:
    session, caller, settings, now, _ = writer
    lasts = timedelta(seconds=settings.rollback_seconds)
    do = partial(prepare.request, session, caller, scope, cards, now, lasts)
    action = {"type": "pricing.rollback", "op": "request", "scope": scope}
    newest = caller.identity.credential == "key" and await is_newest_run(
        session, caller.seller_id, scope, now - _RECENT
    )
    return await write(_seen(writer), action, do, _of_rollback, weighed=not newest)


def _of_rollback(asked: tuple[PriceRollback, bool]) -> str | None:
    rollback, is_new = asked
    return f"rollback {rollback.id}" if is_new else None


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
    do = partial(listings.publish, writer.session, writer.caller, ids, writer.now)
    action = {"type": "quick_add.publish", "op": "publish", "ids": list(ids)}
    return await write(_seen(writer), action, do)


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
    do = partial(decide, session, caller, REVIEWS, asked, answer, now)
    waiting = Waiting(numbers[0], "/pricing/reviews", reach)
    return await write(_seen(writer) if seen else writer, waiting, do)
