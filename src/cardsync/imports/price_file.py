"""Prices a pricing export by a set of rules without a server, and writes the price file or explains
the price of one card.

A database is needed only if a rule or a promotion has a query, because only PostgreSQL evaluates
the search language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from cardsync.agents.seller_state.exported import asks
from cardsync.catalog.condition import condition_columns
from cardsync.catalog.marketplace_columns import COLUMNS, HEADER_ONLY
from cardsync.catalog.product_lines import NAME_BY_LABEL, NAMES
from cardsync.imports.parse import Parsed, ProductLines, parse
from cardsync.platform import clock, limits
from cardsync.platform.database.session import Database
from cardsync.platform.errors import CommandError, InvalidCsv, InvalidRule
from cardsync.platform.kit.csv_table import quoted_frame
from cardsync.platform.money import dollars, dollars_or_none
from cardsync.prices.engine import breaker, engine, preset_rules, rules
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import Effect, simulate
from cardsync.prices.engine.steps import BLOCKERS
from cardsync.prices.inputs.rule_file import RuleSet, read_rule_set
from cardsync.prices.receipts.explain import considered_rules
from cardsync.prices.receipts.sentences import blocker_codes, explain, input_shown
from cardsync.prices.rules.file_queries import resolve, unanswerable
from cardsync.web import bodies

Ask = Callable[[Callable[[Database], Any]], Any]
"""Calls a function with a database, and returns its result."""


def read(path: Path) -> Parsed:
    pieces = bodies.pieces(path.read_bytes(), limits.BODY_INFLATED_BYTES)
    try:
        return parse(pieces, ProductLines(NAME_BY_LABEL, NAMES, allow_unknown=True), None)
    except bodies.BadGzip as e:
        raise InvalidCsv(f"{path} is damaged gzip: {e}") from e


def rule_set(path: Path | None, preset: str) -> RuleSet:
    """Return the file's rules, or the preset's if no file is given. Raises CommandError."""
    if path is None:
        try:
            return RuleSet([preset_rules.preset_rule(preset)])
        except rules.InvalidRule as e:
            raise CommandError(str(e)) from e
    try:
        return read_rule_set(path.read_text(encoding="utf-8-sig"))
    except InvalidRule as e:
        raise CommandError(f"{path}: {e}") from e
    except UnicodeDecodeError as e:
        raise CommandError(f"{path}: is not UTF-8 text") from e


@dataclass(frozen=True)
class Priced:
    """A parsed file, its rows, and the effect of the rules on each row."""

    parsed: Parsed
    rows: pl.DataFrame
    effect: Effect


def priced(
    path: Path,
    given: RuleSet,
    ask: Ask,
    only: int | None = None,
) -> Priced:
    """Price all rows of a file, or only those with the id `only`. Raises InvalidCsv, InvalidQuery."""
    parsed = read(path)
    rows = parsed.frame.hstack(
        condition_columns(parsed.frame["condition_label"]).select(
            "condition", "printing", "language"
        ),
    )
    # The prices in the file were observed when the file was written, so a week-old export has
    # week-old prices. A time in the future counts as now.
    now = clock.now()
    observed_at = min(datetime.fromtimestamp(path.stat().st_mtime, UTC), now)
    run = Run(given.rules, given.seller, now, given.sales)
    cards = rows.select(
        "quantity", "custom", "market", "low", "low_with_shipping", "direct_low", "condition", "printing", "language",
        marketplace_id=pl.col("listing_id"), current_price="price",
        observed_at=pl.lit(observed_at),
    )  # fmt: skip
    if run.queried:
        cards = cards.hstack(ask(lambda database: resolve(database, rows, run)))
    if only is not None:
        asked = pl.col("marketplace_id") == only
        rows, cards = rows.filter(pl.col("listing_id") == only), cards.filter(asked)
    return Priced(parsed, rows, simulate(run, cards))


@dataclass(frozen=True)
class PricedFile:
    """The results of writing a price file: its figures, and lines of text for the terminal."""

    figures: dict[str, Any]
    lines: list[str]


def price_file(path: Path, out: Path, given: RuleSet, ask: Ask) -> PricedFile:
    """Price a file and write its changed rows to `out`. Except the price, their columns are
    unchanged.
    """
    done = priced(path, given, ask)
    parsed = done.parsed
    rows = done.rows.with_columns(target_price=done.effect.cards["target"])
    changed = rows.filter(asks())
    # The marketplace would reject the whole file if an id occurred twice.
    shared = rows.filter(pl.col("quantity") > 0)["listing_id"]
    shared = shared.filter(shared.is_duplicated()).unique().sort()
    changed = changed.filter(~pl.col("listing_id").is_in(shared.implode()))
    write_whole(out, price_updates_csv(changed.sort("listing_id")))
    totals, priced_rows = done.effect.counts, done.effect.cards
    leaps = breaker.stops(priced_rows, breaker.leaps(priced_rows))
    figures = {
        "rows": parsed.rows,
        "usable": rows.height,
        "rejected": parsed.rejected_count,
        "duplicates": parsed.duplicates,
        "priced": totals.priced,
        "changed": changed.height,
        "unpriced": {code: n for code, n in totals.blocked.items() if n},
        "need_review": totals.reviewed,
        "shared_ids": shared.to_list(),
        "many_prices_jump": leaps,
    }
    return PricedFile(figures, [*_story(done, changed, figures), f"price updates: {out}"])


def _story(done: Priced, changed: pl.DataFrame, figures: dict[str, Any]) -> Iterator[str]:
    parsed = done.parsed
    yield (
        f"{figures['rows']:,} rows read, {figures['usable']:,} usable,"
        f" {figures['rejected']:,} rejected, {figures['duplicates']:,} duplicates"
    )
    yield from (f"  line {row.line}: {row.message} ({row.code})" for row in parsed.rejected[:20])
    yield from (
        f"  line {row.line}: {row.message} ({row.code}, row kept)" for row in parsed.noted[:20]
    )
    yield from left_out(done.effect.run)
    blocked = ", ".join(f"{code} {n:,}" for code, n in figures["unpriced"].items())
    live = done.effect.run.live
    by = live[0].name if len(live) == 1 else f"{len(live)} rules"
    yield f"{figures['priced']:,} priced by {by}, {figures['changed']:,} changed" + (
        f"; left as they are: {blocked}" if blocked else ""
    )
    if beyond := figures["need_review"]:
        yield f"{beyond:,} move beyond your review limits, so they stay as they are"
    if shared := figures["shared_ids"]:
        ids = ", ".join(map(str, shared[:10])) + (", …" if len(shared) > 10 else "")
        yield (
            "left out, because a custom listing has the same ID and TCGplayer would refuse the"
            f" file: {ids}"
        )
    for row in changed.head(10).iter_rows(named=True):
        old = dollars(row["price"]) if row["price"] is not None else "-"
        name = f"{row['product_name']} · {row['set_name']} · {row['condition_label']}"
        yield f"  {name}: {old} → {dollars(row['target_price'])}"
    if figures["many_prices_jump"]:
        yield (
            "Check before you import: more than a fifth of the prices would move by more than half."
        )


def write_whole(out: Path, data: bytes) -> None:
    """Write a file, or replace it, in one step, so that no reader sees a part of it. Write directly
    to a path that is not a regular file, such as a terminal or pipe.
    """
    if out.exists() and not out.is_file():
        out.write_bytes(data)
        return
    out = out.resolve()  # A symbolic link is not replaced.
    draft = out.with_name(f".{out.name}.part")
    draft.write_bytes(data)
    draft.replace(out)


def left_out(run: Run) -> Iterator[str]:
    """Yield a line for each rule or promotion that this run does not use, and for each condition
    that needs data which a file does not have.
    """
    for rule in run.rules:
        if rule not in run.live and rule not in run.guards:
            why = "a draft" if rule.state == "draft" else "turned off"
            yield f"  rule “{rule.name}” is {why} and prices nothing"
    for sale in run.sales:
        if sale not in run.active_sales:
            yield f"  promotion “{sale.name}” is not active now"
    for kind, thing in [("rule", rule) for rule in (*run.live, *run.guards)] + [
        ("sale", sale) for sale in run.active_sales
    ]:
        asked = unanswerable(thing.query)
        if asked:
            yield f"  {kind} “{thing.name}” uses {', '.join(asked)}, which a file does not have: it matches no card here"
    if run.stale:
        yield "  a file does not say how long a card has been listed: no stale card is lowered"
    if run.gated or "sales_anchor" in run.sources:
        yield "  a file has no sales or listings: gates stay closed and sales cannot be a source"


def explain_in_file(
    path: Path,
    marketplace_id: int,
    given: RuleSet,
    ask: Ask,
) -> dict[str, object]:
    """Return the explanation of a row's price, with the fields of `GET
    /api/v1/pricing/explain/{marketplace_id}`. Raises CommandError.
    """
    done = priced(path, given, ask, marketplace_id)
    if not done.rows.height:
        raise CommandError(f"{path} has no usable row with the ID {marketplace_id}")
    run = done.effect.run
    row = done.effect.cards.row(-1, named=True)
    card = done.rows.row(-1, named=True)
    # Without queries, every live rule selects every card, and `candidates` is None.
    losing = row["candidates"]
    selecting = [
        rule
        for rule in run.live
        if losing is None or rule.id == row["rule_id"] or rule.id in losing
    ]
    sales = [sale for sale in run.active_sales if not sale.query or sale.id == row["sale_id"]]
    governing = next((rule for rule in selecting if rule.id == row["rule_id"]), None)
    return {
        "marketplace_id": marketplace_id,
        "card": {
            name: card[name]
            for name in ("product_name", "set_name", "number", "condition", "printing")
        },
        "currency": "USD",
        "current_price": dollars_or_none(row["current_price"]),
        "target_price": dollars_or_none(row["target"]),
        "computed_at": clock.rfc3339(run.now),
        "blockers": [
            {"code": code, "message": BLOCKERS[code]} for code in blocker_codes(row["blockers"])
        ],
        "matching_rules": msgspec.to_builtins(considered_rules(selecting, sales, row, run)),
        "governing_rule": governing
        and {
            "id": governing.id,
            "name": governing.name,
            "priority": governing.priority,
        },
        "steps": explain(row, run),
        "inputs": {name: input_shown(name, row[name]) for name in engine.INPUT_COLUMNS},
        "historical_breakdown": None,
        "stale": None,
    }


def price_updates_csv(rows: pl.DataFrame) -> bytes:
    """Return the CSV that the marketplace imports, from parsed rows with a `target_price`, in their
    order.
    """
    cells = {
        **{field: pl.col(field) for field in COLUMNS},
        **{
            field: _in_dollars(field)
            for field in ("market", "direct_low", "low_with_shipping", "low")
        },
        "listing_id": pl.col("listing_id").cast(pl.String),
        "quantity": pl.col("quantity").cast(pl.String),
        "add_to_quantity": pl.lit("0"),
        "price": _in_dollars("target_price"),
    }
    return HEADER_ONLY + quoted_frame(rows.select(**cells))


def _in_dollars(column: str) -> pl.Expr:
    """Return an expression that formats ten-thousandths as dollars with four decimals; null is
    blank.
    """
    units = pl.col(column)
    fraction = (units % 10_000).cast(pl.String).str.zfill(4)
    return ((units // 10_000).cast(pl.String) + "." + fraction).fill_null("")
