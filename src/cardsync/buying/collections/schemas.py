"""The JSON structs of collections: a file, its rows, their candidates, and their value."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, get_args

import msgspec

from cardsync.access.caller import BuyerText, Caller
from cardsync.buying.collections.collection_cells import RejectedRow
from cardsync.buying.collections.file_formats import LABELS
from cardsync.buying.collections.models import Collection, CollectionState
from cardsync.buying.engine.wanted_lines import Reason
from cardsync.buying.rules.price_schemas import OtherFinish, PriceTakenShown
from cardsync.platform.kit.struct_rows import Column, Reads, struct_of

WhichRows = Literal["all", "waiting", "left_out"]
ConditionCode = Literal["NM", "LP", "MP", "HP", "DMG"]
CONDITIONS: Final[tuple[ConditionCode, ...]] = get_args(ConditionCode)
MOST_CHOICES = 200


_Label = Annotated[str, Column("format"), Reads(lambda form: LABELS.get(form, ""))]


class CollectionShown(msgspec.Struct):
    """`rows` are the file's cards, of which `read` are matched so far. `waiting` wait for a choice.
    `name` and `samples` are empty for a caller who may not see buyers.

    In the state `needs_columns` no format has the file's header: `header` has its columns,
    `samples` some rows, and `columns` a proposed meaning of each column.
    """

    id: int
    name: BuyerText
    state: CollectionState
    format: str
    format_label: _Label
    read_as: str
    """How the file is written, where that is not the usual way: separated by ;"""
    rows: int
    """The cards of the file"""
    read: int
    copies: int
    matched: int
    waiting: int
    left_out: int
    empty: int
    """Rows with a quantity of zero"""
    rejected_count: int
    """The rows that could not be read as a card; they wait with their text"""
    error: str | None
    received_at: datetime
    finished_at: datetime | None
    created_by: str


class LeftOut(msgspec.Struct):
    """Rows that the file itself leaves out."""

    reason: str
    """Why, such as a proxy"""
    rows: int


class CollectionDetail(CollectionShown):
    header: list[str]
    samples: list[list[str]]
    columns: dict[str, str]
    """The file's own columns, by ours"""
    rejected: list[RejectedRow]
    left_out_for: list[LeftOut]
    """The rows left out for what the file says of them, by the reason"""


class CollectionList(msgspec.Struct):
    collections: list[CollectionShown]
    total: int
    page: int
    per_page: int


class CandidateShown(msgspec.Struct):
    product_id: int
    product_name: str
    set_name: str
    number: str | None
    rarity: str | None
    finish: str | None
    language: str


class RowShown(msgspec.Struct):
    """`row` is the row's own number: the line of the file, or a number after the last line if a
    line is two cards. `name`, `set_name`, `set_code` and `number` are the file's own; the others
    are the product's, if one was found.
    """

    row: int
    """The row's own number, by which it is chosen"""
    copies: int
    name: str
    """The card's name in the file"""
    set_name: str
    set_code: str
    number: str
    finish: str
    condition: str
    language: str
    product_id: int | None
    product_name: str | None
    product_set: str | None
    certainty: str | None
    how: str | None
    left_out: bool
    """It is left out of the offer"""
    line: int
    """The line of the file"""
    reason: str
    """Why it waits or is left out, where the file says it; empty if it was read whole"""
    text: str | None
    """The row as the file has it, where it was not read whole"""
    finish_said: bool
    """The file says the finish; otherwise it is that of the product, once one was found"""


class RowPage(msgspec.Struct):
    rows: list[RowShown]
    """The rows of the page"""
    total: int
    page: int
    per_page: int


class WaitingRow(RowShown):
    """A row that waits for a choice, and its candidates, the nearest first."""

    candidates: list[CandidateShown]
    # Rows that the same choice settles, this one included.
    alike: int
    """The rows that the same choice settles, with this one"""


class WaitingRows(msgspec.Struct):
    rows: list[WaitingRow]
    """The rows that wait"""
    waiting: int


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """Without a product the row is left out. The other fields correct the file; an unknown
    condition without a choice counts as Damaged.
    """

    row: Annotated[int, msgspec.Meta(ge=1)]
    """The number of the row"""
    product_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    condition: ConditionCode | None = None
    """The condition in place of the file's"""
    finish: Annotated[str, msgspec.Meta(min_length=1, max_length=60)] | None = None
    """The printing in place of the file's"""
    copies: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    """The copies in place of the file's"""


class Choices(msgspec.Struct, forbid_unknown_fields=True):
    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=MOST_CHOICES)]
    """At most 200 choices"""


class Chosen(msgspec.Struct):
    """`settled` counts the rows that the choices settled. `waiting` counts those that still wait."""

    settled: int
    """The rows that the choices settled"""
    waiting: int


class NamedColumns(msgspec.Struct, forbid_unknown_fields=True):
    """The file's own columns, by ours: at least `name`."""

    columns: dict[str, str]
    """The file's own columns, by ours; at least name"""


class BoughtShown(msgspec.Struct):
    """Copies with the same price. `cash` or `credit` is null if no budget is left for it."""

    copies: int
    cash: str | None
    credit: str | None


class ValuedRow(msgspec.Struct):
    row: int
    """The line of the file"""
    product_id: int
    product_name: str
    set_name: str
    number: str
    condition: str
    finish: str
    language: str
    copies: int
    bought: list[BoughtShown]
    """The copies that are bought, by what they bring"""
    left: int
    """Copies that are not bought"""
    reason: Reason | None
    """Why copies are not bought; null: all are"""
    reason_text: str | None
    """The same for people"""
    cash: str | None
    """The amount in cash for the copies that are bought; null: none is bought in cash"""
    credit: str | None
    """The amount in credit for the copies that are bought; null: none is bought in credit"""
    price_taken: PriceTakenShown | None
    """The price by which the card was valued; null: none is known, or none was asked for"""
    other_finishes: list[OtherFinish]
    """The finishes that may be chosen in place of an unknown price"""
    rule_id: int | None
    rule_name: str | None
    explanation: list[str]
    finish_said: bool
    """The file says the finish; otherwise it is that of the product"""


class ValuedCollection(msgspec.Struct):
    """The value of a collection's matched rows by the live buy rules. `cash` and `credit` cover the
    bought rows. `not_counted` are the rows without value, of which `without_price` have no known
    price.
    """

    copies: int
    bought: int
    cash: str
    credit: str
    not_counted: int
    """The rows that the amounts leave out"""
    without_price: int
    """The rows of them whose price is unknown"""
    rows: list[ValuedRow]
    """The rows and what each brings"""
    total: int
    page: int
    per_page: int


class Counts(msgspec.Struct):
    """Counts of a collection's rows."""

    copies: int = 0
    matched: int = 0
    waiting: int = 0
    left_out: int = 0


def collection_detail(
    caller: Caller, row: Collection, counts: Counts, left_out_for: list[LeftOut]
) -> CollectionDetail:
    rejected = msgspec.convert(row.rejected, list[RejectedRow])
    if not caller.sees_buyers:
        # A cell in a row with shifted columns may contain a customer's name.
        for one in rejected:
            one.reason = "cannot be read"
    columns = {field: row.header[at] for field, at in (row.columns or {}).items() if row.header}
    return struct_of(
        CollectionDetail,
        row,
        caller,
        **msgspec.structs.asdict(counts),
        samples=caller.buyer(row.samples) or [],
        columns=columns,
        rejected=rejected,
        left_out_for=left_out_for,
    )


class LeftShown(msgspec.Struct):
    """Copies that are not bought for one reason."""

    reason: Reason
    reason_text: str
    copies: int


class EffectShown(msgspec.Struct):
    """The value of a collection by the live rules, and with a draft beside or in place of them."""

    collection_id: int | None
    name: str
    copies: int
    bought: int
    cash: str
    credit: str
    draft_bought: int
    """The copies that the draft would buy"""
    draft_cash: str
    """The amount that the draft would pay in cash, in USD"""
    draft_credit: str
    """The amount that the draft would pay in store credit, in USD"""
    draft_left: list[LeftShown]
    """The copies that the draft would not buy, by reason"""
