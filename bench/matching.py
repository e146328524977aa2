"""Catalog matching on the shared catalogs: figures for 300,000 generated rows, for the real export
and for ids that two sources share, printed.

    python bench/matching.py [--rows 300000] [--seed 1] [--data ../shared/data] [--list]
        [--vendors FOLDER]

A generated row is right if its product has the truth's game, set, name, number and a finish that
is the truth's or not recorded, or if it is unmatched and the catalogs hold no such product.

FOLDER has a folder for each game, named like its product line, with one catalog of each source
(`flesh_and_blood/fab_cube.csv`) in any form that `cardsync catalog import` reads; the shared
catalogs that have the marketplace's product ids belong to it. `bench/SHARED_IDS.md` says which
sources were measured, and how to lay the folder out again. A row is one product in one of its
printings, as a source writes it, and must lead to the product with its id in the other: the id that
most products of the two share. It is *wrong* where it leads to another id, *waiting* where several
products fit, *missed* where the other source has the id in its printing and nothing fits, *lacking*
where it has the id in other printings alone, and *disputed* where the two sources call the row's
id, or the one that was found, two different cards: one of them is mistaken.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import TypeVar

import polars as pl

from cardsync.catalog.condition import LANGUAGES, condition_columns
from cardsync.catalog.judge_products import strict_variant
from cardsync.catalog.match import LANGUAGE_OF_GAME, catalog_keys, explained, match, row_keys
from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.sources.read import slices
from cardsync.catalog.sources.source_record import IDS
from ground import Report

CATALOGS = ("magic_xmage", "pokemon_tcgdex_en", "pokemon_japan_tcgdex_ja")
COLUMNS = [
    "game",
    "set_name",
    "set_code",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "product_id",
]
WITH_IDS = {"pokemon_tcgdex_en": "pokemon", "pokemon_japan_tcgdex_ja": "pokemon_japan"}
_SPOKEN = {code: f" - {name}" for name, code in LANGUAGES.items() if name != "English"}
SHARED = ("product_id", *IDS)
VERDICTS = ("right", "wrong", "missed", "waiting", "lacking", "disputed")
GAMES = {"Magic": "magic", "Pokemon": "pokemon", "Pokemon Japan": "pokemon_japan"}

T = TypeVar("T")


def timed(label: str, work: Callable[[], T]) -> T:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    result = work()
    took = time.perf_counter() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{label:<44}{took:8.3f} s  peak +{grown:.0f} MB")
    return result


def read_catalogs(data: Path) -> pl.DataFrame:
    frames = [
        pl.read_parquet(data / "catalog" / f"{name}.parquet").select(COLUMNS) for name in CATALOGS
    ]
    return (
        pl.concat(frames)
        .rename({"product_id": "marketplace_product_id"})
        .with_row_index("id", offset=1)
    )


def read_export(path: Path) -> pl.DataFrame:
    export = pl.read_csv(path, infer_schema=False).with_row_index("row")
    return export.select(
        "row",
        pl.col("TCGplayer Id").cast(pl.Int64).alias("sku"),
        pl.col("Product Line").replace(GAMES).alias("game"),
        pl.col("Set Name").alias("set_name"),
        pl.col("Product Name").alias("product_name"),
        pl.col("Number").alias("number"),
        pl.col("Condition").alias("label"),
    )


def keyed(rows: pl.DataFrame) -> pl.DataFrame:
    return row_keys(rows.hstack(condition_columns(rows.get_column("label"))))


def print_outcomes(found: pl.DataFrame) -> None:
    for outcome, reason, count in (
        found.group_by("outcome", "reason").len().sort("len", descending=True).iter_rows()
    ):
        print(f"    {outcome:<10} {reason or '':<18} {count:>8,}")


def generated(
    data: Path, rows: int, seed: int, products: pl.DataFrame, *, listing: bool
) -> tuple[float, int]:
    """The share of right rows, and how many rows have a wrong product."""
    with tempfile.TemporaryDirectory() as folder:
        csv, truth = Path(folder) / "inventory.csv", Path(folder) / "truth.parquet"
        command = [
            sys.executable,
            str(data / "make_inventory.py"),
            "--rows",
            str(rows),
            "--seed",
            str(seed),
            "--game",
            "all",
        ]
        subprocess.run([*command, "--truth", str(truth), "--out", str(csv)], check=True)
        export, truths = read_export(csv), pl.read_parquet(truth)
    row_count = export.height
    print(f"\n{row_count:,} generated rows against {products.height:,} products")
    ready = timed("condition + row keys", lambda: keyed(export))
    timed("match", lambda: match(ready, products))
    found = explained(ready, products)
    judged = judge(export, found, truths, products)
    print_outcomes(found)
    right = int(judged.get_column("right").sum())
    wrong = judged.filter(pl.col("wrong"))
    print(
        f"    right {right:,} of {row_count:,} = {right / row_count:.3%}; wrong products:"
        f" {wrong.height}"
    )
    if listing:
        print_rows(judged.filter(~pl.col("right")))
    return right / row_count, wrong.height


def judge(
    export: pl.DataFrame, found: pl.DataFrame, truths: pl.DataFrame, products: pl.DataFrame
) -> pl.DataFrame:
    fields = ["game", "set_name", "product_name", "number"]
    truth = truths.select(
        "sku", *(pl.col(field).alias(f"true_{field}") for field in [*fields, "finish"])
    )
    # A finish the catalog does not record was written as Normal or Foil by the generator.
    exists = products.select(*(pl.col(field).alias(f"true_{field}") for field in fields)).unique()
    product = products.select(pl.col("id").alias("product_id"), *fields, "finish")
    judged = (
        export.select("row", "sku", "label")
        .join(found, on="row")
        .join(truth, on="sku")
        .join(product, on="product_id", how="left")
        .join(
            exists.with_columns(exists=True), on=list(exists.columns), how="left", nulls_equal=True
        )
    )
    same = pl.all_horizontal(pl.col(field).eq_missing(pl.col(f"true_{field}")) for field in fields)
    same &= pl.col("finish").is_null() | (pl.col("finish") == pl.col("true_finish"))
    matched = pl.col("outcome") == "matched"
    return judged.with_columns(
        (
            (matched & same) | ((pl.col("outcome") == "unmatched") & pl.col("exists").is_null())
        ).alias("right"),
        (matched & ~same).alias("wrong"),
    )


def real(data: Path, products: pl.DataFrame, *, listing: bool) -> float:
    """The share of Magic's single cards that are matched: the shared catalog has no boxes."""
    export = read_export(data / "samples" / "pricing_real_864.csv")
    found = explained(keyed(export), products)
    named = export.join(found, on="row").join(
        products.select(pl.col("id").alias("product_id"), "set_code", catalog_name="product_name"),
        on="product_id",
        how="left",
    )
    print("\nthe real export, all rows")
    print_outcomes(found)
    magic = named.filter((pl.col("game") == "magic") & (pl.col("label") != "Unopened"))
    matched = magic.filter(pl.col("outcome") == "matched")
    print(
        f"    Magic, single cards: {matched.height} of {magic.height} matched ="
        f" {matched.height / magic.height:.2%}; the rest:"
    )
    print_rows(named.filter(pl.col("outcome") != "matched"))
    renamed = matched.filter(pl.col("product_name") != pl.col("catalog_name"))
    print(f"\n    matched under another spelling: {renamed.height}")
    if listing:
        print_rows(renamed)
    return matched.height / magic.height


def sources_of(data: Path, vendors: Path | None) -> dict[str, dict[str, pl.DataFrame]]:
    """Return the cards with ids of each source, by game, where a game has several sources."""
    files = [(game, data / "catalog" / f"{name}.parquet") for name, game in WITH_IDS.items()]
    if vendors is not None:
        files += [(game, path) for game in NAMES for path in sorted((vendors / game).glob("*"))]
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for game, path in files:
        cards = pl.concat(frame.select(*COLUMNS, *IDS) for frame, _ in slices(path, "auto", game))
        sealed = pl.col("finish").eq("Sealed").fill_null(False)
        cards = cards.filter(~sealed, pl.any_horizontal(pl.col(SHARED).is_not_null()))
        found.setdefault(game, {})[path.stem] = cards.unique(maintain_order=True)
    return {game: sources for game, sources in found.items() if len(sources) > 1}


def by_shared_ids(data: Path, vendors: Path | None, *, listing: bool) -> pl.DataFrame:
    """Print the verdicts of each game by pair of sources, treatment and printing, and return all
    rows.
    """
    frames = []
    by = ["treatment", "printing"]
    for game, sources in sources_of(data, vendors).items():
        for ours, theirs in permutations(sources, 2):
            judged = judge_shared(sources[ours], sources[theirs])
            frames.append(judged.select("game", *by, "verdict"))
            print(f"\n{game}: {judged.height:,} rows of {ours} in {theirs}")
            print_verdicts(judged, by)
            if listing:
                bad = judged.filter(pl.col("verdict").is_in(VERDICTS[1:]))
                print_rows(bad.with_columns(reason="verdict").sort("verdict", descending=True))
    if not frames:
        return pl.DataFrame(schema={"verdict": pl.String})
    rows = pl.concat(frames)
    print(f"\nall games: {rows.height:,} rows")
    print_verdicts(rows, ["game"])
    return rows


def print_verdicts(judged: pl.DataFrame, by: list[str]) -> None:
    counts = judged.group_by(by).agg(
        (pl.col("verdict") == verdict).sum().alias(verdict) for verdict in VERDICTS
    )
    for line in (counts.columns, *counts.sort("right", descending=True).iter_rows()):
        words = (f"{value!s:<28}" for value in line[: len(by)])
        print("    " + "".join([*words, *(f"{value:>10}" for value in line[len(by) :])]))


def judge_shared(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Match the cards of one source, as rows of an inventory, in the catalog of another: those
    whose ids both have. A source that records no finish says the plain one.
    """
    kind = max(SHARED, key=lambda name: ours.join(theirs, on=name, how="semi").height)
    shared = pl.col(kind).cast(pl.String)
    products = (
        catalog_keys(theirs.filter(pl.col(kind).is_not_null()))
        .with_columns(their_id=shared)
        .rename({"product_id": "marketplace_product_id"})
        .with_row_index("id", 1)
    )
    # A product that there is in another language alone is a copy in it.
    foreign = pl.col("language").replace_strict(_SPOKEN, default="", return_dtype=pl.String)
    spoken = (
        pl.when(~pl.col("game").is_in(list(LANGUAGE_OF_GAME))).then(foreign).otherwise(pl.lit(""))
    )
    rows = (
        ours.join(theirs, on=kind, how="semi")
        .with_columns(
            label="Near Mint " + pl.col("finish").fill_null("Normal") + spoken, own_id=shared
        )
        .drop("language", *SHARED)
        .unique(maintain_order=True)
        .with_row_index("row")
    )
    keyed = row_keys(rows.hstack(condition_columns(rows["label"])))
    found = match(keyed, products)
    card = ["set_key", "name_key", "number_key"]
    # The cards of the id that was found, and of the id of the row itself.
    of_found = keyed.select(*card, their_id="own_id").unique()
    of_own = products.select(*card, own_id="their_id").unique()
    has_finish = products.select(pl.col("finish_key").alias("in_finish"), own_id="their_id")
    listed = keyed.join(has_finish.unique(), on="own_id").filter(
        pl.col("in_finish").is_null() | (pl.col("in_finish") == pl.col("finish_key"))
    )
    judged = (
        keyed.join(found.rename({"product_id": "id"}), on="row")
        .join(
            products.select(
                pl.col("id").cast(pl.Int64),
                "their_id",
                *(pl.col(key).alias(f"{key}_found") for key in card),
                catalog_name="product_name",
                true_number="number",
                true_finish="finish",
            ),
            on="id",
            how="left",
        )
        .join(
            of_found.with_columns(found_agreed=True),
            left_on=["their_id", *(f"{key}_found" for key in card)],
            right_on=["their_id", *card],
            how="left",
        )
        .join(of_own.with_columns(own_agreed=True), on=["own_id", *card], how="left")
        .join(listed.select("row").unique().with_columns(listed=True), on="row", how="left")
    )
    matched = pl.col("outcome") == "matched"
    verdict = (
        pl.when(pl.col("outcome") == "ambiguous")
        .then(pl.lit("waiting"))
        .when(matched & (pl.col("their_id") == pl.col("own_id")))
        .then(pl.lit("right"))
        .when(matched)
        .then(
            pl.when(pl.col("found_agreed") & pl.col("own_agreed"))
            .then(pl.lit("wrong"))
            .otherwise(pl.lit("disputed"))
        )
        .when("listed")
        .then(pl.lit("missed"))
        .otherwise(pl.lit("lacking"))
    )
    treatment = (
        pl.when(pl.col("variant_key") == "")
        .then(pl.lit("plain"))
        .when(strict_variant("variant_key") == "")
        .then(pl.lit("told by number"))
        .otherwise(pl.lit("other words"))
    )
    return judged.with_columns(verdict=verdict, treatment=treatment)


def print_rows(rows: pl.DataFrame) -> None:
    shown = [
        "reason",
        "game",
        "set_name",
        "true_set_name",
        "product_name",
        "true_product_name",
        "catalog_name",
    ]
    shown += ["number", "true_number", "label", "finish", "true_finish"]
    for line in rows.select(name for name in shown if name in rows.columns).head(400).iter_rows():
        print("      ", " | ".join("" if value is None else str(value) for value in line))


def measure(
    data: Path,
    rows: int,
    *,
    seed: int = 1,
    listing: bool = False,
    vendors: Path | None = None,
) -> Report:
    report = Report("Matching")
    catalogs = read_catalogs(data)
    products = timed(
        f"catalog keys of {catalogs.height:,} products", lambda: catalog_keys(catalogs)
    )
    right, wrong = generated(data, rows, seed, products, listing=listing)
    report.figure("generated rows right by the truth", right * 100, "%")
    report.figure("generated rows with a wrong product", wrong, "")
    matched = real(data, products, listing=listing)
    report.figure("Magic cards of the real export matched", matched * 100, "%")
    shared = by_shared_ids(data, vendors, listing=listing)
    if shared.height:
        wrong = shared.filter(pl.col("verdict") == "wrong").height
        report.note(f"{shared.height:,} cards share an id with another source")
        report.figure("cards led to another source's wrong id", wrong, "")
    return report


def main() -> int:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=here / "../shared/data")
    parser.add_argument(
        "--list", action="store_true", help="also list every row that is not right, and respellings"
    )
    parser.add_argument("--vendors", type=Path, help="catalogs by game, for ids that they share")
    chosen = parser.parse_args()
    if not chosen.data.is_dir():
        print(f"no data at {chosen.data}: nothing measured")
        return 1
    report = measure(
        chosen.data,
        chosen.rows,
        seed=chosen.seed,
        listing=chosen.list,
        vendors=chosen.vendors,
    )
    report.show()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
