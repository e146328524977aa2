"""HTTP routes of lots, profit, and the fee audit."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import QueryParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_TOKEN, BY_ANY
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import HandlerOptions
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.sales.limits import LOTS_AT_ONCE
from cardsync.sales.lots import fee_audit, profit, read_lots
from cardsync.sales.lots.hand_lot import LotByHand, LotCorrection, changed_fields, hand_lots
from cardsync.sales.lots.lot_csv import read_lots as read_file
from cardsync.sales.lots.payment_csv import read_payments
from cardsync.sales.lots.schemas import (
    CardWithoutCost,
    CostOfCard,
    FeeAudit,
    FileAdded,
    LineProfit,
    LotBody,
    LotPage,
    LotsAdded,
    PaymentsAdded,
    ProfitBy,
    ProfitSummary,
    profit_as_csv,
)
from cardsync.sales.reports import read_report
from cardsync.web.as_csv import answer, body, file, headers
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import (
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    ApiRequest,
    Deleted,
    problems,
    provide_caller,
    reading,
)

# Tokens may only read lots, because the cost of cards sets price floors.
BY_TOKENS_TOO: HandlerOptions = {"opt": BY_ANY, "security": [A_TOKEN]}
First = Annotated[
    date | None,
    QueryParameter(name="from", description="The first day; by default thirty days are read"),
]
Last = Annotated[date | None, QueryParameter(name="to", description="The last day, included")]


class LotsByHand(msgspec.Struct):
    lots: Annotated[list[LotByHand], msgspec.Meta(min_length=1, max_length=LOTS_AT_ONCE)]


class TextOfFile(msgspec.Struct):
    """`csv` is the text of the file."""

    csv: Annotated[str, msgspec.Meta(max_length=limits.LOT_FILE_CHARACTERS)]
    """The text of the file"""


@get("/lots", **BY_TOKENS_TOO, responses=problems(*READ_BY_OWNERS))
async def list_lots(
    caller: Caller,
    session: AsyncSession,
    marketplace_id: Annotated[int | None, QueryParameter(ge=1, le=limits.LARGEST_ID)] = None,
    after: Annotated[int | None, QueryParameter(ge=1, le=limits.LARGEST_ID)] = None,
) -> LotPage:
    """Lots, the newest first, of one card or of all."""
    return await read_lots.lots(session, caller, marketplace_id, after, limits.LOTS_PER_PAGE)


@get(
    "/lots.csv", **BY_TOKENS_TOO, responses={200: answer("Every lot"), **problems(*READ_BY_OWNERS)}
)
async def download_lots(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    """Every lot as a CSV, in a form that the import of lots reads."""
    return file(await read_lots.lots_as_csv(heavy, caller), "lots")


@post(
    "/lots",
    opt=WRITES,
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.NeedsReview),
    dependencies=WRITING_SEEN,
)
async def add_lots(writer: Writer, data: LotsByHand) -> LotsAdded:
    """Add lots, all or none."""
    lots = hand_lots(writer.caller, data.lots, writer.now)
    return LotsAdded(await writes.add_lots(writer, lots))


@post(
    "/lots/file",
    opt=WRITES,
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.NeedsReview),
    dependencies=WRITING_SEEN,
)
async def import_lots(writer: Writer, data: TextOfFile) -> FileAdded:
    """Add the lots of a CSV with the columns TCGplayer Id, Quantity, Cost and Bought on. Unreadable
    rows are skipped and returned in `rejected`. A file that was added before adds nothing.
    """
    file_body = data.csv.encode()
    rows = read_file(file_body, writer.caller.today(writer.now))
    lots, known = await writes.add_file_of_lots(writer, file_body, rows)
    return FileAdded(lots, known, rows.rejected, rows.read_as)


@patch(
    "/lots/{lot_id:int}",
    opt=WRITES,
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.NeedsReview),
    dependencies=WRITING_SEEN,
)
async def correct_lot(writer: Writer, lot_id: int, data: LotCorrection) -> LotBody:
    """Correct a lot. If its quantity or day changes, the card's sold copies are assigned to lots
    again.
    """
    changes = changed_fields(writer.caller, data, writer.now)
    return struct_of(LotBody, await writes.correct_lot(writer, lot_id, changes))


@delete(
    "/lots/{lot_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.NeedsReview),
    dependencies=WRITING_SEEN,
)
async def remove_lot(writer: Writer, lot_id: int) -> Deleted:
    """Remove a lot. The card's sold copies are assigned to its other lots."""
    await writes.remove_lot(writer, lot_id)
    return Deleted(True)


@get(
    "/costs/{marketplace_id:int}",
    **BY_TOKENS_TOO,
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def read_cost(caller: Caller, session: AsyncSession, marketplace_id: int) -> CostOfCard:
    """The cost of a card's copies that remain in lots."""
    return await read_lots.cost_of(session, caller, marketplace_id)


READING = problems(*READ_BY_OWNERS, errors.InvalidPayload)


@get("/profit", **BY_TOKENS_TOO, responses=READING)
async def read_profit(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
    by: ProfitBy = "day",
) -> ProfitSummary:
    """The revenue of orders less fees, postage and the cost of their copies, by day, week, month,
    game or pricing rule. With `by=rule`: the profit of the copies that each buy rule bought. Copies
    of unknown cost have no profit: `costed` of the `pieces` have a known cost.
    """
    return await read_report(request, profit.profit, first, last, by)


@get("/profit.csv", **BY_TOKENS_TOO, responses={200: answer("The rows"), **READING})
async def download_profit(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
    by: ProfitBy = "day",
) -> Response[bytes]:
    """The rows of the profit report as a CSV."""
    found = await read_report(request, profit.profit, first, last, by)
    return body(profit_as_csv(found), headers("profit"))


class OrderProfit(msgspec.Struct):
    lines: list[LineProfit]
    """The profit of each item"""


@get(
    "/profit/orders/{order_id:int}",
    **BY_TOKENS_TOO,
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def read_order_profit(request: ApiRequest, order_id: int) -> OrderProfit:
    """The profit of each line of an order; an unknown or cancelled order has none."""
    async with reading(request) as reads:
        return OrderProfit(await profit.of_order(reads, provide_caller(request), order_id))


class CardsWithoutCost(msgspec.Struct):
    cards: list[CardWithoutCost]
    """The cards, highest received amount first"""


@get("/profit/without_cost", **BY_TOKENS_TOO, responses=READING)
async def read_without_cost(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
) -> CardsWithoutCost:
    """Cards with sold copies of unknown cost. The profit does not include the amounts received for
    these copies.
    """
    return CardsWithoutCost(await read_report(request, profit.without_cost, first, last))


@post(
    "/payments",
    opt=WRITES,
    status_code=200,
    responses=problems(*FOR_OWNERS, *WITH_JSON_BODY),
)
async def import_payments(
    caller: Caller,
    session: AsyncSession,
    data: TextOfFile,
) -> PaymentsAdded:
    """Store the fees of a payments report, a CSV with order numbers and fees. In the profit, they
    replace the expected fees.
    """
    payments = read_payments(data.csv.encode())
    return await fee_audit.add_payments(session, caller, payments, clock.now())


@get("/fees", **BY_TOKENS_TOO, responses=READING)
async def read_fees(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
) -> FeeAudit:
    """The charged and the expected fees by month, and each order whose fees differ by more than
    0.02.
    """
    return await read_report(request, fee_audit.audit, first, last)


router = Router(
    path="/buying",
    route_handlers=[
        list_lots, download_lots, add_lots, import_lots, correct_lot, remove_lot, read_cost,
        read_profit, download_profit, read_order_profit, read_without_cost, import_payments,
        read_fees,
    ],
    tags=["lots"],
)  # fmt: skip
