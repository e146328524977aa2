"""Cycle counts as the API shows them: rows go in; the JSON's structs come out. The module is
pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from cardsync import clock
from cardsync.money import dollars
from cardsync.shelving.count_reads import CountLine
from cardsync.shelving.count_scores import Suggestion
from cardsync.shelving.models import ShelfCount
from cardsync.shelving.place import Place


class SuggestedCount(msgspec.Struct, kw_only=True):
    """`dropped` counts the pieces that are gone from the marketplace without a sale. `value` and
    `score` are absent for staff who may not see revenue.
    """

    box: int
    cards: int
    quantity: int
    value: str | UnsetType = UNSET
    dropped: int
    counted_at: str | None
    score: str | UnsetType = UNSET
    reasons: list[str]


class SuggestedCounts(msgspec.Struct):
    boxes: list[SuggestedCount]


class CountShown(msgspec.Struct):
    """`trust` is the share of the lines that were seen and correct; null before the end."""

    id: int
    box: int
    slot: int | None
    state: str
    begun_by: str
    begun_at: str
    ended_at: str | None
    lines: int
    correct: int
    wrong: int
    moved: int
    unseen: int
    trust: float | None


class CountLineShown(msgspec.Struct):
    """`drift`: more pieces lie on all shelves together than are on hand; `unshelved_quantity` are
    on hand and lie nowhere.
    """

    card_id: int
    marketplace_id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    slot: int
    code: str
    expected: int
    seen: int | None
    outcome: str | None
    on_hand: int
    drift: bool
    unshelved_quantity: int


class CountInFull(CountShown):
    cards: list[CountLineShown]
    page: int
    per_page: int


class CountHistory(msgspec.Struct):
    """`next_before` asks for the next page; null on the last one."""

    counts: list[CountShown]
    next_before: int | None


def suggested_counts(found: Sequence[Suggestion]) -> SuggestedCounts:
    return SuggestedCounts(
        [
            SuggestedCount(
                box=each.facts.box,
                cards=each.facts.cards,
                quantity=each.facts.quantity,
                value=UNSET if each.score is None else dollars(each.facts.value),
                dropped=each.facts.dropped,
                counted_at=clock.rfc3339(each.facts.counted_at) if each.facts.counted_at else None,
                score=UNSET if each.score is None else str(each.score),
                reasons=each.reasons,
            )
            for each in found
        ]
    )


def count_body(row: ShelfCount) -> CountShown:
    looked = row.correct + row.wrong
    return CountShown(
        id=row.id,
        box=row.box,
        slot=row.slot,
        state=row.state,
        begun_by=row.begun_by,
        begun_at=clock.rfc3339(row.begun_at),
        ended_at=clock.rfc3339(row.ended_at) if row.ended_at else None,
        lines=row.lines,
        correct=row.correct,
        wrong=row.wrong,
        moved=row.moved,
        unseen=row.unseen,
        trust=round(row.correct / looked, 4) if looked else None,
    )


def count_in_full(
    row: ShelfCount,
    lines: Sequence[CountLine],
    page: int,
    per_page: int,
) -> CountInFull:
    told = [
        CountLineShown(
            *line[:7],
            code=Place(row.box, line.slot).code,
            expected=line.expected,
            seen=line.seen,
            outcome=line.outcome,
            on_hand=line.on_hand,
            drift=line.shelved > line.on_hand,
            unshelved_quantity=max(line.on_hand - line.shelved, 0),
        )
        for line in lines
    ]
    shown = msgspec.structs.asdict(count_body(row))
    return CountInFull(**shown, cards=told, page=page, per_page=per_page)


def count_history(rows: Sequence[ShelfCount], per_page: int) -> CountHistory:
    more = rows[-1].id if len(rows) == per_page else None
    return CountHistory([count_body(row) for row in rows], more)
