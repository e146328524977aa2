"""Computes the outcome that an import's last transaction stores: report, run and figures. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import polars as pl

from cardsync.agents.seller_state.exported import asks, fingerprint_of
from cardsync.catalog.printings import PRINTINGS
from cardsync.imports import diff
from cardsync.imports.judge_upload import Verdict
from cardsync.imports.parse import Parsed
from cardsync.imports.price import Prices
from cardsync.platform import limits
from cardsync.platform.value_types import JsonObject
from cardsync.prices.decisions import on_sale
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.stock.cards import write


@dataclass(frozen=True)
class Outcome:
    """The result of an import that its last transaction stores: the report, the fingerprint of the
    new export, the file's product lines, the lines that are new to the account, the sets in stock,
    and the counts and values of price moves.
    """

    report: JsonObject
    fingerprint: str
    lines: list[str]
    new_lines: list[str]
    sets: list[str]
    moves: dict[str, int]
    # The key of the run's receipts, and the cards whose prices a cap limits.
    receipts: str | None = None
    limited: pl.DataFrame | None = None
    # The large price moves that the seller confirmed, if the upload needed review for them.
    confirmed: pl.DataFrame | None = None
    # The priced cards and the promotions that set targets; None if the run set no targets.
    sold: on_sale.OnSale | None = None
    reviews: RunFindings | None = None


def _notes_on(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the notes on accepted rows: about unreadable conditions, and about ids that a custom
    listing shares with another card.
    """
    shared = pl.col("custom") & pl.col("listing_id").is_duplicated()
    column = pl.when(shared).then(pl.lit("TCGplayer Id")).otherwise(pl.lit("Condition"))
    code = pl.when(shared).then(pl.lit("shared_id")).otherwise(pl.lit("unreadable_condition"))
    message = (
        pl.when(shared)
        .then(
            pl.format(
                "TCGplayer Id {} is shared by several listings: their prices are not exported",
                "listing_id",
            )
        )
        .otherwise(
            pl.format("Condition '{}' is not known", pl.col("condition_label").str.slice(0, 60)),
        )
    )
    evidence_rows = rows.select(
        "line", "custom", "listing_id", "condition", "condition_label"
    ).filter(shared | pl.col("condition").is_null())
    return evidence_rows.select("line", column=column, code=code, message=message)


def _new_printings(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a note for each unknown printing, with its first line and its number of rows (`len`).
    A condition label without a printing has an empty printing.
    """
    new = rows.select("line", "printing").filter(~pl.col("printing").is_in(["", *PRINTINGS]))
    found = new.group_by("printing").agg(pl.col("line").min(), pl.len())
    message = pl.format("New printing '{}': it is kept as this text in {} rows", "printing", "len")
    return found.select(
        "line", "len", column=pl.lit("Condition"), code=pl.lit("new_printing"), message=message
    )


def _report_of(
    parsed: Parsed,
    rows: pl.DataFrame,
    blocked: dict[str, int],
    verdict: Verdict,
) -> dict[str, object]:
    """Return the upload's report for GET /uploads/{id}, without the matches of new cards."""
    new = _new_printings(rows)
    notes = pl.concat([_notes_on(rows), new.drop("len")]).sort("line", maintain_order=True)
    matches = dict(rows["match"].drop_nulls().value_counts().iter_rows())
    return {
        **_read_as(parsed),
        "rows": parsed.rows,
        "applied": rows.height,
        "new": verdict.new,
        "skipped": parsed.rejected_count,
        "duplicates": parsed.duplicates,
        "rejected_count": parsed.rejected_count,
        "rejected": [asdict(row) for row in parsed.rejected],
        "noted_count": parsed.noted_count + notes.height,
        "noted": [asdict(row) for row in parsed.noted]
        + notes.head(limits.REJECTED_LISTED - len(parsed.noted)).to_dicts(),
        "matched": matches.get("matched", 0),
        "provisional": matches.get("provisional", 0),
        "ambiguous": matches.get("ambiguous", 0),
        "new_printing": int(new["len"].sum()),
        "gone": verdict.gone,
        "priced": 0
        if verdict.review
        else rows.select(pl.col("target_price").is_not_null().sum()).item(),
        "changed": 0 if verdict.review else rows.select((asks() & ~pl.col("gone")).sum()).item(),
        "blocked": blocked,
        "review": verdict.review,
        "product_lines": rows["product_line"].unique().sort().to_list(),
    }


def _read_as(parsed: Parsed) -> dict[str, object]:
    """Return the product lines with which the file was parsed, if the report does not list all
    rejected rows. Parsing the file again with these lines finds the other rejected rows.
    """
    if parsed.rejected_count == len(parsed.rejected):
        return {}
    lines = parsed.read_as
    return {
        "read_as": {
            "enabled": lines.enabled,
            "disabled": lines.disabled,
            "allow_unknown": lines.allow_unknown,
        }
    }


def _sets_of(rows: pl.DataFrame) -> list[str]:
    named = rows.select("set_name", "gone").filter(~pl.col("gone") & (pl.col("set_name") != ""))
    return named["set_name"].unique().sort().to_list()


def outcome_of(
    parsed: Parsed,
    rows: pl.DataFrame,
    stored: pl.DataFrame,
    absent: pl.DataFrame,
    prices: Prices,
    verdict: Verdict,
) -> Outcome:
    """Return the outcome, without the key of receipts and the matches of new cards."""
    exported = diff.exported(rows, stored, absent).with_columns(write.decimal("target_price"))
    return Outcome(
        _report_of(parsed, rows, prices.blocked, verdict),
        fingerprint_of(exported.write_csv(include_header=False).encode()),
        rows["product_line"].unique().to_list(),
        list(parsed.new_lines),
        _sets_of(rows),
        prices.moves,
        limited=prices.limited,
        confirmed=prices.confirmed,
        sold=prices.sold,
        reviews=prices.reviews,
    )
