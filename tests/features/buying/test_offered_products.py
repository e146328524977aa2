"""A collection is matched against a part of the catalog, and finds what all of its sets would find."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl

from buying_builder import PICTURE, a_catalog
from cardsync.buying.collections.collection_cells import KEPT, SCHEMA
from cardsync.buying.collections.match_collection import _found, _joined, keyed_lines, match_rows
from cardsync.buying.collections.offered_products import Offered
from cardsync.catalog.match import CATALOG_KEYS

SCRYFALL = "a20c5a55-1e8b-4f92-b6f1-e7e1a8a1b4d4"
GAMES = ["magic", "pokemon"]


def some_rows(sets: list[tuple[str, str]]) -> pl.DataFrame:
    """Rows that name sets, cards and ids rightly, wrongly and not at all."""
    cards = (
        ("Twin Blade", "8"),
        ("Twin Blade", ""),
        ("Twin Blade (Borderless)", "9"),
        ("Foo - Twin Blade", "8"),
        ("Lone Wolf", "1"),
        ("Nobody", "3"),
        ("", "8"),
    )
    ids: tuple[tuple[int | None, str], ...] = ((None, ""), (880008, ""), (None, SCRYFALL))
    cells: list[dict[str, Any]] = [
        {
            "name": name,
            "number": number,
            "set_name": set_name,
            "set_code": code,
            "listing_id": listing_id,
            "scryfall_id": scryfall_id,
            "game": game,
            "finish": finish,
        }
        for (name, number), (set_name, code), (listing_id, scryfall_id), game, finish in product(
            cards, sets, ids, ("magic", ""), ("Normal", "Foil")
        )
    ]
    usual = {"copies": 1, "condition": "NM", "language": "English", "sku": None, "mtgjson_id": ""}
    kept = {"left_out": False, "reason": "", "text": ""}
    return pl.DataFrame(
        [usual | kept | one | {"row": at, "line": at} for at, one in enumerate(cells)],
        schema=SCHEMA | KEPT,
    )


async def all_of_the_sets(service: Any, keyed: pl.DataFrame) -> Offered:
    """Every product of the sets, codes and, for lines without both, names of the lines."""
    named = [*CATALOG_KEYS]
    columns = ", ".join(["id", "marketplace_product_id", "game", *named])
    sql = f"SELECT {columns}, lower(set_code) AS code FROM product WHERE NOT provisional"
    found = [dict(row) for row in await service.sql(1, sql)]
    texts = {name: pl.String for name in (*named, "game", "code") if name != "sealed"}
    numbers = {"id": pl.Int64, "marketplace_product_id": pl.Int64}
    whole = pl.DataFrame(found, schema_overrides={**texts, **numbers, "sealed": pl.Boolean})
    with_set = pl.col("set_name") != ""
    nowhere = keyed.filter(~with_set & pl.col("code").is_null())
    parts = [
        whole.join(keyed.filter(with_set), on=["game", "set_key"], how="semi"),
        whole.join(keyed, on=["game", "code"], how="semi"),
        whole.join(nowhere, on=["game", "name_key"], how="semi"),
    ]
    catalog = pl.concat(parts).unique("id")
    ids = await service.sql(
        1,
        """SELECT p.id, game, set_key, finish_key, 'listing' AS kind, marketplace_product_id::text AS key
             FROM product p WHERE NOT provisional AND marketplace_product_id IS NOT NULL
            UNION ALL
           SELECT p.id, game, set_key, finish_key, kind, e.id
             FROM product p JOIN product_elsewhere e ON e.product_id = p.id""",
    )
    with_ids = pl.DataFrame(
        [dict(row) for row in ids],
        schema_overrides={"finish_key": pl.String, "id": pl.Int64},
        infer_schema_length=None,
    )
    return Offered(catalog, with_ids)


async def test_the_part_finds_what_the_whole_finds(service, a_seller, tmp_path):
    seller = await a_seller(lines=GAMES)
    picture = PICTURE.format(SCRYFALL)
    here = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Twin Blade", "number": "8", "product_id": "880008"},
        {"product_name": "Twin Blade", "number": "9", "picture_url": picture},
        {"product_name": "Twin Blade (Borderless)", "number": "9"},
    )
    there = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Twin Blade", "number": "8"},
        {"product_name": "Lone Wolf", "number": "1"},
    )
    third = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Lone Wolf", "number": "1", "game": "pokemon", "set_code": "ZQ9"},
    )
    sets = [
        (here.set_name, here.set_code),
        (here.set_name, ""),
        ("", here.set_code),
        ("Nowhere", there.set_code),
        ("ZQ9: Elsewhere", "ZQ9"),
        (third.set_name, ""),
        ("Nowhere", ""),
        ("", ""),
    ]
    rows = some_rows(sets)
    # Alone, and with ids or without, the rows ask for other parts of the catalog.
    for asked in (
        rows,
        rows.filter(pl.col("scryfall_id") == ""),
        rows.filter((pl.col("scryfall_id") == "") & pl.col("listing_id").is_null()),
        rows.filter((pl.col("set_name") == here.set_name) & (pl.col("scryfall_id") == "")),
        rows.filter(pl.col("set_name") == ""),
    ):
        found = await match_rows(service.database, seller.id, GAMES, asked)
        keyed = keyed_lines(asked, GAMES)
        whole = _found(keyed, await all_of_the_sets(service, keyed))
        no_skus = pl.DataFrame(
            schema={
                "sku": pl.Int64,
                "product_id": pl.Int64,
                "of_condition": pl.String,
                "of_finish": pl.String,
                "of_language": pl.String,
            }
        )
        assert found.equals(_joined(asked, whole, no_skus))
    assert {*found["certainty"]} >= {"certain", "possible", None}
