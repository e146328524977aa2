"""The whole flow on one file: a pricing export in, a price-updates CSV out, no server and no database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from cardsync import bodies, clock, limits
from cardsync.catalog.condition import condition_columns
from cardsync.catalog.product_lines import NAME_BY_LABEL, NAMES
from cardsync.errors import InvalidCsv
from cardsync.inventory.csv_format import price_updates_csv
from cardsync.inventory.diff import current_price
from cardsync.inventory.parse import Parsed, ProductLines, parse
from cardsync.money import dollars
from cardsync.pricing import engine
from cardsync.pricing.rules import InvalidRule, SellerPricing, preset_rule


def read(path: Path) -> Parsed:
    data = path.read_bytes()
    if bodies.is_gzip(data):
        try:
            data = bodies.inflate(data, limits.BODY_INFLATED_BYTES)
        except bodies.BadGzip as e:
            raise InvalidCsv(f"{path} is damaged gzip: {e}") from e
    return parse(data, ProductLines(NAME_BY_LABEL, NAMES, allow_unknown=True), None)


def price_file(path: Path, out: Path, preset: str) -> Iterator[str]:
    """Writes `out` atomically and yields the story line by line; the original columns of changed rows stay as they were."""
    try:
        rule = preset_rule(preset)
    except InvalidRule as e:
        raise InvalidCsv(str(e)) from e
    parsed = read(path)
    rows = parsed.frame
    described = condition_columns(rows["condition_label"])
    # The file's own time is when the prices were seen; a file copied from elsewhere must not look older than a week old export.
    observed_at = min(datetime.fromtimestamp(path.stat().st_mtime, UTC), clock.now())
    cards = rows.select(
        "quantity", "custom", "market", "low", "low_with_shipping", "direct_low",
        marketplace_id=pl.col("listing_id"), current_price=current_price(rows),
        observed_at=pl.lit(observed_at),
    ).with_columns(described["condition"], described["printing"], described["language"])  # fmt: skip
    priced = engine.price(cards, [rule], SellerPricing(), clock.now())
    rows = rows.with_columns(target_price=priced["target"])
    changed = rows.filter(pl.col("target_price").is_not_null() & pl.col("target_price").ne_missing(pl.col("price")))
    draft = out.with_name(f".{out.name}.part")
    draft.write_bytes(price_updates_csv(changed.sort("listing_id")))
    draft.replace(out)
    yield f"{parsed.rows:,} rows read, {rows.height:,} usable, {parsed.rejected_count:,} rejected, {parsed.duplicates:,} duplicates"
    yield from (f"  line {row.line}: {row.message} ({row.code})" for row in parsed.rejected[:20])
    yield from (f"  line {row.line}: {row.message} ({row.code}, row kept)" for row in parsed.noted[:20])
    told = engine.summary(priced)
    blocked = ", ".join(f"{code} {n:,}" for code, n in told.blocked.items() if n)
    yield f"{told.priced:,} priced by {rule.name}, {changed.height:,} changed" + (
        f"; kept as they are: {blocked}" if blocked else ""
    )
    for row in changed.head(10).iter_rows(named=True):
        old = dollars(row["price"]) if row["price"] is not None else "-"
        yield f"  {row['product_name']} · {row['set_name']} · {row['condition_label']}: {old} → {dollars(row['target_price'])}"
    if engine.breaker(priced):
        yield "Look before you import: more than a fifth of the prices would move by more than half."
    yield f"price updates: {out}"
