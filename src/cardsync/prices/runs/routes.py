"""HTTP routes of pricing runs: start, read, confirm or discard them; preview and backtest rules;
and explain a card's price.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

import msgspec
from litestar import Response, Router, get, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_READING_TOKEN, A_SESSION, BY_ANY, BY_ANYBODY, READS
from cardsync.access.caller import Caller
from cardsync.access.patience import BACKTEST
from cardsync.access.rate_limits.groups import WRITES
from cardsync.imports import reviews
from cardsync.platform import clock, errors
from cardsync.platform.clock import rfc3339
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.value_types import HandlerOptions, JsonObject
from cardsync.prices.files.file_now import fresh_file
from cardsync.prices.inputs.rule_json import PriceFields
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.prices.preview import asked, preview, rule_analysis
from cardsync.prices.preview.backtest import PastAsked
from cardsync.prices.preview.draft import DraftAsked
from cardsync.prices.preview.draft_on_cards import DraftOnCardsAsked, draft_on_cards
from cardsync.prices.preview.preview import PricesAsked
from cardsync.prices.preview.promotion import PromotionAsked
from cardsync.prices.preview.schemas import (
    Backtest,
    DraftOnCards,
    DraftPreview,
    PresetsShown,
    Preview,
    PromotionEffect,
)
from cardsync.prices.receipts.archive import breakdown_at
from cardsync.prices.receipts.explain import explain_card
from cardsync.prices.receipts.schemas import Explanation, ReceiptThen
from cardsync.prices.receipts.what_if import WhatIf, what_if
from cardsync.prices.runs import run_reads
from cardsync.prices.runs.as_csv import runs_as_csv
from cardsync.prices.runs.run_reads import newest_runs
from cardsync.prices.runs.schemas import (
    PriceRuns,
    PriceRunShown,
    RuleAnalysis,
    RunRequested,
    run_body,
)
from cardsync.web import as_csv
from cardsync.web.abandoned import while_there
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import taken
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    ApiRequest,
    problems,
)


@post(
    "/reprice",
    status_code=202,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.MutexHeld, errors.NeedsReview, errors.RefusedByGrant),
    dependencies=WRITING_SEEN,
)
async def request_reprice(writer: Writer) -> RunRequested:
    """Price every card again by the live rules; the run is processed in the background."""
    return RunRequested(await writes.reprice(writer))


@get("/runs", responses=problems(*BEHIND_A_KEY))
async def list_runs(caller: Caller, session: AsyncSession) -> PriceRuns:
    """List the pricing runs, the newest first."""
    return PriceRuns([run_body(run) for run in await newest_runs(session, caller)])


@get(
    "/runs/export.csv",
    responses={200: as_csv.answer("The runs, newest first"), **problems(*BEHIND_A_KEY)},
)
async def export_runs(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    """Download all pricing runs as a CSV."""
    return as_csv.file(await runs_as_csv(heavy, caller), "price_runs")


@get("/runs/{run_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_run(caller: Caller, session: AsyncSession, run_id: int) -> PriceRunShown:
    """Return one pricing run."""
    return run_body(await run_reads.run_of(session, caller, run_id))


REVIEWING = (*FOR_OWNERS, errors.NotFound, errors.NotAwaitingReview)


@post(
    "/runs/{run_id:int}/confirm",
    status_code=200,
    opt=WRITES,
    responses=problems(*REVIEWING, errors.NeedsReview, errors.RefusedByGrant),
    dependencies=WRITING_SEEN,
)
async def confirm_run(writer: Writer, run_id: int) -> PriceRunShown:
    """Confirm the prices of a run that needs review: the run and its upload continue."""
    return run_body(await reviews.settle_run(writer, run_id, "confirmed"))


@post(
    "/runs/{run_id:int}/discard",
    status_code=200,
    opt=WRITES,
    responses=problems(*REVIEWING, errors.RefusedByGrant),
    dependencies=WRITING_SEEN,
)
async def discard_run(writer: Writer, run_id: int) -> PriceRunShown:
    """Discard the prices of a run that needs review: targets stay, and no card of its upload is
    marked as gone.
    """
    return run_body(await reviews.settle_run(writer, run_id, "discarded"))


OF_A_DRAFT: HandlerOptions = {
    "status_code": 200,
    "opt": READS,
    "security": [A_READING_TOKEN],
    "responses": problems(
        *FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery, errors.NotFound
    ),
}


@post(
    "/preview",
    status_code=200,
    opt=READS,
    security=[A_READING_TOKEN],
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery),
)
async def preview_prices(
    caller: Caller,
    heavy: HeavyWork,
    data: PricesAsked | None = None,
    format: Literal["csv", "parquet"] | None = None,
) -> Response[Preview | bytes]:
    """Preview the prices that `rules` and `sales` would set in place of the live rules and sales,
    for the cards that `search` selects. Without `rules`, the live rules and the drafts are used.
    Nothing is written. `format=csv` or `parquet` downloads every card.
    """
    given = data or PricesAsked()
    if format is None:
        return Response(
            await heavy.read(asked.asked_prices, caller, Work.PRICES_ALL, clock.now(), given)
        )
    table = await heavy.read(
        asked.table_of_prices, caller, Work.PRICES_ALL, clock.now(), given, format
    )
    answer = as_csv.body(taken(table), {}, preview.FORMATS[format])
    return cast("Response[Preview | bytes]", answer)


@get(
    "/presets",
    responses=problems(*READ_BY_OWNERS, errors.InvalidQuery),
)
async def compare_presets(caller: Caller, heavy: HeavyWork) -> PresetsShown:
    """Preview the four presets on the seller's own cards, with ten examples each. Nothing is
    written.
    """
    found = await heavy.read(asked.compared_presets, caller, Work.PRICES_ALL, clock.now())
    return PresetsShown(found.presets)


@get(
    "/updates.csv",
    media_type="text/csv",
    responses=problems(*READ_BY_OWNERS),
)
async def price_file(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    """Download the price changes that the agent would get, for an import by hand; header-only if
    there are none. Nothing is marked as served.
    """
    caller.must_be_owner()
    now = clock.now()
    updates = await fresh_file(heavy, caller, now)
    name = f"price-updates-{rfc3339(now)[:10]}.csv"
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return as_csv.body(updates.body, headers)


@post("/preview/draft", **OF_A_DRAFT)
async def preview_draft_rule(
    request: ApiRequest,
    caller: Caller,
    heavy: HeavyWork,
    data: DraftAsked,
) -> DraftPreview:
    """Preview one unsaved `rule` together with the live rules. With `rule_id`, `rule` changes
    fields of that rule instead. With `sample`, the counts of many cards are estimates from one card
    in `one_in`. If the caller disconnects, the work stops.
    """
    work = heavy.read(asked.drafted_rule, caller, Work.LONG, clock.now(), data)
    found = await while_there(request.receive, work)
    return DraftPreview(
        **msgspec.structs.asdict(found.figures),
        selects=found.selects,
        governs=found.governs,
        never_matches=found.never_matches,
        shadowed_by=[rule.id for rule in found.shadowed_by],
        one_in=found.one_in,
    )


@post("/preview/sale", **OF_A_DRAFT)
async def preview_sale(
    request: ApiRequest,
    caller: Caller,
    heavy: HeavyWork,
    data: PromotionAsked,
) -> PromotionEffect:
    """Preview one unsaved `sale` as if it were active now. With `sale_id`, `sale` changes fields of
    that sale instead. Nothing is written. If the caller disconnects, the work stops.
    """
    work = heavy.read(asked.drafted_promotion, caller, Work.LONG, clock.now(), data)
    return await while_there(request.receive, work)


@post("/test", **OF_A_DRAFT)
async def draft_rule_on_cards(
    caller: Caller,
    database: Database,
    settings: Settings,
    data: DraftOnCardsAsked,
) -> DraftOnCards:
    """Compare one unsaved `rule` with the live rules on the card `marketplace_id`, or on the first
    fifty cards that `search` selects: both prices, with the steps to them. With `rule_id`, `rule`
    changes fields of that rule instead. Nothing is written.
    """
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        return await draft_on_cards(session, caller, data, clock.now())


@post(
    "/backtest",
    status_code=200,
    opt=BACKTEST | READS,
    security=[A_READING_TOKEN],
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery),
)
async def backtest_prices(caller: Caller, heavy: HeavyWork, data: PastAsked) -> Backtest:
    """Compute the prices that `rules` and `sales` (by default the live sales) would have set on
    each day from `from` to `to` that has a stored snapshot, and compare them with the copies sold.
    Each day continues from the prices of the day before. The newest sold lines are listed. Nothing
    is written.
    """
    return await heavy.read(asked.past_prices, caller, Work.PRICES_ALL, clock.now(), data)


@get("/rules/analysis", responses=problems(*READ_BY_OWNERS))
async def analyse_rules(caller: Caller, database: Database, settings: Settings) -> RuleAnalysis:
    """Analyze the rules on the present cards: which rules match no card, can't be read, or are
    shadowed by earlier rules.
    """
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        found = await rule_analysis.analyse(session, caller, clock.now())
    return RuleAnalysis(found.rules, found.unmatched)


@get(
    "/pricing/explain/{marketplace_id:int}",
    **BY_ANYBODY,
    responses=problems(*BEHIND_A_KEY, errors.NotFound),
)
async def explain_price(
    caller: Caller,
    database: Database,
    settings: Settings,
    store: Store,
    marketplace_id: int,
) -> Explanation:
    """Explain the card's price: every step with its input, its output and a sentence."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await explain_card(reads, caller.seller_id, store, marketplace_id, clock.now())


@get(
    "/receipts/{marketplace_id:int}",
    responses=problems(*BEHIND_A_KEY, errors.NotFound, errors.InvalidPayload),
)
async def receipt_then(
    caller: Caller,
    database: Database,
    store: Store,
    marketplace_id: int,
    at: str,
) -> ReceiptThen:
    """Explain the card's price at a past time, by the receipt of the last sync before it."""
    moment = clock.read_moment(at)
    if moment is None:
        raise errors.InvalidPayload("at: must be a time, as 2026-11-21T08:00:00Z")
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return await breakdown_at(session, caller, store, marketplace_id, moment)


@post(
    "/pricing/explain/{marketplace_id:int}/changed",
    status_code=200,
    opt=BY_ANY | READS,
    security=[A_SESSION, A_READING_TOKEN],
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.InvalidRule),
)
async def price_if_changed(
    caller: Caller,
    database: Database,
    settings: Settings,
    marketplace_id: int,
    data: Annotated[JsonObject, Like(PriceFields)],
) -> WhatIf:
    """Compute the card's price if the rule that governs it had these pricing fields. Nothing is
    written.
    """
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        return await what_if(session, caller, marketplace_id, data, clock.now())


router = Router(
    path="/pricing",
    route_handlers=[
        preview_prices,
        preview_draft_rule,
        preview_sale,
        draft_rule_on_cards,
        compare_presets,
        price_file,
        backtest_prices,
        request_reprice,
        list_runs,
        export_runs,
        read_run,
        confirm_run,
        discard_run,
        analyse_rules,
        receipt_then,
    ],
    tags=["pricing"],
)
explaining = Router(path="", route_handlers=[explain_price, price_if_changed], tags=["pricing"])
