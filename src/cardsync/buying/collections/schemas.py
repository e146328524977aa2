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
from cardsync.platform.kit.struct_rows import Column, DollarsOrNone, Reads, struct_of

WhichRows = Literal["all", "waiting", "left_out"]
ConditionCode = Literal["NM", "LP", "MP", "HP", "DMG"]
CONDITIONS: Final[tuple[ConditionCode, ...]] = get_args(ConditionCode)
MOST_CHOICES = 200


_Label = Annotated[str, Column("format"), Reads(lambda form: LABELS.get(form, ""))]


class CollectionShown(msgspec.Struct):
    """A customer's file. `rows` is the number of its cards, of which `read` are matched so far and
    `waiting` wait for a choice. `name` and `samples` are empty for a caller who may not see buyers.

    In the state `needs_columns`, no format has the file's header: `header` has the file's columns,
    `samples` some of its rows, and `columns` proposed meanings of the columns.
    """

    id: int
    name: BuyerText
    state: CollectionState
    format: str
    format_label: _Label
    read_as: str
    """The file's encoding and separators, if they are unusual, such as: separated by ;"""
    rows: int
    """The number of cards in the file"""
    read: int
    copies: int
    matched: int
    waiting: int
    left_out: int
    empty: int
    """The number of rows without copies"""
    rejected_count: int
    """The number of rows that could not be read as a card; they wait with their text"""
    error: str | None
    received_at: datetime
    finished_at: datetime | None
    created_by: str


class LeftOut(msgspec.Struct):
    """The number of rows that are left out for one reason in the file."""

    reason: str
    """The reason, such as a proxy"""
    rows: int


class CollectionDetail(CollectionShown):
    header: list[str]
    samples: list[list[str]]
    columns: dict[str, str]
    """The names of the file's columns, by our fields"""
    rejected: list[RejectedRow]
    left_out_for: list[LeftOut]
    """The rows that are left out because of values in the file, by reason"""


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
    """A row of a collection. `row` is its number: the line of the file or, for the second card of a
    line, a number after the last line. `name`, `set_name`, `set_code` and `number` are from the
    file.
    """

    row: int
    """The row's number, which choices refer to"""
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
    """Whether the row is left out of the offer"""
    line: int
    """The line of the file"""
    reason: str
    """Why the row waits or is left out, if a value in the file is the cause; otherwise empty"""
    text: str | None
    """The row's text in the file, if the row could not be read as a card"""
    finish_said: bool
    """Whether the finish is from the file; otherwise it is the product's finish"""


class RowPage(msgspec.Struct):
    rows: list[RowShown]
    """The rows of the page"""
    total: int
    page: int
    per_page: int


class WaitingRow(RowShown):
    """A row that waits for a choice, and its candidates, the most similar first."""

    candidates: list[CandidateShown]
    alike: int
    """The number of rows that the same choice settles, including this row"""


class WaitingRows(msgspec.Struct):
    rows: list[WaitingRow]
    """The rows that wait for a choice"""
    waiting: int


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """A choice for a row. Without a product, the row is left out. The other fields replace the
    values of the file; an unknown condition that is not replaced becomes Damaged.
    """

    row: Annotated[int, msgspec.Meta(ge=1)]
    """The number of the row"""
    product_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    condition: ConditionCode | None = None
    """The condition that replaces the file's condition"""
    finish: Annotated[str, msgspec.Meta(min_length=1, max_length=60)] | None = None
    """The printing that replaces the file's finish"""
    copies: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    """The number of copies that replaces the file's number"""


class Choices(msgspec.Struct, forbid_unknown_fields=True):
    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=MOST_CHOICES)]
    """The choices, at most 200"""


class Chosen(msgspec.Struct):
    """The number of rows that the choices settled, and of rows that still wait."""

    settled: int
    """The number of rows that the choices settled"""
    waiting: int


class NamedColumns(msgspec.Struct, forbid_unknown_fields=True):
    """The meanings of the file's columns."""

    columns: dict[str, str]
    """The names of the file's columns by our fields, at least for `name`"""


class BoughtShown(msgspec.Struct):
    """Copies with the same price. `cash` is null if no budget for cash is left; `credit` is null if
    no budget for credit is left.
    """

    copies: int
    cash: DollarsOrNone
    credit: DollarsOrNone


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
    """The copies that are bought, by price"""
    left: int
    """The number of copies that are not bought"""
    reason: Reason | None
    """Why copies are not bought; null if all are bought"""
    reason_text: str | None
    """The reason as a sentence"""
    cash: str | None
    """The amount in cash for the bought copies; null if none is bought in cash"""
    credit: str | None
    """The amount in credit for the bought copies; null if none is bought in credit"""
    price_taken: PriceTakenShown | None
    """The price by which the card was valued; null if no price is known or needed"""
    other_finishes: list[OtherFinish]
    """The finishes with a known price, one of which may be chosen if the card's price is unknown"""
    rule_id: int | None
    rule_name: str | None
    explanation: list[str]
    finish_said: bool
    """Whether the finish is from the file; otherwise it is the product's finish"""


class ValuedCollection(msgspec.Struct):
    """The value of a collection's matched rows by the live buy rules. `cash` and `credit` are the
    sums of the bought rows. `not_counted` rows are not bought, of which `without_price` have no
    known price.
    """

    copies: int
    bought: int
    cash: str
    credit: str
    not_counted: int
    """The number of rows that are not bought"""
    without_price: int
    """The number of rows that are not bought because their price is unknown"""
    rows: list[ValuedRow]
    """The rows with their values"""
    total: int
    page: int
    per_page: int


class Counts(msgspec.Struct):
    """The numbers of a collection's copies and of its matched, waiting and left-out rows."""

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
    """The value of a collection by the live rules, and by the live rules with a draft, which may
    replace one of them.
    """

    collection_id: int | None
    name: str
    copies: int
    bought: int
    cash: str
    credit: str
    draft_bought: int
    """The number of bought copies with the draft"""
    draft_cash: str
    """The amount in cash with the draft, in USD"""
    draft_credit: str
    """The amount in store credit with the draft, in USD"""
    draft_left: list[LeftShown]
    """The copies that are not bought with the draft, by reason"""
