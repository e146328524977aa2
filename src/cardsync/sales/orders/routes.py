"""HTTP routes for the agent: four uploads of order data, which are applied after the response, and
an upload of feedback, which is applied before the response.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from litestar import Router, post
from litestar.openapi.spec import (
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    Reference,
    RequestBody,
    Schema,
)

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.value_types import HandlerOptions
from cardsync.platform.work.jobs import Work
from cardsync.sales.errors import EmptyPayload, InvalidJson
from cardsync.sales.orders import feedback
from cardsync.sales.orders.accept_orders import accept
from cardsync.sales.orders.schemas import AcceptedRows, FeedbackStored
from cardsync.web.field_words import WORDS
from cardsync.web.request import FOR_AGENTS, ApiRequest, problems, takes_json

_BODY_REFUSALS = (
    errors.BadRequest,
    errors.PayloadTooLarge,
    errors.DecompressedTooLarge,
    errors.UnsupportedMediaType,
    InvalidJson,
    errors.InvalidGzip,
    errors.InvalidPayload,
    EmptyPayload,
)
_OPTIONS: HandlerOptions = {"opt": UPLOADS, "request_max_body_size": limits.BODY_WIRE_BYTES}
_ACCEPTING: HandlerOptions = {
    **_OPTIONS,
    "status_code": 202,
    "responses": problems(*FOR_AGENTS, *_BODY_REFUSALS, errors.TooManyRows),
}
_TYPES = {
    "name": Schema(type=OpenAPIType.STRING),
    "text": Schema(type=[OpenAPIType.STRING, OpenAPIType.NULL]),
    "number": Schema(
        type=[OpenAPIType.NUMBER, OpenAPIType.STRING, OpenAPIType.NULL],
    ),
    "integer": Schema(type=[OpenAPIType.INTEGER, OpenAPIType.STRING, OpenAPIType.NULL]),
    "date": Schema(type=[OpenAPIType.STRING, OpenAPIType.NULL]),
}
# Descriptions of fields that are only in uploads, or whose description for responses does not fit
# uploads.
_WORDS = {
    "order_number": "The marketplace's number of the order",
    "buyer_name": "The buyer's name",
    "order_date": "The day, as 07/03/2026, 7/3/26, 2026-07-03 or Friday, 03 July 2026",
    "status": "As the marketplace writes it, such as Completed, Cancelled or Refunded",
    "product_amt": "What the products cost, in USD; a number or a plain decimal",
    "shipping_amt": "What the shipping cost, in USD; a number or a plain decimal",
    "total_amt": "What the buyer paid, in USD; a number or a plain decimal",
    "unit_price": "The price of one copy, in USD; a number or a plain decimal",
    "refund_type": "full or partial",
    "refund_origin": "Who began the refund, such as the marketplace or a payment processor",
    "refund_reason": "Why it was refunded",
    "refund_note": "A note on the refund",
    "shipping_method": "How the order is sent",
    "city": "The city of the buyer",
    "state": "The code of the buyer's state",
    "postal_code": "The postal code of the buyer",
    "tracking_number": "The number by which the parcel is tracked",
    "product_weight": "The weight of the products; a number or a plain decimal",
}


def _body(**fields: str) -> type[Operation]:
    """Return an operation class that describes the rows of the body. The routes read their bodies
    themselves, so the framework does not know the rows.
    """
    required = ["order_number", *(["rating"] if "rating" in fields else [])]
    said = WORDS | _WORDS
    properties: dict[str, Reference | Schema] = {
        name: replace(_TYPES[kind], description=said[name])
        for name, kind in {"order_number": "name", **fields}.items()
    }
    row = Schema(type=OpenAPIType.OBJECT, required=required, properties=properties)

    @dataclass
    class Rows(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(
                required=True,
                description="An array of rows in UTF-8; the same as `application/gzip`, compressed. At most 10 MB on the wire and 50 MB inflated.",
                content={
                    "application/json": OpenAPIMediaType(
                        schema=Schema(type=OpenAPIType.ARRAY, items=row)
                    ),
                },
            )

    return Rows


_ORDER = {
    "buyer_name": "text",
    "order_date": "date",
    "status": "text",
    "product_amt": "number",
    "shipping_amt": "number",
    "total_amt": "number",
}


async def _accept(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    kind: str,
) -> AcceptedRows:
    takes_json(request.headers)
    accepted = await accept(database, caller, store, kind, request.stream())
    return AcceptedRows("accepted", accepted.count, accepted.upload_id)


@post("/orders", operation_class=_body(**_ORDER, order_placed_at="text"), **_ACCEPTING)
async def upload_orders(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
) -> AcceptedRows:
    """Upload orders. Fields that a row doesn't have are unchanged; null clears them."""
    return await _accept(request, caller, database, store, "orders")


@post(
    "/order_refunds",
    operation_class=_body(
        **_ORDER,
        refund_type="text",
        refund_origin="text",
        refund_reason="text",
        refund_note="text",
    ),
    **_ACCEPTING,
)
async def upload_refunds(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
) -> AcceptedRows:
    """Upload refunds. A row updates its order, or creates an order."""
    return await _accept(request, caller, database, store, "refunds")


@post(
    "/order_items",
    operation_class=_body(
        product_name="text",
        product_line="text",
        condition="text",
        set_name="text",
        rarity="text",
        quantity="integer",
        sku_id="integer",
        main_photo_url="text",
        unit_price="number",
    ),
    **_ACCEPTING,
)
async def upload_items(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
) -> AcceptedRows:
    """Upload line items.

    Rows of unknown orders are skipped and counted. Rows without sku_id replace the order's earlier
    rows without sku_id.
    """
    return await _accept(request, caller, database, store, "items")


@post(
    "/orders/shipping",
    operation_class=_body(
        shipping_method="text",
        city="text",
        state="text",
        postal_code="text",
        tracking_number="text",
        item_count="integer",
        product_weight="number",
    ),
    **_ACCEPTING,
)
async def upload_shipping(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
) -> AcceptedRows:
    """Upload shipping details. Rows of unknown orders are skipped and counted."""
    return await _accept(request, caller, database, store, "shipping")


@post(
    "/order_feedbacks",
    operation_class=_body(rating="integer", comment="text"),
    status_code=200,
    responses=problems(*FOR_AGENTS, *_BODY_REFUSALS),
    **_OPTIONS,
)
async def upload_feedback(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
) -> FeedbackStored:
    """Store buyers' feedback, after all order uploads that were accepted before. Rows without an
    order or a rating from 1 to 5 are skipped.
    """
    takes_json(request.headers)
    work = Work(settings, database, store)
    return FeedbackStored("ok", await feedback.receive(work, caller, await request.body()))


router = Router(
    path="",
    route_handlers=[upload_orders, upload_refunds, upload_items, upload_shipping, upload_feedback],
    tags=["orders"],
)
