"""The loss limits: sums up the price moves by keys, tokens and the automatic mode within the last
hour, day and week, and finds the cards that moved further than allowed without a member's click.

Pure. Amounts are in ten-thousandths of a dollar.

Each move is counted on two sides: `today`, by the price that the change sets now, and `worst`, by
the price after caps and stale cuts have moved it fully, so that a fall spread over a week counts as
a whole. A span's base is the price that the card would have without those writers' moves in the
span, so that many small moves count as one large move.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import polars as pl

Side = Literal["today", "worst"]
SIDES: Final[tuple[Side, ...]] = ("today", "worst")
HOUR_CARD_BP: Final = 2_000
DAY_CARD_BP: Final = 3_000
HOUR_TOUCHED_BP: Final = 2_000
# The default loss budget of a week, as a share of the shop's listed value.
BUDGET_BP: Final = 500
# The limits of a card's move do not apply up to this price ($1), because a cent is a large share of
# it.
CHEAP: Final = 10_000
WHOLE_BP: Final = 10_000
SPANS: Final = (("hour", HOUR_CARD_BP), ("day", DAY_CARD_BP))
PAST: Final[dict[str, type[pl.DataType]]] = {
    "id": pl.Int64,
    "quantity": pl.Int64,
    **{f"{span}_{side}": pl.Int64 for span in ("hour", "day", "week") for side in SIDES},
}
"""Columns of the sums of each card's earlier moves within each span."""


class Sums(msgspec.Struct, frozen=True):
    """The sums of a write and of the earlier moves that no member clicked.

    `hour_cards` and `day_cards` count the cards beyond their limit; `hour_first` and `day_first`
    are the first of these cards. `hour_fallen` is the loss of the write's cards within the hour,
    from their value `hour_before`. `week_fallen` is the shop's loss within the week, or 0 if the
    write lowers no price.
    """

    hour_cards: int = 0
    hour_first: int | None = None
    day_cards: int = 0
    day_first: int | None = None
    hour_before: int = 0
    hour_fallen: int = 0
    week_fallen: int = 0


def summed(moved: pl.DataFrame, past: pl.DataFrame) -> pl.DataFrame:
    """Return the moves with `{side}_step` (this move), `{span}_{side}` (the sum within the span,
    with this move), and `{span}_{side}_base` for hour and day.

    `moved` has the columns id, marketplace_id, quantity, and `{side}` and `{side}_after` for both
    sides.
    """
    frame = moved.join(past.drop("quantity"), on="id", how="left").with_columns(
        pl.col(f"^(hour|day|week)_({'|'.join(SIDES)})$").fill_null(0)
    )
    columns: list[pl.Expr] = []
    for side in SIDES:
        # The first price of a card is no move.
        price = pl.coalesce(side, f"{side}_after").fill_null(0)
        step = pl.coalesce(f"{side}_after", price) - price
        for span in ("hour", "day", "week"):
            earlier = pl.col(f"{span}_{side}")
            base = pl.when(price > earlier).then(price - earlier).otherwise(price)
            columns.append((earlier + step).alias(f"{span}_{side}"))
            if span != "week":
                columns.append(base.alias(f"{span}_{side}_base"))
        columns.append(step.alias(f"{side}_step"))
    return frame.with_columns(columns)


def is_beyond(span: str, limit_bp: int) -> pl.Expr:
    """Return whether a card's summed moves within the span exceed the limit, up or down."""
    far = [
        (pl.max_horizontal(base, base + moved) > CHEAP) & (moved.abs() * WHOLE_BP > base * limit_bp)
        for moved, base in (
            (pl.col(f"{span}_{side}"), pl.col(f"{span}_{side}_base")) for side in SIDES
        )
    ]
    return pl.any_horizontal(far)


def sums_of(frame: pl.DataFrame, past: pl.DataFrame) -> Sums:
    """Return the sums of a write's moves, a result of `summed`, and of all earlier moves of the
    week.
    """
    if frame.is_empty():
        return Sums()
    found: dict[str, int | None] = {}
    for span, limit in SPANS:
        far = frame.filter(is_beyond(span, limit))
        found[f"{span}_cards"] = far.height
        found[f"{span}_first"] = far.select(pl.min("marketplace_id")).item()
    before, fallen = max(
        (_touched(frame, side) for side in SIDES),
        key=lambda pair: pair[1] * WHOLE_BP // pair[0] if pair[0] else 0,
    )
    falls = any((frame[f"{side}_step"] < 0).any() for side in SIDES)
    week = max(_week(frame, past, side) for side in SIDES) if falls else 0
    return Sums(**found, hour_before=before, hour_fallen=fallen, week_fallen=week)  # type: ignore[arg-type]


def _touched(frame: pl.DataFrame, side: Side) -> tuple[int, int]:
    """Return the value of the write's cards at the beginning of the hour, and their loss since
    then.
    """
    copies = pl.col("quantity").cast(pl.Int128)
    row = frame.select(
        before=(pl.col(f"hour_{side}_base") * copies).sum(),
        fallen=(_fall(f"hour_{side}") * copies).sum(),
    ).row(0)
    return int(row[0]), int(row[1])


def _week(frame: pl.DataFrame, past: pl.DataFrame, side: Side) -> int:
    name = f"week_{side}"
    others = past.join(frame.select("id"), on="id", how="anti")
    every = pl.concat([part.select("quantity", name) for part in (frame, others)])
    lost = _fall(name) * pl.col("quantity").cast(pl.Int128)
    return int(every.select(lost.sum()).item())


def _fall(name: str) -> pl.Expr:
    return pl.max_horizontal(-pl.col(name), 0)
