"""Backtests rules on stored days: the prices of each day, the sales of these days and a summary.

The backtest prices the stored snapshots of the span in the order of time
(`preview/simulated_shop.py`), and holds only one of them in memory. It writes nothing and reads one
snapshot of the database, so it disturbs no run and needs no lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.catalog.market.of_cards import KEYS, NO_MARKET
from cardsync.catalog.market.of_past import past_market
from cardsync.platform import clock, errors
from cardsync.platform.kit.struct_rows import struct_of_values
from cardsync.platform.money import dollars
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import Effect, worth
from cardsync.prices.inputs.cards_to_price import Choices, choices, games_with_rules
from cardsync.prices.inputs.market_inputs import INPUTS
from cardsync.prices.inputs.price_history import unsold
from cardsync.prices.inputs.rule_json import RuleBody, SaleBody
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.limits import BACKTEST_SNAPSHOTS, BACKTEST_SOLD
from cardsync.prices.preview import snapshots
from cardsync.prices.preview.preview import asked
from cardsync.prices.preview.schemas import Backtest, BacktestDay, BacktestSummary, SoldLine
from cardsync.prices.preview.simulated_shop import Shop
from cardsync.prices.preview.snapshots import Snapshot
from cardsync.prices.standing import decided_of


class PastAsked(msgspec.Struct):
    """The rules of a backtest, and its first and last day or time, both included."""

    since: str = msgspec.field(name="from")
    until: str = msgspec.field(name="to")
    rules: list[RuleBody]
    """The rules to test"""
    sales: list[SaleBody] | None = None


@dataclass
class Findings:
    """The findings of the snapshots up to now. Amounts are in ten-thousandths of a dollar."""

    zone: str
    days: dict[date, BacktestDay] = field(default_factory=dict)
    sold: list[pl.DataFrame] = field(default_factory=list)
    snapshots: int = 0
    changed: int = 0
    before: int = 0
    after: int = 0
    blocked: dict[str, int] = field(default_factory=dict)

    def add(self, at: datetime, effect: Effect) -> None:
        """Add a snapshot. A day reports the stock of its last snapshot, and the changes of all its
        snapshots.
        """
        counted = effect.counts
        before, self.after = effect.worth
        if not self.snapshots:
            self.before = before
        self.snapshots = self.snapshots + 1
        self.changed = self.changed + counted.changed
        self.blocked = counted.blocked
        day = at.astimezone(ZoneInfo(self.zone)).date()
        earlier = self.days[day].changed if day in self.days else 0
        self.days[day] = BacktestDay(
            day.isoformat(), counted.cards, dollars(self.after), earlier + counted.changed
        )


async def backtest(
    session: AsyncSession,
    caller: Caller,
    given: PastAsked,
    now: datetime,
    most: timedelta,
) -> Backtest:
    """Price the stored snapshots of a span by the given rules. Raise InvalidRule, InvalidQuery,
    InvalidPayload.
    """
    caller.must_be_owner()
    seller_id = caller.seller_id
    ends = clock.monotonic() + most.total_seconds()
    account = await session.get_one(Account, seller_id)
    since, until = _span(given, account.time_zone)
    live = await run_of(session, account, now)
    run = await asked(session, seller_id, given.rules, given.sales, live)
    # A backtest prices past days even if the seller's pricing is paused now.
    run = replace(run, seller=replace(run.seller, automatic_pricing_paused=False))
    kept = await snapshots.stored(session, seller_id, since, until, BACKTEST_SNAPSHOTS + 1)
    if len(kept) > BACKTEST_SNAPSHOTS:
        raise errors.InvalidPayload(
            f"from, to: more than {BACKTEST_SNAPSHOTS} snapshots are in that range; choose"
            " fewer days"
        )
    sold = await snapshots.sold_lines(session, seller_id, since, until)
    findings = Findings(account.time_zone)
    earlier = sold
    if kept:
        await _price_days(
            session,
            account,
            run,
            kept,
            sold,
            findings,
            lambda: clock.monotonic() > ends,
        )
        earlier = sold.filter(pl.col("sold_at") < kept[0].at)
    return _answer(
        findings,
        pl.concat([earlier.with_columns(asked_price=pl.lit(None, pl.Int64)), *findings.sold]),
    )


def _span(given: PastAsked, zone: str) -> tuple[datetime, datetime]:
    """Read a span of days in the seller's time zone, with both days included, or a span of
    moments.
    """
    since = _moment(given.since, "from", zone)
    until = _moment(given.until, "to", zone)
    if since > until:
        raise errors.InvalidPayload("from: must not be after to")
    return since, until


def _moment(value: str, name: str, zone: str) -> datetime:
    refused = errors.InvalidPayload(
        f"{name}: must be a day like 2026-11-21, or a time like 2026-11-21T08:00:00Z"
    )
    try:
        day = date.fromisoformat(value) if len(value) == 10 else None
        if day is not None:
            begins = datetime.combine(
                day + timedelta(days=name == "to"),
                datetime.min.time(),
                ZoneInfo(zone),
            )
            return begins - timedelta(microseconds=name == "to")
    except (ValueError, OverflowError):
        raise refused from None
    moment = clock.read_moment(value)
    if moment is None:
        raise refused
    return moment


async def _price_days(
    session: AsyncSession,
    account: Account,
    asked: Run,
    kept: Sequence[Snapshot],
    sold: pl.DataFrame,
    findings: Findings,
    is_late: Callable[[], bool],
) -> None:
    seller_id, last = account.seller_id, kept[-1].at
    # The current pins and costs are used for every day.
    decided = await decided_of(session, seller_id, asked.now, reviewed=False, costed=asked.costed)
    decided = decided.drop("approved_price")
    await snapshots.gather(session, account, replace(asked, now=kept[0].at), last)
    market = await past_market(session, seller_id, last) if asked.reads_market else None
    shop: Shop | None = None
    chosen: Choices | None = None
    games: list[str] | None = None
    for place, snapshot in enumerate(kept):
        if is_late():
            raise errors.InvalidPayload(
                f"from, to: {place} of {len(kept)} snapshots took too long; choose fewer days"
            )
        chosen, anew = await _choices_at(session, seller_id, asked, chosen, snapshot.at)
        if anew:
            # The games of the current cards are used for every day.
            games = await games_with_rules(session, account, chosen)
        # A query that depends on the time may select other cards even if no card has changed.
        after = None if anew or chosen.timed else kept[place - 1].at
        known = NO_MARKET if market is None else market.known
        changed = await snapshots.changed(session, account, chosen, after, known)
        if shop is None:
            shop = await _shop_at(session, account, chosen.run, changed, snapshot.at)
        else:
            await asyncio.to_thread(shop.advance, changed, snapshot.at)
        seen: pl.DataFrame | None = None
        if market is not None:
            found = await market.evidence(shop.stocked.select(KEYS), snapshot.at)
            seen = found.select(INPUTS)
        following = kept[place + 1].at if place + 1 < len(kept) else None
        await asyncio.to_thread(
            _price,
            shop,
            snapshot,
            account,
            chosen.run,
            decided,
            findings,
            _between(sold, snapshot.at, following),
            games,
            seen,
        )


async def _choices_at(
    session: AsyncSession,
    seller_id: int,
    asked: Run,
    earlier: Choices | None,
    at: datetime,
) -> tuple[Choices, bool]:
    """Return the run at a time with its compiled queries, and whether the queries were compiled
    again: for the first time, and whenever a sale has started or ended since the earlier time.
    """
    run = replace(asked, now=at)
    if earlier is not None and earlier.run.active_sales == run.active_sales:
        return replace(earlier, run=replace(earlier.run, now=at)), False
    return await choices(session, seller_id, run), True


async def _shop_at(
    session: AsyncSession,
    account: Account,
    run: Run,
    cards: pl.DataFrame,
    at: datetime,
) -> Shop:
    """Return the shop as it was at its first snapshot."""
    past = await unsold(session, account.seller_id, run, None, until=at)
    shop = Shop(cards, at, account.time_zone, past)
    for before in await snapshots.covered_before(session, account.seller_id, at):
        shop.covered(before.at, _numbers(account, before.lines))
    return shop


def _between(sold: pl.DataFrame, since: datetime, until: datetime | None) -> pl.DataFrame:
    lines = sold.filter(pl.col("sold_at") >= since)
    return lines if until is None else lines.filter(pl.col("sold_at") < until)


def _price(
    shop: Shop,
    snapshot: Snapshot,
    account: Account,
    run: Run,
    decided: pl.DataFrame,
    findings: Findings,
    sold: pl.DataFrame,
    games: list[str] | None,
    evidence: pl.DataFrame | None,
) -> None:
    shop.covered(snapshot.at, _numbers(account, snapshot.lines))
    findings.add(snapshot.at, shop.price(run, decided, _numbers(account, games), evidence))
    findings.sold.append(shop.sell(sold))


def _numbers(account: Account, lines: Sequence[str] | None) -> list[int] | None:
    """Return the numbers that the account's product lines have in a snapshot."""
    if lines is None:
        return None
    known = account.product_lines
    return [known.index(line) + 1 for line in lines if line in known]


def _answer(findings: Findings, sold: pl.DataFrame) -> Backtest:
    compared = sold.filter(pl.col("sold_price").is_not_null() & pl.col("asked_price").is_not_null())
    real, would = worth(compared, "sold_price", "asked_price")
    known = compared.height > 0 or not sold.height
    newest = sold.sort("sold_at", descending=True, maintain_order=True).head(BACKTEST_SOLD)
    return Backtest(
        list(findings.days.values()),
        [
            struct_of_values(SoldLine, row)
            for row in newest.select(SoldLine.__struct_fields__).iter_rows()
        ],
        BacktestSummary(
            snapshots=findings.snapshots,
            changed=findings.changed,
            blocked=findings.blocked,
            listed_value_before=dollars(findings.before),
            listed_value_after=dollars(findings.after),
            sold=sold.height,
            compared=compared.height,
            without_sold_price=sold["sold_price"].null_count(),
            without_asked_price=sold["asked_price"].null_count(),
            sold_value=dollars(real) if known else None,
            asked_value=dollars(would) if known else None,
        ),
    )
